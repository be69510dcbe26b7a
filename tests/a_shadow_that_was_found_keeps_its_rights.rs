//! A file that was found beside a database got the database's rights where it said that it is the
//! database's. What it says may be another database's copy, or an older one: the pair of blocks is
//! no secret. A shadow with other rights makes room for a new one; what is needed of it is taken
//! only if it is the owner's, written into this very file. And whoever holds a lock in a
//! coordination file, or put one back after a change of an access control list, shares no memory
//! with the next who opens the database. SHADOW-28.

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
use dash_testing::names::{beside, names};
use dash_testing::{Need, skip};
use suite::damage::swap;
use suite::parts::Part;
use suite::peers::Session;
use suite::rights::{GROUP as OF_GROUP, LIST, MASK, OTHERS, OWNER as OF_OWNER, USER};
use suite::rights::{allow, encode, give};
use suite::strangers::{GROUP, OWNER, Place, STRANGER};

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

fn rights_of(path: &Path) -> [u32; 3] {
    rights(&fs::metadata(path).unwrap())
}

fn says_secret(bytes: &[u8]) -> bool {
    bytes.windows(6).any(|it| it == b"SECRET")
}

/// Files in a folder that others may read, and that say what only the owner may know.
fn told(folder: &Path) -> Vec<String> {
    let is_told = |name: &String| {
        let path = folder.join(name);
        let open = path.is_file() && fs::metadata(&path).unwrap().mode() & 0o077 != 0;
        open && says_secret(&fs::read(&path).unwrap())
    };
    names(folder).into_iter().filter(is_told).collect()
}

/// Who owns a database may once have read another one, which has its own copies since.
#[test]
fn where_it_is_another_databases() {
    for (whose, opener) in [(0, None), (OWNER, None), (OWNER, Some(OWNER))] {
        for name in ["-shadow", ""] {
            for parameters in ["", "&mode=ro", SHADOW] {
                let [private, public] = [(); 2].map(|()| Place::made(0o644, MADE));
                let (Some(private), Some(public)) = (private, public) else { return };
                let commit = |row: &str| {
                    let mut session = private.open(None, SHADOW).unwrap();
                    session.must(&format!("INSERT INTO t VALUES ('{row}')"));
                    session.close();
                };
                give(&private.db(), (whose, whose));
                commit("old");
                fs::copy(private.db(), public.db()).unwrap();
                give(&public.db(), (STRANGER, STRANGER));
                allow(&public.db(), 0o666);
                if whose != 0 {
                    let list = [
                        (OF_OWNER, 6, u32::MAX),
                        (USER, 6, whose),
                        (OF_GROUP, 6, u32::MAX),
                        (MASK, 6, u32::MAX),
                        (OTHERS, 6, u32::MAX),
                    ];
                    if xattr::set(public.db(), LIST, &encode(&list)).is_err() {
                        return skip(Need::Lists, "this file system has no access control lists");
                    }
                }
                for name in ["", "-shadow"] {
                    allow(&beside(&private.db(), name), 0o600);
                }
                commit("SECRET");
                let given = beside(&private.db(), name);
                let kept = Kept::of(&given);
                fs::rename(&given, beside(&public.db(), "-shadow")).unwrap();
                let what = format!("{whose} {opener:?} {name} {parameters}");
                for row in 0..2 {
                    let Ok(mut session) = public.open(opener, parameters) else { continue };
                    drop(session.sql(&format!("INSERT INTO t VALUES ({row})")));
                    drop(session.sql("SELECT dash_backup('copy')"));
                    kept.is_left(&what);
                    session.close();
                }
                kept.is_left(&what);
                assert!(told(public.0.path()).is_empty(), "{what}: {:?}", told(public.0.path()));
            }
        }
    }
}

