//! Housekeeping refuses nobody: a connection that meets a lock of it waits, inside the lock call
//! and whatever its host's busy handler says, for as long as housekeeping takes to give it back.
//!
//! The connection that keeps house (settling, [`crate::connection::settle`]; finishing what a dead
//! writer decided, [`crate::connection::decided`]) says so by a lock of its own, taken before the
//! lock in question and released after it: KEEPS_WRITER and KEEPS_SHADOW. It goes with its process,
//! so nobody waits for the dead. The shared words only save calls: while nobody keeps house a
//! failed attempt costs two loads. A count that a dead process left costs a call each.
//!
//! WRITER is held for moments, never across the copying of pages, and across no flush but that of a
//! name fence. The shadow is held while pages are copied; a connection that wants it says so in a
//! word that is looked at between two pieces. A stopped process keeps its locks: how long it is
//! waited for is in [`crate::connection::begin`].

use crate::shared::coordination::{Coordination, Word};
use crate::shared::locks;
use dash_engine::error::{Context, Operation, Result};
use dash_storage::{File, LockKind};
use std::ops::Range;
use std::sync::atomic::Ordering::SeqCst;

impl<F: File> Coordination<F> {
    /// Locks that housekeeping has given back: read it before a lock attempt.
    pub(crate) fn given_back(&self) -> u64 {
        self.word(Word::GivenBack).load(SeqCst)
    }

    /// Whether a lock attempt failed for housekeeping; `given_back` is what was read before it.
    pub(crate) fn met_housekeeping(&self, kept: &Range<u64>, given_back: u64) -> Result<bool> {
        if self.given_back() != given_back {
            return Ok(true);
        }
        if self.word(Word::Kept).load(SeqCst) == 0 {
            return Ok(false);
        }
        let holder = self.file.lock_conflict(kept.clone(), LockKind::Exclusive);
        let alive = holder.during(Operation::Lock, "the coordination file")?.is_some();
        Ok(alive || self.given_back() != given_back)
    }

    /// Says that a lock is about to be taken for housekeeping. `false`: somebody else keeps house.
    pub(crate) fn keep(&self, kept: &Range<u64>) -> Result<bool> {
        let got = self
            .file
            .try_lock(kept.clone(), LockKind::Exclusive)
            .during(Operation::Lock, "the coordination file")?;
        if got {
            self.word(Word::Kept).fetch_add(1, SeqCst);
        }
        Ok(got)
    }

    /// Says that it has been given back, or was not got.
    pub(crate) fn keep_no_longer(&self, kept: &Range<u64>) -> Result<()> {
        self.word(Word::GivenBack).fetch_add(1, SeqCst);
        self.word(Word::Kept).fetch_sub(1, SeqCst);
        self.file.unlock(kept.clone()).during(Operation::Lock, "the coordination file")
    }

    /// Takes WRITER for housekeeping. `false`: somebody has it.
    pub(crate) fn keep_writer(&self) -> Result<bool> {
        if !self.keep(&locks::KEEPS_WRITER)? {
            return Ok(false);
        }
        let got = self.try_writer();
        if !matches!(got, Ok(true)) {
            self.keep_no_longer(&locks::KEEPS_WRITER)?;
        }
        got
    }

    /// Gives it back.
    pub(crate) fn give_writer_back(&self) -> Result<()> {
        let released = self.release_writer();
        let told = self.keep_no_longer(&locks::KEEPS_WRITER);
        released.and(told)
    }

    /// Whether a writer wants the shadow that housekeeping has.
    pub(crate) fn is_shadow_wanted(&self) -> bool {
        self.word(Word::ShadowWanted).load(SeqCst) != 0
    }

    /// Says whether one does.
    pub(crate) fn want_shadow(&self, wanted: bool) {
        self.word(Word::ShadowWanted).store(u64::from(wanted), SeqCst);
    }
}
