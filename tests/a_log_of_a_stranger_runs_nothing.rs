//! What carries commits by statements is run by whoever opens the database next. A log of somebody
//! who may make files beside a database, and not write it, was run like the database's own: by
//! root, too. Now it counts only if it belongs to somebody who may write the database, and nobody
//! of those is ever refused (WAL-48). SEC S2-8.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

mod suite;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use dash_storage::real::Real;
use dash_testing::names::{beside, exists};
use dash_testing::{Need, skip};
use dash_wal::history::History;
use dash_wal::inspect::{Opening, Refusal, inspect};
use suite::rights::{self, Entry, allow, encode, give};
use suite::strangers::{GROUP, MEMBER, OWNER, Place, STRANGER};

const PAPER: &str = "&journal_mode=statement&dash_commit=paper&dash_rest=off";

impl Place {
    fn new(bits: u32) -> Option<Self> {
        Self::made(bits, "CREATE TABLE t(k INTEGER PRIMARY KEY, v); PRAGMA journal_mode=wal")
    }

    /// One whose last commits were in memory alone when the power was lost, but for their
    /// statements in the log.
    fn cut_off(bits: u32) -> Option<Self> {
        let place = Self::new(bits)?;
        let mut session = place.open(None, PAPER).unwrap();
        session.must("PRAGMA synchronous=FULL");
        for number in 0..12 {
            session.must(&format!("INSERT INTO t VALUES ({number}, 'x')"));
        }
        assert_ne!(session.must("SELECT value FROM dash_stats WHERE name = 'carried'"), "0");
        session.kill();
        let history = History::read(&Real, &place.db()).unwrap().unwrap();
        let (_, page, first) = history.window().unwrap();
        let wal = fs::OpenOptions::new().write(true).open(beside(&place.db(), "-wal")).unwrap();
        wal.set_len(32 + u64::from(first - 1) * (u64::from(page) + 24)).unwrap();
        for name in ["-dash", "-shm"] {
            fs::remove_file(beside(&place.db(), name)).unwrap();
        }
        Some(place)
    }

    fn log(&self) -> PathBuf {
        beside(&self.db(), "-dashlog")
    }

    /// All rows are there.
    fn has_all(&self, what: &str) {
        for user in [None, Some(OWNER)] {
            let mut session = self.open(user, "").unwrap_or_else(|why| panic!("{what}: {why}"));
            assert_eq!(session.must("SELECT count(*) FROM t"), "12", "{what}");
            session.close();
        }
    }

    fn is_refused(&self, (user, group): (u32, u32), what: &str) {
        let read = |name| fs::read(beside(&self.db(), name)).unwrap();
        let before = [read(""), read("-dashlog")];
        for opener in [None, Some(OWNER)] {
            for parameters in ["", PAPER] {
                let why = self.open(opener, parameters).err();
                let why = why.unwrap_or_else(|| panic!("{what}: {opener:?} {parameters} opens"));
                let whose = format!("belongs to user {user}, group {group}, and neither may write");
                assert!(why.contains(&whose), "{what}: {why}");
                assert!(why.contains("sqlite-dash recover app.db --discard"), "{what}: {why}");
            }
        }
        // Who only reads goes by stock SQLite's rules.
        let mut reader = self.open(Some(OWNER), "&mode=ro").unwrap();
        assert_ne!(reader.sql("SELECT count(*) FROM t").as_deref(), Ok("12"), "{what}");
        reader.close();
        assert_eq!([read(""), read("-dashlog")], before, "{what}");
        let log = fs::metadata(self.log()).unwrap();
        assert_eq!((log.uid(), log.gid()), (user, group), "{what}: it is given to nobody");
        let seen = inspect(&Real, &self.db()).unwrap();
        assert!(matches!(seen.opening, Opening::Refuse(Refusal::Stranger, _)), "{seen:?}");
        let whose = seen.log.unwrap().unwrap().whose;
        assert_eq!((whose.owner, whose.group, whose.counts), (user, group, false));
    }
}

#[test]
fn until_it_is_given_to_who_may_write_the_database() {
    for (bits, whose) in [
        (0o644, (STRANGER, STRANGER)),
        (0o644, (MEMBER, GROUP)),
        (0o664, (STRANGER, STRANGER)),
        (0o664, (MEMBER, MEMBER)),
    ] {
        let Some(place) = Place::cut_off(bits) else { return };
        give(&place.log(), whose);
        allow(&place.log(), 0o666);
        place.is_refused(whose, &format!("{bits:o} {whose:?}"));
        give(&place.log(), (OWNER, GROUP));
        place.has_all("given back");
    }
}

