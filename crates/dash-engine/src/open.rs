//! Opening files by their names in the database's folder.

use crate::error::{Context, Error, Operation, Result};
use crate::note;
use dash_storage::{Directory, File, FileKind, Metadata, OpenMode, Storage};
use std::ffi::OsStr;
use std::path::Path;

/// An open file and its length, which only counts where nobody else has it open.
pub type Opened<F> = (F, u64);

/// Opens one of dash's own names for reading and writing. An empty folder there is removed: the
/// check of a file system without a journal may leave one, where a file that was lost had the inode
/// number of a former name fence.
pub fn open_own<S: Storage>(
    directory: &S::Directory,
    name: &OsStr,
    mode: OpenMode,
) -> std::io::Result<S::File> {
    match directory.open(name, mode) {
        Err(error) if error.kind() == std::io::ErrorKind::IsADirectory => {
            note::remove_folder(directory, name).map_err(|_| {
                let what = "it is a folder, not a file, and not empty; move it away";
                std::io::Error::new(error.kind(), what)
            })?;
            directory.open(name, mode)
        }
        opened => opened,
    }
}

/// Opens a name, if it is there.
pub fn open_if_there<S: Storage>(
    directory: &S::Directory,
    name: &OsStr,
    mode: OpenMode,
) -> Result<Option<S::File>> {
    if_there(directory.open(name, mode), name)
}

/// What was opened, or `None` if there was nothing.
pub fn if_there<F>(opened: std::io::Result<F>, name: &OsStr) -> Result<Option<F>> {
    match opened {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).during(Operation::Open, name.to_string_lossy()),
    }
}

/// A path as one word of a command that a person gives to a shell, often as root. Characters that
/// nobody sees and bytes of no UTF-8 are written as Bash reads them in `$'…'`.
#[must_use]
pub fn shell_word(path: impl AsRef<OsStr>) -> String {
    let path = path.as_ref();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+,:@%".contains(c);
    let is_seen = |c: char| c.is_alphanumeric() || matches!(c, ' '..='~');
    // A command would take it for an option.
    let folder = if path.as_encoded_bytes().starts_with(b"-") { "./" } else { "" };
    match path.to_str() {
        Some(path) if !path.is_empty() && path.chars().all(is_plain) => format!("{folder}{path}"),
        Some(path) if path.chars().all(is_seen) => {
            format!("'{folder}{}'", path.replace('\'', r"'\''"))
        }
        _ => {
            let bytes = path.as_encoded_bytes().iter().flat_map(|byte| byte.escape_ascii());
            let escaped: String = bytes.map(char::from).collect();
            format!("$'{folder}{escaped}'")
        }
    }
}

/// Says of a database, or of one of the files beside it, which can't be opened for want of a right,
/// whose it is, and what to do. No command that changes rights: somebody may put a link there by
/// then.
pub fn with_remedy<S: Storage>(
    error: Error,
    storage: &S,
    folder: &Path,
    (db, files): (&OsStr, &[&OsStr]),
) -> Error {
    let Error::Io { operation: Operation::Open, name, source } = &error else { return error };
    let denied = source.kind() == std::io::ErrorKind::PermissionDenied;
    let mut all = [&[db], files].concat().into_iter();
    let file = all.find(|file| denied && file.to_string_lossy() == **name);
    let (Some(file), Ok(directory)) = (file, storage.open_directory(folder)) else { return error };
    let found = |name| directory.metadata(name).ok().flatten();
    let (Some(own), Some(wanted)) = (found(file), found(db)) else { return error };
    let rights = |of: &Metadata| {
        format!("{:04o} of user {}, group {}", of.permissions & 0o777, of.owner, of.group)
    };
    let message = if file == db {
        format!(
            "{source}: it is {}, and this process is user {}: run it as that user, or have them give this one the right",
            rights(&own),
            storage.user()
        )
    } else if own.has_access_of(&wanted) || own.kind != FileKind::Regular || own.links > 1 {
        return error;
    } else {
        let who = match own.owner == wanted.owner && wanted.owner != storage.user() {
            true => format!("root or user {}", wanted.owner),
            false => "root".to_owned(),
        };
        format!(
            "{source}: it is {}, and {} is {}; while nobody has it open, {who} mends that, and the like of other files beside it, by \
             opening it once through dash (`sqlite-dash shell {} -- 'SELECT 1'`)",
            rights(&own),
            db.to_string_lossy(),
            rights(&wanted),
            shell_word(folder.join(db))
        )
    };
    let source = std::io::Error::new(source.kind(), message);
    Error::Io { operation: Operation::Open, name: name.clone(), source }
}

