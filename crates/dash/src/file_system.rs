//! File systems on which dash's locks and shared memory don't hold: a database there is refused
//! before anything is written, unless the URI takes the risk ([`PARAMETER`]).
//!
//! Of network file systems that is known by name. What a program serves (FUSE) is tried, once a
//! mount and process: two descriptors of one file have to see each other's lock and memory.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Mutex, PoisonError};

use dash_ffi::{Code, Error, Result};
use dash_storage::real::{self, FileSystem, PerProcess, Real};
use dash_storage::{Directory, File, LockKind, OpenMode, SharedMemory, Storage};

use crate::leftovers::Neighbours;
use crate::mode::Parameters;

/// The parameter of the URI by which a database is opened wherever it lies.
pub const PARAMETER: &str = "dash_filesystem";
/// Its one value.
pub const ANY: &str = "any";

/// What was found of each FUSE mount, by its device: what does not hold there.
static TRIED: PerProcess<Mutex<HashMap<u64, Option<&'static str>>>> = PerProcess::new();

const MEMORY: &str = "files can't be shared as memory";

/// How many names for a file to try with are tried.
const NAMES: usize = 4;

/// Refuses a database that lies where it can't be kept. `reads`: nothing is written, not to try
/// either.
///
/// # Errors
///
/// `SQLITE_CANTOPEN`, with the file system's name and what to do.
pub fn check(path: &Path, beside: &Neighbours, parameters: &Parameters, reads: bool) -> Result<()> {
    // Without the folder opening says so.
    let Some(folder) = beside.folder().filter(|_| !parameters.any_file_system) else {
        return Ok(());
    };
    match folder.file_system() {
        Ok(FileSystem::Network(name)) => Err(refused(path, name, REACH)),
        Ok(FileSystem::Fuse { device, name }) if !reads => {
            tried(folder, path, device).map_or(Ok(()), |what| Err(refused(path, &name, what)))
        }
        _ => Ok(()),
    }
}

/// What is known of network file systems.
const REACH: &str = "locks and shared memory don't reach all machines";

fn refused(path: &Path, name: &str, what: &str) -> Error {
    let message = format!(
        "{} is on a file system of type {name}, where {what}: keep it on a disk of this machine (ext4, xfs, btrfs), use it without \
         dash (vfs=unix), or take the risk with {PARAMETER}={ANY} in the URI",
        path.display()
    );
    Error::new(Code::CANTOPEN, message)
}

fn tried(folder: &real::Directory, path: &Path, device: u64) -> Option<&'static str> {
    let known = || TRIED.get().lock().unwrap_or_else(PoisonError::into_inner);
    let before = known().get(&device).copied();
    before.unwrap_or_else(|| {
        // What can't be tried now is opened for reading at most, or says so itself; it is tried
        // again for the next one.
        let found = try_in(folder, path).ok()?;
        known().insert(device, found);
        found
    })
}

/// Tries it, with a file of its own.
fn try_in(folder: &real::Directory, path: &Path) -> io::Result<Option<&'static str>> {
    let mut last = io::ErrorKind::AlreadyExists.into();
    for _ in 0..NAMES {
        let mut name = OsString::from(path.file_name().unwrap_or_default());
        name.push(format!("-dash-{:05x}", Real.random() & 0xF_FFFF));
        match folder.open(&name, OpenMode::CreateNew { permissions: 0o600 }) {
            Ok(first) => {
                let found = folder.open(&name, OpenMode::ReadWrite).map(|second| {
                    let holds = hold(&first, &second);
                    holds.unwrap_or(Some(MEMORY))
                });
                drop(folder.unlink(&name));
                return found;
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

/// What does not hold between two descriptors of a file.
fn hold(first: &real::File, second: &real::File) -> io::Result<Option<&'static str>> {
    const PLACE: std::ops::Range<u64> = 1..2;
    if !first.try_lock(PLACE, LockKind::Exclusive)?
        || second.try_lock(PLACE, LockKind::Exclusive)?
    {
        return Ok(Some("locks don't hold between two descriptors"));
    }
    Ok((!sees(first, second)?).then_some(MEMORY))
}

/// Whether what is written into the memory of the one is in that of the other.
fn sees(first: &real::File, second: &real::File) -> io::Result<bool> {
    let (one, other) = (first.shared_memory(1)?, second.shared_memory(1)?);
    one.word(0).store(u64::MAX, SeqCst);
    Ok(other.word(0).load(SeqCst) == u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(folder: &Path, name: &str) -> real::File {
        let mode = OpenMode::CreateNew { permissions: 0o600 };
        Real.open_directory(folder).unwrap().open(name.as_ref(), mode).unwrap()
    }

    #[test]
    fn a_disk_of_this_machine_holds_and_nothing_stays_there() {
        let folder = tempfile::tempdir().unwrap();
        let (path, directory) = (folder.path().join("app.db"), Real.open_directory(folder.path()));
        assert_eq!(try_in(&directory.unwrap(), &path).unwrap(), None);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let (beside, parameters) = (Neighbours::of(&path), Parameters::default());
        assert_eq!(check(&path, &beside, &parameters, false), Ok(()));
    }

    #[test]
    fn what_could_not_be_tried_is_not_remembered() {
        const DEVICE: u64 = u64::MAX;
        let folder = tempfile::tempdir().unwrap();
        let (path, directory) = (folder.path().join("app.db"), Real.open_directory(folder.path()));
        let directory = directory.unwrap();
        let remembered = || TRIED.get().lock().unwrap().contains_key(&DEVICE);
        std::fs::remove_dir(folder.path()).unwrap();
        assert!(try_in(&directory, &path).is_err());
        assert_eq!(tried(&directory, &path, DEVICE), None);
        assert!(!remembered());
        let other = tempfile::tempdir().unwrap();
        let directory = Real.open_directory(other.path()).unwrap();
        assert_eq!(tried(&directory, &path, DEVICE), None);
        assert!(remembered());
    }

    /// Two files see nothing of each other, as two descriptors of one would there.
    #[test]
    fn what_does_not_hold_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| made(folder.path(), name));
        let lock = "locks don't hold between two descriptors";
        assert_eq!(hold(&one, &other).unwrap(), Some(lock));
        let same = Real.open_directory(folder.path()).unwrap();
        let same = same.open("one".as_ref(), OpenMode::ReadWrite).unwrap();
        one.unlock(0..u64::MAX / 2).unwrap();
        assert_eq!(hold(&one, &same).unwrap(), None);
        assert!(sees(&one, &same).unwrap() && !sees(&one, &other).unwrap());
    }

    #[test]
    fn a_refusal_names_the_file_system_and_the_ways_out() {
        let error = refused(Path::new("/mnt/app.db"), "NFS", REACH);
        assert_eq!(error.code, Code::CANTOPEN);
        let message = error.message.unwrap();
        for part in ["/mnt/app.db", "NFS", "vfs=unix", "dash_filesystem=any"] {
            assert!(message.contains(part), "{message}");
        }
    }
}
