//! Which names of a folder are databases, which are files beside one, and which have lost theirs.

use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::engine::SUFFIXES;
use crate::failure::{Explain, Result};
use crate::out::Shown;

/// Those that only dash makes.
const OURS: [&str; 9] = [
    "-shadow-tmp",
    "-shadow-old",
    "-dash-fence",
    "-dash-sign",
    "-dash-new",
    "-dashlog",
    "-shadow",
    "-dash",
    ".dash-backup-unfinished",
];

/// SQLite's first bytes.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// A folder, sorted by name.
#[derive(Debug)]
pub struct Folder {
    /// Its path, without links.
    pub path: PathBuf,
    /// Paths of its databases.
    pub databases: Vec<PathBuf>,
    /// Files that belong beside a database which is not there: its path, and the suffix.
    pub orphans: Vec<(PathBuf, &'static str)>,
    /// Files that this user can't read, and so can't be told.
    pub unreadable: Vec<PathBuf>,
}

impl Folder {
    /// Reads it.
    ///
    /// # Errors
    ///
    /// If it can't be listed.
    pub fn read(path: &Path) -> Result<Self> {
        let doing = || format!("listing {}", path.shown());
        let mut folder =
            Self { path: path.to_owned(), databases: vec![], orphans: vec![], unreadable: vec![] };
        let mut names = Vec::new();
        for entry in fs::read_dir(path).explain(doing())? {
            names.push(entry.explain(doing())?.path());
        }
        names.sort();
        for name in names {
            match owner_of(&name) {
                Some((owner, _)) if owner.symlink_metadata().is_ok() => {}
                Some((owner, suffix)) => folder.orphans.push((owner, suffix)),
                None => folder.take(name),
            }
        }
        Ok(folder)
    }

    fn take(&mut self, file: PathBuf) {
        // Opening a pipe waits, and a device may do anything.
        if !file.metadata().is_ok_and(|found| found.is_file()) {
            return;
        }
        let mut start = Vec::new();
        let read = fs::File::open(&file)
            .and_then(|file| file.take(MAGIC.len() as u64).read_to_end(&mut start));
        let has_files = || OURS.iter().any(|suffix| beside(&file, suffix).exists());
        match read {
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                self.unreadable.push(file);
            }
            Ok(_) if start == MAGIC || has_files() => self.databases.push(file),
            _ => {}
        }
    }

    /// Only what belongs to one database.
    pub fn only(mut self, database: &Path) -> Self {
        self.databases.retain(|file| file == database);
        self.orphans.retain(|(owner, _)| owner == database);
        if self.unreadable.iter().any(|file| file == database) {
            self.databases.push(database.to_owned());
        }
        self.unreadable.clear();
        self
    }
}

/// The file beside a database with this at the end of its name.
pub use crate::engine::sidecar as beside;

/// The database that a file belongs beside, by its name.
fn owner_of(file: &Path) -> Option<(PathBuf, &'static str)> {
    let name = file.file_name()?.as_bytes();
    let suffix = SUFFIXES.into_iter().find(|suffix| name.ends_with(suffix.as_bytes()))?;
    let owner = &name[..name.len() - suffix.len()];
    (!owner.is_empty()).then(|| (file.with_file_name(std::ffi::OsStr::from_bytes(owner)), suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_from_databases_by_their_names() {
        let home = tempfile::tempdir().expect("a folder");
        let make = |name: &str, bytes: &[u8]| {
            fs::write(home.path().join(name), bytes).expect("a file");
        };
        let database = [MAGIC, &[0; 84]].concat();
        make("a.db", &database);
        make("a.db-shadow", &database);
        make("empty", b"");
        make("new.db", b"");
        make("new.db-dash", b"");
        make("gone.db-dashlog", b"x");
        make("gone.db-dash-fence", b"x");
        make("notes-wal", b"x");
        make("notes.txt", b"no database");
        make("-wal", b"x");
        let folder = Folder::read(home.path()).expect("a folder");
        let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
        let names: Vec<_> = folder.databases.iter().map(|path| name(path)).collect();
        assert_eq!(names, ["a.db", "new.db"]);
        let orphans: Vec<_> =
            folder.orphans.iter().map(|(path, suffix)| (name(path), *suffix)).collect();
        assert_eq!(
            orphans,
            [("gone.db", "-dash-fence"), ("gone.db", "-dashlog"), ("notes", "-wal")]
                .map(|(owner, suffix)| (owner.to_owned(), suffix))
        );
    }
}
