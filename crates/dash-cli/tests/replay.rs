//! `sqlite-dash replay`: whether what a log holds comes to the same again.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

use super::common::Home;
use rusqlite::limits::Limit;
use rusqlite::{Connection, params};
use serde_json::Value;

/// A database whose statements are recorded, with a table; the first commit is not in the log.
fn recording(home: &Home, more: &str) -> Connection {
    let db = home.recorded(more);
    db.execute_batch("CREATE TABLE t(id INTEGER PRIMARY KEY, a, b)").unwrap();
    db
}

fn insert(db: &Connection, number: i64) {
    db.execute("INSERT INTO t(a, b) VALUES (?, ?)", params![0.1 + 0.2, -number]).unwrap();
}

#[test]
fn a_replay_comes_to_the_same_or_says_why_not() {
    let home = Home::new();
    let db = recording(&home, "");
    for number in 0..20 {
        insert(&db, number);
    }
    db.execute_batch("BEGIN; UPDATE t SET b = b + 1; DELETE FROM t WHERE id % 3 = 0; COMMIT")
        .unwrap();
    let before = home.contents();
    let text = home.dash(&["replay", "app.db"]).is(0).out();
    assert!(text.contains("21 commits were run again: 21 came to the same pages"), "{text}");
    assert!(text.contains("20 of the commits provably replay"), "{text}");
    assert!(text.contains("1 may not: a statement is neither an INSERT of one row"), "{text}");
    let report = json(&home, &[], 0);
    assert_eq!((&report["provable"], &report["provable_same_pages"]), (&20.into(), &20.into()));
    assert_eq!(report["unprovable"], serde_json::json!({ "form": 1 }));
    assert_eq!(home.contents(), before, "it wrote something");
    db.execute_batch(
        "PRAGMA foreign_keys=ON; CREATE TABLE c(t REFERENCES t(id) ON DELETE CASCADE)",
    )
    .unwrap();
    db.execute_batch("INSERT INTO c VALUES (1); DELETE FROM t WHERE id = 1").unwrap();
    assert!(home.dash(&["replay", "app.db"]).is(0).out().contains("24 commits were run again"));
    db.execute("INSERT INTO t(a) VALUES (random())", []).unwrap();
    let after = home.as_killed();
    for home in [&home, &after] {
        let run = home.dash(&["replay", "app.db"]).is(1).out();
        assert!(run.contains("table t differs from its row"), "{run}");
        assert!(run.contains("random() answers something else each time"), "{run}");
        assert!(run.contains("25 commits were run again"), "{run}");
    }
}

/// Of commits that their statements carry the log has no page; `-wal` has them, until it is lost.
#[test]
fn commits_that_their_statements_carry_are_compared_with_the_wal() {
    let home = Home::new();
    dash_testing::extension::load();
    let parameters = "vfs=dash&journal_mode=statement&dash_commit=paper";
    let db = Connection::open(format!("file:{}?{parameters}", home.db().display())).unwrap();
    db.execute_batch("CREATE TABLE t(id INTEGER PRIMARY KEY, a, b)").unwrap();
    (0..3).for_each(|number| insert(&db, number));
    let len = || std::fs::metadata(home.file("app.db-wal")).unwrap().len();
    let before = len();
    (0..20).for_each(|number| insert(&db, number));
    let report = json(&home, &[], 0);
    let same = report["same_pages"].as_u64().unwrap();
    assert!(same >= 20 && report["carried"] == 0, "{report}");
    let lost = home.as_killed();
    let wal = std::fs::OpenOptions::new().write(true).open(lost.file("app.db-wal")).unwrap();
    wal.set_len(before).unwrap();
    let report = json(&lost, &[], 0);
    assert_eq!((&report["carried"], &report["same_pages"]), (&20.into(), &(same - 20).into()));
    let text = lost.dash(&["replay", "app.db"]).is(0).out();
    assert!(text.contains("20 commits were run again and compared with nothing"), "{text}");
}

#[test]
fn a_checkpoint_takes_the_base_along() {
    let home = Home::new();
    let db = recording(&home, "");
    let base = home.file("base.db");
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    std::fs::copy(home.db(), &base).unwrap();
    for number in 0..5 {
        insert(&db, number);
    }
    db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).unwrap();
    // Written from here on over the frames from before, or behind them if somebody reads.
    insert(&db, 9);
    let text = home.dash(&["replay", "app.db"]).is(0).out();
    assert!(text.contains("1 commits were run again: 1 came to the same pages"), "{text}");
    let other = Home::new();
    drop(other.plain());
    let run = other.dash(&["replay", "app.db"]).is(2);
    assert!(run.errors().contains("has no log"), "{}", run.errors());
}

