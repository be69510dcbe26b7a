//! The exchange of the two names: in one step, or by the paper's three renames where the file
//! system has no such step, and what is found when somebody was stopped between two of them.
//!
//! | state | `app.db` | `app.db-shadow` | `app.db-shadow-tmp` | finished by |
//! |---|---|---|---|---|
//! | i | – | new | old | undoing the first rename |
//! | ii | new | – | old | making the third |

use std::ffi::OsStr;
use std::io::{self, ErrorKind};

use dash_storage::{Directory, Metadata, OpenMode, Storage};

use crate::error::{Context, Operation, Result};
use crate::names::Names;
use crate::recover::open_if_there;

/// Exchanges `app.db` and `app.db-shadow`. Only under WRITER, or alone. After an error between two
/// renames both names are there again, as far as the file system still allows.
pub(crate) fn exchange<S: Storage>(directory: &S::Directory, names: &Names) -> io::Result<()> {
    let (db, shadow, renaming) = (&names.db, &names.shadow, &names.renaming);
    match directory.exchange(db, shadow) {
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            let renamed = directory
                .rename(db, renaming)
                .and_then(|()| directory.rename(shadow, db))
                .and_then(|()| directory.rename(renaming, shadow));
            if renamed.is_err() {
                // The first error is the one to report; who writes next tries again.
                drop(finish_renames::<S>(directory, names));
            }
            renamed
        }
        other => other,
    }
}

/// Completes three renames that were cut off: `app.db` or the shadow is missing and the temporary
/// name is there. Only under WRITER, or alone. Returns whether anything was renamed.
pub(crate) fn finish_renames<S: Storage>(directory: &S::Directory, names: &Names) -> Result<bool> {
    let there = |name: &OsStr| {
        directory
            .metadata(name)
            .map(|found| found.is_some())
            .during(Operation::Stat, name.to_string_lossy())
    };
    if !there(&names.renaming)? {
        return Ok(false);
    }
    let target = match (there(&names.db)?, there(&names.shadow)?) {
        (false, _) => &names.db,
        (true, false) => &names.shadow,
        (true, true) => return Ok(false), // not ours: leave it
    };
    directory
        .rename(&names.renaming, target)
        .during(Operation::Exchange, names.renaming.to_string_lossy())?;
    Ok(true)
}

/// What `app.db` stands for, and the name it has right now: in state i the temporary one.
pub(crate) fn look_up_db<'n, S: Storage>(
    directory: &S::Directory,
    names: &'n Names,
) -> Result<Option<(&'n OsStr, Metadata)>> {
    // The first name again, because the renames may have been completed in between.
    for name in [&names.db, &names.renaming, &names.db] {
        if let Some(found) =
            directory.metadata(name).during(Operation::Stat, name.to_string_lossy())?
        {
            return Ok(Some((name, found)));
        }
    }
    Ok(None)
}

/// Opens what `app.db` stands for, whatever its name is right now.
pub(crate) fn open_db<S: Storage>(
    directory: &S::Directory,
    names: &Names,
    mode: OpenMode,
) -> Result<Option<S::File>> {
    for name in [&names.db, &names.renaming, &names.db] {
        if let Some(file) = open_if_there::<S>(directory, name, mode)? {
            return Ok(Some(file));
        }
    }
    Ok(None)
}
