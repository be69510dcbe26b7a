//! Somebody who may make files in a database's folder, and not write the database, could put a
//! second copy there that says it holds the newest commit: recovery took it in the database's
//! place. A shadow of such a stranger is not read any more (SHADOW-28), and nobody who may write
//! the database is ever refused. Nor is it written: held open it was filled, given to the
//! database's owner and became `app.db`. And what has the temporary name is no stranger's, either.
//! SEC S2-8, in mode shadow.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

mod suite;

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use dash_storage::real::Real;
use dash_testing::names::{beside, exists};
use suite::damage::swap;
use suite::peers::Session;
use suite::rights::{allow, give};
use suite::strangers::{GROUP, MEMBER, OWNER, Place, STRANGER};

/// How many rows say what they are; as many pages.
const ROWS: &str = "SELECT count(*) FROM t WHERE v = 'honest'";

impl Place {
    /// A pair at rest.
    fn new(bits: u32) -> Option<Self> {
        let place = Self::made(
            bits,
            "CREATE TABLE t(k INTEGER PRIMARY KEY, v, pad); \
             WITH RECURSIVE c(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM c WHERE n < 40) \
             INSERT INTO t SELECT n, 'honest', zeroblob(3000) FROM c",
        )?;
        let mut session = place.open(Some(OWNER), "&journal_mode=shadow").unwrap();
        for row in 1..4 {
            session.must(&format!("UPDATE t SET pad = 'x' WHERE k = {row}"));
        }
        session.close();
        Some(place)
    }

    /// One whose newest commit is in the shadow: the power loss took the exchange of the names.
    fn cut_off(bits: u32) -> Option<Self> {
        let place = Self::new(bits)?;
        let mut session = place.open(Some(OWNER), "").unwrap();
        session.must("INSERT INTO t VALUES (41, 'honest', NULL)");
        session.kill();
        swap(&place.db(), &place.shadow());
        fs::remove_file(beside(&place.db(), "-dash")).unwrap();
        Some(place)
    }

    fn shadow(&self) -> PathBuf {
        beside(&self.db(), "-shadow")
    }

    /// Makes the pages of the shadow say something else, and leaves its blocks as they are.
    fn forge(&self) {
        let mut bytes = fs::read(self.shadow()).unwrap();
        let honest: Vec<_> =
            bytes.windows(6).enumerate().filter(|(_, it)| it == b"honest").map(|it| it.0).collect();
        assert!(honest.len() >= 40, "{} rows", honest.len());
        for at in honest {
            bytes[at..at + 6].copy_from_slice(b"forged");
        }
        fs::write(self.shadow(), bytes).unwrap();
    }
}

fn whose(path: &Path) -> (u32, u32) {
    let found = fs::metadata(path).unwrap();
    (found.uid(), found.gid())
}

#[test]
fn what_it_says_is_made_anew() {
    for (bits, whose_it_is) in [
        (0o644, (STRANGER, STRANGER)),
        (0o644, (MEMBER, GROUP)),
        (0o664, (STRANGER, STRANGER)),
        (0o664, (MEMBER, MEMBER)),
    ] {
        for opener in [None, Some(OWNER)] {
            let Some(place) = Place::new(bits) else { return };
            give(&place.shadow(), whose_it_is);
            allow(&place.shadow(), 0o666);
            // Behind that, so that its times are those of a file that was only written.
            place.forge();
            let mut reader = place.open(Some(OWNER), "&mode=ro").unwrap();
            assert_eq!(reader.must(ROWS), "40");
            reader.close();
            let what = format!("{bits:o} {whose_it_is:?} {opener:?}");
            for row in 0..4 {
                let mut session = place.open(opener, "").unwrap();
                session.must(&format!("UPDATE t SET pad = 'x' WHERE k = {}", 10 + row));
                assert_eq!(session.must(ROWS), "40", "{what}");
                assert_eq!(session.must("PRAGMA integrity_check"), "ok", "{what}");
                session.close();
                assert_ne!(whose(&place.shadow()).0, whose_it_is.0, "{what}");
            }
        }
    }
}

#[test]
fn what_it_may_hold_alone_is_waited_for() {
    for (bits, whose_it_is) in [(0o644, (MEMBER, GROUP)), (0o664, (STRANGER, STRANGER))] {
        let Some(place) = Place::cut_off(bits) else { return };
        give(&place.shadow(), whose_it_is);
        let both = || [place.db(), place.shadow()].map(|path| fs::read(path).unwrap());
        let before = both();
        for parameters in ["&mode=ro", ""] {
            for opener in [None, Some(OWNER)] {
                // A connection that only reads looks when it does.
                let asked = place.open(opener, parameters).and_then(|mut session| {
                    let rows = session.sql(ROWS);
                    session.close();
                    rows
                });
                let why = asked.expect_err("refused");
                let (user, group) = whose_it_is;
                let whose = format!("belongs to user {user}, group {group}, and neither may write");
                let says = why.contains(&whose) && why.contains("give it the owner");
                let cant = "opening app.db-shadow: Permission denied";
                assert!(says || opener.is_some() && why.contains(cant), "{why}");
            }
        }
        let seen = dash_shadow::inspect(&Real, &place.db()).unwrap();
        assert!(format!("{:?}", seen.opening).contains("Stranger"), "{:?}", seen.opening);
        assert_eq!((both(), whose(&place.shadow())), (before, whose_it_is));
        give(&place.shadow(), (OWNER, GROUP));
        let mut session = place.open(Some(OWNER), "").unwrap();
        assert_eq!(session.must(ROWS), "41");
        session.close();
    }
}

