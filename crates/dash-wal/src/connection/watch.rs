//! Who does what, for whoever looks: each connection says it in its entry of the coordination file
//! and in the ring of the last commits, with plain stores. Only looking makes system calls.

use crate::connection::state::{CommitFrame, Connection, Patience};
use crate::frames::frame_size;
use crate::index::{self, Index};
use crate::shared::commits::RecentCommit;
use crate::shared::coordination::Word;
use crate::shared::entries::{LINE, Told, told};
use crate::shared::locks;
use crate::watch::{self, GIVEN_UP, LockEntry, Reader};
use dash_engine::error::{Context, Operation, Result};
use dash_engine::handover;
use dash_storage::{File, LockKind, Storage};
use std::ops::Range;
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
    /// An attempt at WRITER failed.
    pub(super) fn missed_writer(&mut self) {
        let now = self.storage.monotonic_nanos();
        let Patience { since, asked, .. } = &mut self.patience;
        if *since == 0 || now.saturating_sub(*asked) > GIVEN_UP {
            *since = now;
            self.coordination.tell(Told::Waits, now);
        }
        *asked = now;
        self.coordination.tell(Told::Asked, now);
    }

    /// WRITER was had.
    pub(super) fn got_writer(&mut self) {
        let now = self.storage.monotonic_nanos();
        let Patience { since, asked, .. } = self.patience;
        let waited = match since != 0 && now.saturating_sub(asked) <= GIVEN_UP {
            true => now - since,
            false => 0,
        };
        self.patience = Patience { waited, ..Patience::default() };
        self.coordination.tell(Told::Waits, 0);
        self.coordination.tell(Told::Writes, now);
    }

    /// Slots of the wal-index were taken.
    pub(super) fn note_lock(&mut self, slots: &Range<usize>, kind: LockKind) {
        if slots.contains(&index::CKPT) && kind == LockKind::Exclusive {
            self.coordination.tell(Told::Checkpoints, self.storage.monotonic_nanos());
        }
        if slots.start >= index::READ && kind == LockKind::Shared {
            // SQLite gives the slot up again where this is not what it has read before.
            self.read_header = self.index.as_ref().and_then(Index::header_sum);
            self.coordination.tell(Told::ReadsSince, self.storage.monotonic_nanos());
            self.coordination.tell(Told::Reads, slots.start as u64 + 1);
        }
    }

    /// Slots of the wal-index are given up.
    pub(super) fn note_unlock(&self, slots: &Range<usize>) {
        let told = [(index::WRITE, Told::Writes), (index::CKPT, Told::Checkpoints)];
        for (_, what) in told.into_iter().filter(|(slot, _)| slots.contains(slot)) {
            self.coordination.tell(what, 0);
        }
        if slots.start >= index::READ && slots.len() == 1 {
            self.coordination.tell(Told::Reads, 0);
        }
    }

    /// A commit is as durable as it has to be.
    pub(super) fn note_commit(&self, own: CommitFrame, at: u64, flush: Option<u64>) {
        self.coordination.note_commit(&RecentCommit {
            at,
            process: self.coordination.process,
            frames: own.frames,
            wait: self.patience.waited,
            flush,
            record: flush.and_then(|_| self.coordination.record_of(own.number)),
        });
    }

    /// The last 1,000 commits of the database, through all connections of dash since the first one
    /// opened it, the newest one first.
    #[must_use]
    pub fn recent_commits(&self) -> Vec<RecentCommit> {
        self.coordination.recent_commits()
    }

    /// Who has which lock, and who waits for WRITER, in line.
    ///
    /// # Errors
    ///
    /// Those of looking at locks.
    pub fn lock_entries(&self) -> Result<Vec<LockEntry>> {
        let (c, now) = (&self.coordination, self.storage.monotonic_nanos());
        let taken = match &self.index {
            Some(index) => index.is_taken(index::WRITE..index::WRITE + 1, &c.file)?,
            None => {
                let taken = c.file.lock_conflict(locks::WRITER, LockKind::Exclusive);
                taken.during(Operation::Lock, self.names.shown_coordination())?.is_some()
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
        let c = &self.coordination;
        watch::readers(&*c.memory, &c.living()?, self.index.as_ref())
    }

    /// The processes that say so of themselves, since when, and the byte of the coordination file
    /// that the connection has locked; but for this one. It makes no system call, and so whoever
    /// was killed may be among them.
    #[must_use]
    pub fn told(&self, doing: Doing) -> Vec<(u32, Duration, u64)> {
        let (c, now) = (&self.coordination, self.storage.monotonic_nanos());
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

    /// The bytes of `-wal` where a checkpoint has some to copy still; it makes no system call.
    #[must_use]
    pub fn uncopied_wal(&self) -> Option<u64> {
        let (index, (_, page)) = (self.index.as_ref()?, self.page?);
        let end = index.header()?.mx_frame;
        (index.is_backfilled() == Some(false)).then(|| u64::from(end) * frame_size(page))
    }

    /// Whether somebody has committed since this connection began to read: then it can't write.
    #[must_use]
    pub fn is_outdated(&self) -> bool {
        let Some(index) = &self.index else { return false };
        self.read_header.is_some_and(|read| index.header_sum() != Some(read))
    }

    /// Now, by the storage's clock, in nanoseconds: what times of others are compared with.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.storage.monotonic_nanos()
    }
}
