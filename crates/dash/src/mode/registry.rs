//! Which databases this process has open through dash, and how.
//!
//! SQLite asks by path, in every read transaction, whether a journal or a WAL exists; for a
//! database that an engine writes the answer is known here and costs no system call. And
//! connections of one process must agree on the mode of a database, or one would wait for the other
//! for ever: the first one decides, until the last one has closed.
//!
//! Invariant: a path is listed from before its file is opened until after it is closed. The list is
//! shared by all SQLites of the process.
//!
//! In a forked child what came over the fork stays listed for the questions about files beside it,
//! as a transaction of the parent's may have to be rolled back there; for all else it counts only
//! where it is a plain file. The first connection that joins begins it anew.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock};

use dash_ffi::{OpenFlags, Opened, Result};
use dash_storage::real::{self, without_fork};

use super::shared::Shared;
use super::{Beside, Mode};

static DATABASES: RwLock<Databases> = RwLock::new(BTreeMap::new());

/// What SQLite appends to a database's name.
const BESIDE: [(&[u8], Beside); 2] = [(b"-journal", Beside::Journal), (b"-wal", Beside::Wal)];

struct Listed {
    mode: &'static dyn Mode,
    connections: usize,
    shared: Arc<Shared>,
    /// [`real::forks`] when it was listed.
    forks: u64,
}

impl Listed {
    fn new(mode: &'static dyn Mode) -> Self {
        Self { mode, connections: 0, shared: Arc::default(), forks: real::forks() }
    }

    /// Whether it is about connections of the parent's. A plain file stays one in the child.
    fn is_inherited(&self) -> bool {
        self.forks != real::forks() && !self.mode.is_plain()
    }

    /// Begins it anew in a forked child. What was shared stays where it is: threads that are not
    /// there may hold its locks.
    fn renew(&mut self, mode: &'static dyn Mode) {
        let old = std::mem::replace(self, Self::new(mode));
        // One that has not ended its transaction yet asks about the files beside it.
        self.shared.writers.store(usize::from(old.shared.has_writers()), Ordering::SeqCst);
        std::mem::forget(old);
    }
}

type Databases = BTreeMap<Vec<u8>, Listed>;

/// Looks at the list. No fork comes into that: a child would find its lock held for ever.
fn look<R>(look: impl FnOnce(&Databases) -> R) -> R {
    without_fork(|| look(&DATABASES.read().unwrap_or_else(PoisonError::into_inner)))
}

/// Changes the list.
fn change<R>(change: impl FnOnce(&mut Databases) -> R) -> R {
    without_fork(|| change(&mut DATABASES.write().unwrap_or_else(PoisonError::into_inner)))
}

/// One connection's place in the list; given up by dropping it.
pub struct Membership {
    path: Vec<u8>,
    shared: Arc<Shared>,
}

impl Membership {
    /// What the connections share.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Whether no other connection of this process has it open.
    pub fn is_alone(&self) -> bool {
        look(|databases| {
            let listed = databases.get(&self.path).filter(|listed| self.is_of(listed));
            listed.is_some_and(|listed| listed.connections == 1)
        })
    }

    /// Not so in a forked child, once it began anew there.
    fn is_of(&self, listed: &Listed) -> bool {
        Arc::ptr_eq(&self.shared, &listed.shared)
    }

    /// Changes the mode; `false` if other connections stand against it.
    pub fn switch(&self, mode: &'static dyn Mode) -> bool {
        change(|databases| match databases.get_mut(&self.path) {
            Some(listed)
                if self.is_of(listed) && (listed.connections == 1 || listed.mode == mode) =>
            {
                listed.mode = mode;
                true
            }
            _ => false,
        })
    }

    /// Says in which mode the file is by now, whatever connections of this process took it for:
    /// each of them follows before it reads or writes.
    pub fn lead(&self, mode: &'static dyn Mode) {
        change(|databases| {
            if let Some(listed) = databases.get_mut(&self.path)
                && self.is_of(listed)
            {
                listed.mode = mode;
            }
        });
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        let last = change(|databases| {
            let listed = databases.get_mut(&self.path).filter(|listed| self.is_of(listed))?;
            listed.connections -= 1;
            (listed.connections == 0).then(|| databases.remove(&self.path))
        });
        // It may close files: not while a fork waits.
        drop(last);
    }
}

