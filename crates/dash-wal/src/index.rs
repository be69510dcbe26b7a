//! The wal-index `-shm` of one connection: its name, its regions in memory, its locks.
//!
//! As os_unix.c has it (`unixShmMap`, `unixShmLock`, `unixShmUnmap`), with locks of an open file
//! description, and one difference: SQLite's first three slots.
//!
//! | slot | SQLite's byte of `-shm` | dash holds |
//! |---|---|---|
//! | 0 WRITE | 120 | that byte shared, for life; its own lock is byte 1 of the coordination file |
//! | 1 CKPT | 121 | the same; byte 5 |
//! | 2 RECOVER | 122 | the same; byte 6 |
//! | 3 to 7 READ | 123 to 127 | that byte, as SQLite does |
//! | | 128, the dead-man switch | that byte shared, for life |
//!
//! So stock SQLite reads along, and its writers and checkpointers find the database locked, as
//! long as any connection of dash is there; among themselves those of dash are apart by the private
//! bytes (WAL-17).
//!
//! With `dash_stock=write` it writes along ([`Index::let_in`]):
//!
//! | slot | dash holds |
//! |---|---|
//! | WRITE | byte 1 of the coordination file, and then byte 120, as SQLite does |
//! | CKPT, RECOVER | byte 5 or 6 there, and SQLite's shared; in a session of the log shared throughout |
//! | READ | that byte, as SQLite does; 127 in a session shared throughout |
//! | | byte 119 of `-shm`, which SQLite doesn't use, shared, for life |
//!
//! While a session lasts stock SQLite neither checkpoints, nor recovers the index, nor begins
//! `-wal` anew: for that it needs all slots of readers, and nobody gets the last one ([`guard`]).
//!
//! With `dash_stock=checkpoint` it does all of that, a session or not: nothing is held throughout
//! but 119, and SQLite's byte of CKPT shared while a writer of dash begins `-wal` anew.
//!
//! Whoever gets the dead-man switch exclusively knows that nobody has the index, and empties it:
//! what it holds may be from before a power loss.
//!
//! In memory ([`crate::memory`]) the regions and all slots are one process's own, and `-shm` has a
//! header that stock SQLite refuses.

mod attach;
mod found;
mod guard;
mod header;
mod inherited;
mod locking;
mod pages;
mod seen;
mod slots;
mod view;
mod voided;

pub(crate) use found::FoundIndex;
pub(crate) use header::{End, IndexHeader, RawHeader, decode};
pub(crate) use inherited::Inherited;
pub(crate) use seen::{Seen, Slots};
pub(crate) use slots::{CKPT, READ, SLOTS, WRITE};

use crate::frames::Checksum;
use crate::memory::index::{Region, Seat, Slots as Places};
use crate::options::Stock;
use attach::{attach, is_named};
use dash_engine::beside::open_or_make;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::locks::share;
use dash_storage::{Directory, File, LockKind, REGION, SharedMemory, Storage};
use slots::BASE;
use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

/// Words of a region of 32 KiB; SQLite asks for no other size (WALINDEX_PGSZ).
const WORDS: usize = 4096;
const _: () = assert!(WORDS as u64 * 8 == REGION);

/// The bytes of WRITE, CKPT and RECOVER in `-shm`.
const STOCK: Range<u64> = BASE..BASE + 3;

/// A byte of `-shm` that SQLite doesn't use: a connection of dash is attached that lets writers in.
const ATTACHED: Range<u64> = BASE - 1..BASE;

/// UNIX_SHM_DMS.
pub(crate) const DEAD_MAN_SWITCH: Range<u64> = 128..129;

/// How often opening is tried while somebody else makes, empties or removes the index.
const ATTEMPTS: usize = 50;

/// The time between two of them: those are a few calls.
const PAUSE: Duration = Duration::from_micros(200);

/// Which others have an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Others {
    /// Nobody of dash, and nobody of stock SQLite is at work, nor begins to.
    Nobody,
    /// A connection of dash, or, where stock writers are kept out, one of them at work.
    Some,
    /// Nobody of dash; somebody of stock SQLite is at work.
    Stock,
}

/// Where an index is.
enum Home<F> {
    /// In `-shm`, with its name.
    File(F, OsString),
    /// In this process's memory.
    Memory(Seat),
}

/// The wal-index of one connection, open and attached.
pub(crate) struct Index<S: Storage> {
    home: Home<S::File>,
    /// What messages call it.
    shown: String,
    /// The regions mapped so far. They stay where they are until the index is unmapped, as SQLite
    /// keeps pointers into them.
    regions: Vec<Option<Region<<S::File as File>::Memory>>>,
    /// The places of those that SQLite sees something else of ([`view`]), with their numbers.
    covered: Vec<(usize, <S::File as File>::Memory)>,
    /// Bit i: slot i is held, shared.
    shared: u16,
    /// Bit i: slot i is held, exclusively.
    exclusive: u16,
    /// Bit i: SQLite has given slot i up, and the call for that failed: SQLite takes no notice.
    given_up: u16,
    /// What stock SQLite may do.
    stock: Stock,
    /// What keeps stock checkpoints out is held, see [`guard`].
    guards: bool,
    /// Nobody else has it, nor gets it; and what it holds may be from before a power loss.
    is_as_left: bool,
    /// What keeps them out while `-wal` is begun anew is held.
    restarts: bool,
}

