//! Commits beside a database that is missing, or was emptied.

use crate::connection::same_files::{replaced_database, who_is_in};
use crate::frames::{Prefix, WalHeader, valid_prefix};
use crate::names::Names;
use dash_engine::coordination::read_living;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::fence;
use dash_engine::open::open_if_there;
use dash_log::file::LogFile;
use dash_log::scan::scan;
use dash_log::sign::{self, Found};
use dash_storage::{Directory, OpenMode, Storage};

/// Why a database that is missing, or was emptied, isn't begun anew: its log is there, or its
/// `-wal`, and holds commits of it. Stock SQLite deletes a `-wal` beside an empty database.
pub(crate) fn orphaned<S: Storage>(
    directory: &S::Directory,
    names: &Names,
    is_missing: bool,
) -> Result<Option<Error>> {
    let (db, wal, log) = (names.shown(), names.shown_wal(), names.shown_log());
    if let Some(living) = living_beside::<S>(directory, names)?.filter(|_| is_missing) {
        // Unless they have begun it meanwhile.
        let now = directory.metadata(&names.db).during(Operation::Stat, db)?;
        return Ok(now.is_none().then_some(living));
    }
    let found = match is_missing {
        true => orphaned_log::<S>(directory, names)?,
        // Of what a log says that counts the table decides.
        false => None,
    };
    if found.is_some() {
        return Ok(found);
    }
    let is = if is_missing { "missing" } else { "empty" };
    let is_fenced = fence::find(directory, &names.fence)? == fence::Found::Fence
        && directory.metadata(&names.log).during(Operation::Stat, log)?.is_some();
    let what = if is_fenced {
        format!("{wal} and {log} may hold commits of it: put {db} back; {}", afresh(db))
    } else if holds_commits::<S>(directory, names)? {
        format!("{wal} holds commits of it: put {db} back; for a new one remove {wal} first")
    } else {
        return Ok(None);
    };
    // Others may have begun it meanwhile: it has bytes before it has a `-wal`.
    let now = directory.metadata(&names.db).during(Operation::Stat, db)?;
    let is_begun = now.is_some_and(|now| now.len > 0);
    Ok((!is_begun).then(|| Error::CantOpen(format!("{db} is {is}, but {what}"))))
}

/// Why a database that lost its name isn't begun anew while others have it open.
fn living_beside<S: Storage>(directory: &S::Directory, names: &Names) -> Result<Option<Error>> {
    let name = names.shown_coordination();
    let file = read_living::<S>(directory, names.coordination_file())?;
    let Some(file) = file else { return Ok(None) };
    let who = who_is_in(&file, name)?;
    Ok(who.map(|who| replaced_database(names, &who)))
}

/// Whether `-wal` has any that is whole.
fn holds_commits<S: Storage>(directory: &S::Directory, names: &Names) -> Result<bool> {
    let name = names.shown_wal();
    let Some(wal) = open_if_there::<S>(directory, &names.wal, OpenMode::Read)? else {
        return Ok(false);
    };
    let Some(header) = WalHeader::read(&wal, name)? else { return Ok(false) };
    Ok(valid_prefix(&wal, &header, Prefix::before_all(&header), name)?.committed > 0)
}

fn orphaned_log<S: Storage>(directory: &S::Directory, names: &Names) -> Result<Option<Error>> {
    let found = sign::look::<S>(directory, &names.log)?;
    if matches!(&found, Found::Sign(sign) if !sign.is_made) {
        return Ok(None);
    }
    if let Found::Sign(_) | Found::Damaged = found {
        let (db, sign) = (names.shown(), names.log.to_string_lossy());
        return Ok(Some(Error::CantOpen(format!(
            "{db} is missing, but {sign} says that its log lies elsewhere: put {db} back; {}",
            afresh(db)
        ))));
    }
    let Some(file) = LogFile::open_to_read(directory, &*names.log)? else { return Ok(None) };
    if scan(&file)?.chain.is_empty() {
        return Ok(None);
    }
    let (db, log) = (names.shown(), names.shown_log());
    Ok(Some(Error::CantOpen(format!(
        "{db} is missing, but {log} holds commits of it: put {db} back; {}",
        afresh(db)
    ))))
}

/// What to do before another database takes the name.
fn afresh(db: &str) -> String {
    format!(
        "for a backup or a new one first remove all that is named {db}-..., and the folder {db}-journal"
    )
}
