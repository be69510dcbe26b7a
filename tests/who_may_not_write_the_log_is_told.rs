//! A log that is there and may not be written: of another user's, or on a file system that is
//! mounted for reading. Such a connection got stock SQLite's WAL mode without a word, also where it
//! had asked for more; and left a file behind. It is told now, in three places, or refused.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

mod suite;

use std::fs;
use std::os::unix::fs::chown;
use std::path::PathBuf;

use dash_testing::machine::root_for;
use dash_testing::names::{beside, exists, names};
use suite::parts::Part;
use suite::peers::Session;
use suite::rights::allow;
use suite::sql::run;

const OWNER: u32 = 2001;
const MEMBER: u32 = 2002;
const GROUP: u32 = 5000;

/// A database that its owner's group may write, whose log only the owner may read; at rest.
struct Shared(tempfile::TempDir);

impl Shared {
    fn new() -> Option<Self> {
        if !root_for("becoming other users") {
            return None;
        }
        let shared = Self(tempfile::tempdir().unwrap());
        chown(shared.0.path(), Some(OWNER), Some(GROUP)).unwrap();
        allow(shared.0.path(), 0o775);
        run(&suite::stock(&shared.db()), "CREATE TABLE t(v)");
        run(&suite::stock(&shared.db()), "PRAGMA journal_mode=wal");
        chown(shared.db(), Some(OWNER), Some(GROUP)).unwrap();
        allow(&shared.db(), 0o664);
        let mut owner = shared.open(OWNER, "").unwrap();
        (0..12).for_each(|_| drop(owner.must("INSERT INTO t VALUES (1)")));
        owner.close();
        // Who may read it sees that nothing in it counts, and makes another one.
        allow(&shared.log(), 0o600);
        Some(shared)
    }

    fn db(&self) -> PathBuf {
        self.0.path().join("app.db")
    }

    fn log(&self) -> PathBuf {
        beside(&self.db(), "-dashlog")
    }

    fn open(&self, user: u32, parameters: &str) -> Result<Session, String> {
        let part = Part { parameters, user: Some(user), group: Some(GROUP), ..Part::default() };
        Session::dash(&self.db(), part)
    }

    fn is_at_rest(&self) {
        let mut found = names(self.0.path());
        found.sort();
        assert_eq!(found, ["app.db", "app.db-dashlog"]);
    }
}

fn statistic(session: &mut Session, name: &str) -> String {
    session.must(&format!("SELECT value FROM dash_stats WHERE name = '{name}'"))
}

#[test]
fn and_goes_on_as_with_stock_sqlite() {
    let Some(shared) = Shared::new() else { return };
    for parameters in ["", "&journal_mode=wal", "&dash_durability=host"] {
        let before = fs::read(shared.log()).unwrap();
        let mut member = shared.open(MEMBER, parameters).unwrap();
        let said = member.must("SELECT dash_last_error()");
        for word in ["app.db-dashlog", "without dash", "Permission denied", "owner, group"] {
            assert!(said.contains(word), "{parameters}: {said}");
        }
        assert!(!said.contains("  "), "{said}");
        assert_eq!(member.must("SELECT dash_engine()"), "plain");
        let reason = statistic(&mut member, "reason");
        assert!(reason.contains("app.db-dashlog"), "{reason}");
        for (level, durability) in [("FULL", "full"), ("NORMAL", "normal"), ("OFF", "off")] {
            member.must(&format!("PRAGMA synchronous={level}"));
            assert_eq!(statistic(&mut member, "durability"), durability);
        }
        member.must("INSERT INTO t VALUES (2)");
        member.close();
        assert_eq!(fs::read(shared.log()).unwrap(), before);
        shared.is_at_rest();
    }
    let mut owner = shared.open(OWNER, "").unwrap();
    assert_eq!(owner.must("SELECT count(*) FROM t"), "15");
    owner.close();
}

#[test]
fn or_is_refused_who_asks_for_more_than_that_gives() {
    let Some(shared) = Shared::new() else { return };
    for parameter in [
        "dash_durability=full",
        "dash_durability=device",
        "dash_read=durable",
        "dash_statements=on",
        "journal_mode=statement",
    ] {
        let refused = shared.open(MEMBER, &format!("&{parameter}")).err().unwrap();
        for word in [parameter, "can't be had here", "app.db-dashlog", "owner, group"] {
            assert!(refused.contains(word), "{refused}");
        }
        assert!(!refused.contains("  "), "{refused}");
        shared.is_at_rest();
    }
    // Who only reads loses nothing.
    let mut reader = shared.open(MEMBER, "&dash_durability=full&mode=ro").unwrap();
    assert_eq!(reader.must("SELECT count(*) FROM t"), "12");
    reader.close();
    // What it says helps.
    allow(&shared.log(), 0o664);
    let mut member = shared.open(MEMBER, "&dash_durability=full").unwrap();
    assert_eq!(member.must("SELECT dash_engine()"), "wal");
    assert_eq!(member.must("SELECT ifnull(dash_last_error(), 'nothing')"), "nothing");
    (0..12).for_each(|_| drop(member.must("INSERT INTO t VALUES (2)")));
    member.close();
}

/// While others use the log it can't be joined; it is read beside them, as stock SQLite does.
#[test]
fn also_while_others_use_it() {
    let Some(shared) = Shared::new() else { return };
    let mut owner = shared.open(OWNER, "").unwrap();
    (0..3).for_each(|_| drop(owner.must("INSERT INTO t VALUES (1)")));
    assert!(exists(&beside(&shared.db(), "-journal")), "a session is under way");
    // The owner has given it the database's permissions.
    allow(&shared.log(), 0o644);
    assert!(shared.open(MEMBER, "&dash_durability=full").is_err());
    let mut member = shared.open(MEMBER, "").unwrap();
    assert!(member.must("SELECT dash_last_error()").contains("without dash"));
    assert_eq!(member.must("SELECT count(*) FROM t"), "15");
    member.must("PRAGMA busy_timeout=0");
    let refused = member.sql("INSERT INTO t VALUES (2)").unwrap_err();
    assert!(refused.contains("locked"), "{refused}");
    // He may not look at the owner's process.
    let said = member.must("SELECT dash_last_error()");
    assert!(said.contains("app.db is locked: ") && said.contains("can't be seen"), "{said}");
    owner.must("INSERT INTO t VALUES (1)");
    assert_eq!(member.must("SELECT count(*) FROM t"), "16");
    member.close();
    owner.close();
}

/// Nobody else reads what a process has in memory: whoever has no right to write got "unable to
/// open database file", and no reason.
#[test]
fn so_is_who_may_only_read_beside_a_process_that_has_the_wal_in_memory() {
    const STRANGER: u32 = 2003;
    let Some(shared) = Shared::new() else { return };
    let mut owner = shared.open(OWNER, "&journal_mode=wal&dash_wal=memory").unwrap();
    owner.must("INSERT INTO t VALUES (2)");
    for parameters in ["", "&mode=ro", "&journal_mode=wal", "&journal_mode=wal&mode=ro"] {
        let part = Part { parameters, user: Some(STRANGER), ..Part::default() };
        let said = Session::dash(&shared.db(), part).err().unwrap_or_default();
        for word in ["locked", "dash_wal=memory", &format!("process {}", owner.id())] {
            assert!(said.contains(word), "{parameters:?}: no {word} in {said:?}");
        }
    }
}
