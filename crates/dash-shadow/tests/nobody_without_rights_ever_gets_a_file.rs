//! SEC1: a new `app.db-shadow` had the database's permission bits and its maker's group for an
//! instant. Who opened it then kept it, and it became `app.db` with the next commit. So had
//! `app.db-dash`. Here the system is watched: after every single step no file beside the database
//! gives anybody a right that the database does not give.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ffi::OsStr;
use std::fs;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::common::{commit, read};
use dash_shadow::{Connection, OpenOptions};
use dash_storage::real::{self, Real};
use dash_storage::{Directory, File, FileId, LockKind, Metadata, OpenMode, Storage};
use dash_testing::machine::root_for;

const OWNER: u32 = 2001;
const GROUP: u32 = 5000;

/// Looks at all files after a step.
struct Watch {
    folder: PathBuf,
    bits: u32,
    steps: AtomicUsize,
}

impl Watch {
    fn look(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
        for entry in fs::read_dir(&self.folder).unwrap() {
            let path = entry.unwrap().path();
            let Ok(found) = fs::symlink_metadata(&path) else { continue };
            let may = |who: u32| found.mode() >> who & 0o7;
            let given = |who: u32| self.bits >> who & 0o7;
            // Nothing but the owner's is in a folder of this name: the name fence.
            let allowed = if found.is_dir() { 0o5 } else { 0 };
            let group = if found.gid() == GROUP { given(3) } else { given(0) };
            let shown =
                format!("{}: {:o} {}:{}", path.display(), found.mode(), found.uid(), found.gid());
            assert!([0, OWNER].contains(&found.uid()), "{shown}");
            assert_eq!(
                may(3) & !group & !allowed,
                0,
                "the group of {shown}, the database has {:o}",
                self.bits
            );
            assert_eq!(
                may(0) & !given(0) & !allowed,
                0,
                "all others: {shown}, the database has {:o}",
                self.bits
            );
        }
    }
}

#[derive(Clone)]
struct Watched(Arc<Watch>);

struct WatchedDirectory {
    inner: real::Directory,
    watch: Arc<Watch>,
}

struct WatchedFile {
    inner: real::File,
    watch: Arc<Watch>,
}

impl Storage for Watched {
    type Directory = WatchedDirectory;
    type File = WatchedFile;

    fn open_directory(&self, path: &Path) -> io::Result<WatchedDirectory> {
        Ok(WatchedDirectory { inner: Real.open_directory(path)?, watch: self.0.clone() })
    }
    fn random(&self) -> u64 {
        Real.random()
    }
    fn sleep(&self, time: Duration) {
        Real.sleep(time);
    }
    fn monotonic_nanos(&self) -> u64 {
        Real.monotonic_nanos()
    }
}

impl WatchedDirectory {
    fn seen<T>(&self, done: T) -> T {
        self.watch.look();
        done
    }
}

impl Directory for WatchedDirectory {
    type File = WatchedFile;

