//! Letting stock SQLite itself work on a database, in a connection of its own on the host's VFS.

use std::path::Path;
use std::time::{Duration, Instant};

use dash_engine::error::Error as EngineError;
use dash_engine::locks::{PENDING, RESERVED};
use dash_ffi::{Code, Error, HostVfs, OpenFlags, Result};
use dash_storage::real::Real;
use dash_storage::{File, LockKind, OpenMode};

use crate::errors::{forbids_writing, to_sqlite};
use crate::leftovers::Neighbours;
use crate::own_file::open_file;

/// How long opening waits for a stock writer, or for another connection that opens or closes;
/// SQLite has no busy handler there.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// How often it looks.
pub const PAUSE: Duration = Duration::from_millis(2);

/// What is to be done.
pub struct Work<'a> {
    /// The statements.
    pub sql: &'a str,
    /// Looks whether they still have to be run: while nobody else can do it, and while others may.
    pub is_needed: &'a dyn Fn() -> Result<bool>,
    /// What is answered while somebody else uses the database.
    pub in_use: &'a dyn Fn() -> Error,
    /// Begins the message of stock SQLite's own error.
    pub could_not: &'a str,
}

/// Does it. `flags` are those the database is opened with.
///
/// # Errors
///
/// `in_use`; `SQLITE_CANTOPEN` where writing is not allowed; or stock SQLite's own error, each with
/// a message.
pub fn run(host: &HostVfs, path: &Path, flags: OpenFlags, work: &Work<'_>) -> Result<()> {
    let flags = if flags.contains(OpenFlags::CREATE) {
        OpenFlags::READWRITE | OpenFlags::CREATE
    } else {
        OpenFlags::READWRITE
    };
    // Under stock SQLite's feet names must not be exchanged: it knows its journal by name, and
    // would take the journal of somebody who writes the other copy for its own.
    let run = || match (work.is_needed)()? {
        true => {
            Neighbours::of(path).have_one_name()?;
            host.run(path, flags, work.sql)
        }
        false => Ok(()),
    };
    let begun = Instant::now();
    let done = loop {
        let free = match is_written(path) {
            true => Err(EngineError::Busy),
            false => dash_shadow::while_closed(&Real, path, run),
        };
        match free {
            Err(EngineError::Busy) if begun.elapsed() < PATIENCE => {
                host.sleep(PAUSE);
                // Whoever is at it may have done it.
                if !(work.is_needed)()? {
                    return Ok(());
                }
            }
            Err(EngineError::Busy) => return Err((work.in_use)()),
            Err(error) if forbids_writing(&error) => {
                return Err(Error::new(Code::CANTOPEN, error.to_string()));
            }
            other => break other.map_err(to_sqlite)?,
        }
    };
    done.map_err(|error| match error.code.primary() {
        Code::BUSY | Code::LOCKED => (work.in_use)(),
        _ => Error::new(error.code, format!("{}: {error}", work.could_not)),
    })
}

/// Whether somebody writes it by SQLite's locks. Another copy of SQLite in the process may, whose
/// locks this one's are not in the way of: its journal would be taken for a hot one.
fn is_written(path: &Path) -> bool {
    open_file(path, OpenMode::Read)
        .and_then(|file| file.lock_conflict(PENDING.start..RESERVED.end, LockKind::Shared))
        .is_ok_and(|writer| writer.is_some())
}
