//! Who does what, for whoever looks: each connection says it in its entry of the coordination file
//! and in the ring of the last commits, with plain stores. Only looking makes system calls.

use crate::connection::state::Connection;
use crate::index::{self, Index};
use crate::shared::commits::RecentCommit;
use crate::shared::coordination::Word;
use crate::shared::entries::{LINE, Told, told};
use crate::shared::locks;
use crate::watch::{self, LockEntry, Reader};
use dash_engine::error::{Context, Operation, Result};
use dash_engine::handover;
use dash_storage::{File, LockKind, Storage};
use std::time::Duration;

/// What a connection says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// It has WRITER.
    Writes,
    /// It has CKPT.
    Checkpoints,
    /// It reads.
    Reads,
}

impl<S: Storage> Connection<S> {
    /// The last 1,000 commits of the database, through all connections of dash since the first one
    /// opened it, the newest one first.
    #[must_use]
    pub fn recent_commits(&self) -> Vec<RecentCommit> {
        self.files.shared.recent_commits()
    }

    /// Who has which lock, and who waits for WRITER, in line.
    ///
    /// # Errors
    ///
    /// Those of looking at locks.
    pub fn lock_entries(&self) -> Result<Vec<LockEntry>> {
        let (c, now) = (&self.files.shared, self.files.storage.monotonic_nanos());
        let taken = match &self.index.open {
            Some(index) => index.is_taken(index::WRITE..index::WRITE + 1, &c.file)?,
            None => {
                let taken = c.file.lock_conflict(locks::WRITER, LockKind::Exclusive);
                taken.during(Operation::Lock, self.files.names.shown_coordination())?.is_some()
            }
        };
        Ok(watch::lock_entries(&*c.memory, &c.living()?, taken, now))
    }

    /// Who reads, of dash and of stock SQLite.
    ///
    /// # Errors
    ///
    /// Those of looking at locks.
    pub fn readers(&self) -> Result<Vec<Reader>> {
        let c = &self.files.shared;
        watch::readers(&*c.memory, &c.living()?, self.index.open.as_ref())
    }

    /// The processes that say so of themselves, since when, and the byte of the coordination file
    /// that the connection has locked; but for this one. It makes no system call, and so whoever
    /// was killed may be among them.
    #[must_use]
    pub fn told(&self, doing: Doing) -> Vec<(u32, Duration, u64)> {
        let (c, now) = (&self.files.shared, self.files.storage.monotonic_nanos());
        let told = |entry, what| told(&*c.memory, entry, what);
        let used = LINE.used(c.get(Word::EntryHigh));
        let others = used.filter(|entry| c.entry != Some(*entry));
        others
            .filter_map(|entry| {
                let since = match doing {
                    Doing::Writes => told(entry, Told::Writes),
                    Doing::Checkpoints => told(entry, Told::Checkpoints),
                    Doing::Reads if told(entry, Told::Reads) == 0 => 0,
                    Doing::Reads => told(entry, Told::ReadsSince),
                };
                let process = u32::try_from(told(entry, Told::Process)).ok()?;
                let age = Duration::from_nanos(now.saturating_sub(since));
                (since != 0).then(|| (process, age, handover::entry(entry).start))
            })
            .collect()
    }

    /// Whether another connection checkpoints, and has WRITER for that; of stock SQLite's ones it
    /// can't be told what they have.
    #[must_use]
    pub fn is_checkpoint_writing(&self) -> bool {
        let checkpoints = self.told(Doing::Checkpoints);
        let writes = self.told(Doing::Writes);
        let is_stocks = self.index.open.as_ref().is_some_and(Index::is_stock_checkpointing);
        writes.iter().any(|(.., byte)| checkpoints.iter().any(|(.., other)| other == byte))
            || is_stocks
    }
}
