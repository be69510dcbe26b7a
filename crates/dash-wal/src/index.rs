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
//! Whoever gets the dead-man switch exclusively knows that nobody has the index, and empties it:
//! what it holds may be from before a power loss.

mod header;
mod inherited;
mod pages;
mod seen;
mod slots;

pub(crate) use header::{CHECKPOINTS_END, IndexHeader, checkpoints};
pub(crate) use inherited::Inherited;
pub(crate) use seen::{Seen, Slots};
pub(crate) use slots::{CKPT, READ, SLOTS, WRITE};

use crate::frames::Checksum;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::locks::share;
use dash_storage::{Directory, File, LockKind, Metadata, OpenMode, REGION, SharedMemory, Storage};
use slots::{BASE, Piece, mask, pieces};
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::ops::Range;
use std::ptr::NonNull;
use std::time::Duration;

/// Words of a region of 32 KiB; SQLite asks for no other size (WALINDEX_PGSZ).
const WORDS: usize = 4096;
const _: () = assert!(WORDS as u64 * 8 == REGION);

/// The bytes of WRITE, CKPT and RECOVER in `-shm`.
const STOCK: Range<u64> = BASE..BASE + 3;

/// UNIX_SHM_DMS.
const DEAD_MAN_SWITCH: Range<u64> = 128..129;

/// The rights of everybody but the owner.
const OTHERS: u32 = 0o077;

/// How often opening is tried while somebody else makes, empties or removes the index.
const ATTEMPTS: usize = 50;

/// The time between two of them: those are a few calls.
const PAUSE: Duration = Duration::from_micros(200);

/// The wal-index of one connection, open and attached.
pub(crate) struct Index<S: Storage> {
    file: S::File,
    name: OsString,
    /// What messages call it.
    shown: String,
    /// The regions mapped so far. They stay where they are until the index is unmapped, as SQLite
    /// keeps pointers into them.
    regions: Vec<Option<<S::File as File>::Memory>>,
    /// Bit i: slot i is held, shared.
    shared: u16,
    /// Bit i: slot i is held, exclusively.
    exclusive: u16,
    /// Bit i: SQLite has given slot i up, and the call for that failed: SQLite takes no notice.
    given_up: u16,
}

impl<S: Storage> Index<S> {
    /// Opens the index of the name `name`, which is made if need be, with the rights of the
    /// database, and emptied if nobody has it.
    ///
    /// # Errors
    ///
    /// `Busy` where a stock SQLite writes, checkpoints or recovers, or somebody empties or removes
    /// the index and doesn't come to an end; those of the calls.
    pub(crate) fn open(
        storage: &S,
        directory: &S::Directory,
        name: &OsStr,
        database: &S::File,
    ) -> Result<Self> {
        let shown = name.to_string_lossy().into_owned();
        for _ in 0..ATTEMPTS {
            if let Some(file) = open_file::<S>(directory, name, database, &shown)?
                && attach(&file, database, &shown)?
                && is_named::<S>(directory, name, &file, &shown)?
            {
                share(&file, STOCK, &shown)?;
                let (name, regions) = (name.to_owned(), Vec::new());
                let (shared, exclusive, given_up) = (0, 0, 0);
                return Ok(Self { file, name, shown, regions, shared, exclusive, given_up });
            }
            // SQLite's connections of one process share an attachment; those of dash meet here when
            // a program opens several at once, and none should be told that it is busy.
            storage.sleep(PAUSE);
        }
        Err(Error::Busy)
    }

    /// The first byte of region `index`, which stays mapped there until the index is unmapped.
    /// `None`: there is none yet, and `extend` doesn't ask for it to be made. Two connections don't
    /// extend at once: SQLite asks for that under WRITE.
    pub(crate) fn map_region(&mut self, index: usize, extend: bool) -> Result<Option<NonNull<u8>>> {
        if let Some(Some(memory)) = self.regions.get(index) {
            return Ok(NonNull::new(memory.start()));
        }
        let offset = index as u64 * REGION;
        let len = self.file.metadata().during(Operation::Stat, &self.shown)?.len;
        if len < offset + REGION && !extend {
            return Ok(None);
        }
        let missing = (index + 1).saturating_sub(self.regions.len());
        self.regions.try_reserve(missing).map_err(|_| Error::OutOfMemory)?;
        let memory = self.file.shared_region(offset, WORDS).during(Operation::Map, &self.shown)?;
        let start = NonNull::new(memory.start());
        self.regions.resize_with(self.regions.len() + missing, || None);
        self.regions[index] = Some(memory);
        Ok(start)
    }

