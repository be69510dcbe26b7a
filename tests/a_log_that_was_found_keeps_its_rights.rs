//! A file beside a database was given the rights that the database had by then, if by its name or
//! its head it was the database's. Whoever may rename there gave such a name to a private file of
//! the owner's, or an inode number came back: who could read the database got to read that. Now a
//! file is used as it is, or made anew. WAL-48.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

mod suite;

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use dash_testing::names::{beside, exists, names};
use dash_testing::{Need, skip};
use suite::peers::Session;
use suite::rights::{GROUP as OF_GROUP, LIST, MASK, OTHERS, OWNER as OF_OWNER, USER};
use suite::rights::{allow, encode, give};
use suite::sql::run;
use suite::strangers::{GROUP, MEMBER, OWNER, Place, STRANGER};
use xattr::FileExt;

const WAL: &str = "&journal_mode=wal&dash_rest=off";
const MODES: [&str; 2] = [WAL, "&journal_mode=statement&dash_commit=paper&dash_rest=off"];
const OPENERS: [Option<u32>; 2] = [Some(OWNER), None];

/// The owner, one more user, and the group, who read.
fn list(bits: u16) -> Vec<u8> {
    let none = u32::MAX;
    encode(&[
        (OF_OWNER, 6, none),
        (USER, bits, STRANGER),
        (OF_GROUP, 4, none),
        (MASK, 4, none),
        (OTHERS, 4 - bits, none),
    ])
}

type Rights = ([u32; 3], Option<Vec<u8>>);

fn rights(file: &File) -> Rights {
    let found = file.metadata().unwrap();
    let list = file.get_xattr(LIST).unwrap();
    ([found.uid(), found.gid(), found.mode() & 0o777], list)
}

fn rights_of(path: &Path) -> Rights {
    rights(&File::open(path).unwrap())
}

impl Place {
    fn new(bits: u32) -> Option<Self> {
        Self::made(bits, "CREATE TABLE t(v); PRAGMA journal_mode=wal")
    }

    /// Opens it, and commits so often that a log is begun.
    fn is_used(&self, opener: Option<u32>, mode: &str) -> Session {
        let mut session = self.open(opener, mode).expect("opens");
        session.must("PRAGMA synchronous=FULL");
        for _ in 0..12 {
            session.must("INSERT INTO t VALUES ('SECRET' || hex(randomblob(4)))");
        }
        session
    }

    /// A file of the owner's under a name of the database's.
    fn plant(&self, name: &str, content: &[u8], bits: u32) -> File {
        let planted = beside(&self.db(), name);
        fs::write(&planted, content).unwrap();
        give(&planted, (OWNER, GROUP));
        allow(&planted, bits);
        File::open(planted).unwrap()
    }

    fn has_list(&self, bits: u16) -> bool {
        let is_set = xattr::set(self.db(), LIST, &list(bits)).is_ok();
        if !is_set {
            skip(Need::Lists, "this file system has no access control lists");
        }
        is_set
    }
}

/// Nor is the list taken away that keeps somebody out of his file.
#[test]
fn whatever_list_the_database_has() {
    for name in ["-dashlog", "-wal", "-shm"] {
        for (opener, mode) in OPENERS.into_iter().flat_map(|who| MODES.map(|mode| (who, mode))) {
            for content in [&b"PRIVATE".repeat(4000)[..], b"a log", b""] {
                for is_let_in in [true, false] {
                    let Some(place) = Place::new(if is_let_in { 0o640 } else { 0o644 }) else {
                        return;
                    };
                    place.is_used(opener, mode).close();
                    let its_log = fs::read(beside(&place.db(), "-dashlog")).unwrap();
                    let content = if content == b"a log" { &its_log } else { content };
                    if is_let_in && !place.has_list(4) {
                        return;
                    }
                    let kept = place.plant(name, content, 0o640);
                    if !is_let_in {
                        xattr::set(beside(&place.db(), name), LIST, &list(0)).unwrap();
                    }
                    let before = rights(&kept);
                    let what = format!("{name} {opener:?} {mode} {} {is_let_in}", content.len());
                    let mut session = place.open(opener, mode).expect("opens");
                    session.must("SELECT count(*) FROM t");
                    assert_eq!(rights(&kept), before, "{what}");
                    session.close();
                    let session = place.is_used(opener, mode);
                    assert_eq!(rights(&kept), before, "{what}");
                    session.close();
                    assert_eq!(rights(&kept), before, "{what}");
                }
            }
        }
    }
}

/// Inode numbers come back: by its head a log is the database's that was another one's.
#[test]
fn nor_a_log_of_a_database_that_was_removed() {
    for opener in OPENERS {
        let Some(place) = Place::new(0o600) else { return };
        place.is_used(Some(OWNER), WAL).kill();
        for file in names(place.0.path()) {
            let path = place.0.path().join(&file);
            match path.is_dir() {
                true => fs::remove_dir_all(path).unwrap(),
                false if ["app.db", "app.db-dashlog"].contains(&&*file) => {}
                false => fs::remove_file(path).unwrap(),
            }
        }
        let kept = File::open(beside(&place.db(), "-dashlog")).unwrap();
        let before = rights(&kept);
        let (_elsewhere, other) = {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("other.db");
            run(&suite::stock(&path), "CREATE TABLE t(v); PRAGMA journal_mode=wal");
            (folder, fs::read(path).unwrap())
        };
        // In place: this is what its inode number stands for now.
        fs::write(place.db(), other).unwrap();
        allow(&place.db(), 0o644);
        for _ in 0..2 {
            let Ok(mut session) = place.open(opener, WAL) else { continue };
            session.must("SELECT count(*) FROM t");
            assert_eq!(rights(&kept), before, "{opener:?}");
            (0..12).for_each(|_| drop(session.must("INSERT INTO t VALUES (1)")));
            assert_eq!(rights(&kept), before, "{opener:?}");
            session.close();
        }
        assert_eq!(rights(&kept), before, "{opener:?}");
    }
}

