//! The wal-index, as one connection has it: its locks, how long WRITER was waited for, and what its
//! header says.

use crate::connection::files::Files;
use crate::frames::{Salts, pack};
use crate::index::{self, Index, IndexHeader, Inherited};
use crate::mutation::{Mutation, broken};
use crate::shared::coordination::Word;
use crate::shared::entries::Told;
use crate::shared::locks::REST;
use crate::watch::GIVEN_UP;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_storage::{File, LockKind, Storage};
use std::ops::Range;
use std::time::Duration;

/// WRITER alone.
pub(crate) const WRITER: Range<usize> = index::WRITE..index::WRITE + 1;

/// How often the header is read until it is whole.
const LOOKS: usize = 1000;

/// How long a header that is being written is waited for.
const TORN: Duration = Duration::from_millis(5);

/// How often it is looked at.
const TORN_PAUSE: Duration = Duration::from_micros(50);

/// For how long whoever wants WRITER or CKPT waits for somebody who comes to rest: longer than two
/// flushes take on a slow device.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often a lock is tried meanwhile.
const PAUSE: Duration = Duration::from_micros(100);

/// The wal-index, and what a connection knows of it.
pub(crate) struct WalIndex<S: Storage> {
    /// Since SQLite used it first.
    pub open: Option<Index<S>>,
    /// The one that SQLite knows from before a fork, until the one of now is in its place.
    pub inherited: Option<Inherited<S>>,
    /// WRITER was taken ahead of SQLite, by a sleep of its busy handler.
    pub reserved: bool,
    patience: Patience,
}

/// How long WRITER was waited for, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Patience {
    /// The first attempt that failed since it was had last; 0: none did.
    since: u64,
    /// The last one.
    asked: u64,
    /// How long it was, before it was had last.
    waited: u64,
    /// What [`Word::Rested`] was when somebody who came to rest was waited for in vain.
    in_vain: Option<u64>,
}

impl<S: Storage> Default for WalIndex<S> {
    fn default() -> Self {
        Self { open: None, inherited: None, reserved: false, patience: Patience::default() }
    }
}

impl<S: Storage> WalIndex<S> {
    /// The header, where it is whole.
    pub fn header(&self) -> Option<IndexHeader> {
        self.open.as_ref().and_then(Index::header)
    }

    /// Whether a slot is held, exclusively.
    pub fn holds(&self, slot: usize) -> bool {
        let held = self.open.as_ref().and_then(|index| index.held(slot));
        held == Some(LockKind::Exclusive)
    }

    /// Takes slots.
    pub fn lock(&mut self, slots: Range<usize>, kind: LockKind, files: &Files<S>) -> Result<()> {
        let Some(index) = &mut self.open else { return Err(Error::Busy) };
        index.lock(slots, kind, &files.shared.file)
    }

    /// Gives slots up.
    pub fn unlock(&mut self, slots: Range<usize>, files: &Files<S>) -> Result<()> {
        match &mut self.open {
            Some(index) => index.unlock(slots, &files.shared.file),
            None => Ok(()),
        }
    }

    /// Takes them, if nobody has them but somebody who comes to rest.
    pub fn lock_past_rest(
        &mut self,
        slots: &Range<usize>,
        kind: LockKind,
        files: &Files<S>,
    ) -> Result<()> {
        let rested = files.shared.get(Word::Rested);
        let changes = kind == LockKind::Exclusive && slots.start <= index::CKPT;
        match self.lock(slots.clone(), kind, files) {
            Err(Error::Busy) if changes && self.open.is_some() => {
                self.past_rest(slots, rested, files)
            }
            got => got,
        }
    }

    /// An attempt to get slots has failed: makes it again, as long as it is for somebody who comes
    /// to rest. Nobody is refused for that. `rested` is what [`Word::Rested`] was before it.
    #[cold]
    fn past_rest(&mut self, slots: &Range<usize>, mut rested: u64, files: &Files<S>) -> Result<()> {
        let begun = files.storage.monotonic_nanos();
        // Its process was stopped. A busy handler tries many times, and counts no time but its own.
        let is_in_vain =
            self.patience.in_vain == Some(rested) && !broken(Mutation::StoppedWaitedForAgain);
        while !is_in_vain && meets_rest(rested, files)? {
            rested = files.shared.get(Word::Rested);
            match self.lock(slots.clone(), LockKind::Exclusive, files) {
                Err(Error::Busy) => {}
                other => return other,
            }
            let waited = files.storage.monotonic_nanos().saturating_sub(begun);
            if waited >= nanos(PATIENCE) {
                self.patience.in_vain = Some(rested);
                break;
            }
            files.storage.sleep(PAUSE);
        }
        Err(Error::Busy)
    }