    /// Takes slots, as `xShmLock` does: all of them or none. What is held already in that way is
    /// nothing to do. `coordination` is this connection's description of the coordination file.
    ///
    /// # Errors
    ///
    /// `Busy` where another connection's lock is in the way, or this one holds one of them in the
    /// other way: a slot is given up before it changes its kind.
    pub(crate) fn lock(
        &mut self,
        slots: Range<usize>,
        kind: LockKind,
        coordination: &S::File,
    ) -> Result<()> {
        let wanted = mask(&slots);
        if self.given_up & wanted != 0 {
            self.release(self.given_up & wanted, coordination)?;
        }
        let (held, other) = match kind {
            LockKind::Shared => (self.shared, self.exclusive),
            LockKind::Exclusive => (self.exclusive, self.shared),
        };
        if other & wanted != 0 {
            return Err(Error::Busy);
        }
        let mut taken = 0;
        for piece in pieces(wanted & !held) {
            match self.take(&piece, kind, coordination) {
                Ok(()) => taken |= piece.slots,
                Err(error) => {
                    self.release(taken, coordination)?;
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, piece: &Piece, kind: LockKind, coordination: &S::File) -> Result<()> {
        let (file, name) = self.home(piece, coordination);
        let got = file.try_lock(piece.bytes.clone(), kind).during(Operation::Lock, name)?;
        if !got {
            return Err(Error::Busy);
        }
        match kind {
            LockKind::Shared => self.shared |= piece.slots,
            LockKind::Exclusive => self.exclusive |= piece.slots,
        }
        Ok(())
    }

    /// Gives slots up, however they are held. SQLite's own bytes of WRITE, CKPT and RECOVER stay
    /// with this connection, shared.
    pub(crate) fn unlock(&mut self, slots: Range<usize>, coordination: &S::File) -> Result<()> {
        self.release(mask(&slots), coordination)
    }

    fn release(&mut self, slots: u16, coordination: &S::File) -> Result<()> {
        for piece in pieces(slots & (self.shared | self.exclusive)) {
            let (file, name) = self.home(&piece, coordination);
            let unlocked = file.unlock(piece.bytes.clone()).during(Operation::Lock, name);
            if unlocked.is_err() {
                self.given_up |= slots & (self.shared | self.exclusive);
            }
            unlocked?;
            self.shared &= !piece.slots;
            self.exclusive &= !piece.slots;
            self.given_up &= !piece.slots;
        }
        Ok(())
    }

    /// Gives up what should have been before.
    pub(crate) fn unlock_left(&mut self, coordination: &S::File) -> Result<()> {
        self.release(self.given_up, coordination)
    }

    fn home<'a>(&'a self, piece: &Piece, coordination: &'a S::File) -> (&'a S::File, &'a str) {
        match piece.private {
            true => (coordination, "the coordination file"),
            false => (&self.file, &self.shown),
        }
    }

    /// How this connection holds a slot.
    pub(crate) fn held(&self, slot: usize) -> Option<LockKind> {
        let slot = mask(&(slot..slot + 1));
        match (self.shared & slot != 0, self.exclusive & slot != 0) {
            (true, _) => Some(LockKind::Shared),
            (_, true) => Some(LockKind::Exclusive),
            _ => None,
        }
    }

    /// Takes SQLite's bytes of WRITE, CKPT and RECOVER exclusively: nobody, of dash or not, writes,
    /// checkpoints or attaches until [`Self::readmit`].
    ///
    /// # Errors
    ///
    /// `Busy` where any other connection of dash is attached, or a stock one has got in between.
    pub(crate) fn exclude(&mut self) -> Result<()> {
        match self.file.try_lock(STOCK, LockKind::Exclusive).during(Operation::Lock, &self.shown)? {
            true => Ok(()),
            false => Err(Error::Busy),
        }
    }

    /// Holds them shared again.
    pub(crate) fn readmit(&mut self) -> Result<()> {
        share(&self.file, STOCK, &self.shown)
    }

    /// Gives up all locks and all memory. With `delete` the name goes, too, if nobody else has the
    /// index: SQLite asks for that where it has the database exclusively.
    pub(crate) fn unmap(
        mut self,
        directory: &S::Directory,
        coordination: &S::File,
        delete: bool,
    ) -> Result<()> {
        let released = self.release(u16::MAX, coordination);
        self.regions.clear();
        let alone = delete && {
            let switch = self.file.try_lock(DEAD_MAN_SWITCH, LockKind::Exclusive);
            switch.during(Operation::Lock, &self.shown)?
        };
        if alone && is_named::<S>(directory, &self.name, &self.file, &self.shown)? {
            directory.unlink(&self.name).during(Operation::Delete, &self.shown)?;
        }
        released
    }

    /// The shared header, where both copies are the same, initialised and whole. `None` also means
    /// that one is being written right now, or that its writer died over it; and that region 0 is
    /// not mapped.
    pub(crate) fn header(&self) -> Option<IndexHeader> {
        header::read(self.regions.first()?.as_ref()?)
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
        seen::others(&self.file, slot, &self.shown)
    }

    fn stock_holders(&self, slot: usize) -> Result<Vec<i32>> {
        seen::stock_holders(&self.file, slot, &self.shown)
    }
}

/// Opens the file, or makes one that has the database's rights before it has a byte; `None` if
/// somebody else is about to, or has just removed it.
fn open_file<S: Storage>(
    directory: &S::Directory,
    name: &OsStr,
    database: &S::File,
    shown: &str,
) -> Result<Option<S::File>> {
    let rights = || database.metadata().during(Operation::Stat, shown);
    match directory.open(name, OpenMode::ReadWrite) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            let found = directory.metadata(name).during(Operation::Stat, shown)?;
            let others = |of: Metadata| of.permissions & OTHERS != 0;
            return match found.is_some_and(|found| !others(found)) && others(rights()?) {
                true => Ok(None),
                false => Err(error).during(Operation::Open, shown),
            };
        }
        opened => return opened.map(Some).during(Operation::Open, shown),
    }
    // Its owner's alone until it has the group that the bits are meant for.
    let permissions = rights()?.permissions & !OTHERS;
    match directory.open(name, OpenMode::CreateNew { permissions }) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(None),
        Err(error) => Err(error).during(Operation::Open, shown),
        Ok(file) => {
            file.copy_access(database).during(Operation::Open, shown)?;
            Ok(Some(file))
        }
    }
}