/// What nobody uses is made anew, with the rights that the database has by now.
#[test]
fn but_makes_room_for_one_that_has_the_databases() {
    for (opener, mode) in OPENERS.into_iter().flat_map(|who| MODES.map(|mode| (who, mode))) {
        for (bits, lists) in [(0o640, None), (0o644, None), (0o640, Some(4))] {
            for (name, content) in [("-dashlog", true), ("-wal", false), ("-shm", true)] {
                let Some(place) = Place::new(0o660) else { return };
                place.is_used(opener, mode).kill();
                let content =
                    fs::read(beside(&place.db(), name)).unwrap()[..].repeat(content.into());
                let mut session = place.open(opener, mode).unwrap();
                session.must("SELECT count(*) FROM t");
                session.close();
                if name != "-dashlog" {
                    place.plant(name, &content, 0o660);
                }
                let path = beside(&place.db(), name);
                let kept = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
                let before = rights(&kept);
                allow(&place.db(), bits);
                if lists.is_some_and(|bits| !place.has_list(bits)) {
                    return;
                }
                let what = format!("{opener:?} {mode} {bits:o} {lists:?} {name}");
                let mut session = place.open(opener, mode).expect("opens");
                session.must("PRAGMA synchronous=FULL");
                if name == "-dashlog" {
                    // Who only reads leaves none that lets others in.
                    assert!(!exists(&path), "{what}");
                }
                (0..12).for_each(|_| drop(session.must("INSERT INTO t VALUES ('NEW')")));
                assert_ne!(fs::metadata(&path).unwrap().ino(), kept.metadata().unwrap().ino());
                assert_eq!(rights_of(&path), rights_of(&place.db()), "{what}");
                assert_eq!(rights(&kept), before, "{what}");
                assert_eq!(session.must("SELECT count(*) FROM t"), "24", "{what}");
                session.close();
            }
        }
    }
}

/// A `-wal` that holds something stays as it is until its end, as with stock SQLite.
#[test]
fn as_long_as_it_may_count() {
    for mode in MODES {
        let Some(place) = Place::new(0o660) else { return };
        place.is_used(None, mode).kill();
        allow(&place.db(), 0o640);
        let wal = beside(&place.db(), "-wal");
        let before = rights_of(&wal);
        let mut session = place.is_used(Some(OWNER), mode);
        assert_eq!(session.must("SELECT count(*) FROM t"), "24", "{mode}");
        assert_eq!(rights_of(&wal), before, "{mode}");
        session.close();
        let session = place.is_used(Some(OWNER), mode);
        for name in ["-wal", "-shm", "-dashlog"] {
            assert_eq!(rights_of(&beside(&place.db(), name)).0, [OWNER, GROUP, 0o640], "{name}");
        }
        session.close();
    }
}

/// Whom the database lets in by now, he gets its log, too, as soon as its owner was there.
#[test]
fn and_a_member_gets_one_that_is_his_too() {
    for mode in MODES {
        let Some(place) = Place::new(0o600) else { return };
        place.is_used(Some(OWNER), mode).close();
        allow(&place.db(), 0o660);
        let mut owner = place.open(Some(OWNER), mode).unwrap();
        owner.must("SELECT count(*) FROM t");
        owner.close();
        let mut member = place.is_used(Some(MEMBER), mode);
        assert_eq!(member.must("SELECT dash_last_error()"), "Null", "{mode}");
        member.close();
    }
}

/// An owner who is not of the database's group can't give it to that: it is not made anew for ever.
#[test]
fn as_one_that_can_be_no_other_does() {
    for mode in MODES {
        let Some(place) = Place::new(0o664) else { return };
        give(&place.db(), (OWNER, 7777));
        place.is_used(Some(OWNER), mode).close();
        let log = beside(&place.db(), "-dashlog");
        let before = (rights_of(&log), fs::metadata(&log).unwrap().ino());
        place.is_used(Some(OWNER), mode).close();
        assert_eq!((rights_of(&log), fs::metadata(&log).unwrap().ino()), before, "{mode}");
        // Root can.
        place.is_used(None, mode).close();
        assert_eq!(rights_of(&log), rights_of(&place.db()), "{mode}");
    }
}

/// One elsewhere, which is found by its id, is done without until it has the database's rights.
#[test]
fn and_one_elsewhere_is_not_used() {
    for opener in OPENERS {
        let Some(place) = Place::new(0o660) else { return };
        let elsewhere = tempfile::tempdir().unwrap();
        allow(elsewhere.path(), 0o777);
        let mode = format!("{WAL}&dash_log={}", elsewhere.path().display());
        place.is_used(opener, &mode).close();
        let log = elsewhere.path().join(&names(elsewhere.path())[0]);
        let before = (rights_of(&log), fs::read(&log).unwrap());
        assert_eq!(before.0.0, [OWNER, GROUP, 0o660]);
        allow(&place.db(), 0o640);
        let mut session = place.is_used(opener, &mode);
        let said = session.must("SELECT dash_last_error()");
        for word in ["its rights are not those of app.db", "chmod", "a flush of app.db-wal"] {
            assert!(said.contains(word), "{opener:?}: {said}");
        }
        session.close();
        assert!((rights_of(&log), fs::read(&log).unwrap()) == before, "{opener:?}");
        allow(&log, 0o640);
        let mut session = place.is_used(opener, WAL);
        assert_eq!(session.must("SELECT dash_last_error()"), "Null", "{opener:?}");
        assert!(fs::read(&log).unwrap() != before.1, "{opener:?}");
        session.close();
    }
}