#[test]
fn but_that_of_everybody_who_may_write_the_database_is() {
    for (bits, whose_it_is) in [
        (0o600, (OWNER, OWNER)),
        (0o664, (0, GROUP)),
        (0o664, (MEMBER, GROUP)),
        (0o666, (STRANGER, STRANGER)),
    ] {
        let Some(place) = Place::cut_off(bits) else { return };
        give(&place.shadow(), whose_it_is);
        let mut session = place.open(None, "").unwrap();
        assert_eq!(session.must(ROWS), "41", "{bits:o} {whose_it_is:?}");
        session.close();
    }
}

/// A database that was given to somebody else at rest, and its shadow not: root opens it, and the
/// former owner doesn't keep a copy there.
#[test]
fn and_after_a_chown_at_rest_another_one_is_made() {
    let Some(place) = Place::new(0o600) else { return };
    give(&place.db(), (MEMBER, MEMBER));
    let mut session = place.open(None, "").unwrap();
    assert_eq!(session.must(ROWS), "40");
    assert!(!exists(&place.shadow()));
    session.must("INSERT INTO t VALUES (41, 'honest', NULL)");
    session.close();
    assert_eq!(whose(&place.shadow()), (MEMBER, MEMBER));
}

/// A file of a stranger's, who keeps it open.
struct Planted {
    file: File,
    content: Vec<u8>,
}

impl Planted {
    fn at(path: &Path, content: &[u8]) -> Self {
        drop(fs::remove_file(path));
        fs::write(path, content).unwrap();
        give(path, (STRANGER, STRANGER));
        allow(path, 0o666);
        let file = File::options().read(true).write(true).open(path).unwrap();
        Self { file, content: content.to_vec() }
    }

    /// Whether it is what he made, and not a file of the database's.
    fn is_left(&self, place: &Place, what: &str) {
        let found = self.file.metadata().unwrap();
        let mut bytes = Vec::new();
        (&self.file).read_to_end(&mut bytes).unwrap();
        assert!(bytes == self.content, "{what}: {} bytes, uid {}", bytes.len(), found.uid());
        assert_eq!(found.uid(), STRANGER, "{what}");
        for name in ["", "-shadow"] {
            let named = fs::metadata(beside(&place.db(), name));
            let same = named.is_ok_and(|named| named.ino() == found.ino());
            assert!(!same, "{what}: it is app.db{name}");
        }
    }
}

#[test]
fn what_he_holds_open_is_not_written() {
    for opener in [None, Some(OWNER)] {
        for name in ["-shadow", "-shadow-tmp"] {
            for content in [&b""[..], &[b'x'; 8192]] {
                for fence in [false, true] {
                    for lost in [false, true] {
                        let Some(place) = Place::new(0o600) else { return };
                        if lost {
                            fs::remove_file(place.shadow()).unwrap();
                        }
                        let planted = Planted::at(&beside(&place.db(), name), content);
                        if fence && (name == "-shadow" || !lost) {
                            fs::create_dir(beside(&place.db(), "-journal")).unwrap();
                        }
                        let what = format!("{opener:?} {name} {} {fence} {lost}", content.len());
                        for row in 0..2 {
                            let mut session = place.open(opener, "").expect(&what);
                            for commit in 0..4 {
                                let row = 10 + 4 * row + commit;
                                session.must(&format!("UPDATE t SET pad = 'x' WHERE k = {row}"));
                            }
                            assert_eq!(session.must(ROWS), "40", "{what}");
                            assert_eq!(session.must("PRAGMA integrity_check"), "ok", "{what}");
                            session.close();
                        }
                        planted.is_left(&place, &what);
                        assert_eq!(whose(&place.db()), (OWNER, GROUP), "{what}");
                        assert_eq!(whose(&place.shadow()), (OWNER, GROUP), "{what}");
                    }
                }
            }
        }
    }
}

