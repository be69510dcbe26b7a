//! The name fence: a folder where SQLite looks for a hot journal. As long as it stands stock SQLite
//! can't read or write the database ("disk I/O error"), and touches nothing.

use crate::error::{Context, Error, Operation, Result};
use crate::names::Names;
use crate::note;
use dash_storage::{Directory, FileKind};
use std::ffi::OsStr;
use std::io::ErrorKind;

/// Puts up a fence that need not survive a power loss, for those who may use `like`. One that
/// stands already does, too, and so does a journal that is not hot.
///
/// # Errors
///
/// Those of the file system.
pub fn raise_passing<D: Directory>(directory: &D, names: &Names, like: &D::File) -> Result<()> {
    match directory.create_shared_directory(&names.fence, like) {
        // Somebody else has just done it.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(()),
        // Whom it does not let in, he puts another one in its place.
        made => made.during(Operation::Open, names.fence.to_string_lossy())?,
    }
    note::put(directory, &names.fence, names.shown(), false)
}

/// What there was under a fence's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// No name.
    Nothing,
    /// A fence.
    Fence,
    /// A rollback journal.
    Journal,
}

/// Looks.
///
/// # Errors
///
/// Those of the file system.
pub fn find<D: Directory>(directory: &D, fence: &OsStr) -> Result<Found> {
    let found = directory.metadata(fence).during(Operation::Stat, fence.to_string_lossy())?;
    Ok(match found {
        None => Found::Nothing,
        Some(found) if found.kind == FileKind::Directory => Found::Fence,
        Some(_) => Found::Journal,
    })
}

/// Where a fence is put up.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a, D: Directory> {
    /// The database's folder.
    pub directory: &'a D,
    /// Its names there.
    pub names: &'a Names,
    /// Whoever may use this file may use the fence.
    pub like: &'a D::File,
}

impl<D: Directory> Place<'_, D> {
    /// Puts up a fence, to be made durable by a flush of the folder; `stands`: there is one.
    ///
    /// Where the file system has no journal a name may outlive a power loss without what it names,
    /// or with what had that inode number before, such as a stale journal. So the fence is durable
    /// before it has its name, unless `flushes` is false. One of somebody else's that this process
    /// may not flush makes room for another one, or is done without where there is a journal.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    pub fn raise(&self, stands: bool, flushes: bool) -> Result<()> {
        let Names { fence, lowered, .. } = self.names;
        let flush = |name: &OsStr| {
            note::put(self.directory, name, self.names.shown(), flushes)?;
            if flushes { self.flush(name) } else { Ok(()) }
        };
        if stands {
            match flush(fence) {
                Err(error) if is_denied(&error) => {}
                flushed => return flushed,
            }
        }
        match self.make().and_then(|()| flush(lowered)) {
            Err(error) if is_denied(&error) => {}
            // Somebody keeps that name: the fence is made under its own, and then durable.
            Err(error) if !stands && is_of_kind(&error, ErrorKind::NotADirectory) => {
                raise_passing(self.directory, self.names, self.like)?;
                return flush(fence);
            }
            flushed => flushed?,
        }
        let raised = match stands {
            // Both stay until the folder was flushed.
            true => self.directory.exchange(lowered, fence),
            false => self.directory.rename(lowered, fence),
        };
        match raised {
            Err(_) if !stands => raise_passing(self.directory, self.names, self.like),
            Err(_) if self.directory.keeps_order() => Ok(()),
            raised => raised.during(Operation::Exchange, fence.to_string_lossy()),
        }
    }

    /// Makes a folder that is to be a fence, in place of one that is left.
    fn make(&self) -> Result<()> {
        let lowered = &self.names.lowered;
        let create = || self.directory.create_shared_directory(lowered, self.like);
        let made = match create() {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let removed = note::remove_folder(self.directory, lowered);
                // What is no folder somebody else has put there.
                drop(removed.or_else(|_| self.directory.unlink(lowered)));
                create()
            }
            made => made,
        };
        match made {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            made => made.during(Operation::Open, lowered.to_string_lossy()),
        }
    }

    fn flush(&self, name: &OsStr) -> Result<()> {
        let fence = self.directory.open_directory(name);
        let flushed = fence.and_then(|fence| fence.flush());
        flushed.during(Operation::FlushDirectory, name.to_string_lossy())
    }
}

fn is_denied(error: &Error) -> bool {
    is_of_kind(error, ErrorKind::PermissionDenied)
}

fn is_of_kind(error: &Error, kind: ErrorKind) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == kind)
}