/// Lists a connection: in the mode of the connections that are there already, or in the one it
/// wants, or by default. `Err` is the mode that stands against an explicit wish.
pub fn join(
    path: &Path,
    wanted: Option<&'static dyn Mode>,
    default: &'static dyn Mode,
) -> core::result::Result<(Membership, &'static dyn Mode), &'static dyn Mode> {
    let path = path.as_os_str().as_bytes().to_vec();
    let mode = wanted.unwrap_or(default);
    change(|databases| {
        let listed = databases.entry(path.clone()).or_insert_with(|| Listed::new(mode));
        if listed.forks != real::forks() {
            let mode = if listed.mode.is_plain() { listed.mode } else { mode };
            listed.renew(mode);
        }
        if wanted.is_some_and(|wanted| wanted != listed.mode) {
            return Err(listed.mode);
        }
        listed.connections += 1;
        let shared = Arc::clone(&listed.shared);
        Ok((Membership { path, shared }, listed.mode))
    })
}

/// The database that a path is beside, by the path's name, and what it would be.
fn beside(path: &Path) -> Option<(&[u8], Beside)> {
    let path = path.as_os_str().as_bytes();
    BESIDE.iter().find_map(|(suffix, beside)| Some((path.strip_suffix(*suffix)?, *beside)))
}

/// Asks the mode of the database that a path is beside, if one is listed. The list is held
/// meanwhile: for questions that need no file.
fn ask<R>(path: &Path, ask: impl FnOnce(&dyn Mode, &Arc<Shared>, Beside) -> R) -> Option<R> {
    let (path, beside) = beside(path)?;
    look(|databases| databases.get(path).map(|listed| ask(listed.mode, &listed.shared, beside)))
}

/// The same, for what may take its time.
fn find(path: &Path) -> Option<(&'static dyn Mode, Arc<Shared>, Beside)> {
    let (path, beside) = beside(path)?;
    look(|databases| {
        databases.get(path).map(|listed| (listed.mode, Arc::clone(&listed.shared), beside))
    })
}

/// The mode that a database is open in here, if it is.
pub fn mode_of(path: &Path) -> Option<&'static dyn Mode> {
    look(|databases| {
        let listed = databases.get(path.as_os_str().as_bytes());
        listed.filter(|listed| !listed.is_inherited()).map(|listed| listed.mode)
    })
}

/// Opens a file beside a listed database; `None`: it is the host's.
///
/// # Errors
///
/// What the mode says.
pub fn open_beside(path: &Path, flags: OpenFlags) -> Result<Option<Opened>> {
    match find(path) {
        Some((mode, shared, _)) => mode.open_beside(&shared, path, flags),
        None => Ok(None),
    }
}

/// Deletes a file beside a listed database; `None`: the host does.
pub fn delete_beside(path: &Path) -> Option<Result<()>> {
    let (mode, shared, beside) = find(path)?;
    mode.delete_beside(&shared, path, beside)
}

/// Whether there is a file beside a listed database; `None`: the host looks.
pub fn exists_beside(path: &Path) -> Option<bool> {
    ask(path, |mode, shared, beside| mode.exists_beside(shared, path, beside)).flatten()
}

/// The mode of the database whose journal would have this path, and whether a connection of this
/// process may write it.
pub fn mode_of_journal(path: &Path) -> Option<(&'static dyn Mode, bool)> {
    let path = path.as_os_str().as_bytes().strip_suffix(BESIDE[0].0)?;
    look(|databases| {
        let listed = databases.get(path).filter(|listed| !listed.is_inherited());
        listed.map(|listed| (listed.mode, listed.shared.has_writers()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{plain, shadow};
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn connections_of_a_process_agree_on_the_mode() {
        let path = Path::new("/nowhere/agree.db");
        let (plain, shadow): (&'static dyn Mode, &'static dyn Mode) = (plain::MODE, shadow::MODE);
        let (first, mode) = join(path, None, shadow).expect("the first one chooses");
        assert_eq!(mode, shadow);
        assert_eq!(join(path, Some(plain), shadow).err(), Some(shadow));
        assert!(first.switch(plain));
        let (second, mode) = join(path, None, shadow).expect("no wish of its own");
        assert_eq!(mode, plain);
        assert!(!first.switch(shadow));
        drop((first, second));
        assert_eq!(join(path, None, shadow).map(|(_, mode)| mode), Ok(shadow));
    }

    #[test]
    fn what_an_engine_shares_is_made_once() {
        #[derive(Default)]
        struct Own(AtomicUsize);
        let shared = Shared::default();
        shared.of::<Own>().0.store(7, Ordering::SeqCst);
        shared.of::<AtomicUsize>();
        assert_eq!(shared.of::<Own>().0.load(Ordering::SeqCst), 7);
    }
}
