//! A connection of the engine as the calls of SQLite find it, and what SQLite is told after a rest.
//!
//! SQLite notices nothing, as between two of its transactions it holds no lock and knows that
//! anybody may have written: it compares the header's version bytes with those of its cache. These
//! may happen to be the same after very many sessions, or where a file was restored. So after a
//! rest in which the state has changed they are answered wrong, once, and it reads all anew. The
//! same is done with the schema's number if it may be another database by now: SQLite would go on
//! with the schema that it knows. Should that number be written, every connection reads the schema
//! again, and no more.

use std::ops::{Deref, DerefMut, Range};
use std::time::Instant;

use dash_engine::error::Error as EngineError;
use dash_engine::locks::LockLevel;
use dash_storage::Storage;
use dash_storage::real::Real;

use super::at_rest::Left;
use super::engine::Rollback;
use crate::mapping::Maps;
use crate::mode::Parameters;
use crate::mode::linked::Locked;

/// See [`Link`](super::link::Link).
pub struct State<E> {
    /// None: at rest, or closed.
    pub(super) engine: Option<E>,
    pub maps: Maps,
    /// What is chosen, for the next engine, too.
    pub(super) chosen: Parameters,
    pub(super) left: Left,
    /// Transactions that SQLite has begun.
    pub used: u64,
    /// The state has changed at rest, and SQLite has not looked since.
    pub(super) is_stale: bool,
    /// It may be another database by now, and SQLite has not looked since.
    pub(super) is_another: bool,
    /// When somebody was waited for in vain, who opens or closes the database.
    pub(super) gave_up: Option<Instant>,
}

/// An engine that is open, and nobody else's until this is dropped.
pub struct Held<'a, E>(pub(super) Locked<'a, State<E>>);

impl<E: Rollback> Held<'_, E> {
    /// The engine and the mappings.
    pub fn parts(&mut self) -> (&mut E, &mut Maps) {
        let State { engine: Some(engine), maps, .. } = &mut *self.0 else { not_open() };
        (engine, maps)
    }

    /// SQLite begins a transaction.
    pub fn is_used(&mut self) {
        self.0.used += 1;
    }

    /// Reads as SQLite does.
    ///
    /// # Errors
    ///
    /// The engine's.
    pub fn read(
        &mut self,
        buffer: &mut [u8],
        offset: u64,
    ) -> core::result::Result<usize, EngineError> {
        let read = DerefMut::deref_mut(self).read(buffer, offset)?;
        if (self.0.is_stale || self.0.is_another) && self.level() > LockLevel::None {
            self.0.answer_wrong(&mut buffer[..read], offset);
        }
        Ok(read)
    }
}

/// The bytes of the header by which SQLite sees that its cache is old (pager.c `dbFileVers`).
const VERSION_AT: u64 = 24;
const VERSION_LEN: usize = 16;
/// And those by which it sees that its schema is, within page 1.
const SCHEMA: Range<usize> = 40..44;

#[cold]
fn not_open() -> ! {
    unreachable!("it was opened under the lock that is still held")
}

impl<E> Deref for Held<'_, E> {
    type Target = E;

    #[inline]
    fn deref(&self) -> &E {
        match &self.0.engine {
            Some(engine) => engine,
            None => not_open(),
        }
    }
}

impl<E> DerefMut for Held<'_, E> {
    #[inline]
    fn deref_mut(&mut self) -> &mut E {
        match &mut self.0.engine {
            Some(engine) => engine,
            None => not_open(),
        }
    }
}

impl<E: Rollback> State<E> {
    /// What SQLite has just read, if it is what tells it that its cache, or schema, is old.
    #[cold]
    pub(super) fn answer_wrong(&mut self, read: &mut [u8], offset: u64) {
        if self.is_stale && offset == VERSION_AT && read.len() == VERSION_LEN {
            self.is_stale = false;
            for half in read.chunks_exact_mut(8) {
                half.copy_from_slice(&Real.random().to_ne_bytes());
            }
        }
        if self.is_another
            && offset == 0
            && let Some(number) = read.get_mut(SCHEMA)
        {
            self.is_another = false;
            for (byte, random) in number.iter_mut().zip(Real.random().to_ne_bytes()) {
                *byte = random;
            }
        }
    }

    /// Whether an engine is open, and what the newest commit is.
    pub fn newest(&self) -> Option<u64> {
        self.engine.as_ref().map(E::sequence)
    }

    /// Whether the engine may not be let go: it is in a transaction, as a rule.
    pub fn is_at_work(&self) -> bool {
        self.engine.as_ref().is_some_and(|engine| !engine.is_idle())
    }

    /// Whether somebody has written.
    pub fn is_written(&self) -> bool {
        self.engine.as_ref().is_some_and(E::is_written)
    }

    /// Puts what `PRAGMA`s have chosen into `parameters`.
    pub fn keep(&self, parameters: &mut Parameters) {
        for name in E::CHOSEN {
            if let Some(value) = self.chosen.own(name) {
                parameters.set_own(name, value);
            }
        }
    }
}
