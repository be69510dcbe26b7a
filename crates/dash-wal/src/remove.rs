//! What stays of this engine where a database has left WAL mode without it: stock SQLite has taken
//! it out, or a crash came before the log was removed.

use crate::names::Names;
use dash_engine::error::{Context, Operation, Result};
use dash_engine::io::read_header;
use dash_engine::note;
use dash_engine::open::open_if_there;
use dash_log::scan::scan;
use dash_log::session::Place;
use dash_storage::{Directory, OpenMode, Storage};
use std::path::Path;
use std::sync::Arc;

/// Removes the log of the database at `path`, if that is not in WAL mode, no `-wal` lies beside it
/// and no record of the log counts. Such a log says nothing, so one that comes back after a power
/// loss, or stays, harms nobody. Nobody may have the database open in this engine, nor open it
/// meanwhile. Whether it was removed.
///
/// # Errors
///
/// Those of the files, and a log that can't be read: then it stays.
pub fn remove_log<S: Storage>(storage: &S, path: &Path) -> Result<bool> {
    let (folder, names) = Names::split(path)?;
    let directory = storage.open_directory(folder).during(Operation::Open, folder.display())?;
    let db = open_if_there::<S>(&directory, &names.db, OpenMode::Read)?;
    let header = db.as_ref().map(|db| read_header(db, names.shown())).transpose()?.flatten();
    let wal = directory.metadata(&names.wal).during(Operation::Stat, names.shown_wal())?;
    let other_mode = header.is_some_and(|header| header.is_sqlite() && !header.is_wal());
    if !other_mode || wal.is_some() {
        return Ok(false);
    }
    let Some(db) = db else { return Ok(false) };
    let (directory, db) = (Arc::new(directory), Arc::new(db));
    let mut place = Place::beside(&directory, (*names).clone(), Some(&db));
    // One that strayed is a person's business.
    if place.follow(storage)?.is_some() {
        return Ok(false);
    }
    if place.is_void() {
        return place.forget(storage).map(|()| true);
    }
    let Ok(log) = place.open_to_read()? else { return Ok(false) };
    let is_needed = log.as_ref().map(scan).transpose()?.is_some_and(|scan| !scan.chain.is_empty());
    if is_needed || (log.is_none() && place.sign.is_none()) {
        return Ok(false);
    }
    place.retire()?;
    if place.sign.is_some() {
        place.forget(storage)?;
    }
    // A name fence that was being put up or taken away.
    drop(note::remove_folder(&*directory, &names.lowered));
    Ok(true)
}
