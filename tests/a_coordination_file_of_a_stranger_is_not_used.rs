//! Who may make files in a database's folder, and not write the database, could put an empty
//! `app.db-dash` there and keep it open: it became the memory that all connections share, and he
//! cut it (SIGBUS) or wrote there what he liked. One that belongs to nobody who may write the
//! database is replaced where nobody uses it, and refused where somebody may. SEC S2-8, too.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

mod suite;

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dash_storage::real::Real;
use dash_testing::locks::{lock_first, unlock_first};
use dash_testing::names::{beside, exists};
use suite::peers::Session;
use suite::rights::{allow, give};
use suite::strangers::{GROUP, MEMBER, OWNER, Place, STRANGER};

const MODES: [&str; 2] = ["&journal_mode=shadow", "&journal_mode=wal"];

impl Place {
    fn new(bits: u32) -> Option<Self> {
        Self::made(bits, "CREATE TABLE t(v); INSERT INTO t VALUES (1)")
    }

    fn coordination(&self) -> PathBuf {
        beside(&self.db(), "-dash")
    }

    /// Puts one there, and keeps it open.
    fn plant(&self, content: &[u8], whose: (u32, u32)) -> File {
        fs::write(self.coordination(), content).unwrap();
        give(&self.coordination(), whose);
        allow(&self.coordination(), 0o666);
        File::options().read(true).write(true).open(self.coordination()).unwrap()
    }
}

fn inode(path: &Path) -> u64 {
    fs::metadata(path).unwrap().ino()
}

#[test]
fn it_makes_room_for_another_one() {
    for mode in MODES {
        for opener in [None, Some(OWNER)] {
            // The last one is let in by the bits of all others, but for his group.
            for (bits, whose) in
                [(0o600, (STRANGER, STRANGER)), (0o644, (MEMBER, GROUP)), (0o606, (MEMBER, GROUP))]
            {
                for content in [&b""[..], &[0; 32768], &[b'x'; 98304]] {
                    let Some(place) = Place::new(bits) else { return };
                    let planted = place.plant(content, whose);
                    let what = format!("{mode} {opener:?} {bits:o} {}", content.len());
                    let mut session = place.open(opener, mode).expect(&what);
                    session.must("INSERT INTO t VALUES (2)");
                    let found = planted.metadata().unwrap();
                    assert_ne!(inode(&place.coordination()), found.ino(), "{what}");
                    assert_eq!((found.nlink(), found.len()), (0, content.len() as u64), "{what}");
                    assert_eq!(found.uid(), whose.0, "{what}");
                    // What he does to it is nothing to anybody.
                    planted.set_len(0).unwrap();
                    session.must("INSERT INTO t VALUES (3)");
                    let mut other = place.open(Some(OWNER), mode).expect(&what);
                    assert_eq!(other.must("SELECT count(*) FROM t"), "3", "{what}");
                    other.close();
                    session.close();
                }
            }
        }
    }
}

/// Before there is a database its maker is asked, not the database.
#[test]
fn nor_is_it_by_who_makes_the_database() {
    for mode in MODES {
        for maker in [None, Some(OWNER)] {
            let Some(place) = Place::new(0o600) else { return };
            fs::remove_file(place.db()).unwrap();
            let planted = place.plant(b"", (STRANGER, STRANGER));
            let mut session = place.open(maker, mode).unwrap();
            session.must("CREATE TABLE t(v)");
            assert_eq!(planted.metadata().unwrap().len(), 0, "{mode} {maker:?}");
            assert_ne!(inode(&place.coordination()), planted.metadata().unwrap().ino());
            session.close();
        }
    }
}

/// What an opener has seen under the database's names before it waited may be the stranger's, and
/// gone since.
#[test]
fn nor_where_a_database_of_his_was_there_a_moment_ago() {
    for opener in [None, Some(OWNER)] {
        for name in ["", "-shadow-tmp"] {
            let Some(place) = Place::new(0o600) else { return };
            let his = beside(&place.db(), name);
            fs::remove_file(place.db()).unwrap();
            fs::write(&his, [b'z'; 4096]).unwrap();
            give(&his, (STRANGER, STRANGER));
            allow(&his, 0o666);
            let planted = place.plant(b"", (STRANGER, STRANGER));
            let waits = planted.try_clone().unwrap();
            lock_first(&waits, libc::F_WRLCK, 1);
            std::thread::scope(|scope| {
                let opens = scope.spawn(|| place.open(opener, MODES[0]));
                std::thread::sleep(Duration::from_millis(500));
                fs::remove_file(&his).unwrap();
                unlock_first(&waits, 1);
                let mut session = opens.join().unwrap().expect("opens");
                session.must("CREATE TABLE t(v)");
                let (found, now) = (planted.metadata().unwrap(), inode(&place.coordination()));
                assert_eq!((found.len(), found.uid()), (0, STRANGER), "{name} {opener:?}");
                assert_ne!(now, found.ino(), "{name} {opener:?}");
                session.close();
            });
        }
    }
}

/// A stranger who locks his own keeps nobody waiting.
#[test]
fn nor_is_it_waited_for() {
    let whose = format!("app.db-dash belongs to user {STRANGER}, who has no right to write app.db");
    for mode in MODES {
        let Some(place) = Place::new(0o600) else { return };
        let planted = place.plant(b"", (STRANGER, STRANGER));
        lock_first(&planted, libc::F_WRLCK, 1);
        let why = place.open(None, mode).map(Session::close).expect_err("refused");
        assert!(why.contains(&whose), "{mode}: {why}");
    }
}

