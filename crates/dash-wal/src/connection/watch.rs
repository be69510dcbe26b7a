//! Who does what, for whoever looks: each connection says it in its entry of the coordination file
//! and in the ring of the last commits, with plain stores. Only looking makes system calls.

use crate::connection::state::{CommitFrame, Connection, Patience};
use crate::frames::frame_size;
use crate::index::{self, Index};
use crate::shared::commits::RecentCommit;
use crate::shared::entries::Told;
use crate::shared::locks;
use dash_engine::error::{Context, Operation, Result};
use dash_storage::{File, LockKind, Storage};
use std::ops::Range;

/// A connection that has not asked again for so long, in nanoseconds, waits no more. SQLite's busy
/// handler sleeps for 100 ms at most.
const GIVEN_UP: u64 = 500_000_000;

/// A lock that connections of dash have, or wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockName {
    /// WAL_WRITE_LOCK: to commit.
    Writer,
    /// WAL_CKPT_LOCK: to copy pages into the database.
    Checkpoint,
}

/// Who holds a lock, or waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockEntry {
    /// Which lock.
    pub lock: LockName,
    /// The process, if it is known.
    pub process: Option<u32>,
    /// Its place in line; 0: it holds the lock.
    pub place: u32,
    /// Since when, by the storage's clock in nanoseconds.
    pub since: Option<u64>,
}

/// Who reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reader {
    /// The process, if it is known.
    pub process: Option<u32>,
    /// A connection of dash; else of stock SQLite.
    pub is_ours: bool,
    /// Since when, by the storage's clock in nanoseconds.
    pub since: Option<u64>,
    /// The last frame of `-wal` that it sees; 0: it reads the database alone.
    pub frame: Option<u32>,
    /// Bytes of `-wal` behind that frame: no checkpoint can copy them before it ends.
    pub kept_bytes: Option<u64>,
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
    pub(super) fn note_lock(&self, slots: &Range<usize>, kind: LockKind) {
        if slots.contains(&index::CKPT) && kind == LockKind::Exclusive {
            self.coordination.tell(Told::Checkpoints, self.storage.monotonic_nanos());
        }
        if slots.start >= index::READ && kind == LockKind::Shared {
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
        let (mut held, mut waits) = (Vec::new(), Vec::new());
        let place = |lock, entry, what, place| LockEntry {
            lock,
            process: u32::try_from(c.told(entry, Told::Process)).ok(),
            place,
            since: Some(c.told(entry, what)),
        };
        let holders = [(LockName::Writer, Told::Writes), (LockName::Checkpoint, Told::Checkpoints)];
        for entry in c.living()? {
            let holds = holders.into_iter().filter(|(_, what)| c.told(entry, *what) != 0);
            held.extend(holds.map(|(lock, what)| place(lock, entry, what, 0)));
            let (since, ticket) = (c.told(entry, Told::Waits), c.told(entry, Told::Ticket));
            let asks = now.saturating_sub(c.told(entry, Told::Asked)) <= GIVEN_UP;
            if since != 0 && (ticket != 0 || asks) {
                waits.push((ticket.wrapping_sub(1), since, entry));
            }
        }
        // Without an entry of its own a connection can't say that it has it.
        let taken = c.file.lock_conflict(locks::WRITER, LockKind::Exclusive);
        let taken = taken.during(Operation::Lock, self.names.shown_coordination())?;
        if taken.is_some() && held.iter().all(|held| held.lock != LockName::Writer) {
            held.push(LockEntry { lock: LockName::Writer, process: None, place: 0, since: None });
        }
        // Whoever has a ticket comes first; the others take their chance.
        waits.sort_unstable();
        held.extend(
            (1..)
                .zip(waits)
                .map(|(line, (.., entry))| place(LockName::Writer, entry, Told::Waits, line)),
        );
        Ok(held)
    }

    /// Who reads, of dash and of stock SQLite.
    ///
    /// # Errors
    ///
    /// Those of looking at locks.
    pub fn readers(&self) -> Result<Vec<Reader>> {
        let c = &self.coordination;
        let index = self.index.as_ref();
        let header = index.and_then(Index::header);
        let sees = |slot: usize| {
            let frame = index.and_then(|index| index.mark(slot))?;
            Some(if slot == index::READ { 0 } else { frame })
        };
        let kept = |frame: u32| {
            let header = header.filter(|_| frame != 0)?;
            let frames = u64::from(header.mx_frame.saturating_sub(frame));
            Some(frames * frame_size(header.page_size))
        };
        let reader = |slot, process, is_ours, since| {
            let frame = sees(slot);
            let kept_bytes = frame.map(|frame| kept(frame).unwrap_or(0));
            Reader { process, is_ours, since, frame, kept_bytes }
        };
        let (mut readers, mut ours) = (Vec::new(), 0_u16);
        for entry in c.living()? {
            let Some(slot) = usize::try_from(c.told(entry, Told::Reads))
                .ok()
                .and_then(|told| told.checked_sub(1))
                .filter(|slot| (index::READ..index::SLOTS).contains(slot))
            else {
                continue;
            };
            let process = u32::try_from(c.told(entry, Told::Process)).ok();
            readers.push(reader(slot, process, true, Some(c.told(entry, Told::ReadsSince))));
            ours |= 1 << slot;
        }
        for slot in index::READ..index::SLOTS {
            let Some(index) = index else { break };
            let mut stock = index.stock_holders(slot)?;
            match index.others(slot)? {
                // Who is not in the list is in another pid namespace, and has no number here.
                Some(process) if process != 0 && !stock.contains(&process) => stock.push(process),
                // Locks of an open file description, as dash takes them, name no process.
                Some(0) if ours & 1 << slot == 0 => readers.push(reader(slot, None, true, None)),
                _ => {}
            }
            readers.extend(stock.into_iter().map(|process| {
                let process = u32::try_from(process).ok().filter(|process| *process > 0);
                reader(slot, process, false, None)
            }));
        }
        Ok(readers)
    }

    /// Now, by the storage's clock, in nanoseconds: what times of others are compared with.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.storage.monotonic_nanos()
    }
}
