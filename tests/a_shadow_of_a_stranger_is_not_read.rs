//! Somebody who may make files in a database's folder, and not write the database, could put a
//! second copy there that says it holds the newest commit: recovery took it in the database's
//! place. A shadow of such a stranger is not read any more (SHADOW-28), and nobody who may write
//! the database is ever refused. SEC S2-8, in mode shadow.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

mod suite;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use dash_storage::real::Real;
use dash_testing::machine::root_for;
use dash_testing::names::{beside, exists};
use suite::damage::swap;
use suite::parts::Part;
use suite::peers::Session;
use suite::rights::{allow, give};
use suite::sql::run;

const OWNER: u32 = 2001;
const MEMBER: u32 = 2002;
const STRANGER: u32 = 2003;
const GROUP: u32 = 5000;

/// How many rows say what they are; as many pages.
const ROWS: &str = "SELECT count(*) FROM t WHERE v = 'honest'";

/// A pair at rest of `OWNER`'s, in a folder that everybody may write.
struct Place(tempfile::TempDir);

impl Place {
    fn new(bits: u32) -> Option<Self> {
        if !root_for("giving files away") {
            return None;
        }
        let place = Self(tempfile::tempdir().unwrap());
        allow(place.0.path(), 0o777);
        let db = suite::stock(&place.db());
        run(&db, "CREATE TABLE t(k INTEGER PRIMARY KEY, v, pad)");
        run(
            &db,
            "WITH RECURSIVE c(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM c WHERE n < 40) \
             INSERT INTO t SELECT n, 'honest', zeroblob(3000) FROM c",
        );
        drop(db);
        give(&place.db(), (OWNER, GROUP));
        allow(&place.db(), bits);
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

    fn db(&self) -> PathBuf {
        self.0.path().join("app.db")
    }

    fn shadow(&self) -> PathBuf {
        beside(&self.db(), "-shadow")
    }

    fn open(&self, user: Option<u32>, parameters: &str) -> Result<Session, String> {
        let group = user.map(|_| GROUP);
        Session::dash(&self.db(), Part { parameters, user, group, ..Part::default() })
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
        (0o644, (0, 0)),
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