    fn open(&self, name: &OsStr, mode: OpenMode) -> io::Result<WatchedFile> {
        let inner = self.seen(self.inner.open(name, mode))?;
        Ok(WatchedFile { inner, watch: self.watch.clone() })
    }
    fn metadata(&self, name: &OsStr) -> io::Result<Option<Metadata>> {
        self.inner.metadata(name)
    }
    fn is_mount_point(&self, name: &OsStr) -> io::Result<bool> {
        self.inner.is_mount_point(name)
    }
    fn keeps_order(&self) -> bool {
        self.inner.keeps_order()
    }
    fn exchange(&self, a: &OsStr, b: &OsStr) -> io::Result<()> {
        self.seen(self.inner.exchange(a, b))
    }
    fn link(&self, existing: &OsStr, new: &OsStr) -> io::Result<()> {
        self.seen(self.inner.link(existing, new))
    }
    fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        self.seen(self.inner.rename(from, to))
    }
    fn unlink(&self, name: &OsStr) -> io::Result<()> {
        self.seen(self.inner.unlink(name))
    }
    fn create_directory(&self, name: &OsStr) -> io::Result<()> {
        self.seen(self.inner.create_directory(name))
    }
    fn create_shared_directory(&self, name: &OsStr, file: &WatchedFile) -> io::Result<()> {
        self.seen(self.inner.create_shared_directory(name, &file.inner))
    }
    fn open_directory(&self, name: &OsStr) -> io::Result<Self> {
        let inner = self.seen(self.inner.open_directory(name))?;
        Ok(Self { inner, watch: self.watch.clone() })
    }
    fn remove_directory(&self, name: &OsStr) -> io::Result<()> {
        self.seen(self.inner.remove_directory(name))
    }
    fn flush(&self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl WatchedFile {
    fn seen<T>(&self, done: T) -> T {
        self.watch.look();
        done
    }
}

impl File for WatchedFile {
    type Map = <real::File as File>::Map;
    type Memory = <real::File as File>::Memory;
    type Persistent = <real::File as File>::Persistent;

    fn id(&self) -> FileId {
        self.inner.id()
    }
    fn cache_life(&self) -> Option<u64> {
        self.inner.cache_life()
    }
    fn metadata(&self) -> io::Result<Metadata> {
        self.inner.metadata()
    }
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.inner.read_at(buffer, offset)
    }
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.seen(self.inner.write_at(data, offset))
    }
    fn write_vectored_at(&self, data: &[IoSlice<'_>], offset: u64) -> io::Result<()> {
        self.seen(self.inner.write_vectored_at(data, offset))
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.seen(self.inner.set_len(len))
    }
    fn data_from(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        self.inner.data_from(offset)
    }
    fn allocate(&self, len: u64) -> io::Result<()> {
        self.seen(self.inner.allocate(len))
    }
    fn initialize(&self, range: Range<u64>) -> io::Result<()> {
        self.seen(self.inner.initialize(range))
    }
    fn make_direct(&self) -> io::Result<Option<u32>> {
        self.inner.make_direct()
    }
    fn write_durable_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.seen(self.inner.write_durable_at(data, offset))
    }
    fn flush(&self) -> io::Result<()> {
        self.inner.flush()
    }
    fn try_lock(&self, range: Range<u64>, kind: LockKind) -> io::Result<bool> {
        self.inner.try_lock(range, kind)
    }
    fn unlock(&self, range: Range<u64>) -> io::Result<()> {
        self.inner.unlock(range)
    }
    fn lock_conflict(&self, range: Range<u64>, kind: LockKind) -> io::Result<Option<i32>> {
        self.inner.lock_conflict(range, kind)
    }
    fn lock_owners(&self, range: Range<u64>) -> io::Result<Vec<i32>> {
        self.inner.lock_owners(range)
    }
    fn open_elsewhere(&self) -> io::Result<bool> {
        self.inner.open_elsewhere()
    }
    fn clone_range(&self, source: &Self, range: Range<u64>) -> io::Result<()> {
        self.seen(self.inner.clone_range(&source.inner, range))
    }
    fn copy_access(&self, other: &Self) -> io::Result<bool> {
        self.seen(self.inner.copy_access(&other.inner))
    }
    fn map(&self, len: u64) -> io::Result<Self::Map> {
        self.inner.map(len)
    }
    fn map_persistent(&self, len: u64) -> io::Result<Self::Persistent> {
        self.inner.map_persistent(len)
    }
    fn shared_memory(&self, words: usize) -> io::Result<Self::Memory> {
        self.seen(self.inner.shared_memory(words))
    }
    fn shared_region(&self, offset: u64, words: usize) -> io::Result<Self::Memory> {
        self.seen(self.inner.shared_region(offset, words))
    }
}

fn session(storage: &Watched, path: &Path, values: &[u8]) {
    let mut connection = Connection::open(storage, path, &OpenOptions::default()).unwrap();
    for &value in values {
        commit(&mut connection, &[value; 5]).unwrap();
    }
    connection.close().unwrap();
    let mut connection = Connection::open(storage, path, &OpenOptions::default()).unwrap();
    assert_eq!(read(&mut connection).unwrap(), [*values.last().unwrap(); 5]);
    connection.close().unwrap();
}

#[test]
fn while_files_are_made() {
    if !root_for("giving a file to another group") {
        return;
    }
    for bits in [0o660, 0o640, 0o600, 0o644, 0o664, 0o604] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        // A database that dash has never seen, as stock SQLite leaves it.
        let mut made = Connection::open(&Real, &path, &OpenOptions::default()).unwrap();
        commit(&mut made, &[7; 5]).unwrap();
        made.close().unwrap();
        fs::remove_file(folder.path().join("app.db-shadow")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(bits)).unwrap();
        chown(&path, Some(OWNER), Some(GROUP)).unwrap();
        let watch = Watch { folder: folder.path().to_owned(), bits, steps: AtomicUsize::new(0) };
        let storage = Watched(Arc::new(watch));
        session(&storage, &path, &[1, 2, 3]);
        assert!(storage.0.steps.load(Ordering::Relaxed) > 30);
        for name in ["app.db", "app.db-shadow"] {
            let found = fs::metadata(folder.path().join(name)).unwrap();
            assert_eq!((found.uid(), found.gid(), found.mode() & 0o777), (OWNER, GROUP, bits));
        }
    }
}
