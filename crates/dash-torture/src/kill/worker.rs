//! A worker process of the ring: who it is, and what it says on its standard output, one byte each.

use std::io::Write;
use std::time::{Duration, Instant};

use super::ledger::Ledger;
use crate::again::Assignment;
use crate::random::Dice;
use crate::sqlite;

/// No worker lives longer: one that nobody kills ends by itself.
pub(super) const LIFE: Duration = Duration::from_secs(60);
/// A call that takes longer hangs.
pub(super) const HANG: Duration = Duration::from_secs(30);
/// `busy_timeout` of workers.
pub(super) const TIMEOUT: Duration = Duration::from_millis(100);
/// That of stock ones that are let in beside dash: they stand in no line.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// What a worker says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Said {
    /// It is about to open the database.
    Opening = b's',
    /// It has it open.
    Opened = b'o',
    /// It has closed it.
    Closed = b'x',
    /// A commit was acknowledged, or a snapshot was read.
    Done = b'w',
    /// It had to give up for now: `SQLITE_BUSY`.
    Busy = b'b',
    /// It is in the middle of a write transaction and will rest there for a moment.
    Holding = b'h',
    /// It has switched the journal mode.
    Switched = b'm',
}

pub(super) fn say(said: Said) -> Result<(), String> {
    std::io::stdout()
        .write_all(&[said as u8])
        .and_then(|()| std::io::stdout().flush())
        .map_err(|error| error.to_string())
}

/// Whether an error means "later": somebody has a lock, or had the database in another mode.
pub(super) fn is_later(error: &rusqlite::Error) -> bool {
    let busy_words = ["is locked", "was replaced while other connections", "other connections"];
    sqlite::is_busy(error)
        || (sqlite::code(error) & 0xff == rusqlite::ffi::SQLITE_CANTOPEN
            && busy_words.iter().any(|words| sqlite::last_error().contains(words)))
}

/// As whom a worker opens the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Identity {
    /// A connection of dash.
    Dash,
    /// A connection of dash that asked to read only.
    Member,
    /// One that has no right to write.
    Nobody,
    /// A stock connection.
    Stock,
    /// One that is let in beside dash, in its mode.
    Beside,
}

pub(super) struct Worker<'a> {
    pub(super) assignment: &'a Assignment,
    pub(super) dice: Dice,
    pub(super) identity: Identity,
    pub(super) begun: Instant,
    /// Of a worker that writes.
    pub(super) ledger: Option<Ledger>,
}

/// Whether an error is how stock SQLite refuses what killed dash processes left: what a connection
/// in one of SQLite's own modes meets, too, until dash has opened the database.
pub(super) fn is_refusal(error: &rusqlite::Error) -> bool {
    use rusqlite::ffi as sqlite3;
    [
        sqlite3::SQLITE_BUSY,
        sqlite3::SQLITE_CANTOPEN,
        sqlite3::SQLITE_IOERR,
        sqlite3::SQLITE_NOTADB,
        sqlite3::SQLITE_READONLY,
        // An index that was left half-written.
        sqlite3::SQLITE_PROTOCOL,
    ]
    .contains(&(sqlite::code(error) & 0xff))
}
