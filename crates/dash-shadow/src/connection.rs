//! One opened database: its files, its locks and its reads. Writing is in [`crate::write`] and
//! [`crate::commit`], bringing the shadow back in [`crate::repair`].

use std::sync::Arc;

use dash_storage::{Directory, File, FileId, LockKind, Storage};

use crate::coordination::{Coordination, Current, ShadowCondition, Snapshot};
use crate::error::{Context, Error, Operation, Result};
use crate::format::{IntentBlock, Protocol};
use crate::header::{HEADER_LEN, Header, VERSION_BYTES, unmark};
use crate::locks::{self, LockLevel};
use crate::names::Names;
use crate::open::OpenOptions;
use crate::ranges::RangeSet;
use crate::statistics::Statistics;
use crate::tail::{Tail, read_header, read_padded, read_units};
use crate::tuning::Tuning;
use crate::write::Transaction;

/// Nanoseconds for which a reader trusts that nobody has overwritten the file without locks
/// (`cp backup app.db`): it looks at the header at the first read after that.
const FOREIGN_CHECK_NANOS: u64 = 1_000_000;

/// What this connection remembers of the tail it wrote last into a slot.
#[derive(Debug, Clone)]
pub(crate) struct KnownTail {
    /// Sequence of the commit.
    pub sequence: u64,
    /// Length of the file.
    pub len: u64,
    /// The durable intent.
    pub intent: IntentBlock,
}

/// A connection that may read and write.
pub struct Connection<S: Storage> {
    pub(crate) storage: S,
    pub(crate) directory: S::Directory,
    pub(crate) directory_path: std::path::PathBuf,
    pub(crate) names: Names,
    pub(crate) coordination: Coordination<S::File>,
    pub(crate) files: [Option<Arc<S::File>>; 2],
    pub(crate) generation: u64,
    pub(crate) protocol: Protocol,
    pub(crate) tuning: Tuning,
    pub(crate) level: LockLevel,
    /// What this connection reads.
    pub(crate) current: Current,
    pub(crate) snapshot: Snapshot,
    pub(crate) transaction: Option<Transaction>,
    /// Slots on which SQLite's SHARED range is held exclusively.
    pub(crate) excluded: [bool; 2],
    /// Slots on which PENDING is held.
    pub(crate) pending: [bool; 2],
    /// Slot whose SHARED range is held for want of a reader entry.
    shared_lock: Option<usize>,
    pub(crate) known_tails: [Option<KnownTail>; 2],
    /// Global Page List of the current copy, with the sequence it belongs to.
    pub(crate) page_list: Option<(u64, RangeSet)>,
    pub(crate) poisoned: Option<String>,
    /// Super-journal of a transaction that was cut off, to be removed once it is undone here.
    pub(crate) cut_off: Option<Vec<u8>>,
    pub(crate) statistics: Statistics,
    checked_at: u64,
    /// Random; commit ids are made from it and the sequence.
    seed: u64,
}

impl<S: Storage> Connection<S> {
    pub(crate) fn new(
        storage: S,
        directory: S::Directory,
        directory_path: std::path::PathBuf,
        names: Names,
        coordination: Coordination<S::File>,
        files: [Option<Arc<S::File>>; 2],
        options: &OpenOptions,
    ) -> Self {
        let seed = storage.random();
        Self {
            storage,
            directory,
            directory_path,
            names,
            generation: coordination.generation(),
            current: coordination.current(),
            coordination,
            files,
            protocol: options.protocol,
            tuning: options.tuning,
            level: LockLevel::None,
            snapshot: Snapshot::default(),
            transaction: None,
            excluded: [false; 2],
            pending: [false; 2],
            shared_lock: None,
            known_tails: [None, None],
            page_list: None,
            poisoned: None,
            cut_off: None,
            statistics: Statistics::default(),
            checked_at: 0,
            seed,
        }
    }

