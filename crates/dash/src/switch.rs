//! Changing the mode of a database under an open connection (`PRAGMA journal_mode`).
//!
//! Between two transactions, and only for the one connection that has the database open, in any process:
//! others would go on by the rules of the former mode. What is left behind is a plain SQLite file (leaving), or
//! the same file in the engine's hands (entering). SQLite's page cache stays right either way: the next
//! transaction compares the header's version bytes, as always.

use std::path::Path;
use std::time::Duration;

use dash_ffi::{Code, Error, File, FileControl, HostFile, LockLevel, OpenFlags, Result};
use dash_shadow::Operation;
use dash_storage::real::Real;
use dash_storage::{Directory, Storage};

use crate::errors::to_sqlite;
use crate::leftovers::Neighbours;
use crate::linger;
use crate::main_file::{Kind, MainFile, has_moved};
use crate::open::{self, HEADER};
use crate::registry::{Membership, Mode};
use crate::shadow_control::gone;
use crate::shadow_file::ShadowFile;

const IN_TRANSACTION: &str = "journal_mode can't be changed within a transaction (nor while locking_mode=EXCLUSIVE holds the lock: \
     set it to NORMAL and read once)";

fn busy(path: &Path) -> Error {
    Error::new(
        Code::BUSY,
        format!("journal_mode can't be changed: another connection has {} open", path.display()),
    )
}

impl MainFile {
    /// From mode shadow to a plain file.
    pub(crate) fn leave_shadow(&mut self) -> Result<()> {
        let Some(file) = self.shadow() else {
            return Err(gone());
        };
        if file.engine.level() != dash_shadow::LockLevel::None {
            return Err(Error::new(Code::ERROR, IN_TRANSACTION));
        }
        let mmap = file.maps.limit();
        let Some(membership) = self.membership.take() else {
            return Err(gone());
        };
        if !membership.switch(Mode::Plain) {
            self.membership = Some(membership);
            return Err(busy(&self.path));
        }
        linger::end(&self.path);
        let Kind::Shadow(file) = std::mem::replace(&mut self.kind, Kind::Gone) else {
            return Err(gone());
        };
        self.parameters.protocol = file.protocol;
        self.parameters.powersafe_overwrite = Some(file.powersafe_overwrite);
        let left = file.close(Duration::ZERO, &self.host).and_then(|()| self.become_plain(mmap));
        match left {
            Ok(file) => {
                self.kind = Kind::Plain(file);
                self.membership = Some(membership);
                Ok(())
            }
            Err(error) => {
                membership.switch(Mode::Shadow);
                let mut file = self.open_shadow(&membership)?;
                file.maps.set_limit(mmap);
                self.kind = Kind::Shadow(Box::new(file));
                self.membership = Some(membership);
                Err(error)
            }
        }
    }

    /// Opens the file through the host and removes the shadow, under a lock that no connection of dash,
    /// old or new, lets pass: RESERVED.
    fn become_plain(&self, mmap: u64) -> Result<HostFile> {
        let (mut file, _) =
            self.host.open_path(&self.path, OpenFlags::MAIN_DB | OpenFlags::READWRITE)?;
        for level in [LockLevel::Shared, LockLevel::Reserved] {
            file.lock(level).map_err(|error| match error.code.primary() {
                Code::BUSY => busy(&self.path),
                _ => error,
            })?;
        }
        // By this descriptor: closing another one would take SQLite's locks away.
        let mut start = [0; HEADER];
        file.read(&mut start, 0)?;
        if dash_shadow::is_protected(&start) {
            return Err(busy(&self.path));
        }
        // An idle connection may hold RESERVED of files that have been replaced since, and who recovers
        // it holds none yet.
        let removed = dash_shadow::while_closed(&Real, &self.path, || {
            // Nor if another connection was killed just now: what it left may be in the shadow.
            let at_rest = dash_shadow::is_at_rest(&Real, &self.path).map_err(to_sqlite)?;
            if has_moved(&mut file)? || !at_rest {
                return Err(busy(&self.path));
            }
            remove_shadow(&self.path)
        });
        match removed {
            Err(dash_shadow::Error::Busy) => return Err(busy(&self.path)),
            other => other.map_err(to_sqlite)??,
        }
        file.unlock(LockLevel::None)?;
        if let Ok(mut size) = i64::try_from(mmap) {
            file.file_control(FileControl::MmapSize(&mut size))?;
        }
        if let Some(chunk) = self.chunk {
            file.file_control(FileControl::ChunkSize(chunk))?;
        }
        Ok(file)
    }

    /// From a plain file to mode shadow.
    pub(crate) fn enter_shadow(&mut self) -> Result<()> {
        let Kind::Plain(file) = &mut self.kind else {
            return Err(gone());
        };
        let mut level = 0;
        file.file_control(FileControl::LockState(&mut level))?;
        if level != 0 {
            return Err(Error::new(Code::ERROR, IN_TRANSACTION));
        }
        if self.shared_memory {
            return Err(Error::new(
                Code::READONLY,
                format!("{} was opened for reading only", self.path.display()),
            ));
        }
        let Some(membership) = self.membership.take() else {
            return Err(gone());
        };
        if !membership.switch(Mode::Shadow) {
            self.membership = Some(membership);
            return Err(busy(&self.path));
        }
        let entered = self.open_shadow(&membership);
        if entered.is_err() {
            membership.switch(Mode::Plain);
        }
        self.membership = Some(membership);
        self.kind = Kind::Shadow(Box::new(entered?));
        Ok(())
    }

    fn open_shadow(&self, membership: &Membership) -> Result<ShadowFile> {
        let neighbours = Neighbours::of(&self.path);
        let flags = OpenFlags::READWRITE;
        let engine = open::engine(&self.host, &self.path, &self.parameters, flags, &neighbours)?;
        let database = membership.database().clone();
        let (psow, window) = (self.parameters.psow(), self.window.clone());
        Ok(ShadowFile::new(engine, &self.path, database, psow, window))
    }
}

/// Removes the shadow, after the names are durable: a power loss must not find the older copy under the
/// database's name and nothing beside it.
fn remove_shadow(path: &Path) -> Result<()> {
    let failed = |operation: Operation| {
        move |source| {
            let name = format!("{}-shadow", path.display());
            to_sqlite(dash_shadow::Error::Io { operation, name, source })
        }
    };
    let (folder, names) = dash_shadow::Names::split(path).map_err(to_sqlite)?;
    let folder = Real.open_directory(folder).map_err(failed(Operation::Open))?;
    folder.flush().map_err(failed(Operation::FlushDirectory))?;
    match folder.unlink(&names.shadow) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(failed(Operation::Delete)),
    }
}