/// What is told of its connection decides, too, not only its statements.
#[test]
fn a_transaction_is_not_provable_where_its_connection_had_more() {
    let home = Home::new();
    let db = recording(&home, "");
    insert(&db, 1);
    db.execute_batch("ATTACH ':memory:' AS other").unwrap();
    insert(&db, 2);
    db.execute_batch("DETACH other").unwrap();
    insert(&db, 3);
    db.set_limit(Limit::SQLITE_LIMIT_LENGTH, 1 << 20).unwrap();
    insert(&db, 4);
    db.execute_batch("CREATE TEMP TABLE other(x)").unwrap();
    insert(&db, 5);
    let report = json(&home, &[], 0);
    assert_eq!((&report["same_pages"], &report["provable"]), (&5.into(), &2.into()), "{report}");
    let expected = serde_json::json!({ "settings": 1, "other_database": 1, "temporary": 1 });
    assert_eq!(report["unprovable"], expected, "{report}");
}

fn checkpoint(db: &Connection) {
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
}

fn json(home: &Home, arguments: &[&str], code: i32) -> Value {
    let all = [&["replay", "app.db", "--json"], arguments].concat();
    serde_json::from_str(&home.dash(&all).is(code).out()).unwrap()
}

/// The first commit of a session is not in the log, and the copy lacks it.
#[test]
fn a_base_that_lacks_commits_is_completed_or_doubted() {
    let home = Home::new();
    let stock = home.plain();
    stock.query_row("PRAGMA journal_mode=WAL", [], |_| Ok(())).unwrap();
    drop(stock);
    std::fs::copy(home.db(), home.file("base.db")).unwrap();
    let db = home.recorded("");
    db.execute_batch("CREATE TABLE u(x)").unwrap();
    (0..5).for_each(|_| db.execute_batch("INSERT INTO u VALUES (1)").unwrap());
    let report = json(&home, &["--base", "base.db"], 0);
    assert_eq!((&report["same_pages"], &report["doubt"]), (&5.into(), &Value::Null), "{report}");
    checkpoint(&db);
    db.execute_batch("INSERT INTO u VALUES (2); INSERT INTO u VALUES (3)").unwrap();
    let report = json(&home, &["--base", "base.db"], 1);
    let reason = report["divergences"][0]["reason"].as_str().unwrap();
    assert!(reason.starts_with("base.db is not the file that the log began with"), "{report}");
    std::fs::write(home.file("base.db-wal"), "x").unwrap();
    home.dash(&["replay", "app.db", "--base", "base.db"]).is(2).says("has a -wal of its own");
    // The frames before the log's first one are gone.
    std::fs::remove_file(home.file("base.db-wal")).unwrap();
    let lost = home.as_killed();
    std::fs::remove_file(lost.file("app.db-wal")).unwrap();
    let report = json(&lost, &["--base", "base.db", "--all"], 1);
    let doubt = report["doubt"].as_str().unwrap();
    assert!(
        doubt.starts_with("base.db may lack commits that are not in the log: frames 1"),
        "{doubt}"
    );
}

#[test]
fn where_nothing_is_run_all_is_not_well() {
    let home = Home::new();
    let db = recording(&home, "&dash_statement_text=off");
    insert(&db, 1);
    home.dash(&["replay", "app.db"]).is(1).says("no commit was run again");
}

#[test]
fn commits_that_are_in_the_database_are_run_again_as_well() {
    let home = Home::new();
    let db = recording(&home, "");
    checkpoint(&db);
    std::fs::copy(home.db(), home.file("base.db")).unwrap();
    (0..4).for_each(|number| insert(&db, number));
    checkpoint(&db);
    let older = home.as_killed();
    // The first commit behind a checkpoint flushes -wal.
    (0..4).for_each(|number| insert(&db, number));
    drop(db);
    home.dash(&["replay", "app.db"]).is(2).says("--all, with a copy from before them as --base");
    home.dash(&["replay", "app.db", "--all"]).is(2).says("--base");
    let report = json(&older, &["--base", "base.db", "--all"], 0);
    assert_eq!((&report["same_pages"], &report["ended"]), (&4.into(), &Value::Null), "{report}");
    let report = json(&home, &["--base", "base.db", "--all"], 1);
    assert_eq!(report["same_pages"], 4, "{report}");
    let reason = report["ended"]["reason"].as_str().unwrap();
    assert!(reason.starts_with("frames 1 to 1 of -wal are not in the log"), "{report}");
}
