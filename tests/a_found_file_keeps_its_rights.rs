//! Whoever holds a lock in a coordination file, or puts one back after a change of an access control
//! list, shares no memory with the next who opens the database. SHADOW-28.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]
#![expect(unsafe_code, reason = "fcntl with a request that nix does not have")]

mod suite;

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use dash_storage::real::Real;
use dash_storage::{Directory, File as _, LockKind, OpenMode, Storage};
use dash_testing::names::beside;
use dash_testing::{Need, skip};
use suite::parts::Part;
use suite::peers::Session;
use suite::rights::{GROUP as OF_GROUP, LIST, MASK, OTHERS, OWNER as OF_OWNER, USER};
use suite::rights::{allow, encode, give};
use suite::strangers::{OWNER, Place, STRANGER};

const SHADOW: &str = "&journal_mode=shadow";
const MADE: &str = "CREATE TABLE t(v); INSERT INTO t VALUES ('old')";

/// A file as it is, whatever is called so later.
struct Kept {
    file: File,
    content: Vec<u8>,
    rights: [u32; 3],
}

impl Kept {
    fn of(path: &Path) -> Self {
        let file = File::open(path).unwrap();
        let (content, rights) = (fs::read(path).unwrap(), rights(&file.metadata().unwrap()));
        Self { file, content, rights }
    }

    fn content(&self) -> Vec<u8> {
        let len = usize::try_from(self.file.metadata().unwrap().len()).unwrap();
        let mut now = vec![0; len];
        self.file.read_exact_at(&mut now, 0).unwrap();
        now
    }

    /// Nobody has changed its rights, nor written to it.
    fn is_left(&self, what: &str) {
        assert_eq!(rights(&self.file.metadata().unwrap()), self.rights, "{what}");
        assert!(self.content() == self.content, "{what}: it was written");
    }
}

fn rights(found: &fs::Metadata) -> [u32; 3] {
    [found.uid(), found.gid(), found.mode() & 0o777]
}

fn says_secret(bytes: &[u8]) -> bool {
    bytes.windows(6).any(|it| it == b"SECRET")
}

fn shadow(place: &Place) -> PathBuf {
    beside(&place.db(), "-shadow")
}

/// The coordination file of a session that was killed, which its reader keeps open.
fn left_by_a_session(place: &Place, mode: &str) -> Kept {
    let mut session = place.open(Some(OWNER), mode).unwrap();
    session.must("INSERT INTO t VALUES ('old')");
    let kept = Kept::of(&beside(&place.db(), "-dash"));
    session.kill();
    kept
}

/// Writes so that older pages are kept for a reader, in the memory that connections share.
fn write_beside_a_reader(place: &Place, opener: Option<u32>, mode: &str) -> [Session; 2] {
    let [mut writer, mut reader] = [(); 2].map(|()| place.open(opener, mode).unwrap());
    writer.must("INSERT INTO t VALUES ('SECRET')");
    reader.must("BEGIN");
    reader.must("SELECT count(*) FROM t");
    for _ in 0..3 {
        writer.must("UPDATE t SET v = zeroblob(100)");
    }
    [writer, reader]
}

/// An access control list may let somebody in no more where the permission bits stay.
#[test]
fn a_coordination_file_with_another_list_is_not_taken_over() {
    for mode in [SHADOW, "&journal_mode=wal"] {
        let Some(place) = Place::made(0o640, MADE) else { return };
        let list = [
            (OF_OWNER, 6, u32::MAX),
            (USER, 4, STRANGER),
            (OF_GROUP, 4, u32::MAX),
            (MASK, 4, u32::MAX),
            (OTHERS, 0, u32::MAX),
        ];
        if xattr::set(place.db(), LIST, &encode(&list)).is_err() {
            return skip(Need::Lists, "this file system has no access control lists");
        }
        let kept = left_by_a_session(&place, mode);
        xattr::remove(place.db(), LIST).unwrap();
        allow(&place.db(), 0o640);
        let sessions = write_beside_a_reader(&place, Some(OWNER), mode);
        assert!(!says_secret(&kept.content()), "{mode}");
        assert_eq!(kept.file.metadata().unwrap().nlink(), 0, "{mode}");
        sessions.into_iter().for_each(Session::close);
    }
}

