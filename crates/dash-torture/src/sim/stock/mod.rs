//! A process of stock SQLite: how it journals, what it promises, what it does. It is the real one,
//! on a VFS that does on a simulated machine what `unix` does.

mod code;
pub mod file;
pub mod index;
mod vfs;

use std::fmt;
use std::time::Duration;

use dash_simulated::{Machine, Simulated};
use rusqlite::{Connection, ErrorCode, Result};

use vfs::Numbered;

use crate::random::Dice;
use crate::sim::content::Content;
use crate::sim::sql::statements::{digest, is_sound};
use crate::sim::subject::{DB, Subject};

/// `PRAGMA journal_mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Journal {
    Delete,
    Truncate,
    Persist,
    Memory,
    Off,
    Wal,
}

/// `PRAGMA synchronous`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub enum Level {
    Off,
    Normal,
    Full,
    Extra,
}

/// Both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manner {
    pub journal: Journal,
    pub level: Level,
}

impl fmt::Display for Manner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}/{:?}", self.journal, self.level)
    }
}

impl Manner {
    /// Any; a WAL only where a file that was removed can't come back alone, for then stock SQLite
    /// would read an old one.
    pub(crate) fn draw(dice: &mut Dice, wal: bool) -> Self {
        use Journal as J;
        let journals = [J::Delete, J::Truncate, J::Persist, J::Memory, J::Off, J::Memory, J::Wal];
        let levels = [Level::Off, Level::Normal, Level::Full, Level::Full, Level::Extra];
        let journal = journals[dice.index(journals.len() - usize::from(!wal))];
        let level = levels[dice.index(levels.len())];
        match journal {
            J::Wal => Self { journal, level: Level::Full },
            _ => Self { journal, level },
        }
    }

    /// Whether a process that dies in a transaction leaves what can be undone.
    pub fn survives_death(self) -> bool {
        !matches!(self.journal, Journal::Memory | Journal::Off)
    }

    /// Whether a power loss inside a transaction leaves one state or the other. (With NORMAL all
    /// depends on the journal's checksums, which look at a byte in 200. And a file that is cut
    /// loses its sectors one by one on this device, weaker than any file system: TRUNCATE has to
    /// flush first.)
    pub fn survives_power_loss(self) -> bool {
        self.survives_death() && self.journal != Journal::Truncate && self.level >= Level::Full
    }

    /// Whether a power loss after a transaction leaves one state or the other.
    pub fn is_whole_once_committed(self) -> bool {
        match self.journal {
            Journal::Truncate => self.level >= Level::Full,
            _ => self.level > Level::Off,
        }
    }

    /// Whether a transaction that returned survives a power loss. In mode DELETE the journal may
    /// come back unless its folder is flushed.
    pub fn is_durable(self) -> bool {
        match self.journal {
            Journal::Delete => self.level == Level::Extra,
            Journal::Truncate | Journal::Persist | Journal::Wal => self.level >= Level::Full,
            Journal::Memory | Journal::Off => self.level > Level::Off,
        }
    }

    /// Whether a journal that it leaves may come back after a power loss, and be rolled back over
    /// whatever a writer without a journal has done since.
    pub fn leaves_a_ghost(self) -> bool {
        self.survives_death() && !(self.journal == Journal::Delete && self.level == Level::Extra)
    }
}

/// A connection of stock SQLite in a process of its own.
pub struct Stock {
    /// The process.
    pub process: Simulated,
    /// SQLite's.
    pub db: Connection,
    /// What it has open, whatever that is called later.
    pub inode: u64,
    _number: Numbered,
}

impl Stock {
    /// Opens the database, as a program would that means to write, with a cache of a few pages.
    ///
    /// # Errors
    ///
    /// SQLite's.
    pub fn open(machine: &Machine) -> Result<Self> {
        Self::open_in(machine.process())
    }

    /// The same, in this process.
    ///
    /// # Errors
    ///
    /// SQLite's.
    pub fn open_in(process: Simulated) -> Result<Self> {
        let stock = Self::open_once(process, false)?;
        match stock.content() {
            // A hot journal was rolled back, and the file is in WAL mode again.
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::CannotOpen)
                    && is_wal(stock.process.machine()) =>
            {
                Self::open_once(stock.process, false)
            }
            _ => Ok(stock),
        }
    }

    /// The same, with shared memory: in WAL mode it may be one of several.
    ///
    /// # Errors
    ///
    /// SQLite's.
    pub fn open_sharing(process: Simulated) -> Result<Self> {
        Self::open_once(process, true)
    }

    fn open_once(process: Simulated, shared_memory: bool) -> Result<Self> {
        let number = Numbered::new(&process, shared_memory);
        let db = Connection::open(number.uri(DB.trim_start_matches('/')))?;
        db.set_prepared_statement_cache_capacity(0);
        db.busy_timeout(Duration::ZERO)?;
        if !shared_memory && is_wal(process.machine()) {
            // Many a VFS has no shared memory.
            db.execute_batch("PRAGMA locking_mode=EXCLUSIVE")?;
        }
        // Only the second of these reads the file.
        db.execute_batch("PRAGMA temp_store=MEMORY")?;
        drop(db.execute_batch("PRAGMA cache_size=8"));
        let inode = process.machine().open_stock(DB).map_or(0, |file| file.inode());
        Ok(Self { process, db, inode, _number: number })
    }

    /// Sets how it journals.
    ///
    /// # Errors
    ///
    /// SQLite's.
    pub fn set(&self, manner: Manner) -> Result<()> {
        let wal = manner.journal == Journal::Wal;
        if wal {
            self.db.execute_batch("PRAGMA locking_mode=EXCLUSIVE")?;
        }
        let mode = format!("{:?}", manner.journal);
        let set = format!("PRAGMA journal_mode={mode}");
        let got: String = self.db.query_row(&set, [], |row| row.get(0))?;
        if !got.eq_ignore_ascii_case(&mode) {
            return Err(busy());
        }
        if !wal {
            self.db.execute_batch("PRAGMA locking_mode=NORMAL")?;
            self.content()?;
        }
        self.db.execute_batch(&format!("PRAGMA synchronous={:?}", manner.level))
    }

    /// What it reads.
    ///
    /// # Errors
    ///
    /// SQLite's.
    pub fn content(&self) -> Result<Content> {
        digest(&self.db)
    }

    /// What it reads, and whether `integrity_check` finds nothing wrong.
    ///
    /// # Errors
    ///
    /// SQLite's.
    pub fn checked(&self) -> Result<(bool, Content)> {
        Ok((is_sound(&self.db)?, self.content()?))
    }
}

