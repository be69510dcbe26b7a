//! Databases in which SQLite's extension `cksumvfs` keeps a checksum in each page. What changes
//! page 1 past that extension makes them unreadable, so it is refused.

use std::path::Path;

use dash_engine::header::is_summed;
use dash_ffi::{Code, ConnectionRef, Error, Result};

use crate::leftovers::Neighbours;

/// Refuses to have stock SQLite put a database into WAL mode.
pub fn refuse_wal_mode(path: &Path, beside: &Neighbours) -> Result<()> {
    if !beside.first_page(path).is_some_and(|first| is_summed(&first)) {
        return Ok(());
    }
    Err(Error::new(
        Code::CANTOPEN,
        format!(
            "{} stays in its mode: SQLite's extension cksumvfs keeps a checksum in page 1, which would be wrong in WAL mode; say PRAGMA \
             journal_mode=WAL once with that extension loaded, and without dash",
            path.display()
        ),
    ))
}

/// Refuses to make a copy, in which SQLite changes page 1.
pub fn refuse_backup(connection: &ConnectionRef<'_>, schema: &str, page_size: u32) -> Result<()> {
    let mut first = vec![0; usize::try_from(page_size).unwrap_or(0)];
    let read = connection.with_file(schema, |file| file.read(&mut first, 0));
    if read.is_none_or(|read| read.is_err()) || !is_summed(&first) {
        return Ok(());
    }
    Err(Error::new(
        Code::ERROR,
        format!(
            "dash_backup: SQLite's extension cksumvfs keeps checksums in {schema}, and that of page 1 would be wrong in the copy; make it \
             with VACUUM INTO, with that extension loaded"
        ),
    ))
}
