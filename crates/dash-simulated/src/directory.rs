//! Names in a directory: what they stand for, and operations on them.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::AtomicU32;

use dash_storage::{Metadata, OpenMode};

use crate::data::Data;
use crate::errno;
use crate::file::File;
use crate::inode::Body;
use crate::journal::{Operation, OperationKind};
use crate::key::Key;
use crate::names::Names;
use crate::process::Simulated;
use crate::state::State;

/// An open directory of a simulated process.
pub struct Directory {
    pub(crate) process: Simulated,
    pub(crate) key: Key,
    pub(crate) number: u64,
}

impl Directory {
    fn operate<T>(
        &self,
        kind: OperationKind,
        names: &[&OsStr],
        act: impl FnOnce(&mut State) -> io::Result<T>,
    ) -> io::Result<T> {
        let operation = Operation::new(kind, self.number).names(names);
        self.process.operate(operation, |state| {
            names.iter().try_for_each(|name| check(name))?;
            act(state)
        })
    }

    /// An operation that makes or changes names.
    fn change(
        &self,
        kind: OperationKind,
        names: &[&OsStr],
        act: impl FnOnce(&mut State) -> io::Result<()>,
    ) -> io::Result<()> {
        self.operate(kind, names, |state| {
            state.check_writable()?;
            act(state)
        })
    }

    /// The inode to open, made if the mode says so.
    fn find(&self, state: &mut State, name: &OsStr, mode: OpenMode) -> io::Result<Key> {
        let (OpenMode::Create { permissions } | OpenMode::CreateNew { permissions }) = mode else {
            return state.look_up(self.key, name);
        };
        match state.names(self.key)?.get(name) {
            Some(_) if matches!(mode, OpenMode::CreateNew { .. }) => Err(errno(libc::EEXIST)),
            Some(key) => Ok(key),
            None => {
                state.check_writable()?;
                let unit = state.settings.unit_in(self.key);
                let key = state.create(permissions, Body::File(Data::new(unit)));
                state.names_mut(self.key)?.change([(name, Some(key))]);
                Ok(key)
            }
        }
    }
}

impl dash_storage::Directory for Directory {
    type File = File;

    fn open(&self, name: &OsStr, mode: OpenMode) -> io::Result<File> {
        self.operate(OperationKind::Open, &[name], |state| {
            let key = self.find(state, name, mode)?;
            let writable = mode != OpenMode::Read;
            if writable {
                state.data(key)?;
                state.check_writable()?;
            }
            let description = state.open(key, self.process.process)?;
            let id = state.metadata(key)?.id;
            let (process, direct) = (self.process.clone(), AtomicU32::new(0));
            Ok(File { process, key, id, description, writable, direct })
        })
    }

    fn metadata(&self, name: &OsStr) -> io::Result<Option<Metadata>> {
        self.operate(OperationKind::NameMetadata, &[name], |state| {
            let key = state.names(self.key)?.get(name);
            key.map(|key| state.metadata(key)).transpose()
        })
    }

    /// Nothing is mounted on the machine.
    fn is_mount_point(&self, _name: &OsStr) -> io::Result<bool> {
        Ok(false)
    }

    fn keeps_order(&self) -> bool {
        self.process.machine.state().settings.metadata == crate::Metadata::Journaled
    }

    fn exchange(&self, a: &OsStr, b: &OsStr) -> io::Result<()> {
        self.change(OperationKind::Exchange, &[a, b], |state| {
            if !state.settings.exchange {
                return Err(errno(libc::EOPNOTSUPP));
            }
            let (first, second) = (state.look_up(self.key, a)?, state.look_up(self.key, b)?);
            if first != second {
                state.names_mut(self.key)?.change([(a, Some(second)), (b, Some(first))]);
                state.touch(first);
                state.touch(second);
            }
            Ok(())
        })
    }

    fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        self.change(OperationKind::Rename, &[from, to], |state| {
            let key = state.look_up(self.key, from)?;
            let replaced = state.names(self.key)?.get(to);
            if replaced == Some(key) {
                return Ok(());
            }
            if let Some(replaced) = replaced {
                check_replacement(state, key, replaced)?;
            }
            state.names_mut(self.key)?.change([(from, None), (to, Some(key))]);
            state.touch(key);
            Ok(())
        })
    }

    fn link(&self, existing: &OsStr, new: &OsStr) -> io::Result<()> {
        self.change(OperationKind::Link, &[existing, new], |state| {
            if !state.settings.links {
                return Err(errno(libc::EPERM));
            }
            let key = state.look_up(self.key, existing)?;
            state.data(key)?;
            if state.names(self.key)?.get(new).is_some() {
                return Err(errno(libc::EEXIST));
            }
            state.names_mut(self.key)?.change([(new, Some(key))]);
            state.touch(key);
            Ok(())
        })
    }

    fn unlink(&self, name: &OsStr) -> io::Result<()> {
        self.change(OperationKind::Unlink, &[name], |state| {
            let key = state.look_up(self.key, name)?;
            state.data(key)?;
            state.names_mut(self.key)?.change([(name, None)]);
            Ok(())
        })
    }

    fn create_directory(&self, name: &OsStr) -> io::Result<()> {
        self.change(OperationKind::CreateDirectory, &[name], |state| {
            if state.names(self.key)?.get(name).is_some() {
                return Err(errno(libc::EEXIST));
            }
            let key = state.create(0o755, Body::Directory(Names::default()));
            state.names_mut(self.key)?.change([(name, Some(key))]);
            Ok(())
        })
    }

    fn open_directory(&self, name: &OsStr) -> io::Result<Self> {
        self.operate(OperationKind::OpenDirectory, &[name], |state| {
            let key = state.look_up(self.key, name)?;
            state.names(key)?;
            let number = state.inode(key)?.number;
            Ok(Self { process: self.process.clone(), key, number })
        })
    }

    fn remove_directory(&self, name: &OsStr) -> io::Result<()> {
        self.change(OperationKind::RemoveDirectory, &[name], |state| {
            let key = state.look_up(self.key, name)?;
            if !state.names(key)?.is_empty() {
                return Err(errno(libc::ENOTEMPTY));
            }
            state.names_mut(self.key)?.change([(name, None)]);
            Ok(())
        })
    }

    fn flush(&self) -> io::Result<()> {
        self.operate(OperationKind::FlushDirectory, &[], |state| {
            if state.names(self.key)?.unflushed() > 0 {
                state.check_writable()?;
                state.names_mut(self.key)?.flush();
                state.collect();
            }
            state.keep(self.key)
        })
    }
}

/// Refuses what is not a single component of a path.
fn check(name: &OsStr) -> io::Result<()> {
    let bytes = name.as_bytes();
    if matches!(bytes, b"" | b"." | b"..") || bytes.contains(&b'/') {
        return Err(errno(libc::EINVAL));
    }
    Ok(())
}

/// A file replaces a file, a directory an empty directory.
fn check_replacement(state: &State, key: Key, replaced: Key) -> io::Result<()> {
    if state.names(key).is_err() {
        state.data(replaced).map(drop)
    } else if state.names(replaced)?.is_empty() {
        Ok(())
    } else {
        Err(errno(libc::ENOTEMPTY))
    }
}