/// Refuses a file that has other names: what is written to it would be written to those.
///
/// # Errors
///
/// [`Error::CantOpen`] with what to do; those of looking.
pub fn has_one_name<F: File>(file: &F, name: &str) -> Result<()> {
    no_other(file.metadata().during(Operation::Stat, name)?, name).map(|_| ())
}

/// Whether an open file is the one of this name in a folder, which is to have no other. Of the open
/// file alone that can't be told: a link to another one may have been there, and be gone by now.
/// `false`: somebody has made, moved or removed it meanwhile.
///
/// # Errors
///
/// As of [`has_one_name`].
pub fn is_named_so<D: Directory<File: File>>(
    directory: &D,
    (name, shown): (&OsStr, &str),
    file: &D::File,
) -> Result<bool> {
    only_name(directory, (name, shown), file).map(|found| found.is_some())
}

/// As [`is_named_so`], where somebody may give this name to others' files over and over:
/// unlink(2) counts a name less before the name is gone. It has the folder to itself meanwhile, and
/// so does link(2), which finds the name taken.
///
/// # Errors
///
/// As of [`has_one_name`].
pub fn is_surely_named_so<D: Directory<File: File>>(
    directory: &D,
    (name, shown): (&OsStr, &str),
    file: &D::File,
) -> Result<bool> {
    let Some(before) = only_name(directory, (name, shown), file)? else { return Ok(false) };
    drop(directory.link(name, name));
    // A name that was given in between has changed it.
    let after = only_name(directory, (name, shown), file)?;
    Ok(after.is_some_and(|after| after.changed == before.changed))
}

/// What is said of a file by its name in a folder, which is to be its only one; `None`: the name
/// is another one's.
fn only_name<D: Directory<File: File>>(
    directory: &D,
    (name, shown): (&OsStr, &str),
    file: &D::File,
) -> Result<Option<Metadata>> {
    let found = directory.metadata(name).during(Operation::Stat, shown)?;
    found.filter(|found| found.id == file.id()).map(|found| no_other(found, shown)).transpose()
}

/// How often a file is opened again that was made, moved or removed between that and a look at its
/// name.
pub const ATTEMPTS: usize = 100;

/// Somebody goes on doing that.
#[must_use]
pub fn replaced(shown: &str) -> Error {
    Error::CantOpen(format!(
        "{shown} is replaced over and over while it is opened: end the program that does that"
    ))
}

fn no_other(found: Metadata, name: &str) -> Result<Metadata> {
    match found.links {
        0 | 1 => Ok(found),
        links => Err(Error::CantOpen(format!(
            "{name} is another file, too ({links} hard links), which would be overwritten: remove the other links"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn no_name_is_more_than_a_word() {
        let word = |path: &str| shell_word(path);
        assert_eq!(word("/srv/my-app/app.db"), "/srv/my-app/app.db");
        assert_eq!(word("/srv/a b/$(id).db"), "'/srv/a b/$(id).db'");
        assert_eq!(word("/srv/x'; id; '"), r"'/srv/x'\''; id; '\'''");
        assert_eq!(word("-rf"), "./-rf");
        assert_eq!(word(""), "''");
        assert_eq!(word("a\nb\u{1b}'é\u{202e}"), r"$'a\nb\x1b\'\xc3\xa9\xe2\x80\xae'");
        assert_eq!(shell_word(OsStr::from_bytes(b"\xff\"$(id)")), r#"$'\xff\"$(id)'"#);
    }
}
