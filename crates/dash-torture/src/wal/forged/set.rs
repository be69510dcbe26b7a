//! Sets of files: what a database is made of while a process has it open, and was killed.

use std::fs;
use std::io::Result;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::record::Log;
use crate::sqlite;

/// Endings of the names of the files of a set.
pub const FILES: [&str; 6] = ["", "-wal", "-shm", "-dash", "-dashlog", "-shadow"];
pub const DATABASE: usize = 0;
pub const WAL: usize = 1;
pub const SHM: usize = 2;
pub const DASH: usize = 3;
pub const LOG: usize = 4;

/// Words of `-dash` that say whose it is: device and inode of the database, its own inode.
const IDENTITY: [usize; 3] = [31, 32, 45];

/// URI parameters and PRAGMAs of sessions.
const SESSIONS: [(&str, &str); 7] = [
    ("&journal_mode=wal", "synchronous=FULL"),
    ("&journal_mode=wal", "synchronous=NORMAL"),
    ("&journal_mode=wal&dash_statements=on&dash_statement_text=full", "synchronous=FULL"),
    ("&journal_mode=statement&dash_commit=paper", "synchronous=FULL"),
    ("&journal_mode=statement&dash_wal=memory", "synchronous=FULL"),
    ("&journal_mode=wal&dash_wal=memory", "synchronous=FULL"),
    ("&journal_mode=shadow", "synchronous=FULL"),
];

/// What the longer ones do when there are many rows. After each the files are taken.
const LATER: [&str; 4] = [
    "PRAGMA wal_checkpoint(PASSIVE); UPDATE t SET v = v + 1 WHERE k = 2",
    "UPDATE t SET v = v + 1 WHERE k = 3; UPDATE t SET x = 'y' WHERE k = 4",
    "PRAGMA wal_checkpoint(TRUNCATE); UPDATE t SET v = v + 1 WHERE k = 2; DELETE FROM t WHERE k = 3",
    "DELETE FROM t WHERE k > 30; VACUUM",
];

/// A set.
#[derive(Debug, Clone, Default)]
pub struct Set {
    /// In the order of [`FILES`].
    pub files: [Option<Vec<u8>>; FILES.len()],
    /// The log, where it is put together again.
    pub log: Option<Log>,
    /// Whether the name fence stands.
    pub fence: bool,
    /// Whether files that say whose they are say that they are this database's.
    pub is_its_own: bool,
}

/// The path of a file beside a database.
fn beside(database: &Path, ending: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

impl Set {
    /// As it is now.
    fn taken(database: &Path) -> Self {
        let files = FILES.map(|ending| fs::read(beside(database, ending)).ok());
        let log = files[LOG].as_deref().and_then(Log::of);
        let fence = beside(database, "-journal").is_dir();
        Self { files, log, fence, is_its_own: true }
    }

    /// Bytes of a page, as `-wal` says.
    pub fn page(&self) -> Option<usize> {
        let bytes = self.files[WAL].as_ref()?.get(8..12)?.try_into().ok()?;
        usize::try_from(u32::from_be_bytes(bytes)).ok().filter(|it| (512..=65536).contains(it))
    }

    /// Makes `-wal` end behind so many frames.
    pub fn cut(&mut self, frames: usize) {
        if let (Some(page), Some(wal)) = (self.page(), &mut self.files[WAL]) {
            wal.truncate(32 + frames.saturating_mul(24 + page));
        }
    }

    /// Puts it on the disk.
    pub fn put(&self, database: &Path) -> Result<()> {
        let empty = Vec::new();
        fs::write(database, self.files[DATABASE].as_ref().unwrap_or(&empty))?;
        let made = fs::metadata(database)?;
        for (file, bytes) in self.files.iter().enumerate().skip(1) {
            let Some(bytes) = bytes else { continue };
            let path = beside(database, FILES[file]);
            let mut bytes = bytes.clone();
            if let (LOG, Some(log)) = (file, &self.log) {
                bytes = log.bytes(if self.is_its_own { made.ino() } else { 0 });
            }
            fs::write(&path, &bytes)?;
            if file == DASH && self.is_its_own {
                let own = [made.dev(), made.ino(), fs::metadata(&path)?.ino()];
                for (word, value) in IDENTITY.into_iter().zip(own) {
                    if let Some(place) = bytes.get_mut(8 * word..8 * word + 8) {
                        place.copy_from_slice(&value.to_ne_bytes());
                    }
                }
                fs::write(&path, &bytes)?;
            }
        }
        if self.fence {
            fs::create_dir(beside(database, "-journal"))?;
        }
        Ok(())
    }
}

/// The sets of a session with pages of this size.
fn session(
    folder: &Path,
    (uri, pragma): (&str, &str),
    page: u32,
) -> std::result::Result<Vec<Set>, rusqlite::Error> {
    let path = folder.join("app.db");
    let db = sqlite::open(&path, "&dash_rest=off")?;
    db.execute_batch(&format!("PRAGMA page_size={page}"))?;
    drop(db);
    let db = sqlite::open(&path, &format!("{uri}&dash_rest=off"))?;
    db.execute_batch(&format!("PRAGMA page_size={page}; PRAGMA {pragma}"))?;
    db.execute_batch("CREATE TABLE t(k INTEGER PRIMARY KEY, v, x)")?;
    let mut sets = Vec::new();
    let insert = |db: &Connection, k: u32, len: usize| {
        db.execute("INSERT INTO t VALUES (?, ?, ?)", (k, k, "b".repeat(len)))
    };
    for k in 0..6 {
        insert(&db, k, 60)?;
    }
    sets.push(Set::taken(&path));
    db.execute_batch("BEGIN; UPDATE t SET v = 7 WHERE k = 1; SAVEPOINT a; UPDATE t SET v = 7 WHERE k = 2; RELEASE a; COMMIT")?;
    sets.push(Set::taken(&path));
    if page == 4096 {
        db.execute_batch("BEGIN")?;
        for k in 6..60 {
            insert(&db, k, 900)?;
        }
        db.execute_batch("COMMIT")?;
        for sql in LATER {
            db.execute_batch(sql)?;
            sets.push(Set::taken(&path));
        }
    }
    Ok(sets)
}

/// Sets of all kinds of sessions, in these folders: where one is in memory the log is one of lines.
pub fn sets(folders: &[&Path]) -> std::result::Result<Vec<Set>, String> {
    let mut sets = Vec::new();
    for (number, folder) in folders.iter().enumerate() {
        for (kind, how) in SESSIONS.into_iter().enumerate() {
            for page in [512, 4096, 65536] {
                let folder = folder.join(format!("session-{number}-{kind}-{page}"));
                let made = fs::create_dir(&folder).map_err(|error| error.to_string());
                let made = made.and_then(|()| {
                    session(&folder, how, page)
                        .map_err(|error| format!("{how:?}: {error}; {}", sqlite::last_error()))
                });
                sets.extend(made?);
                fs::remove_dir_all(&folder).map_err(|error| error.to_string())?;
            }
        }
    }
    Ok(sets)
}