/// Whether the name stands for the file. Whoever removes it holds the switch exclusively: a file
/// that was opened before that nobody else will find.
fn is_named<S: Storage>(
    directory: &S::Directory,
    name: &OsStr,
    file: &S::File,
    shown: &str,
) -> Result<bool> {
    let named = directory.metadata(name).during(Operation::Stat, shown)?;
    Ok(named.is_some_and(|named| named.id == file.id()))
}

/// Takes the dead-man switch, shared, and empties the file if nobody has it. `false`: somebody has
/// the switch exclusively.
///
/// As `unixLockSharedMemory` does: whoever finds it so begins anew, because its holder may die
/// before it has emptied the file.
fn attach<F: File>(file: &F, database: &F, shown: &str) -> Result<bool> {
    let conflict = |kind| file.lock_conflict(DEAD_MAN_SWITCH, kind).during(Operation::Lock, shown);
    let take = |kind| file.try_lock(DEAD_MAN_SWITCH, kind).during(Operation::Lock, shown);
    if conflict(LockKind::Shared)?.is_some() {
        return Ok(false);
    }
    if conflict(LockKind::Exclusive)?.is_none() {
        if !take(LockKind::Exclusive)? {
            return Ok(false);
        }
        empty(file, database, shown)?;
    }
    take(LockKind::Shared)
}

/// Empties the file, and gives it the database's rights, if it has others: a connection that was
/// killed may have left it to its owner alone.
fn empty<F: File>(file: &F, database: &F, shown: &str) -> Result<()> {
    let stat = |file: &F| file.metadata().during(Operation::Stat, shown);
    let (own, wanted) = (stat(file)?, stat(database)?);
    if !own.has_access_of(&wanted) {
        file.copy_access(database).during(Operation::Open, shown)?;
    }
    if own.len > 0 {
        file.set_len(0).during(Operation::Resize, shown)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
