//! The plain modes: SQLite's own rollback journal, through dash's VFS, on the host's file. The mode
//! is there for a connection that leaves an engine, and for programs that want dash loaded and this
//! database left alone.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dash_ffi::{
    Code, ConnectionRef, DeviceCharacteristics, Error, File, FileControl, Handled, HostFile,
    HostVfs, LockLevel, OpenFlags, Opened, PagePointer, Result, ShmLock, ShmMapping, SyncFlags,
    Value, explain,
};
use dash_storage::real::Real;

use crate::clearing;
use crate::controls::has_moved;
use crate::leftovers::{HEADER, Leftover, Neighbours, says_wal};
use crate::main_file::opened;
use crate::mode::IN_TRANSACTION;
use crate::mode::Parameters;
use crate::mode::registry::Membership;
use crate::mode::{Database, Mode, Statistic};
use crate::mode::{Opening, Request, Switching};
use crate::no_database::NoDatabase;

/// The mode.
pub const MODE: &dyn Mode = &Plain;

/// See [`MODE`].
pub struct Plain;

impl Mode for Plain {
    fn engine(&self) -> &'static str {
        "plain"
    }

    fn names(&self) -> &'static [&'static str] {
        &["delete", "truncate", "persist", "memory", "off"]
    }

    fn described(&self) -> &'static str {
        "as a plain file"
    }

    fn is_plain(&self) -> bool {
        true
    }

    /// Where it was asked for, but not an older copy than the newest one.
    fn stock_has_to_read(&self, request: &Request<'_>) -> Result<bool> {
        request.modes.others(MODE).try_for_each(|mode| mode.refuse_stock(request.path))?;
        request.stock_has_to_read()
    }

    fn open(&self, opening: Opening<'_>) -> Result<Opened> {
        if !opening.reading {
            opening.request.leave_wal_mode()?;
        }
        opening.request.plain(Some(opening.membership))
    }

    fn enter(&self, switching: &Switching<'_>) -> Result<Box<dyn Database>> {
        let flags = OpenFlags::MAIN_DB | OpenFlags::READWRITE;
        let (file, _) = switching.host.open_path(switching.path, flags)?;
        Ok(Box::new(PlainFile::at_rest(file, switching.path)))
    }
}

fn was_moved(path: &Path) -> String {
    format!(
        "{} is not the file that was opened: it was replaced or removed, or was in mode shadow meanwhile; \
         close the connection and open it again",
        path.display()
    )
}

/// A database on the host's file.
pub struct PlainFile {
    file: HostFile,
    path: PathBuf,
    /// Whether SQLite got a method table with shared memory: a file in WAL mode that is only read.
    shared_memory: bool,
    /// Whether it may only be read: what was half-written is not read then.
    is_read_only: bool,
    beside: Neighbours,
    /// Why it is not in its mode, which would have been dash's.
    why: Option<String>,
    no_database: Arc<NoDatabase>,
}

impl PlainFile {
    /// One that was just left by an engine.
    pub fn at_rest(file: HostFile, path: &Path) -> Self {
        let (path, beside) = (path.to_path_buf(), Neighbours::of(path));
        let (shared_memory, is_read_only, no_database) = (false, false, Arc::default());
        Self { file, path, shared_memory, is_read_only, beside, why: None, no_database }
    }
}

