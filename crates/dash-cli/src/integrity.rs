//! `PRAGMA integrity_check` with a bar, on a connection or on a file that must not be touched.

use std::path::Path;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::extension::escape;
use crate::failure::{Failure, Result};
use crate::interrupt::Interrupt;
use crate::out::Shown;
use crate::progress::{Moving, follow};

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The database is whole.
    Whole,
    /// It is not; what SQLite says, the first few lines.
    Damaged(String),
    /// Ctrl-C came first.
    Interrupted,
}

/// Lines of complaint that are kept.
const LINES: usize = 5;

/// Checks an open database of about `bytes` bytes.
pub fn check(db: &Connection, what: &str, bytes: u64, interrupt: &Interrupt) -> Result<Verdict> {
    interrupt.watch(db);
    let lines = follow(what, bytes, Moving::Read, || lines(db));
    interrupt.unwatch();
    match lines {
        Ok(lines) if lines == ["ok"] => Ok(Verdict::Whole),
        Ok(lines) => Ok(Verdict::Damaged(lines.join("; "))),
        Err(_) if interrupt.pressed() => Ok(Verdict::Interrupted),
        Err(error) if is_damage(&error) => Ok(Verdict::Damaged(error.to_string())),
        Err(error) => Err(Failure::new(format!("{what}: {error}"))),
    }
}

/// Checks a file as it stands: nothing beside it is read, nothing is locked or recovered.
pub fn check_untouched(path: &Path, interrupt: &Interrupt) -> Result<Verdict> {
    let what = format!("checking {}", path.shown());
    let uri = format!("file:{}?immutable=1&mode=ro", escape(path));
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let db = Connection::open_with_flags(uri, flags)
        .map_err(|error| Failure::new(format!("{what}: {error}")))?;
    check(&db, &what, path.metadata().map_or(0, |found| found.len()), interrupt)
}

fn lines(db: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = db.prepare(&format!("PRAGMA integrity_check({LINES})"))?;
    statement.query_map([], |row| row.get(0))?.collect()
}

fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}
