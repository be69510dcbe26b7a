//! Which databases this process has open through dash, and how.
//!
//! SQLite asks by path, in every read transaction, whether a journal or a WAL exists; for a
//! database that is written in mode shadow the answer is known here and costs no system call: a
//! connection that writes keeps stock writers out. Those that only read don't, and look at the
//! files. And connections of one process must agree on the mode of a database, or one would wait
//! for the other for ever: the first one decides, until the last one has closed.
//!
//! Invariant: a path is listed from before its file is opened until after it is closed. The list is
//! shared by all SQLites of the process.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::JoinHandle;

use crate::wake::Queue;

static DATABASES: RwLock<BTreeMap<Vec<u8>, Listed>> = RwLock::new(BTreeMap::new());

const JOURNAL: &[u8] = b"-journal";
const WAL: &[u8] = b"-wal";

/// How a database is open in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// By the engine.
    Shadow,
    /// By the host's VFS.
    Plain,
}

struct Listed {
    mode: Mode,
    connections: usize,
    database: Arc<Database>,
}

/// What the connections of this process share about a database.
#[derive(Default)]
pub struct Database {
    /// Who waits for its locks.
    pub queue: Arc<Queue>,
    prepared: AtomicBool,
    /// Connections that may write it, and so keep stock writers out.
    writers: AtomicUsize,
    super_journal: Mutex<Option<PathBuf>>,
    settling: Mutex<Option<JoinHandle<()>>>,
}

impl Database {
    /// Notes that a commit is prepared under a super-journal, or no longer is.
    pub fn set_super_journal(&self, path: Option<PathBuf>) {
        self.prepared.store(path.is_some(), Ordering::SeqCst);
        *self.super_journal.lock().unwrap_or_else(PoisonError::into_inner) = path;
    }

    /// The thread that settles it.
    pub fn settling(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.settling.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The super-journal that a commit is prepared under.
    pub fn super_journal(&self) -> Option<PathBuf> {
        self.super_journal.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A connection that keeps stock writers out, until it is dropped.
pub struct Writing(Arc<Database>);

impl Writing {
    /// One more.
    pub fn new(database: &Arc<Database>) -> Self {
        database.writers.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(database))
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.0.writers.fetch_sub(1, Ordering::SeqCst);
    }
}

/// One connection's place in the list; given up by dropping it.
pub struct Membership {
    path: Vec<u8>,
    database: Arc<Database>,
}

impl Membership {
    /// What the connections share.
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// Changes the mode; `false` if this is not the only connection.
    pub fn switch(&self, mode: Mode) -> bool {
        let mut databases = DATABASES.write().unwrap_or_else(PoisonError::into_inner);
        match databases.get_mut(&self.path) {
            Some(listed) if listed.connections == 1 => {
                listed.mode = mode;
                true
            }
            _ => false,
        }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        let mut databases = DATABASES.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(listed) = databases.get_mut(&self.path) {
            listed.connections -= 1;
            if listed.connections == 0 {
                databases.remove(&self.path);
            }
        }
    }
}

/// Lists a connection: in the mode it wants, or in that of the connections that are there already.
/// `Err` is the mode that stands against an explicit wish.
pub fn join(path: &Path, wanted: Option<Mode>) -> Result<(Membership, Mode), Mode> {
    let path = path.as_os_str().as_bytes().to_vec();
    let mut databases = DATABASES.write().unwrap_or_else(PoisonError::into_inner);
    let listed = databases.entry(path.clone()).or_insert_with(|| Listed {
        mode: wanted.unwrap_or(Mode::Shadow),
        connections: 0,
        database: Arc::default(),
    });
    if wanted.is_some_and(|wanted| wanted != listed.mode) {
        return Err(listed.mode);
    }
    listed.connections += 1;
    let database = Arc::clone(&listed.database);
    Ok((Membership { path, database }, listed.mode))
}

fn shadow<R>(path: &[u8], see: impl FnOnce(&Arc<Database>) -> R) -> Option<R> {
    let databases = DATABASES.read().unwrap_or_else(PoisonError::into_inner);
    let listed = databases.get(path).filter(|listed| listed.mode == Mode::Shadow)?;
    (listed.database.writers.load(Ordering::SeqCst) > 0).then(|| see(&listed.database))
}

/// Whether this is the journal's path of a database in mode shadow that connections of this process
/// only read: then a directory of that name is a name fence, and a file may be a stock writer's.
pub fn is_journal_of_readers(path: &Path) -> bool {
    let read = || {
        let path = path.as_os_str().as_bytes().strip_suffix(JOURNAL)?;
        let databases = DATABASES.read().unwrap_or_else(PoisonError::into_inner);
        let listed = databases.get(path).filter(|listed| listed.mode == Mode::Shadow)?;
        Some(listed.database.writers.load(Ordering::SeqCst) == 0)
    };
    read().unwrap_or(false)
}

/// The database written in mode shadow whose rollback journal would have this path.
pub fn of_journal(path: &Path) -> Option<Arc<Database>> {
    let path = path.as_os_str().as_bytes().strip_suffix(JOURNAL)?;
    shadow(path, Arc::clone)
}

/// Whether a file exists, if it is the journal or the WAL of a database written in mode shadow.
/// There are none, except that a journal is claimed while its database is prepared under a
/// super-journal.
pub fn side_file_exists(path: &Path) -> Option<bool> {
    let path = path.as_os_str().as_bytes();
    if let Some(database) = path.strip_suffix(JOURNAL) {
        return shadow(database, |database| database.prepared.load(Ordering::SeqCst));
    }
    shadow(path.strip_suffix(WAL)?, |_| false)
}

/// Whether this path is a journal's, of a database written in mode shadow.
pub fn is_journal(path: &OsStr) -> bool {
    path.as_bytes().strip_suffix(JOURNAL).is_some_and(|path| shadow(path, |_| ()).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_of_a_process_agree_on_the_mode() {
        let path = Path::new("/nowhere/agree.db");
        let (first, mode) = join(path, None).expect("the first one chooses");
        assert_eq!(mode, Mode::Shadow);
        assert_eq!(join(path, Some(Mode::Plain)).err(), Some(Mode::Shadow));
        assert!(first.switch(Mode::Plain));
        let (second, mode) = join(path, None).expect("no wish of its own");
        assert_eq!(mode, Mode::Plain);
        assert!(!first.switch(Mode::Shadow));
        drop((first, second));
        assert_eq!(join(path, None).map(|(_, mode)| mode), Ok(Mode::Shadow));
    }

    #[test]
    fn side_files_are_answered_for_open_shadow_databases_only() {
        let path = Path::new("/nowhere/side.db");
        let journal = Path::new("/nowhere/side.db-journal");
        let wal = Path::new("/nowhere/side.db-wal");
        assert_eq!(side_file_exists(journal), None);
        let (member, _) = join(path, None).expect("alone");
        assert_eq!(side_file_exists(journal), None, "who only reads keeps nobody from making one");
        assert!(is_journal_of_readers(journal) && !is_journal(journal.as_os_str()));
        let writing = Writing::new(member.database());
        assert!(!is_journal_of_readers(journal));
        assert_eq!(side_file_exists(journal), Some(false));
        assert_eq!(side_file_exists(wal), Some(false));
        assert_eq!(side_file_exists(path), None);
        assert!(is_journal(journal.as_os_str()));
        member.database().set_super_journal(Some("/nowhere/side.db-mj1".into()));
        assert_eq!(side_file_exists(journal), Some(true));
        assert_eq!(side_file_exists(wal), Some(false));
        drop((writing, member));
        assert_eq!(side_file_exists(wal), None);
    }
}
