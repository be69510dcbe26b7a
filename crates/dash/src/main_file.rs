//! A main database, in whatever mode it is: the one file type that SQLite gets for it, because a PRAGMA can
//! change the mode under an open connection.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dash_ffi::{
    Code, DeviceCharacteristics, Error, File, FileControl, Handled, HostFile, HostVfs, LockLevel,
    PagePointer, Result, ShmLock, ShmMapping, SyncFlags, Window,
};

use crate::leftovers::Neighbours;
use dash_storage::real;

use crate::errors::inherited;
use crate::parameters::Parameters;
use crate::read_only_file::{ReadOnlyFile, refusal};
use crate::registry::Membership;
use crate::shadow_control::gone;
use crate::shadow_file::{SECTOR, ShadowFile};

/// A database that SQLite has open through dash.
pub struct MainFile {
    pub(crate) kind: Kind,
    pub(crate) path: PathBuf,
    pub(crate) host: HostVfs,
    /// What the URI asked for.
    pub(crate) parameters: Parameters,
    /// Whether SQLite got a method table with shared memory.
    pub(crate) shared_memory: bool,
    /// Where SQLite finds mapped pages.
    pub(crate) window: Arc<Window>,
    /// What lies beside a plain file that may only be read: what was half-written is not read.
    pub(crate) beside: Option<Neighbours>,
    /// What `SQLITE_FCNTL_CHUNK_SIZE` set: for the plain file, also if it is set before there is one.
    pub(crate) chunk: Option<i32>,
    /// [`real::forks`] when it was opened.
    pub(crate) forks: u64,
    /// The place in the process's list. None: read by stock SQLite's rules, whatever others do.
    pub(crate) membership: Option<Membership>,
}

/// How it is open.
pub enum Kind {
    /// By the engine.
    Shadow(Box<ShadowFile>),
    /// By the engine, reading.
    ReadOnly(Box<ReadOnlyFile>),
    /// As a plain SQLite file.
    Plain(HostFile),
    /// Not at all: a change of mode failed half-way.
    Gone,
}

impl MainFile {
    /// What `dash_engine()` answers.
    pub fn engine(&self) -> &'static str {
        match self.kind {
            Kind::Shadow(_) | Kind::ReadOnly(_) => "shadow",
            Kind::Plain(_) => "plain",
            Kind::Gone => "none",
        }
    }

    /// The database, if the engine has it open for writing.
    pub fn shadow(&mut self) -> Option<&mut ShadowFile> {
        match &mut self.kind {
            Kind::Shadow(file) => Some(file),
            _ => None,
        }
    }

    /// Fails in a forked child, where every handle of the engine is dead and shared memory shows zeros.
    #[inline]
    fn check_process(&self) -> Result<()> {
        if self.is_inherited() { Err(inherited(&self.path)) } else { Ok(()) }
    }

    #[inline]
    fn is_inherited(&self) -> bool {
        self.forks != real::forks() && !matches!(self.kind, Kind::Plain(_))
    }
}

/// One arm for each kind; `Gone` is an error everywhere.
macro_rules! by_kind {
    ($self:ident, $shadow:ident => $on_shadow:expr, $read:ident => $on_read:expr, $plain:ident => $on_plain:expr) => {
        match &mut $self.kind {
            Kind::Shadow($shadow) => $on_shadow,
            Kind::ReadOnly($read) => $on_read,
            Kind::Plain($plain) => $on_plain,
            Kind::Gone => Err(gone()),
        }
    };
}

/// Locks a plain file, unless it is not the one of that name any more. SQLite finds a journal by name: a
/// connection that is idle since before the names were exchanged would roll back into its own copy,
/// and remove, the journal of somebody who is writing the other one.
fn lock_plain(
    file: &mut HostFile,
    level: LockLevel,
    path: &Path,
    beside: Option<&Neighbours>,
) -> Result<()> {
    file.lock(level)?;
    if let (Some(beside), LockLevel::Shared) = (beside, level)
        && let Err(error) = beside.refuse_half_written(path, true, || file.check_reserved_lock())
    {
        file.unlock(LockLevel::None)?;
        return Err(error);
    }
    if level == LockLevel::Shared && has_moved(file)? && path.exists() {
        file.unlock(LockLevel::None)?;
        return Err(Error::new(
            Code::READONLY_DBMOVED,
            format!(
                "{} is not the file that was opened: it was replaced, or was in mode shadow meanwhile; \
                 close the connection and open it again",
                path.display()
            ),
        ));
    }
    Ok(())
}

/// Whether the name of a plain file stands for another one now, or for none.
pub(crate) fn has_moved(file: &mut HostFile) -> Result<bool> {
    let mut moved = false;
    file.file_control(FileControl::HasMoved(&mut moved))?;
    Ok(moved)
}