    /// Takes slots that others may have until then.
    pub fn wait_for(
        &mut self,
        slots: Range<usize>,
        deadline: u64,
        files: &Files<S>,
    ) -> Result<bool> {
        loop {
            if self.open.is_none() {
                return Ok(false);
            }
            match self.lock(slots.clone(), LockKind::Exclusive, files) {
                Ok(()) => return Ok(true),
                Err(Error::Busy) if files.storage.monotonic_nanos() < deadline => {}
                Err(Error::Busy) => return Ok(false),
                Err(error) => return Err(error),
            }
            files.storage.sleep(PAUSE);
        }
    }

    /// Whether somebody writes or copies pages: a flush would be for nothing.
    pub fn is_somebody_at_work(&self, files: &Files<S>) -> Result<bool> {
        let Some(index) = &self.open else { return Ok(false) };
        index.is_taken(index::WRITE..index::CKPT + 1, &files.shared.file)
    }

    /// The salts in the header. It is torn while a writer writes it, for as long as that takes.
    pub fn visible_generation(&self) -> Option<Salts> {
        let index = self.open.as_ref()?;
        let looks = std::iter::repeat_with(|| index.header()).take(LOOKS);
        looks.flatten().next().map(|header| header.salts)
    }

    /// The last visible frame of this generation, with a checksum or without. `None`: the header
    /// does not become whole.
    pub fn end(&self, files: &Files<S>) -> Option<u32> {
        let mut waited = Duration::ZERO;
        loop {
            if let Some(header) = self.open.as_ref()?.header() {
                let ours = pack(header.salts) == files.shared.get(Word::Salts);
                return Some(if ours { header.mx_frame } else { 0 });
            }
            if waited >= TORN {
                return None;
            }
            files.storage.sleep(TORN_PAUSE);
            waited += TORN_PAUSE;
        }
    }

    /// The last frame that is visible and can be read back: one's own, and what came behind it.
    pub fn end_of_round(&self, own: u32, files: &Files<S>) -> u32 {
        if broken(Mutation::OwnFramesOnly) {
            return own;
        }
        let c = &files.shared;
        let ours = self.header().filter(|header| pack(header.salts) == c.get(Word::Salts));
        ours.map_or(own, |header| c.summed_end(header.mx_frame).max(own))
    }

    /// An attempt at WRITER failed.
    pub fn missed_writer(&mut self, files: &Files<S>) {
        let now = files.storage.monotonic_nanos();
        let Patience { since, asked, .. } = &mut self.patience;
        if *since == 0 || now.saturating_sub(*asked) > GIVEN_UP {
            *since = now;
            files.shared.tell(Told::Waits, now);
        }
        *asked = now;
        files.shared.tell(Told::Asked, now);
    }

    /// WRITER was had.
    pub fn got_writer(&mut self, files: &Files<S>) {
        let now = files.storage.monotonic_nanos();
        let Patience { since, asked, .. } = self.patience;
        let waited = match since != 0 && now.saturating_sub(asked) <= GIVEN_UP {
            true => now - since,
            false => 0,
        };
        self.patience = Patience { waited, ..Patience::default() };
        files.shared.set_writing(true);
        files.shared.tell(Told::Waits, 0);
        files.shared.tell(Told::Writes, now);
    }

    /// How long it was waited for, in nanoseconds.
    pub fn waited(&self) -> u64 {
        self.patience.waited
    }

    /// Slots were taken.
    pub fn note_lock(&mut self, slots: &Range<usize>, kind: LockKind, files: &Files<S>) {
        let c = &files.shared;
        if slots.contains(&index::CKPT) && kind == LockKind::Exclusive {
            c.tell(Told::Checkpoints, files.storage.monotonic_nanos());
        }
        if slots.start >= index::READ && kind == LockKind::Shared {
            c.tell(Told::ReadsSince, files.storage.monotonic_nanos());
            c.tell(Told::Reads, slots.start as u64 + 1);
        }
    }

    /// The slot under which SQLite reads.
    pub fn read_slot(&self) -> Option<usize> {
        let index = self.open.as_ref()?;
        (index::READ..index::SLOTS).find(|&slot| index.held(slot) == Some(LockKind::Shared))
    }
}

/// Whether somebody comes to rest now, or has since `rested` was read.
fn meets_rest<S: Storage>(rested: u64, files: &Files<S>) -> Result<bool> {
    let c = &files.shared;
    if c.get(Word::Rested) != rested {
        return Ok(true);
    }
    if !c.is(Word::Resting) {
        return Ok(false);
    }
    // The word of a dead one stays.
    let holder = c.file.lock_conflict(REST, LockKind::Exclusive);
    let lives = holder.during(Operation::Lock, files.names.shown_coordination())?.is_some();
    Ok(lives || c.get(Word::Rested) != rested)
}

/// Nanoseconds of a time.
pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