impl<S: Storage> Index<S> {
    /// Opens the index of the name `name`, which is made if need be, with the rights of the
    /// database. If nobody has it, it is emptied; or, without `empties`, it stays as it was left,
    /// and nobody gets it until it is unmapped. Stock writers come in until [`Self::exclude`] or
    /// [`Self::readmit`].
    ///
    /// # Errors
    ///
    /// `Busy` where somebody empties or removes the index and doesn't come to an end; `CantOpen`
    /// for one that is another file, too; those of the calls.
    pub(crate) fn open(
        storage: &S,
        directory: &S::Directory,
        name: &OsStr,
        database: &S::File,
        empties: bool,
    ) -> Result<Self> {
        let shown = name.to_string_lossy().into_owned();
        for _ in 0..ATTEMPTS {
            let (file, is_made) = open_or_make(storage, directory, (name, &shown), database)?;
            let files = (&file, is_made, database);
            let attached = attach::<S>(directory, (name, &shown), files, empties)?;
            if let Some(switch) = attached
                && is_named::<S>(directory, name, &file, &shown)?
            {
                let index = Self::new(Home::File(file, name.to_owned()), shown);
                return Ok(Self { is_as_left: switch == LockKind::Exclusive, ..index });
            }
            // SQLite's connections of one process share an attachment; those of dash meet here when
            // a program opens several at once, and none should be told that it is busy.
            storage.sleep(PAUSE);
        }
        Err(Error::Busy)
    }

    /// One that is in memory, for another connection. `shown`: what messages call it.
    pub(crate) fn in_memory(places: &Arc<Places>, shown: String) -> Self {
        Self::new(Home::Memory(Seat::new(Arc::clone(places))), shown)
    }

    fn new(home: Home<S::File>, shown: String) -> Self {
        Self {
            home,
            shown,
            regions: Vec::new(),
            covered: Vec::new(),
            shared: 0,
            exclusive: 0,
            given_up: 0,
            stock: Stock::Read,
            guards: false,
            is_as_left: false,
            restarts: false,
        }
    }

    /// Lets stock SQLite in so far, as all connections do that have the index. It is not attached
    /// yet.
    pub(crate) fn let_in(&mut self, stock: Stock) {
        self.stock = if self.file().is_some() { stock } else { Stock::Read };
    }

    fn lets_writers(&self) -> bool {
        self.stock >= Stock::Write
    }