/// A reader's lock says that somebody has the database open, until he gives it up: when the opener
/// waits for a lease of his on another file.
#[test]
fn nor_one_that_was_locked_until_then() {
    for opener in [Some(OWNER), None] {
        let Some(place) = Place::made(0o644, MADE) else { return };
        let kept = left_by_a_session(&place, SHADOW);
        allow(&place.db(), 0o600);
        let folder = Real.open_directory(place.0.path()).unwrap();
        let lock = folder.open("app.db-dash".as_ref(), OpenMode::Read).unwrap();
        assert!(lock.try_lock(2..3, LockKind::Shared).unwrap());
        fs::remove_file(shadow(&place)).unwrap();
        drop(fs::remove_dir(beside(&place.db(), "-journal")));
        fs::write(shadow(&place), "").unwrap();
        give(&shadow(&place), (STRANGER, STRANGER));
        allow(&shadow(&place), 0o666);
        let planted = File::options().write(true).open(shadow(&place)).unwrap();
        assert_eq!(lease(&planted, libc::F_WRLCK), 0, "F_SETLEASE");
        let sessions = std::thread::scope(|scope| {
            scope.spawn(|| {
                while is_leased(&planted) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                lock.unlock(2..3).unwrap();
                assert_eq!(lease(&planted, libc::F_UNLCK), 0, "F_SETLEASE");
            });
            write_beside_a_reader(&place, opener, SHADOW)
        });
        assert!(!says_secret(&kept.content()), "{opener:?}");
        assert_eq!(kept.file.metadata().unwrap().nlink(), 0, "{opener:?}");
        sessions.into_iter().for_each(Session::close);
    }
}

/// As long as he keeps it: who has the database open has locked that itself.
#[test]
fn nor_one_that_a_lock_says_is_used() {
    let Some(place) = Place::made(0o644, MADE) else { return };
    let kept = left_by_a_session(&place, SHADOW);
    allow(&place.db(), 0o600);
    let folder = Real.open_directory(place.0.path()).unwrap();
    let lock = folder.open("app.db-dash".as_ref(), OpenMode::Read).unwrap();
    assert!(lock.try_lock(2..3, LockKind::Shared).unwrap());
    let why = place.open(Some(OWNER), "").map(Session::close).expect_err("refused");
    assert!(why.contains("lslocks") && why.contains("remove app.db-dash"), "{why}");
    kept.is_left("locked");
    lock.unlock(2..3).unwrap();
    let mut session = place.open(Some(OWNER), "").unwrap();
    // A chmod while it is open keeps nobody out.
    for bits in [0o640, 0o600] {
        allow(&place.db(), bits);
        let mut other = place.open(Some(OWNER), "").unwrap();
        other.must("INSERT INTO t VALUES ('new')");
        session.must("INSERT INTO t VALUES ('new')");
        other.close();
    }
    session.close();
}

/// Whether nobody waits for the lease.
fn is_leased(file: &File) -> bool {
    // SAFETY: the descriptor is borrowed for the call, which takes no pointer.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLEASE) == libc::F_WRLCK }
}

fn lease(file: &File, kind: libc::c_int) -> libc::c_int {
    const F_SETSIG: libc::c_int = 10;
    // SAFETY: the descriptor is borrowed for the calls, which take integers. SIGURG does nothing.
    unsafe {
        libc::fcntl(file.as_raw_fd(), F_SETSIG, libc::SIGURG);
        libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, kind)
    }
}

/// The one of another database, which is open.
#[test]
fn nor_is_another_databases_shared() {
    for mode in [SHADOW, "&journal_mode=wal"] {
        for opener in [Some(OWNER), None] {
            let [place, other] = [0o600, 0o644].map(|bits| Place::made(bits, MADE));
            let (Some(place), Some(other)) = (place, other) else { return };
            place.open(Some(OWNER), mode).unwrap().close();
            let mut session = other.open(Some(OWNER), mode).unwrap();
            session.must("INSERT INTO t VALUES ('old')");
            let coordination = beside(&place.db(), "-dash");
            fs::rename(beside(&other.db(), "-dash"), &coordination).unwrap();
            let kept = Kept::of(&coordination);
            let why = place.open(opener, mode).map(Session::close).expect_err("refused");
            assert!(why.contains("app.db was replaced"), "{mode}: {why}");
            // Whose descriptors root alone sees.
            let who = format!("process {}", session.id());
            assert!(opener.is_some() || why.contains(&who), "{mode}: {why}");
            kept.is_left(mode);
            session.kill();
            place.open(opener, mode).unwrap().close();
            assert_eq!(kept.file.metadata().unwrap().nlink(), 0, "{mode}");
            let part = Part { parameters: mode, ..Part::default() };
            Session::dash(&place.db(), part).unwrap().close();
        }
    }
}