#[test]
fn where_it_is_used_or_stays_it_is_named() {
    let whose = format!("app.db-dash belongs to user {STRANGER}, who has no right to write app.db");
    let refused = |place: &Place, opener, mode| {
        let why = place.open(opener, mode).map(Session::close).expect_err("refused");
        assert!(why.contains(&whose) && why.contains("remove it"), "{mode}: {why}");
    };
    for mode in MODES {
        // It was given away while it is used.
        let Some(place) = Place::new(0o600) else { return };
        let mut session = place.open(Some(OWNER), mode).unwrap();
        session.must("INSERT INTO t VALUES (2)");
        let used = inode(&place.coordination());
        give(&place.coordination(), (STRANGER, STRANGER));
        refused(&place, None, mode);
        assert_eq!(inode(&place.coordination()), used, "{mode}");
        session.must("INSERT INTO t VALUES (3)");
        session.close();
        assert!(!exists(&place.coordination()), "{mode}");
        // Or the folder leaves it to him.
        for (content, bits) in [("", 0o666), ("", 0o600), ("x", 0o666), ("x", 0o644)] {
            allow(place.0.path(), 0o1777);
            let planted = place.plant(content.as_bytes(), (STRANGER, STRANGER));
            allow(&place.coordination(), bits);
            refused(&place, Some(OWNER), mode);
            assert_eq!(planted.metadata().unwrap().len(), content.len() as u64, "{mode}");
            fs::remove_file(place.coordination()).unwrap();
        }
    }
}

/// What it says of the last session counts no more for who only reads, or looks.
#[test]
fn nor_is_it_believed() {
    let Some(place) = Place::new(0o600) else { return };
    let mut session = place.open(Some(OWNER), MODES[0]).unwrap();
    (2..6).for_each(|row| drop(session.must(&format!("INSERT INTO t VALUES ({row})"))));
    session.kill();
    assert!(dash_shadow::inspect(&Real, &place.db()).is_ok());
    let said = |place: &Place| dash_shadow::is_at_rest(&Real, &place.db()).unwrap();
    suite::fence::remove(&place.db());
    assert!(said(&place));
    // That the shadow is being written: `InFlight`.
    let mut words = fs::read(place.coordination()).unwrap();
    words[24..32].copy_from_slice(&1u64.to_ne_bytes());
    fs::write(place.coordination(), words).unwrap();
    assert!(!said(&place));
    give(&place.coordination(), (STRANGER, STRANGER));
    assert!(said(&place));
}

/// An empty one may be anybody's file, and makes room as well.
#[test]
fn but_that_of_everybody_who_may_write_the_database_is() {
    for mode in MODES {
        for (bits, whose) in [
            (0o600, (OWNER, OWNER)),
            (0o644, (0, 0)),
            (0o660, (MEMBER, GROUP)),
            (0o666, (STRANGER, STRANGER)),
        ] {
            for opener in [None, Some(OWNER)] {
                for is_private in [false, true] {
                    let Some(place) = Place::new(bits) else { return };
                    let planted = place.plant(b"", whose);
                    if is_private && (whose.0 == OWNER || opener.is_none()) {
                        allow(&place.coordination(), 0o600);
                    }
                    let mut session = place.open(opener, mode).unwrap();
                    let found = planted.metadata().unwrap();
                    let what = format!("{mode} {bits:o} {whose:?} {opener:?}");
                    assert_ne!(found.ino(), inode(&place.coordination()), "{what}");
                    session.must("INSERT INTO t VALUES (2)");
                    session.close();
                }
            }
        }
        let Some(place) = Place::new(0o660) else { return };
        let mut one = place.open(Some(MEMBER), mode).unwrap();
        let mut other = place.open(Some(OWNER), mode).unwrap();
        one.must("INSERT INTO t VALUES (2)");
        assert_eq!(other.must("SELECT count(*) FROM t"), "2");
        other.close();
        one.close();
    }
}

/// A new one takes the place of what a kill has left, and was its maker's alone until that one had
/// opened the database: who was refused before left the owner locked out.
#[test]
fn nor_does_an_opening_that_is_refused_leave_one() {
    for mode in MODES {
        let Some(place) = Place::new(0o600) else { return };
        let mut killed = place.open(Some(OWNER), mode).unwrap();
        killed.must("INSERT INTO t VALUES (2)");
        killed.kill();
        let stock = suite::stock(&place.db());
        let writes = stock.execute_batch("BEGIN IMMEDIATE; INSERT INTO t VALUES (3)");
        let refused = place.open(None, mode).map(|session| session.close());
        // The fence of mode wal keeps stock SQLite out, and then nobody refuses root.
        assert_eq!(refused.is_err(), writes.is_ok(), "{mode}: {refused:?}, {writes:?}");
        drop(stock);
        let found = place.open(Some(OWNER), mode);
        let mut found = found.unwrap_or_else(|error| panic!("{mode}: {error}"));
        assert_eq!(found.must("SELECT count(*) FROM t"), "2", "{mode}");
    }
}

/// What lies under the name that a new one has at first, and can't be removed, is in nobody's way.
#[test]
fn nor_does_a_folder_keep_the_former_one() {
    for mode in MODES {
        for opener in [None, Some(OWNER)] {
            let Some(place) = Place::new(0o600) else { return };
            let mut killed = place.open(Some(OWNER), mode).unwrap();
            killed.must("INSERT INTO t VALUES (2)");
            killed.kill();
            allow(&place.db(), 0o660);
            let kept = beside(&place.db(), "-dash-new").join("kept");
            fs::create_dir_all(&kept).unwrap();
            let mut session = place.open(opener, mode).expect(mode);
            assert_eq!(session.must("SELECT count(*) FROM t"), "2", "{mode}");
            session.close();
            assert!(exists(&kept), "{mode}");
        }
    }
}