impl Request<'_> {
    /// Stock's WAL mode is not offered beside dash's modes: a plain file is taken out of it, too.
    /// So is one that a program was taking out of it when it was stopped: SQLite would roll that
    /// back as it first reads the file.
    fn leave_wal_mode(&self) -> Result<()> {
        let Request { host, path, flags, beside, .. } = self;
        let is_wal = || -> Result<bool> {
            Ok(beside.find()? == Some(Leftover::Wal) || beside.says_wal(path))
        };
        let leaves = is_wal()? || (clearing::roll_back(host, path, *flags)? && is_wal()?);
        if !leaves {
            return Ok(());
        }
        beside.refuse_fence(path)?;
        clearing::clear(host, path, *flags, Leftover::Wal, true)
    }

    /// Opens it through the host. Without a membership it is read by stock SQLite's rules, whatever
    /// others do.
    pub(crate) fn plain(&self, membership: Option<Membership>) -> Result<Opened> {
        self.plain_because(membership, None)
    }

    /// The same by stock SQLite's rules, where it could not be had in its mode; `why` is what
    /// `dash_stats` says.
    pub(crate) fn plain_instead(&self, why: &str) -> Result<Opened> {
        self.plain_because(None, Some(why.to_owned()))
    }

    fn plain_because(&self, membership: Option<Membership>, why: Option<String>) -> Result<Opened> {
        if !self.parameters.immutable {
            self.beside.have_one_name()?;
        }
        let (file, flags) = self.host.open(self.name, self.flags)?;
        let writes = flags.contains(OpenFlags::READWRITE);
        if !self.parameters.immutable && !dash_shadow::keeps_access(&Real, self.path, writes) {
            self.note_exposed();
        }
        if self.flags.contains(OpenFlags::READWRITE) && !flags.contains(OpenFlags::READWRITE) {
            self.note_read_only("no right to write the file");
        }
        // WAL mode needs it, and is only met when reading.
        let shared_memory = membership.is_none() && file.has_shared_memory();
        let is_read_only = !flags.contains(OpenFlags::READWRITE);
        let why = why.or_else(|| {
            (membership.is_none() && is_read_only).then(|| self.by_stocks_rules()).flatten()
        });
        let mut file = PlainFile::at_rest(file, self.path);
        (file.shared_memory, file.is_read_only) = (shared_memory, is_read_only);
        file.why = why;
        if let Some(membership) = &membership {
            file.no_database = membership.shared().of();
            // Without locks it is not asked again.
            file.no_database.tell(&mut file.file);
        }
        Ok(opened(self, (MODE, Box::new(file)), flags, membership))
    }

    /// What a database that is dash's is told to be where stock SQLite reads it.
    fn by_stocks_rules(&self) -> Option<String> {
        if self.parameters.immutable || self.parameters.mode.is_some_and(<dyn Mode>::is_plain) {
            return None;
        }
        self.note_unreadable_wal();
        self.beside.says_wal(self.path).then(|| {
            format!(
                "{} is in WAL mode and was opened read-only, by stock SQLite's rules",
                self.path.display()
            )
        })
    }
}

impl Database for PlainFile {
    fn engine(&self) -> &'static str {
        MODE.engine()
    }

    fn survives_fork(&self) -> bool {
        true
    }

    /// None: dash counts nothing here.
    fn statistics(&self) -> Option<Vec<Statistic>> {
        self.why.as_ref().map(|_| Vec::new())
    }

    fn words(&self, _: &ConnectionRef<'_>) -> Vec<(&'static str, Option<String>)> {
        self.why.iter().map(|why| ("reason", Some(why.clone()))).collect()
    }

    /// As stock SQLite makes a commit durable in WAL mode.
    fn durability(&self, synchronous: Option<&str>) -> Option<Value> {
        self.why.as_ref()?;
        let word = synchronous.map(|level| match level {
            "0" => "off",
            "1" => "normal",
            _ => "full",
        });
        Some(word.into())
    }

    fn is_in_wal_mode(&mut self) -> Result<bool> {
        if self.shared_memory {
            return Ok(false);
        }
        let mut header = [0; HEADER];
        let len = self.file.read(&mut header, 0)?;
        let found = len > 0 && (says_wal(&header[..len]) || self.beside.has_wal()?);
        // Stock SQLite's rules are for who only reads.
        self.shared_memory = found && self.is_read_only && self.file.has_shared_memory();
        Ok(found && !self.is_read_only)
    }

    fn may_leave(&mut self) -> Result<()> {
        // SQLite keeps its lock on one in WAL mode, in no transaction as well.
        if self.shared_memory {
            return Err(Error::new(
                Code::READONLY,
                format!("{} was opened for reading only", self.path.display()),
            ));
        }
        let mut level = 0;
        self.file.file_control(FileControl::LockState(&mut level))?;
        if level != 0 {
            return Err(Error::new(Code::ERROR, IN_TRANSACTION));
        }
        Ok(())
    }

    fn leave(self: Box<Self>, _: &mut Parameters, _: &Path, _: &HostVfs) -> Result<HostFile> {
        Ok(self.file)
    }

    fn end(self: Box<Self>, _: &HostVfs) -> Result<()> {
        Box::new(self.file).close()
    }
}

