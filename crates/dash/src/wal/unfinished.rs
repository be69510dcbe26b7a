//! What a session of mode wal has left: a log, and commits in it.

use std::path::Path;
use std::sync::Arc;

use dash_ffi::{HostVfs, OpenFlags, Result};
use dash_storage::real::Real;

use super::opening::{engine, has_log};
use crate::errors::to_sqlite;
use crate::mode::Place;

/// Whether somebody has begun a session of the log that was not ended: it is under way, or was cut
/// off.
pub(super) fn is_unfinished(place: &Place<'_>) -> Result<bool> {
    Ok(place.beside.has_fence()? && has_log(place.path)?)
}

/// Refuses a database that is gone, or was emptied, beside commits of it: stock SQLite would delete
/// its `-wal`, also for who may only read.
pub(super) fn refuse_orphaned(path: &Path) -> Result<()> {
    dash_wal::refuse_orphaned(&Real, path).map_err(to_sqlite)
}

/// Ends a session that was cut off: the engine recovers it when it opens the database.
pub(super) fn finish(host: &HostVfs, place: &Place<'_>) -> Result<()> {
    refuse_orphaned(place.path)?;
    if !is_unfinished(place)? {
        return Ok(());
    }
    let process = Arc::default();
    let flags = OpenFlags::READWRITE;
    let engine = engine(host, place.path, place.parameters, flags, None, &process)?;
    engine.close().map_err(to_sqlite)
}

/// Removes the log of a database that has left the mode. One that stays harms nobody. `held`: a
/// connection of this process keeps this mode away.
pub(super) fn remove_log(path: &Path, held: bool) {
    let remove = || dash_wal::remove_log(&Real, path);
    match has_log(path) {
        Ok(true) if held => drop(remove()),
        Ok(true) => drop(dash_wal::while_closed(&Real, path, remove)),
        _ => {}
    }
}
