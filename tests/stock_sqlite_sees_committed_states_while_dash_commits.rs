//! The contract with stock SQLite, second row: while dash has the file open and commits, a stock
//! reader sees committed states, one that opened the file long ago may lag but never sees a mix,
//! and a stock writer is told that the database is locked.

mod suite;

use std::path::Path;
use std::time::{Duration, Instant};

use dash_testing::machine::has_sqlite3;
use suite::peers::{Part, Session, Writer, sqlite3};
use suite::workload::{self, STATE};
use suite::{check, one, open};

/// How long each of the loops runs.
const WHILE: Duration = Duration::from_secs(3);

fn made(path: &Path) {
    let db = open(path);
    workload::make(&db);
    db.close().expect("closes");
}

/// The state and the integrity in one read transaction, so that no commit can come between.
fn state_in(stock: &mut Session) -> i64 {
    stock.must("BEGIN");
    let state = workload::number(&stock.must(STATE));
    assert_eq!(stock.must("PRAGMA integrity_check"), "ok");
    stock.must("COMMIT");
    state
}

fn long_open_reader(parameters: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.db");
    made(&path);
    let mut before = Session::stock(&path);
    before.must("PRAGMA busy_timeout=10000");
    assert_eq!(state_in(&mut before), 0);
    let mut writer = Writer::start(&path, Part { parameters, ..Part::default() });
    writer.reaches(3);
    let mut during = Session::stock(&path);
    during.must("PRAGMA busy_timeout=10000");
    let (begun, mut seen, mut reads) = (Instant::now(), [0, 0], 0);
    while begun.elapsed() < WHILE {
        for (stock, last) in [&mut before, &mut during].into_iter().zip(&mut seen) {
            let state = state_in(stock);
            assert!(state >= *last, "went back from {last} to {state}");
            *last = state;
            reads += 1;
        }
    }
    let acknowledged = writer.kill();
    assert!(acknowledged > 20 && reads > 20, "{acknowledged} commits, {reads} reads");
    // The one that came while dash was there follows every second commit at least.
    assert!(seen[1] > 3, "{seen:?} of {acknowledged}");
}

#[test]
fn a_connection_opened_long_ago_may_lag_but_never_sees_a_mix() {
    long_open_reader("");
}

#[test]
fn nor_does_it_under_the_protocol_of_the_paper() {
    long_open_reader("&dash_commit=paper");
}

#[test]
fn a_fresh_process_sees_everything_that_was_acknowledged_before_it_began() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    made(&path);
    let mut writer = Writer::start(&path, Part::default());
    writer.reaches(2);
    let sql = format!("PRAGMA busy_timeout=10000; BEGIN; {STATE}; PRAGMA integrity_check; COMMIT");
    if !has_sqlite3() {
        return;
    }
    let begun = Instant::now();
    let mut runs = 0;
    while begun.elapsed() < WHILE {
        let floor = writer.acknowledged();
        let answer =
            sqlite3(&path, &sql).unwrap_or_else(|error| panic!("after {runs} runs: {error}"));
        let lines: Vec<_> = answer.lines().collect();
        assert_eq!(lines[2], "ok");
        let state = workload::number(lines[1]);
        assert!(state >= floor, "read {state} after {floor} was acknowledged");
        runs += 1;
    }
    assert!(runs > 20 && writer.kill() > 20, "{runs} runs");
}

#[test]
fn a_stock_writer_is_told_that_the_database_is_locked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    made(&path);
    let mut before = Session::stock(&path);
    before.must("SELECT count(*) FROM log");
    // Open and idle: from the first moment.
    let dash = Session::dash(&path, Part::default()).unwrap();
    let mut fresh = Session::stock(&path);
    for stock in [&mut fresh, &mut before] {
        assert_eq!(stock.sql("INSERT INTO log VALUES (-5, 0)").unwrap_err(), "database is locked");
        assert_eq!(stock.sql("BEGIN EXCLUSIVE").unwrap_err(), "database is locked");
        assert_eq!(stock.sql("VACUUM").unwrap_err(), "database is locked");
        assert_eq!(workload::number(&stock.must(STATE)), 0);
    }
    // And while it commits.
    let mut writer = Writer::start(&path, Part::default());
    writer.reaches(2);
    let begun = Instant::now();
    let mut refused = 0;
    while begun.elapsed() < WHILE / 2 {
        for stock in [&mut Session::stock(&path), &mut before] {
            let error = stock.sql("DELETE FROM spread").unwrap_err();
            let old = error == "attempt to write a readonly database"; // opened before the last commit
            assert!(error == "database is locked" || old, "{error}");
            refused += 1;
        }
    }
    let acknowledged = writer.kill();
    assert!(acknowledged > 10 && refused > 5, "{acknowledged} commits, {refused} refusals");
    dash.close();
    let db = open(&path);
    let state = workload::state(&db);
    assert!((acknowledged..=acknowledged + 1).contains(&state), "{state} of {acknowledged}");
}

#[test]
fn a_stock_writer_that_was_first_keeps_dash_out_until_it_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    made(&path);
    let mut stock = Session::stock(&path);
    stock.must("BEGIN IMMEDIATE");
    stock.must("INSERT INTO log VALUES (1, 0)");
    let error = Session::dash(&path, Part::default()).err().unwrap();
    assert!(error.contains("locked"), "{error}");
    stock.must("UPDATE spread SET n = 1");
    stock.must("COMMIT");
    let db = open(&path);
    assert_eq!(workload::state(&db), 1);
    workload::commit_next(&db).unwrap();
    assert_eq!(one::<i64>(&db, "SELECT count(*) FROM log"), 2);
    check(&db);
}
