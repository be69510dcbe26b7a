//! An empty file in the place of the shadow.

use crate::names::Names;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_storage::{Directory, File, FileKind, OpenMode, Storage};
use std::io::ErrorKind;

/// Puts one there. Beside a name fence a missing shadow is one that somebody deleted (SHADOW-21):
/// the name stays, whatever is cut off here, also where names and files survive a power loss one by
/// one.
pub(crate) fn put_empty<S: Storage>(
    directory: &S::Directory,
    names: &Names,
    permissions: u32,
) -> Result<S::File> {
    let name = names.shown_shadow();
    let create = || directory.open(&names.renaming, OpenMode::CreateNew { permissions });
    let new = create().or_else(|error| match error.kind() {
        ErrorKind::AlreadyExists => directory.unlink(&names.renaming).and_then(|()| create()),
        _ => Err(error),
    });
    // What can't be removed is no file as a rule, which opening says in words.
    let what = |error| match directory.open(&names.renaming, OpenMode::Read) {
        Err(other) if other.kind() != ErrorKind::NotFound => other,
        _ => error,
    };
    let new = new.map_err(what).during(Operation::Open, names.renaming.to_string_lossy())?;
    new.flush().during(Operation::Flush, name)?;
    is_there(directory, names)?;
    // An old one that loses its last name may be gone from the disk before the name is: it
    // keeps one until then.
    let new = match directory.exchange(&names.renaming, &names.shadow) {
        Ok(()) => new,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let renamed = directory.rename(&names.renaming, &names.shadow);
            renamed.during(Operation::Exchange, name)?;
            new
        }
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            put_aside::<S>(directory, names, new, permissions)?
        }
        Err(error) => {
            drop(directory.unlink(&names.renaming));
            return Err(error).during(Operation::Exchange, name);
        }
    };
    directory.flush().during(Operation::FlushDirectory, names.shown())?;
    match directory.unlink(&names.renaming) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(error).during(Operation::Delete, name);
        }
        _ => {}
    }
    // Before the new one has a byte, which tells which of the two is the old one.
    directory.flush().during(Operation::FlushDirectory, names.shown())?;
    Ok(new)
}

/// The same where names can't be exchanged: the old shadow gets the temporary name, as in the
/// middle of an exchange, then an empty file gets its own.
fn put_aside<S: Storage>(
    directory: &S::Directory,
    names: &Names,
    new: S::File,
    permissions: u32,
) -> Result<S::File> {
    let name = names.shown_shadow();
    match directory.rename(&names.shadow, &names.renaming) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let renamed = directory.rename(&names.renaming, &names.shadow);
            return renamed.during(Operation::Exchange, name).map(|()| new);
        }
        renamed => renamed.during(Operation::Exchange, name)?,
    }
    let mode = OpenMode::CreateNew { permissions };
    let new = directory.open(&names.shadow, mode).during(Operation::Open, name)?;
    new.flush().during(Operation::Flush, name)?;
    Ok(new)
}

/// Whether there is a shadow, which may be replaced.
pub(crate) fn is_there(directory: &impl Directory, names: &Names) -> Result<bool> {
    let name = names.shown_shadow();
    match directory.metadata(&names.shadow).during(Operation::Stat, name)? {
        Some(found) if found.kind != FileKind::Regular => {
            Err(Error::CantOpen(format!("{name} is in the way: it is not a file; remove it")))
        }
        found => Ok(found.is_some()),
    }
}

#[cfg(test)]
mod tests {
    use super::put_empty;
    use crate::names::Names;
    use dash_engine::error::Error;
    use dash_simulated::{Effect, Fault, Machine, OperationKind, Simulated};
    use dash_storage::Storage;
    use std::ffi::OsStr;
    use std::io::ErrorKind;
    use std::path::Path;

    /// The name that could not be made is not there, which is no news.
    #[test]
    fn a_full_disk_is_told_where_no_file_can_be_made() {
        let machine = Machine::new(1);
        let directory = machine.process().open_directory(Path::new("/")).unwrap();
        machine.fail(Fault::new(Effect::Error(28)).on(OperationKind::Open));
        let made = put_empty::<Simulated>(&directory, &Names::of(OsStr::new("app.db")), 0o644);
        let Err(Error::Io { source, .. }) = made else { panic!("a file was made") };
        assert_eq!(source.kind(), ErrorKind::StorageFull);
    }
}
