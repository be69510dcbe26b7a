//! The note in a name fence, where an empty folder has no length, as on btrfs: SQLite before 3.31
//! doesn't see such a folder. It says what to do. Elsewhere there is none: it would cost a flush,
//! and nobody but its maker may remove it.

use crate::error::{Context, Operation, Result};
use dash_storage::{Directory, File, OpenMode};
use std::ffi::OsStr;
use std::io::{self, ErrorKind};

const NAME: &str = "open-this-database-through-dash-first.txt";

/// Removes a folder that is empty, or was a fence. One with anything else in it stays.
///
/// # Errors
///
/// Those of the file system.
pub fn remove_folder<D: Directory>(directory: &D, name: &OsStr) -> io::Result<()> {
    if let Ok(folder) = directory.open_directory(name) {
        drop(folder.unlink(NAME.as_ref()));
    }
    directory.remove_directory(name)
}

/// Puts it into the folder `name`, if that has no length; `flushes`: its bytes are durable then. In
/// a folder of somebody else's none can be made, and that is a fence all the same. On a full disk
/// the name says enough, and a fence that need not be durable does without that, too.
pub(crate) fn put<D: Directory>(
    directory: &D,
    name: &OsStr,
    database: &str,
    flushes: bool,
) -> Result<()> {
    let shown = format!("{}/{NAME}", name.to_string_lossy());
    if directory.metadata(name).during(Operation::Stat, &shown)?.is_none_or(|it| it.len > 0) {
        return Ok(());
    }
    let mode = OpenMode::CreateNew { permissions: 0o644 };
    let folder = directory.open_directory(name);
    let note = match folder.and_then(|folder| folder.open(NAME.as_ref(), mode)) {
        Err(error) if is_done_without(&error) || !flushes && is_full(&error) => return Ok(()),
        made => made.during(Operation::Open, &shown)?,
    };
    let written = note.write_at(text(database).as_bytes(), 0);
    match written.and_then(|()| if flushes { note.flush() } else { Ok(()) }) {
        Err(error) if is_full(&error) => Ok(()),
        written => written.during(Operation::Write, shown),
    }
}

fn text(database: &str) -> String {
    format!(
        "{database} is open through dash, or was when a program or the machine stopped. Its newest commits\n\
         may lie in {database}-dashlog or {database}-shadow. This folder keeps SQLite without dash from\n\
         reading {database} without them: it says \"disk I/O error\". The disk is sound.\n\
         \n\
         Open {database} once through dash, or go to the folder that it is in, and run\n\
         \n    \
             sqlite-dash recover {database}\n\
         \n\
         Either takes this folder away. Remove nothing by hand.\n"
    )
}

fn is_done_without(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::PermissionDenied)
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}