/// A copy of one of the two files says the same as that: one commit later it is the second copy of
/// the database by what it says, but not by where that was written.
#[test]
fn where_it_is_a_copy_that_others_have_open() {
    for opener in [Some(OWNER), None] {
        for commits in 0..3 {
            let Some(place) = Place::made(0o644, MADE) else { return };
            let commit = |opener| {
                let mut session = place.open(opener, SHADOW).unwrap();
                session.must("INSERT INTO t VALUES ('new')");
                session.close();
            };
            commit(Some(OWNER));
            let copy = place.0.path().join("copy");
            fs::copy(place.db(), &copy).unwrap();
            give(&copy, (OWNER, GROUP));
            let kept = Kept::of(&copy);
            [place.db(), shadow(&place)].iter().for_each(|path| allow(path, 0o600));
            (0..commits).for_each(|_| commit(Some(OWNER)));
            fs::rename(&copy, shadow(&place)).unwrap();
            let what = format!("{opener:?} {commits}");
            for row in 0..2 {
                let mut session = place.open(opener, "").unwrap();
                session.must(&format!("INSERT INTO t VALUES ('SECRET {row}')"));
                session.close();
            }
            kept.is_left(&what);
            assert_eq!(rights_of(&shadow(&place)), [OWNER, GROUP, 0o600], "{what}");
        }
    }
}

fn shadow(place: &Place) -> PathBuf {
    beside(&place.db(), "-shadow")
}

/// The second copy of another time, when the database was its owner's alone.
#[test]
fn where_it_is_an_older_copy() {
    for opener in [Some(OWNER), None] {
        for parameters in ["", "&journal_mode=delete", SHADOW] {
            let Some(place) = Place::made(0o600, MADE) else { return };
            let mut session = place.open(Some(OWNER), SHADOW).unwrap();
            session.must("UPDATE t SET v = 'SECRET'");
            session.must("UPDATE t SET v = 'public'");
            session.close();
            let older = place.0.path().join("older");
            fs::rename(shadow(&place), &older).unwrap();
            let mut session = place.open(Some(OWNER), SHADOW).unwrap();
            session.must("INSERT INTO t VALUES ('public')");
            session.close();
            [place.db(), shadow(&place)].iter().for_each(|path| allow(path, 0o644));
            let kept = Kept::of(&older);
            fs::rename(&older, shadow(&place)).unwrap();
            let what = format!("{opener:?} {parameters}");
            for _ in 0..2 {
                let mut session = place.open(opener, parameters).unwrap();
                assert_eq!(rights(&kept.file.metadata().unwrap()), kept.rights, "{what}");
                session.must("INSERT INTO t VALUES ('public')");
                session.close();
                kept.is_left(&what);
            }
        }
    }
}

/// The newest commit is in the shadow: the power loss took the exchange of the names. The owner's
/// own gets the rights that the database got meanwhile, where these are fewer; a copy of it does
/// not.
#[test]
fn but_what_is_needed_is_taken_where_it_is_the_owners_own() {
    for opener in [Some(OWNER), None] {
        for (bits, now) in [(0o644, 0o600), (0o600, 0o644)] {
            for copied in [false, true] {
                let Some(place) = Place::made(bits, MADE) else { return };
                let commit = || {
                    let mut session = place.open(Some(OWNER), SHADOW).unwrap();
                    session.must("INSERT INTO t VALUES ('new')");
                    session
                };
                commit().close();
                commit().kill();
                swap(&place.db(), &shadow(&place));
                fs::remove_file(beside(&place.db(), "-dash")).unwrap();
                allow(&place.db(), now);
                if copied {
                    let copy = place.0.path().join("copy");
                    fs::copy(shadow(&place), &copy).unwrap();
                    give(&copy, (OWNER, GROUP));
                    allow(&copy, bits);
                    fs::rename(&copy, shadow(&place)).unwrap();
                }
                let what = format!("{opener:?} {bits:o} {now:o} {copied}");
                match place.open(opener, "") {
                    Ok(mut session) => {
                        assert!(!copied && now == 0o600, "{what}");
                        assert_eq!(session.must("SELECT count(*) FROM t"), "3", "{what}");
                        session.must("INSERT INTO t VALUES ('more')");
                        session.close();
                        for path in [place.db(), shadow(&place)] {
                            assert_eq!(rights_of(&path), [OWNER, GROUP, now], "{what}");
                        }
                    }
                    Err(why) => {
                        assert!(why.contains("is not read"), "{what}: {why}");
                        assert!(copied || now != 0o600, "{what}: {why}");
                        assert!(why.contains("give it the owner"), "{what}: {why}");
                        allow(&shadow(&place), now);
                        let mut session = place.open(opener, "").unwrap();
                        assert_eq!(session.must("SELECT count(*) FROM t"), "3", "{what}");
                        session.close();
                    }
                }
            }
        }
    }
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
        drop(fs::remove_dir_all(beside(&place.db(), "-journal")));
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