/// Whether a file is in WAL mode, or has a WAL beside it; an empty one is none.
pub fn is_wal(machine: &Machine) -> bool {
    let header = machine.file_view(DB).unwrap_or_default();
    machine.file_view(format!("{DB}-wal")).is_some_and(|wal| !wal.is_empty())
        || header.get(18..20).is_some_and(|both| both == [2, 2])
}

/// Whether a rollback journal was ended in place, and that may not be flushed. If its process is
/// killed now, the next one writes over its records while the device has its old header, and a
/// power loss mixes the two: SQLite's checksum is of every 200th byte (pager.c `pager_cksum`).
pub fn is_ended_in_place(machine: &Machine) -> bool {
    let journal = machine.file_view(format!("{DB}-journal"));
    journal.is_some_and(|journal| journal.first().is_none_or(|&byte| byte == 0))
}

fn busy() -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY), None)
}

/// Whether an error says that somebody holds a lock.
pub fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Whether an error says that the file may be read only.
pub fn is_read_only(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::ReadOnly)
}

/// Whether the file says of itself that stock SQLite may not write it: its write version is above
/// 2.
pub fn may_not_be_written(machine: &Machine) -> bool {
    machine.file_view(DB).is_some_and(|file| file.get(18).is_some_and(|&version| version > 2))
}

/// Leaves WAL mode, and removes a journal that was kept.
const CLEAR: &str = "SELECT count(*) FROM sqlite_master; PRAGMA journal_mode=MEMORY; \
    PRAGMA journal_mode=PERSIST; PRAGMA journal_mode=DELETE";

/// What dash does before it opens a database beside which stock SQLite left something
/// (leftovers.rs of crate `dash`).
pub fn clear(
    subject: &dyn Subject,
    machine: &Machine,
    process: &Simulated,
) -> std::result::Result<(), String> {
    let is_file = |name: &str| machine.file_view(name).is_some();
    if !is_file(&format!("{DB}-journal")) && !is_wal(machine) {
        return Ok(());
    }
    let run = || {
        let was_wal = is_wal(machine);
        Stock::open_in(process.clone())?.db.execute_batch(CLEAR)?;
        match was_wal || is_file(&format!("{DB}-journal")) {
            // Under locking_mode=EXCLUSIVE journals stay.
            true => Stock::open_in(process.clone())?.db.execute_batch(CLEAR),
            false => Ok(()),
        }
    };
    let mut ran = Ok(());
    subject.while_closed(process, DB, &mut || ran = run()).map_err(|error| error.to_string())?;
    ran.map_err(|error| format!("stock SQLite could not recover it: {error}"))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use dash_simulated::Random;

    use super::*;

    /// What is read of the database as it is on this machine, if it is sound.
    fn sound_content(machine: &Machine) -> std::result::Result<Content, String> {
        let stock = Stock::open(machine).map_err(|error| error.to_string())?;
        match stock.checked() {
            Ok((true, content)) => Ok(content),
            Ok((false, _)) => Err("integrity_check".into()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The cut of the database follows the removal of its journal, without a flush between them.
    #[test]
    fn a_commit_that_shrinks_the_database_is_whole_after_a_power_loss() {
        let machine = Machine::new(7);
        let stock = Stock::open(&machine).expect("opens");
        let fill = "PRAGMA page_size=512; PRAGMA auto_vacuum=FULL; CREATE TABLE a(k, v, n); CREATE TABLE b(k, v);
            WITH i(k) AS (VALUES(1) UNION ALL SELECT k + 1 FROM i WHERE k < 60)
            INSERT INTO a SELECT k, zeroblob(400), 0 FROM i";
        stock.db.execute_batch(fill).expect("fills");
        machine.write_back();
        let before = stock.content().expect("reads");
        let found = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&found);
        let mut seed = 0;
        machine.watch(move |machine, _| {
            for _ in 0..12 {
                seed += 1;
                let after = machine.power_loss(&mut Random::new(seed));
                seen.lock().expect("nobody panicked").push(sound_content(&after));
            }
        });
        stock.db.execute_batch("DELETE FROM a WHERE k > 10").expect("shrinks");
        machine.watch(|_, _| {});
        let after = stock.content().expect("reads");
        assert_ne!(before, after);
        let found = std::mem::take(&mut *found.lock().expect("nobody panicked"));
        let old = found.iter().filter(|found| **found == Ok(before.clone())).count();
        let new = found.iter().filter(|found| **found == Ok(after.clone())).count();
        let wrong: Vec<_> = found.iter().filter_map(|found| found.as_ref().err()).collect();
        assert!(old > 0 && new > 0 && old + new == found.len(), "{old} old, {new} new, {wrong:?}");
    }
}