    /// Whether it is in no file.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.file().is_none()
    }

    /// `-shm`, if it is there.
    fn file(&self) -> Option<&S::File> {
        match &self.home {
            Home::File(file, _) => Some(file),
            Home::Memory(_) => None,
        }
    }

    /// The first byte of region `index`, which stays mapped there until the index is unmapped.
    /// `None`: there is none yet, and `extend` doesn't ask for it to be made. Two connections don't
    /// extend at once: SQLite asks for that under WRITE.
    pub(crate) fn map_region(&mut self, index: usize, extend: bool) -> Result<Option<NonNull<u8>>> {
        match self.is_viewed(index) {
            true => self.map_viewed(index),
            false => self.map_shared(index, extend),
        }
    }

    fn map_shared(&mut self, index: usize, extend: bool) -> Result<Option<NonNull<u8>>> {
        if let Some(Some(memory)) = self.regions.get(index) {
            return Ok(NonNull::new(memory.start()));
        }
        let missing = (index + 1).saturating_sub(self.regions.len());
        self.regions.try_reserve(missing).map_err(|_| Error::OutOfMemory)?;
        let memory = match &self.home {
            Home::File(file, _) => {
                let offset = index as u64 * REGION;
                let len = file.metadata().during(Operation::Stat, &self.shown)?.len;
                if len < offset + REGION && !extend {
                    return Ok(None);
                }
                let memory = file.shared_region(offset, WORDS);
                Region::File(memory.during(Operation::Map, &self.shown)?)
            }
            Home::Memory(seat) => match seat.of.region(index, extend) {
                Some(words) => Region::Memory(words),
                None => return Ok(None),
            },
        };
        let start = NonNull::new(memory.start());
        self.regions.resize_with(self.regions.len() + missing, || None);
        self.regions[index] = Some(memory);
        Ok(start)
    }

    /// Takes SQLite's bytes of WRITE, CKPT and RECOVER exclusively, if there is nobody else: then
    /// nobody, of dash or not, writes, checkpoints or attaches until [`Self::readmit`].
    ///
    /// # Errors
    ///
    /// `Busy` for one in memory; those of the calls.
    pub(crate) fn exclude(&mut self) -> Result<Others> {
        let Some(file) = self.file() else { return Err(Error::Busy) };
        let take =
            |bytes| file.try_lock(bytes, LockKind::Exclusive).during(Operation::Lock, &self.shown);
        if self.lets_writers() && !take(ATTACHED)? {
            return Ok(Others::Some);
        }
        if take(STOCK)? {
            return Ok(Others::Nobody);
        }
        if !self.lets_writers() {
            return Ok(Others::Some);
        }
        file.unlock(ATTACHED).during(Operation::Lock, &self.shown)?;
        Ok(Others::Stock)
    }

    /// Is one of dash's from here on: stock SQLite reads, and its writers wait, or are let in.
    ///
    /// # Errors
    ///
    /// `Busy` where a stock one is at work and writers are kept out, or somebody of dash has the
    /// index for itself.
    pub(crate) fn readmit(&mut self) -> Result<()> {
        let Some(file) = self.file() else { return Ok(()) };
        if !self.lets_writers() {
            return share(file, STOCK, &self.shown);
        }
        share(file, ATTACHED, &self.shown)?;
        file.unlock(STOCK).during(Operation::Lock, &self.shown)
    }

    /// Gives up all locks and all memory. With `delete` the name goes, too, if nobody else has the
    /// index: SQLite asks for that where it has the database exclusively.
    pub(crate) fn unmap(
        mut self,
        directory: &S::Directory,
        coordination: &S::File,
        delete: bool,
    ) -> Result<()> {
        let released = self.end_view().and(self.release(u16::MAX, coordination));
        self.regions.clear();
        let Home::File(file, name) = &self.home else { return released };
        let alone = delete && {
            let switch = file.try_lock(DEAD_MAN_SWITCH, LockKind::Exclusive);
            switch.during(Operation::Lock, &self.shown)?
        };
        if alone && is_named::<S>(directory, name, file, &self.shown)? {
            directory.unlink(name).during(Operation::Delete, &self.shown)?;
        }
        released
    }

    /// The shared header, where both copies are the same, initialised and whole. `None` also means
    /// that one is being written right now, or that its writer died over it; and that region 0 is
    /// not mapped.
    pub(crate) fn header(&self) -> Option<IndexHeader> {
        header::read(self.regions.first()?.as_ref()?)
    }

    /// What SQLite ends each copy of the header with: of another state it is another one. `None`:
    /// region 0 is not mapped.
    pub(crate) fn header_sum(&self) -> Option<u64> {
        Some(header::sum(self.regions.first()?.as_ref()?))
    }

    /// Whether checkpoints have copied every commit. `None`: the header is torn, or not mapped.
    pub(crate) fn is_backfilled(&self) -> Option<bool> {
        let end = self.header()?.mx_frame;
        Some(header::backfilled(self.regions.first()?.as_ref()?) >= end)
    }

    /// The page that the visible frame `frame` holds. `None`: its part of the index is not mapped
    /// here, or is being made anew.
    pub(crate) fn page_of(&self, frame: u32) -> Option<u32> {
        let (region, at) = pages::place(frame)?;
        pages::page(self.regions.get(region)?.as_ref()?, at)
    }

    /// Says that frame `last`, if that is the last one, has another checksum than the header has.
    /// WRITE is held.
    pub(crate) fn set_frame_checksum(&self, last: u32, sums: Checksum) {
        if let Some(Some(memory)) = self.regions.first() {
            header::set_frame_checksum(memory, last, sums);
        }
    }

    /// Whatever index this is: its header is no other's (WAL-21). WRITE is held.
    pub(crate) fn tell_apart(&self, random: impl FnOnce() -> u64) {
        if let Some(Some(memory)) = self.regions.first() {
            header::tell_apart(memory, random);
        }
    }
}

impl<S: Storage> Slots for Index<S> {
    fn header(&self) -> Option<IndexHeader> {
        Self::header(self)
    }

    fn mark(&self, slot: usize) -> Option<u32> {
        header::mark(self.regions.first()?.as_ref()?, slot.checked_sub(READ)?)
    }

    fn others(&self, slot: usize) -> Result<Option<i32>> {
        match &self.home {
            Home::File(file, _) => seen::others(file, slot, &self.shown),
            Home::Memory(seat) => Ok(seat.of.is_held(slot).then_some(0)),
        }
    }

    fn stock_holders(&self, slot: usize) -> Result<Vec<i32>> {
        self.file().map_or(Ok(Vec::new()), |file| seen::stock_holders(file, slot, &self.shown))
    }
}

#[cfg(test)]
mod tests;