#[test]
fn but_everybody_who_may_write_the_database() {
    for (bits, whose) in [
        (0o600, (OWNER, OWNER)),
        (0o644, (OWNER, GROUP)),
        // Where nobody could give it to the owner.
        (0o644, (0, 0)),
        (0o664, (MEMBER, GROUP)),
        (0o666, (STRANGER, STRANGER)),
    ] {
        let Some(place) = Place::cut_off(bits) else { return };
        give(&place.log(), whose);
        allow(&place.log(), 0o666);
        place.has_all(&format!("{bits:o} {whose:?}"));
    }
}

/// With a list the bits of the group are the most that some of its entries give.
#[test]
fn as_an_access_control_list_says() {
    let list = |of_group| -> [Entry; 5] {
        [
            (rights::OWNER, 6, u32::MAX),
            (rights::USER, 6, STRANGER),
            (rights::GROUP, of_group, u32::MAX),
            (rights::MASK, 6, u32::MAX),
            (rights::OTHERS, 0, u32::MAX),
        ]
    };
    for (of_group, whose, counts) in
        [(4, (STRANGER, STRANGER), true), (4, (MEMBER, GROUP), false), (6, (MEMBER, GROUP), true)]
    {
        let Some(place) = Place::cut_off(0o660) else { return };
        if xattr::set(place.db(), rights::LIST, &encode(&list(of_group))).is_err() {
            return skip(Need::Lists, "this file system has no access control lists");
        }
        give(&place.log(), whose);
        match counts {
            true => place.has_all(&format!("{of_group} {whose:?}")),
            false => place.is_refused(whose, &format!("{of_group} {whose:?}")),
        }
    }
}

/// Who planted a log at rest may have it open: it is neither given to the owner, who would run what
/// is written there later, nor used.
#[test]
fn nor_is_one_used_that_was_planted_at_rest() {
    let Some(place) = Place::new(0o664) else { return };
    let mut session = place.open(None, PAPER).unwrap();
    (0..12).for_each(|_| drop(session.must("INSERT INTO t(v) VALUES ('x')")));
    session.close();
    assert!(exists(&place.log()));
    give(&place.log(), (STRANGER, STRANGER));
    allow(&place.log(), 0o666);
    let planted = fs::File::open(place.log()).unwrap();
    for user in [None, Some(OWNER), Some(MEMBER)] {
        let mut session = place.open(user, PAPER).unwrap();
        (0..12).for_each(|_| drop(session.must("INSERT INTO t(v) VALUES ('x')")));
        assert_ne!(session.must("SELECT value FROM dash_stats WHERE name = 'carried'"), "0");
        session.close();
        let [now, before] = [fs::metadata(place.log()).unwrap(), planted.metadata().unwrap()];
        assert_eq!((now.uid(), now.gid(), now.mode() & 0o777), (OWNER, GROUP, 0o664));
        assert_ne!(now.ino(), before.ino());
        assert_eq!((before.uid(), before.gid(), before.nlink()), (STRANGER, STRANGER, 0));
    }
}

/// Where it can't be removed it is not used either: commits become durable by a flush of `-wal`.
#[test]
fn nor_one_that_stays_where_it_was_planted() {
    const SECRET: &str = "INSERT INTO t(v) VALUES ('a secret')";
    for mode in ["&journal_mode=wal", PAPER, "&journal_mode=wal&dash_wal=memory"] {
        let Some(place) = Place::new(0o600) else { return };
        let mut session = place.open(Some(OWNER), mode).unwrap();
        (0..12).for_each(|_| drop(session.must("INSERT INTO t(v) VALUES ('x')")));
        session.close();
        give(&place.log(), (STRANGER, STRANGER));
        allow(&place.log(), 0o666);
        allow(place.0.path(), 0o1777);
        let before = fs::read(place.log()).unwrap();
        let mut session = place.open(Some(OWNER), mode).unwrap();
        (0..12).for_each(|_| drop(session.must(SECRET)));
        let why = session.must("SELECT dash_last_error()");
        let whose = format!("app.db-dashlog: it belongs to user {STRANGER}, who has no right to");
        assert!(why.contains(&whose), "{mode}: {why}");
        assert_eq!(fs::read(place.log()).unwrap(), before, "{mode}");
        session.kill();
        let mut session = place.open(Some(OWNER), mode).unwrap();
        assert_eq!(session.must("SELECT count(*) FROM t"), "24", "{mode}");
        session.close();
        assert_eq!(fs::read(place.log()).unwrap(), before, "{mode}");
    }
}
