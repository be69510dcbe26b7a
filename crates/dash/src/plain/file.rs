//! A database in one of the plain modes, as SQLite calls it: on dash's own file or on the host's.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dash_ffi::{
    Code, ConnectionRef, Error, File, FileControl, Handled, HostVfs, LockLevel, OpenFlags, Result,
    Value, Window, explain,
};
use dash_storage::real;
use dash_storage::{FileId, OpenMode};

use crate::controls::has_moved;
use crate::delegate::delegate;
use crate::errors::{inherited, to_sqlite};
use crate::leftovers::{HEADER, Neighbours, says_wal};
use crate::mode::IN_TRANSACTION;
use crate::mode::{Database, Parameters, Statistic, Switching};
use crate::no_database::NoDatabase;
use crate::own_file::{self, OwnFile};

/// What `dash_engine()` answers.
pub(super) const ENGINE: &str = "plain";

fn was_moved(path: &Path) -> String {
    format!(
        "{} is not the file that was opened: it was replaced or removed, or was in mode shadow meanwhile; \
         close the connection and open it again",
        path.display()
    )
}

/// A database in one of the plain modes.
pub struct PlainFile {
    pub(super) file: Box<dyn File>,
    /// Which file it is, where that is dash's own and not the host's.
    own: Option<FileId>,
    path: PathBuf,
    /// Whether SQLite got a method table with shared memory: a file in WAL mode that is only read.
    pub(super) shared_memory: bool,
    /// Whether it may only be read: what was half-written is not read then.
    pub(super) is_read_only: bool,
    beside: Neighbours,
    /// [`real::forks`] when these were looked up.
    forks: u64,
    /// Why it is not in its mode, which would have been dash's.
    pub(super) why: Option<String>,
    pub(super) no_database: Arc<NoDatabase>,
}

impl PlainFile {
    /// A plain file at rest, for reading and writing.
    ///
    /// # Errors
    ///
    /// Why it can't be opened.
    pub(crate) fn open(
        host: &HostVfs,
        path: &Path,
        parameters: &Parameters,
        window: &Arc<Window>,
    ) -> Result<Self> {
        let beside = Neighbours::of(path);
        if own_file::is_possible(host, path, &beside, parameters) {
            let file = OwnFile::open(path, OpenMode::ReadWrite, parameters, Arc::clone(window));
            return Ok(Self::on_own(file.map_err(to_sqlite)?, path));
        }
        let (file, _) = host.open_path(path, OpenFlags::MAIN_DB | OpenFlags::READWRITE)?;
        Ok(Self::on(Box::new(file), path))
    }

    pub(super) fn on(file: Box<dyn File>, path: &Path) -> Self {
        let (path, beside) = (path.to_path_buf(), Neighbours::of(path));
        let (shared_memory, is_read_only, no_database) = (false, false, Arc::default());
        let (own, why, forks) = (None, None, real::forks());
        Self { file, own, path, shared_memory, is_read_only, beside, forks, why, no_database }
    }

    pub(super) fn on_own(file: OwnFile, path: &Path) -> Self {
        let own = Some(file.id());
        Self { own, ..Self::on(Box::new(file), path) }
    }
}

impl Database for PlainFile {
    fn engine(&self) -> &'static str {
        ENGINE
    }

    fn survives_fork(&self) -> bool {
        self.own.is_none()
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

    fn is_of(&self, file: FileId) -> Option<bool> {
        self.own.map(|own| own == file)
    }

    fn renew(&mut self, switching: &Switching<'_>, _: LockLevel) -> Result<Box<dyn Database>> {
        let Switching { host, path, parameters, window, membership, .. } = switching;
        let mut file = Self::open(host, path, parameters, window)?;
        if file.own != self.own {
            // SQLite's cache is of the other one.
            return Err(inherited(path));
        }
        file.no_database = membership.shared().of();
        Ok(Box::new(file))
    }

    fn leave(self: Box<Self>, _: &mut Parameters, _: &Path, _: &HostVfs) -> Result<()> {
        self.file.close()
    }

    fn end(self: Box<Self>, _: &HostVfs) -> Result<()> {
        self.file.close()
    }
}

impl File for PlainFile {
    delegate!([file] read write truncate sync size unlock check_reserved_lock sector_size device_characteristics shm_map shm_lock shm_barrier shm_unmap fetch unfetch);

    /// Locks it, unless it is not the one of that name any more. SQLite finds a journal by name: a
    /// connection that is idle since before the names were exchanged would roll back into its own
    /// copy, and remove, the journal of somebody who is writing the other one.
    fn lock(&mut self, level: LockLevel) -> Result<()> {
        if self.forks != real::forks() {
            (self.beside, self.forks) = (Neighbours::of(&self.path), real::forks());
        }
        let Self { file, path, beside, is_read_only, no_database, .. } = self;
        file.lock(level)?;
        if level == LockLevel::Shared {
            no_database.tell(&mut **file);
        }
        if *is_read_only
            && level == LockLevel::Shared
            && let Err(error) =
                beside.refuse_half_written(path, true, || file.check_reserved_lock())
        {
            file.unlock(LockLevel::None)?;
            return Err(error);
        }
        if level == LockLevel::Shared && has_moved(&mut **file)? && path.exists() {
            file.unlock(LockLevel::None)?;
            return Err(Error::new(Code::READONLY_DBMOVED, was_moved(path)));
        }
        Ok(())
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

    fn has_shared_memory(&self) -> bool {
        self.shared_memory
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.file.close()
    }
}