impl File for MainFile {
    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.check_process()?;
        by_kind!(self,
            file => file.read(buffer, offset),
            file => file.read(buffer, offset),
            file => file.read(buffer, offset))
    }

    fn write(&mut self, data: &[u8], offset: u64) -> Result<()> {
        self.check_process()?;
        by_kind!(self,
            file => file.write(data, offset),
            _file => Err(refusal()),
            file => file.write(data, offset))
    }

    fn truncate(&mut self, size: u64) -> Result<()> {
        self.check_process()?;
        by_kind!(self,
            file => file.truncate(size),
            _file => Err(refusal()),
            file => file.truncate(size))
    }

    fn sync(&mut self, flags: SyncFlags) -> Result<()> {
        self.check_process()?;
        by_kind!(self, file => file.flush(), _file => Ok(()), file => file.sync(flags))
    }

    fn size(&mut self) -> Result<u64> {
        by_kind!(self,
            file => Ok(file.engine.size()),
            file => Ok(file.size()),
            file => file.size())
    }

    fn lock(&mut self, level: LockLevel) -> Result<()> {
        self.check_process()?;
        by_kind!(self,
            file => file.lock(level),
            file => {
                if let Some(membership) = &self.membership && level == LockLevel::Shared {
                    file.reader = Some(membership.database().queue.reader(None));
                }
                file.lock(level)
            },
            file => lock_plain(file, level, &self.path, self.beside.as_ref()))
    }

    fn unlock(&mut self, level: LockLevel) -> Result<()> {
        if self.is_inherited() {
            return Ok(()); // the locks are the parent's
        }
        by_kind!(self,
            file => file.unlock(level),
            file => {
                let unlocked = file.unlock(level);
                let reader = file.reader.take_if(|_| level == LockLevel::None);
                if let (Some(membership), Some(reader)) = (&self.membership, reader) {
                    membership.database().queue.reader_left(reader, || u64::MAX);
                }
                unlocked
            },
            file => file.unlock(level))
    }

    fn check_reserved_lock(&mut self) -> Result<bool> {
        self.check_process()?;
        by_kind!(self,
            file => file.check_reserved_lock(),
            file => file.check_reserved_lock(),
            file => file.check_reserved_lock())
    }

    fn file_control(&mut self, control: FileControl<'_>) -> Result<Handled> {
        self.check_process()?;
        match control {
            FileControl::Pragma(pragma) => return self.pragma(pragma),
            FileControl::ChunkSize(size) => self.chunk = Some(size),
            _ => {}
        }
        by_kind!(self,
            file => file.control(control),
            file => file.control(control),
            file => file.file_control(control))
    }

    fn sector_size(&mut self) -> u32 {
        match &mut self.kind {
            Kind::Plain(file) => file.sector_size(),
            _ => SECTOR,
        }
    }

    fn device_characteristics(&mut self) -> DeviceCharacteristics {
        match &mut self.kind {
            Kind::Shadow(file) => file.device_characteristics(),
            Kind::ReadOnly(file) => file.device_characteristics(),
            Kind::Plain(file) => file.device_characteristics(),
            Kind::Gone => DeviceCharacteristics::empty(),
        }
    }

    fn has_shared_memory(&self) -> bool {
        self.shared_memory
    }

    fn shm_map(&mut self, region: usize, size: usize, extend: bool) -> Result<ShmMapping> {
        by_kind!(self,
            _file => Err(refusal()),
            _file => Err(refusal()),
            file => file.shm_map(region, size, extend))
    }

    fn shm_lock(&mut self, slot: usize, count: usize, lock: ShmLock) -> Result<()> {
        by_kind!(self,
            _file => Err(refusal()),
            _file => Err(refusal()),
            file => file.shm_lock(slot, count, lock))
    }

    fn shm_barrier(&mut self) {
        if let Kind::Plain(file) = &mut self.kind {
            file.shm_barrier();
        }
    }

    fn shm_unmap(&mut self, delete: bool) -> Result<()> {
        by_kind!(self, _file => Ok(()), _file => Ok(()), file => file.shm_unmap(delete))
    }

    fn fetch(&mut self, offset: u64, amount: usize) -> Result<Option<PagePointer>> {
        self.check_process()?;
        by_kind!(self,
            file => file.fetch(offset, amount),
            file => file.fetch(offset, amount),
            file => file.fetch(offset, amount))
    }

    fn unfetch(&mut self, offset: u64, page: Option<PagePointer>) -> Result<()> {
        match (&mut self.kind, page) {
            (Kind::Shadow(file), Some(_)) => file.maps.give_back(),
            (Kind::ReadOnly(file), page) => file.unfetch(page),
            (Kind::Plain(file), page) => return file.unfetch(offset, page),
            _ => {}
        }
        Ok(())
    }

    fn window(&self) -> Option<Arc<Window>> {
        Some(Arc::clone(&self.window))
    }

    fn close(self: Box<Self>) -> Result<()> {
        let Self { kind, membership, parameters, host, .. } = *self;
        let closed = match kind {
            Kind::Shadow(file) => file.close(parameters.linger, &host),
            Kind::ReadOnly(file) => file.close(),
            Kind::Plain(file) => Box::new(file).close(),
            Kind::Gone => Ok(()),
        };
        drop(membership);
        closed
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