impl File for PlainFile {
    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.file.read(buffer, offset)
    }

    fn write(&mut self, data: &[u8], offset: u64) -> Result<()> {
        self.file.write(data, offset)
    }

    fn truncate(&mut self, size: u64) -> Result<()> {
        self.file.truncate(size)
    }

    fn sync(&mut self, flags: SyncFlags) -> Result<()> {
        self.file.sync(flags)
    }

    fn size(&mut self) -> Result<u64> {
        self.file.size()
    }

    /// Locks it, unless it is not the one of that name any more. SQLite finds a journal by name: a
    /// connection that is idle since before the names were exchanged would roll back into its own
    /// copy, and remove, the journal of somebody who is writing the other one.
    fn lock(&mut self, level: LockLevel) -> Result<()> {
        let Self { file, path, beside, is_read_only, no_database, .. } = self;
        file.lock(level)?;
        if level == LockLevel::Shared {
            no_database.tell(file);
        }
        if *is_read_only
            && level == LockLevel::Shared
            && let Err(error) =
                beside.refuse_half_written(path, true, || file.check_reserved_lock())
        {
            file.unlock(LockLevel::None)?;
            return Err(error);
        }
        if level == LockLevel::Shared && has_moved(file)? && path.exists() {
            file.unlock(LockLevel::None)?;
            return Err(Error::new(Code::READONLY_DBMOVED, was_moved(path)));
        }
        Ok(())
    }

    fn unlock(&mut self, level: LockLevel) -> Result<()> {
        self.file.unlock(level)
    }

    fn check_reserved_lock(&mut self) -> Result<bool> {
        self.file.check_reserved_lock()
    }

    fn file_control(&mut self, control: FileControl<'_>) -> Result<Handled> {
        if let FileControl::HasMoved(moved) = control {
            let handled = self.file.file_control(FileControl::HasMoved(moved))?;
            // SQLite makes it an error by itself.
            if *moved {
                explain(&was_moved(&self.path));
            }
            return Ok(handled);
        }
        self.file.file_control(control)
    }

    fn sector_size(&mut self) -> u32 {
        self.file.sector_size()
    }

    fn device_characteristics(&mut self) -> DeviceCharacteristics {
        self.file.device_characteristics()
    }

    fn has_shared_memory(&self) -> bool {
        self.shared_memory
    }

    fn shm_map(&mut self, region: usize, size: usize, extend: bool) -> Result<ShmMapping> {
        self.file.shm_map(region, size, extend)
    }

    fn shm_lock(&mut self, slot: usize, count: usize, lock: ShmLock) -> Result<()> {
        self.file.shm_lock(slot, count, lock)
    }

    fn shm_barrier(&mut self) {
        self.file.shm_barrier();
    }

    fn shm_unmap(&mut self, delete: bool) -> Result<()> {
        self.file.shm_unmap(delete)
    }

    fn fetch(&mut self, offset: u64, amount: usize) -> Result<Option<PagePointer>> {
        self.file.fetch(offset, amount)
    }

    fn unfetch(&mut self, offset: u64, page: Option<PagePointer>) -> Result<()> {
        self.file.unfetch(offset, page)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Box::new(self.file).close()
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