    /// The lock held.
    pub fn level(&self) -> LockLevel {
        self.level
    }

    /// Counters of this connection.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Flushes a commit makes.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Chooses the flushes of the next commits.
    pub fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    /// Sequence of the newest commit of any connection.
    pub fn sequence(&self) -> u64 {
        self.coordination.current().sequence
    }

    /// An id for the next commit that nobody else draws: splitmix64 of a random number of this
    /// connection and the sequence, because asking the system costs a call a commit.
    pub(crate) fn commit_id(&mut self) -> u64 {
        self.seed = self.seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.seed ^ self.current.sequence;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ z >> 31).clamp(1, u64::MAX - 1)
    }

    /// Says that the current copy has just been written by this connection.
    pub(crate) fn saw_current(&mut self) {
        self.checked_at = self.storage.monotonic_nanos();
    }

    /// The file in `slot`.
    pub(crate) fn file(&self, slot: usize) -> Result<Arc<S::File>> {
        self.files[slot]
            .clone()
            .ok_or_else(|| Error::Corrupt(format!("{} has no second copy yet", self.names.shown())))
    }

    /// The file of the current copy.
    pub(crate) fn current_file(&self) -> Result<Arc<S::File>> {
        self.file(self.current.slot)
    }

    /// Name of the file in `slot`, for messages.
    pub(crate) fn role(&self, slot: usize) -> String {
        let name = if slot == self.current.slot { &self.names.db } else { &self.names.shadow };
        name.to_string_lossy().into_owned()
    }

    /// Raises the lock. `Busy` and `BusySnapshot` leave it where it was.
    pub fn lock(&mut self, level: LockLevel) -> Result<()> {
        let result = self.raise(level);
        if matches!(result, Err(Error::Busy | Error::BusySnapshot)) {
            self.statistics.busy += 1;
        }
        result
    }

    fn raise(&mut self, level: LockLevel) -> Result<()> {
        if level >= LockLevel::Shared && self.level == LockLevel::None {
            self.begin_read()?;
            self.level = LockLevel::Shared;
        }
        if level >= LockLevel::Reserved && self.level == LockLevel::Shared {
            self.begin_write()?;
            self.level = LockLevel::Reserved;
        }
        if level == LockLevel::Exclusive && self.level < LockLevel::Exclusive {
            self.level = LockLevel::Pending;
            self.exclude_readers()?;
            self.level = LockLevel::Exclusive;
        }
        Ok(())
    }

    /// Lowers the lock. A transaction that was not published is undone first.
    pub fn unlock(&mut self, level: LockLevel) -> Result<()> {
        let mut result = Ok(());
        if level <= LockLevel::Shared && self.level > LockLevel::Shared {
            result = self.end_write();
            self.level = LockLevel::Shared;
        }
        if level == LockLevel::None && self.level == LockLevel::Shared {
            self.coordination.unpin();
            if let Some(slot) = self.shared_lock.take() {
                self.file(slot)?.unlock(locks::SHARED).during(Operation::Lock, self.role(slot))?;
            }
            self.level = LockLevel::None;
        }
        result
    }

    /// Whether some connection, dash or stock, is in a write transaction.
    pub fn is_reserved(&self) -> Result<bool> {
        Ok(self.level >= LockLevel::Reserved
            || self
                .coordination
                .file()
                .lock_conflict(locks::WRITER, LockKind::Exclusive)
                .during(Operation::Lock, &self.names.coordination.to_string_lossy())?
                .is_some())
    }

    /// SHADOW-9: pin, then look again.
    fn begin_read(&mut self) -> Result<()> {
        self.reload_if_pair_changed()?;
        loop {
            let current = self.coordination.current();
            self.pin(current.slot)?;
            if self.coordination.current() == current {
                self.current = current;
                break;
            }
        }
        if self.coordination.generation() != self.generation {
            self.coordination.unpin();
            self.reload_if_pair_changed()?;
            return self.begin_read();
        }
        self.snapshot = self.coordination.snapshot(self.current.slot);
        let now = self.storage.monotonic_nanos();
        if now.wrapping_sub(self.checked_at) > FOREIGN_CHECK_NANOS {
            self.checked_at = now;
            self.notice_foreign_write()?;
        }
        Ok(())
    }

    /// Reads `slot` from now on.
    pub(crate) fn pin(&mut self, slot: usize) -> Result<()> {
        if self.coordination.is_registered() {
            self.coordination.pin(slot);
            return Ok(());
        }
        if let Some(old) = self.shared_lock.take() {
            self.file(old)?.unlock(locks::SHARED).during(Operation::Lock, self.role(old))?;
        }
        let free = self.file(slot)?.try_lock(locks::SHARED, LockKind::Shared).during(Operation::Lock, self.role(slot))?;
        if !free {
            return Err(Error::Busy);
        }
        self.shared_lock = Some(slot);
        Ok(())
    }

    /// Somebody may have copied another database over the file without asking for locks: then
    /// `app.db` is what counts, as it is at rest.
    fn notice_foreign_write(&mut self) -> Result<()> {
        let file = self.current_file()?;
        let seen = read_header(&*file, &self.names.shown())?;
        let same = match &seen {
            None => self.snapshot.size == 0,
            Some(header) => header.0[VERSION_BYTES] == self.snapshot.version,
        };
        if same || self.coordination.current() != self.current {
            return Ok(());
        }
        let unlock = |connection: &Self| {
            connection.coordination.unpin();
            Err(Error::Busy)
        };
        if seen.is_none_or(|header| !header.is_sqlite()) || self.coordination.in_flight() != 0 {
            // In the middle of being copied: the busy handler comes back.
            self.checked_at = 0;
            return unlock(self);
        }
        let coordination = self.coordination.file();
        if !coordination.try_lock(locks::WRITER, LockKind::Exclusive).during(Operation::Lock, "the coordination file")? {
            return unlock(self);
        }
        if self.coordination.current() == self.current {
            self.adopt(self.current.slot)?;
        }
        self.coordination
            .file()
            .unlock(locks::WRITER)
            .during(Operation::Lock, "the coordination file")?;
        self.begin_read()
    }

    /// Takes the file in `slot`, as it is, for the newest state; the shadow will be made anew.
    pub(crate) fn adopt(&mut self, slot: usize) -> Result<()> {
        let file = self.file(slot)?;
        let header = read_header(&*file, &self.names.shown())?;
        let len = file.metadata().during(Operation::Stat, self.names.shown())?.len;
        let snapshot = Snapshot::foreign(header.as_ref(), len, self.storage.random());
        self.coordination.set_condition(ShadowCondition::Rebuild);
        self.coordination.set_snapshot(slot, &snapshot);
        self.known_tails = [None, None];
        let sequence = self.coordination.current().sequence + 1;
        self.coordination.set_current(Current { sequence, slot });
        Ok(())
    }

    /// Opens the files again after somebody made a new shadow.
    pub(crate) fn reload_if_pair_changed(&mut self) -> Result<()> {
        let generation = self.coordination.generation();
        if generation == self.generation {
            return Ok(());
        }
        let inodes = self.coordination.inodes();
        for (slot, wanted) in inodes.into_iter().enumerate() {
            let have = self.files[slot].as_ref().map(|file| file.id());
            if have == wanted {
                continue;
            }
            self.files[slot] = match wanted {
                Some(id) => Some(Arc::new(self.open_by_id(id)?)),
                None => None,
            };
            self.known_tails[slot] = None;
            if let Some(file) = &self.files[slot] {
                hold_life(&**file, &self.names.shown())?;
            }
        }
        self.generation = generation;
        Ok(())
    }

    fn open_by_id(&self, id: FileId) -> Result<S::File> {
        for name in [&self.names.shadow, &self.names.db] {
            let open = self.directory.open(name, dash_storage::OpenMode::ReadWrite);
            if let Ok(file) = open
                && file.id() == id
            {
                return Ok(file);
            }
        }
        Err(Error::Moved(format!(
            "{} was exchanged for another file while it was open; close all connections and open it again",
            self.names.shadow.to_string_lossy()
        )))
    }

    /// The one write transaction. SHADOW-1: under the WRITER lock, the snapshot is the newest, no
    /// dead writer's work is left, and the two names stand for the two inodes.
    fn begin_write(&mut self) -> Result<()> {
        if let Some(reason) = &self.poisoned {
            return Err(Error::Poisoned(reason.clone()));
        }
        let name = self.names.coordination.to_string_lossy().into_owned();
        if !self.coordination.file().try_lock(locks::WRITER, LockKind::Exclusive).during(Operation::Lock, &name)? {
            return Err(Error::Busy);
        }
        let begun = self.check_begin();
        match begun {
            Ok(()) => {
                self.transaction = Some(Transaction::new(self.snapshot.size));
                Ok(())
            }
            Err(error) => {
                self.release_exclusion()?;
                self.coordination.file().unlock(locks::WRITER).during(Operation::Lock, &name)?;
                Err(error)
            }
        }
    }

    fn check_begin(&mut self) -> Result<()> {
        if self.coordination.in_flight() != 0 {
            self.finish_dead_writer()?;
        }
        if self.coordination.current() != self.current || self.coordination.generation() != self.generation {
            return Err(Error::BusySnapshot);
        }
        self.check_names()
    }

    /// SHADOW-2: both names still stand for the two inodes.
    pub(crate) fn check_names(&mut self) -> Result<()> {
        let [db, shadow] = [&self.names.db, &self.names.shadow].map(|name| {
            self.directory
                .metadata(name)
                .during(Operation::Stat, name.to_string_lossy())
        });
        let (db, shadow) = (db?.map(|m| m.id), shadow?.map(|m| m.id));
        let id = |slot: usize| self.files[slot].as_ref().map(|file| file.id());
        let (current, other) = (id(self.current.slot), id(1 - self.current.slot));
        if db != current {
            return Err(Error::Moved(format!(
                "{} is not the file that was opened: it was renamed, removed or replaced; close all connections and open it again",
                self.names.shown()
            )));
        }
        if shadow != other || other.is_none() {
            if shadow.is_some() && other.is_some() {
                return Err(Error::Moved(format!(
                    "{} is not the file that was opened; remove it, or close all connections and open the database again",
                    self.names.shadow.to_string_lossy()
                )));
            }
            self.coordination.set_condition(ShadowCondition::Rebuild);
        }
        Ok(())
    }

    /// Whether `app.db` is neither of the two files any more (`SQLITE_FCNTL_HAS_MOVED`).
    pub fn has_moved(&self) -> Result<bool> {
        if self.level >= LockLevel::Reserved {
            return Ok(false); // begin_write has just looked
        }
        let db = self
            .directory
            .metadata(&self.names.db)
            .during(Operation::Stat, self.names.shown())?;
        Ok(!db.is_some_and(|db| self.files.iter().flatten().any(|file| file.id() == db.id)))
    }

    /// Reads up to `buffer.len()` bytes at `offset`, fewer at the end of the database.
    pub fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        if self.level == LockLevel::None {
            return self.read_unlocked(buffer, offset);
        }
        let size = self.size();
        let len = usize::try_from(size.saturating_sub(offset)).unwrap_or(usize::MAX).min(buffer.len());
        let buffer = &mut buffer[..len];
        if self.transaction.as_ref().is_some_and(|transaction| !transaction.is_clean()) {
            self.read_written(buffer, offset)?;
        } else if offset == VERSION_BYTES.start as u64 && len == VERSION_BYTES.len() {
            buffer.copy_from_slice(&self.snapshot.version);
        } else {
            let file = self.current_file()?;
            read_padded(&*file, buffer, offset).during(Operation::Read, self.names.shown())?;
        }
        if offset == 0 {
            unmark(buffer);
        }
        Ok(len)
    }

    /// SQLite reads the header before its first lock (T26): take the copy that is current before
    /// and after.
    fn read_unlocked(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        loop {
            self.reload_if_pair_changed()?;
            let current = self.coordination.current();
            let size = self.coordination.snapshot(current.slot).size;
            let len = usize::try_from(size.saturating_sub(offset)).unwrap_or(usize::MAX).min(buffer.len());
            let file = self.file(current.slot)?;
            read_padded(&*file, &mut buffer[..len], offset).during(Operation::Read, self.names.shown())?;
            if self.coordination.current() == current {
                if offset == 0 {
                    unmark(&mut buffer[..len]);
                }
                return Ok(len);
            }
        }
    }

    /// Size of the database in bytes, as this connection sees it; never the length of a file.
    pub fn size(&self) -> u64 {
        match &self.transaction {
            Some(transaction) => transaction.size,
            None if self.level == LockLevel::None => {
                self.coordination.snapshot(self.coordination.current().slot).size
            }
            None => self.snapshot.size,
        }
    }

    /// The file a page can be mapped from, if `range` is as committed: none of it has been
    /// written by the running transaction. Valid while the lock is held.
    pub fn mappable(&self, range: std::ops::Range<u64>) -> Option<Arc<S::File>> {
        let written = self
            .transaction
            .as_ref()
            .is_some_and(|transaction| transaction.touches(&range));
        (self.level >= LockLevel::Shared && !written && range.start > 0 && range.end <= self.snapshot.size)
            .then(|| self.files[self.current.slot].clone())
            .flatten()
    }

    /// Global Page List of the current copy: what its transaction changed.
    pub(crate) fn current_page_list(&mut self) -> Result<RangeSet> {
        if let Some((sequence, list)) = &self.page_list
            && *sequence == self.current.sequence
        {
            return Ok(list.clone());
        }
        let file = self.current_file()?;
        let name = self.names.shown().into_owned();
        let tail = Tail::read(&*file, &name)?;
        let Some(block) = tail.bound(file.id()).filter(|block| block.id == self.snapshot.id) else {
            return Ok(std::iter::once(0..self.snapshot.size).collect());
        };
        let units = read_units(&*file, tail.len, block, &name)?;
        let list = units.map_or_else(
            || std::iter::once(0..self.snapshot.size).collect(),
            |units| units.iter().filter(|unit| !unit.carried).map(crate::format::Unit::range).collect::<RangeSet>(),
        );
        self.page_list = Some((self.current.sequence, list.clone()));
        Ok(list)
    }
}

impl Snapshot {
    /// Describes a file that carries no commit of ours.
    pub(crate) fn foreign(header: Option<&Header>, len: u64, id: u64) -> Self {
        let Some(header) = header else { return Self::default() };
        let mut version = [0; 16];
        version.copy_from_slice(&header.0[VERSION_BYTES]);
        let page = u64::from(header.page_size().unwrap_or(512));
        let size = header.size().unwrap_or(len - len % page);
        debug_assert!(HEADER_LEN >= VERSION_BYTES.end);
        Self { size: size.min(len), version, id, counter: header.counter() }
    }
}

/// Takes LIFE and RESERVED, shared, on a file. `Busy` if a stock writer is in the way.
pub(crate) fn hold_life<F: File>(file: &F, name: &str) -> Result<()> {
    for range in [locks::LIFE, locks::RESERVED] {
        if !file.try_lock(range, LockKind::Shared).during(Operation::Lock, name)? {
            return Err(Error::Busy);
        }
    }
    Ok(())
}
