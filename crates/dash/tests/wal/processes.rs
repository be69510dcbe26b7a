//! Other processes, stock SQLite's among them, and processes that are killed.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use dash_testing::machine::has_sqlite3;
use dash_testing::roles::{Role, role, say};

use crate::common::*;
use crate::{at_rest, beside, create};

/// A database stays in mode shadow whatever it was left in.
const SHADOW: &str = "&dash_default=shadow";
const ROLE: &str = "processes::a_process_in_mode_wal";

#[test]
#[ignore = "a role of the tests below"]
fn a_process_in_mode_wal() {
    let Some(argument) = role(ROLE) else { return };
    let (what, folder) = argument.split_once(' ').expect("two words");
    register();
    let db = Connection::open(uri(&Path::new(folder).join("app.db"), "dash", "")).expect("opens");
    db.busy_timeout(Duration::from_secs(20)).expect("sets");
    if what == "starts" {
        say("opened", "");
        dash_testing::roles::told();
        say("mode", text(&db, "PRAGMA journal_mode=WAL"));
        dash_testing::roles::told();
        return;
    }
    if what == "idles" {
        say("acknowledged", 0);
        while dash_testing::roles::told().is_some() {
            db.execute_batch("INSERT INTO t VALUES (0)").expect("commits");
            say("acknowledged", number(&db, "SELECT count(*) FROM t"));
        }
        return;
    }
    let first = number(&db, "SELECT ifnull(max(x), 0) FROM t") + 1;
    let modes = [
        "wal",
        "delete",
        "wal",
        "shadow",
        "wal",
        "persist",
        "shadow",
        "delete",
        "shadow",
        "statement",
        "wal",
        "statement",
        "delete",
        "statement",
        "shadow",
    ];
    for (round, mode) in (first..).zip(modes.into_iter().cycle()) {
        if what == "switches" {
            let answer = text(&db, &format!("PRAGMA journal_mode={mode}"));
            assert_eq!(answer, mode, "{}", last_error(&db));
        }
        if let Err(error) = db.execute("INSERT INTO t VALUES (?)", [round]) {
            panic!("{error}: {}", last_error(&db));
        }
        say("acknowledged", round);
    }
}

pub(crate) fn start(folder: &Folder, what: &str) -> Role {
    Role::start(ROLE, format!("{what} {}", folder.path(".").display()))
}

/// Kills the process some time after some commits; answers the last one it had acknowledged.
pub(crate) fn kill_after(mut child: Role, commits: usize, more: Duration) -> i64 {
    let mut said = String::new();
    for _ in 0..commits {
        said = child.hear("acknowledged");
    }
    std::thread::sleep(more);
    // What it still said before it died was acknowledged, too.
    child.kill_and_hear("acknowledged").pop().unwrap_or(said).parse().expect("a number")
}

/// What holds after a kill; the database is in whatever mode it is.
fn nothing_is_lost(folder: &Folder, last: i64) -> String {
    let db = folder.open("app.db");
    let found = number(&db, "SELECT max(x) FROM t");
    assert!(found == last || found == last + 1, "{last} acknowledged, {found} found");
    assert_eq!(number(&db, "SELECT count(*) FROM t"), found);
    whole(&db);
    let engine = text(&db, "SELECT dash_engine()");
    db.close().expect("closes");
    let stock = folder.stock("app.db");
    assert_eq!(number(&stock, "SELECT count(*) FROM t"), found, "{engine}");
    whole(&stock);
    engine
}

/// Workers of a server, on a file that has been there.
#[test]
fn processes_that_start_together_all_get_the_mode_that_they_say() {
    for _ in 0..5 {
        let folder = Folder::new();
        folder.stock("app.db").execute_batch("CREATE TABLE t(x)").expect("makes");
        let mut workers: Vec<_> = (0..6).map(|_| start(&folder, "starts")).collect();
        for worker in &mut workers {
            worker.hear("opened");
        }
        for worker in &mut workers {
            worker.tell("go");
        }
        for worker in &mut workers {
            assert_eq!(worker.hear("mode"), "wal");
        }
        drop(workers);
    }
}

#[test]
fn every_acknowledged_commit_survives_a_kill() {
    let folder = Folder::new();
    create(&folder, "app.db").execute_batch("CREATE TABLE t(x)").expect("commits");
    for round in 0..10 {
        let more = Duration::from_micros(700 * round);
        let last = kill_after(start(&folder, "commits"), 1 + 40 * (round % 4) as usize, more);
        assert_eq!(nothing_is_lost(&folder, last), "wal");
        at_rest(&folder, "app.db");
    }
}

#[test]
fn a_change_of_the_mode_may_be_cut_off_anywhere() {
    let folder = Folder::new();
    folder.open("app.db").execute_batch("CREATE TABLE t(x)").expect("commits");
    let mut found = std::collections::BTreeSet::new();
    for round in 0..30_u64 {
        let more = Duration::from_micros(round * 7919 % 12_000);
        let last = kill_after(start(&folder, "switches"), 1 + (round % 9) as usize, more);
        found.insert(nothing_is_lost(&folder, last));
    }
    assert!(found.contains("wal") && found.contains("shadow"), "{found:?}");
}