/// In a folder where everybody keeps his own files: nothing is written then.
#[test]
fn where_it_cant_be_removed_it_is_not_written_either() {
    let Some(place) = Place::new(0o600) else { return };
    allow(place.0.path(), 0o1777);
    let planted = Planted::at(&place.shadow(), b"");
    let mut session = place.open(Some(OWNER), "").unwrap();
    assert_eq!(session.must(ROWS), "40");
    session.sql("UPDATE t SET pad = 'x' WHERE k = 10").expect_err("refused");
    let why = session.must("SELECT dash_last_error()");
    assert!(why.contains("removing app.db-shadow: Operation not permitted"), "{why}");
    session.close();
    assert_eq!((planted.file.metadata().unwrap().len(), whose(&place.shadow()).0), (0, STRANGER));
    drop(fs::remove_file(place.shadow()));
    let mut session = place.open(Some(OWNER), "").unwrap();
    session.must("UPDATE t SET pad = 'x' WHERE k = 10");
    session.close();
}

/// Nor is anybody told to take it (`sqlite-dash recover`) in the place of a database that was cut.
#[test]
fn nor_is_it_advised() {
    for len in [0, 4096] {
        let Some(place) = Place::new(0o600) else { return };
        give(&place.shadow(), (STRANGER, STRANGER));
        File::options().write(true).open(place.db()).unwrap().set_len(len).unwrap();
        let why = place.open(None, "").map(Session::close).expect_err("refused");
        let whose = format!("it belongs to user {STRANGER}");
        assert!(why.contains(&whose) && !why.contains("sqlite-dash recover"), "{len}: {why}");
        let seen = dash_shadow::inspect(&Real, &place.db()).unwrap();
        assert!(format!("{:?}", seen.opening).contains("Stranger"), "{:?}", seen.opening);
    }
}

/// The same while the database is open: the second copy's owner is a stranger from then on.
#[test]
fn after_a_chown_while_it_is_open_another_one_is_made() {
    let Some(place) = Place::new(0o600) else { return };
    let mut session = place.open(None, "").unwrap();
    let held = File::open(place.shadow()).unwrap();
    give(&place.db(), (MEMBER, MEMBER));
    session.must("UPDATE t SET pad = 'x' WHERE k = 10");
    assert_eq!(held.metadata().unwrap().uid(), OWNER);
    for path in [place.db(), place.shadow()] {
        assert_ne!(fs::metadata(&path).unwrap().ino(), held.metadata().unwrap().ino());
        assert_eq!(whose(&path), (MEMBER, MEMBER));
    }
    assert_eq!(session.must("PRAGMA integrity_check"), "ok");
    session.close();
}

/// It is made anew as what has the shadow's name is, and refuses nobody.
#[test]
fn what_nobody_else_may_read_is_made_anew() {
    let Some(place) = Place::new(0o600) else { return };
    fs::remove_file(place.shadow()).unwrap();
    let aside = beside(&place.db(), "-shadow-tmp");
    drop(Planted::at(&aside, &[b'x'; 5000]));
    allow(&aside, 0o600);
    for _ in 0..2 {
        let mut session = place.open(Some(OWNER), "").unwrap();
        session.must("UPDATE t SET pad = 'y' WHERE k = 1");
        assert_eq!(session.must(ROWS), "40");
        session.close();
    }
    assert!(!exists(&aside));
}

/// What is left of an exchange in three steps looks like that: an empty file of a stock process,
/// and the database under the temporary name.
#[test]
fn the_temporary_name_takes_no_empty_databases_place() {
    for opener in [None, Some(OWNER)] {
        for parameters in ["", "&mode=ro", "&journal_mode=shadow"] {
            let Some(place) = Place::new(0o600) else { return };
            let aside = beside(&place.db(), "-shadow-tmp");
            fs::copy(place.db(), &aside).unwrap();
            give(&aside, (STRANGER, STRANGER));
            allow(&aside, 0o666);
            let shadow = Planted::at(&place.shadow(), b"nothing");
            fs::write(place.db(), "").unwrap();
            let what = format!("{opener:?} {parameters}");
            let asks = |place: &Place| {
                place.open(opener, parameters).and_then(|mut session| {
                    let rows = session.sql(ROWS);
                    session.close();
                    rows
                })
            };
            let why = asks(&place).expect_err(&what);
            let whose_it_is = format!(
                "app.db-shadow-tmp may hold the newest commit of app.db, and is not read: it belongs to user {STRANGER}"
            );
            assert!(why.contains(&whose_it_is) && why.contains("remove it"), "{what}: {why}");
            let seen = dash_shadow::inspect(&Real, &place.db()).unwrap();
            assert!(format!("{:?}", seen.opening).contains("StrangeName"), "{:?}", seen.opening);
            assert_eq!(fs::metadata(place.db()).unwrap().len(), 0, "{what}");
            assert_eq!(whose(&place.db()), (OWNER, GROUP), "{what}");
            // One of a writer's is the database, if nobody else has it.
            give(&aside, (OWNER, GROUP));
            let why = asks(&place).expect_err(&what);
            assert!(why.contains("its rights are not those of app.db"), "{what}: {why}");
            allow(&aside, 0o600);
            let mut session = place.open(opener, parameters).unwrap();
            assert_eq!(session.must(ROWS), "40", "{what}");
            session.close();
            drop(shadow);
        }
    }
}
