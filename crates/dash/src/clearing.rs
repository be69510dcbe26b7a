//! Having stock SQLite finish what it left beside a database: on the host's VFS it rolls back or
//! checkpoints, and leaves a plain file in rollback mode.

use std::path::Path;

use dash_ffi::{Code, Error, File, HostVfs, OpenFlags, Result};

use crate::by_stock::{self, Work};
use crate::leftovers::{Leftover, Neighbours};

/// Taken together: rolls a hot journal back, checkpoints and leaves WAL mode, and removes a journal
/// that a stock `journal_mode=PERSIST` or `TRUNCATE` kept.
///
/// WAL mode is left without a journal file. That writes two bytes of the header and its counters,
/// which are in one sector, so nothing need be rolled back; and where the file system has no
/// journal, one that was just begun may hold an older one after a power loss, which SQLite would
/// roll back over what was committed since.
const CLEAR: &str = "PRAGMA busy_timeout=2000; PRAGMA locking_mode=NORMAL; \
     SELECT count(*) FROM sqlite_master; PRAGMA journal_mode=MEMORY; \
     PRAGMA journal_mode=PERSIST; PRAGMA journal_mode=DELETE";

/// Rolls a hot journal back, and no more.
const ROLL_BACK: &str = "PRAGMA busy_timeout=2000; SELECT count(*) FROM sqlite_master";

/// Lets stock SQLite roll back a hot journal of a program that was stopped; whether there was one.
/// `flags` are those the database is opened with.
///
/// # Errors
///
/// `SQLITE_BUSY` if another process comes between, or stock SQLite's own error, with a message.
pub fn roll_back(host: &HostVfs, path: &Path, flags: OpenFlags) -> Result<bool> {
    let shown = path.display();
    let is_needed = || {
        // Beside an empty file, or none, SQLite deletes a journal.
        let has_bytes = path.metadata().is_ok_and(|found| found.len() > 0);
        if !has_bytes || !Neighbours::of(path).has_hot_journal()? {
            return Ok(false);
        }
        let (mut file, _) = host.open_path(path, OpenFlags::MAIN_DB | OpenFlags::READWRITE)?;
        let is_written = file.check_reserved_lock();
        File::close(Box::new(file))?;
        Ok(!is_written?)
    };
    let in_use = || Error::new(Code::BUSY, format!("{shown} is in use by another process"));
    let could_not = format!("stock SQLite could not roll back {shown}");
    let (is_needed, in_use): (&dyn Fn() -> _, &dyn Fn() -> _) = (&is_needed, &in_use);
    if !is_needed()? {
        return Ok(false);
    }
    let work = Work { sql: ROLL_BACK, is_needed, in_use, could_not: &could_not };
    by_stock::run(host, path, flags, &work).map(|()| true)
}

/// Lets stock SQLite deal with a leftover. `flags` are those the database is opened with. Not
/// `out_of_wal`: a database in WAL mode is to stay in it.
///
/// # Errors
///
/// `SQLITE_BUSY` if another process uses the WAL, or if it is to stay, or if a name fence stands;
/// or stock SQLite's own error, each with a message.
pub fn clear(
    host: &HostVfs,
    path: &Path,
    flags: OpenFlags,
    leftover: Leftover,
    out_of_wal: bool,
) -> Result<()> {
    let shown = path.display();
    let in_use = || {
        let has = match leftover {
            Leftover::Wal => "is in WAL mode",
            Leftover::Journal => "has a rollback journal of stock SQLite beside it",
        };
        Error::new(
            Code::BUSY,
            format!(
                "{shown} {has}, and is in use by another process, or by a connection of this one; close it there first"
            ),
        )
    };
    let is_needed = || {
        // Somebody else may have dealt with it since it was seen, or have been killed in that, with
        // a name fence up: stock SQLite can't do anything beside one, and the engine has to recover
        // first.
        let beside = Neighbours::of(path);
        if beside.has_fence()? {
            return Ok(false);
        }
        if !out_of_wal && (beside.has_wal()? || beside.says_wal(path)) {
            return Err(in_use());
        }
        let there = match leftover {
            Leftover::Journal => beside.find()?.is_some(),
            Leftover::Wal => beside.find()?.is_some() || beside.says_wal(path),
        };
        if there {
            beside.remove_folder_for_shared_memory();
        }
        Ok(there)
    };
    let could_not =
        format!("stock SQLite could not recover {shown} from what it had left beside it");
    let (is_needed, in_use): (&dyn Fn() -> _, &dyn Fn() -> _) = (&is_needed, &in_use);
    let work = Work { sql: CLEAR, is_needed, in_use, could_not: &could_not };
    by_stock::run(host, path, flags, &work)?;
    match Neighbours::of(path).find()? {
        None => Ok(()),
        Some(_) => Err(in_use()),
    }
}