#[test]
fn processes_come_and_go_while_others_commit() {
    let folder = Folder::new();
    let db = create(&folder, "app.db");
    db.busy_timeout(Duration::from_secs(20)).expect("sets");
    db.execute_batch("CREATE TABLE t(x); CREATE TABLE own(x)").expect("commits");
    for _ in 0..4 {
        let children = [start(&folder, "commits"), start(&folder, "commits")];
        for x in 0..50 {
            db.execute("INSERT INTO own VALUES (?)", [x]).expect("waits for its turn");
        }
        for child in children {
            kill_after(child, 1, Duration::ZERO);
        }
    }
    assert_eq!(number(&db, "SELECT count(*) FROM own"), 200);
    whole(&db);
    db.close().expect("closes");
    at_rest(&folder, "app.db");
}

/// One that is idle has no lock by which SQLite could tell.
#[test]
fn the_mode_changes_as_far_as_an_idle_process_lets_it() {
    for (to, then) in [("delete", "delete"), ("shadow", "delete")] {
        let folder = Folder::new();
        create(&folder, "app.db").execute_batch("CREATE TABLE t(x)").expect("commits");
        let mut idle = start(&folder, "idles");
        idle.hear("acknowledged");
        let db = folder.open("app.db");
        db.execute_batch("INSERT INTO t VALUES (1)").expect("commits");
        let changed = db.query_row(&format!("PRAGMA journal_mode={to}"), [], |row| row.get(0));
        match changed {
            Ok(mode) => assert_eq!((to, mode), (then, then.to_owned())),
            Err(error) => assert!(to == "shadow" && !error.to_string().is_empty(), "{error}"),
        }
        assert_eq!(text(&db, "PRAGMA journal_mode"), then);
        assert_eq!(text(&db, "SELECT dash_engine()"), "plain");
        for rows in [3, 5] {
            db.execute_batch("INSERT INTO t VALUES (1)").expect("commits");
            idle.tell("go on");
            assert_eq!(idle.hear("acknowledged"), rows.to_string());
        }
        idle.kill();
        whole(&db);
        assert_eq!(number(&db, "SELECT count(*) FROM t"), 5, "{to}");
    }
}

fn sqlite3(folder: &Folder, sql: &str) -> (String, String) {
    let output = Command::new("sqlite3").arg(folder.path("app.db")).arg(sql).output();
    let output = output.expect("runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text").trim().to_owned();
    (text(output.stdout), text(output.stderr))
}

#[test]
fn the_sqlite3_of_the_system_reads_live_and_may_not_write() {
    if !has_sqlite3() {
        return;
    }
    let folder = Folder::new();
    let db = create(&folder, "app.db");
    db.execute_batch("CREATE TABLE t(x)").expect("commits");
    for x in 1..=20 {
        db.execute("INSERT INTO t VALUES (?)", [x]).expect("commits");
        if x % 5 == 0 {
            let sum = (x * (x + 1) / 2).to_string();
            assert_eq!(sqlite3(&folder, "SELECT sum(x) FROM t").0, sum);
            for write in ["INSERT INTO t VALUES (0)", "BEGIN IMMEDIATE", "VACUUM"] {
                let (_, said) = sqlite3(&folder, write);
                assert!(said.contains("locked"), "{write}: {said}");
            }
            db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").expect("checkpoints");
        }
    }
    assert_eq!(sqlite3(&folder, "PRAGMA integrity_check").0, "ok");
    db.close().expect("closes");
    at_rest(&folder, "app.db");
    let (said, _) =
        sqlite3(&folder, "INSERT INTO t VALUES (0); PRAGMA journal_mode; SELECT sum(x) FROM t");
    assert_eq!(said, "wal\n210");
}

#[test]
fn after_a_kill_stock_sqlite_waits_for_dash() {
    if !has_sqlite3() {
        return;
    }
    for parameters in ["&mode=ro", "&journal_mode=delete", "&journal_mode=shadow", SHADOW, ""] {
        let folder = Folder::new();
        create(&folder, "app.db").execute_batch("CREATE TABLE t(x)").expect("commits");
        let last = kill_after(start(&folder, "commits"), 30, Duration::ZERO);
        let left = beside(&folder, "app.db");
        assert!(left.contains(&"app.db-journal".to_owned()), "no fence: {left:?}");
        for sql in ["SELECT count(*) FROM t", "INSERT INTO t VALUES (0)"] {
            let (said, error) = sqlite3(&folder, sql);
            assert!(said.is_empty() && !error.is_empty(), "{sql}: {said} {error}");
        }
        // A connection of dash's that leaves it to stock SQLite has it recovered before.
        let db = folder.try_open("app.db", parameters).unwrap_or_else(|error| {
            let scratch = Connection::open_in_memory().expect("opens");
            panic!("{parameters}: {error}: {}", last_error(&scratch))
        });
        assert!(number(&db, "SELECT max(x) FROM t") >= last, "{parameters}");
        whole(&db);
        drop(db);
        assert!(!folder.exists("app.db-journal"), "{parameters}");
        let (said, error) = sqlite3(&folder, "SELECT max(x) FROM t");
        assert!(said.parse::<i64>().is_ok_and(|found| found >= last), "{parameters}: {error}");
    }
}
