//! The contract with stock SQLite, last case: a stock process that had the file open before dash
//! took it over reads committed states, and can't write into an inode that is the shadow by now —
//! also with journal_mode=MEMORY or OFF, where SQLite never asks whether its file was moved (T13).

mod suite;

use std::path::Path;

use suite::peers::{Part, Session};
use suite::workload::{self, STATE};
use suite::{open, stock};

const JOURNALS: [&str; 5] = ["DELETE", "TRUNCATE", "PERSIST", "MEMORY", "OFF"];

/// A database that only stock SQLite has seen, in state 0.
fn made(path: &Path) {
    let db = stock(path);
    workload::make(&db);
    db.execute_batch("CREATE TABLE foreign_rows(a)").expect("commits");
    db.close().expect("closes");
}

/// A stock process in `journal` mode that has read and written.
fn early(path: &Path, journal: &str) -> Session {
    let mut stock = Session::stock(path);
    stock.must(&format!("PRAGMA journal_mode={journal}"));
    stock.must("INSERT INTO foreign_rows VALUES (1)");
    assert_eq!(workload::number(&stock.must(STATE)), 0);
    stock
}

fn refused(stock: &mut Session, what: &str) {
    for sql in
        ["DELETE FROM log", "INSERT INTO foreign_rows VALUES (2)", "UPDATE spread SET n = -3"]
    {
        let error = stock.sql(sql).expect_err(what);
        assert!(
            ["database is locked", "attempt to write a readonly database"]
                .contains(&error.as_str()),
            "{what}: {error}"
        );
    }
}

#[test]
fn it_reads_committed_states_and_its_writes_are_refused() {
    for journal in JOURNALS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        made(&path);
        let mut stocks = [early(&path, journal), early(&path, journal)];
        let dash = open(&path);
        assert_eq!(workload::state(&dash), 0, "{journal}");
        let mut last = 0;
        for commits in 0..7 {
            for stock in &mut stocks {
                refused(stock, &format!("{journal}, {commits} commits"));
                let state = workload::number(&stock.must(STATE));
                assert!(
                    (commits - 1..=commits).contains(&state),
                    "{journal}: {state} of {commits}"
                );
                assert!(state >= last - 1, "{journal}: from {last} back to {state}");
                last = last.max(state);
                assert_eq!(stock.must("PRAGMA integrity_check"), "ok");
            }
            assert_eq!(workload::commit_next(&dash).unwrap(), commits + 1, "{journal}");
            assert_eq!(workload::state(&dash), commits + 1, "{journal}");
        }
        assert_eq!(suite::one::<i64>(&dash, "SELECT count(*) FROM foreign_rows"), 2);
    }
}

#[test]
fn it_may_not_write_into_the_shadow_after_dash_has_gone() {
    for journal in JOURNALS {
        for commits in 1..=4 {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("app.db");
            made(&path);
            let mut early = early(&path, journal);
            let dash = open(&path);
            workload::commit_next(&dash).unwrap();
            // Who opens the other file keeps the name from going back to the first one (SHADOW-16).
            let mut late = Session::stock(&path);
            late.must(STATE);
            for _ in 1..commits {
                workload::commit_next(&dash).unwrap();
            }
            dash.close().unwrap();
            let what = format!("{journal} after {commits} commits");
            // An odd number: its inode is the shadow now. An even one: the later one's is.
            for stock in [&mut early, &mut late] {
                let refused = stock.sql("INSERT INTO foreign_rows VALUES (2)").expect_err(&what);
                assert!(refused.contains("readonly"), "{what}: {refused}");
            }
            drop((early, late));
            let dash = open(&path);
            assert_eq!(workload::state(&dash), commits, "{what}");
            let rows = suite::one::<i64>(&dash, "SELECT count(*) FROM foreign_rows");
            assert_eq!(rows, 1, "{what}");
            for more in 1..=3 {
                assert_eq!(workload::commit_next(&dash).unwrap(), commits + more, "{what}");
            }
            assert_eq!(workload::state(&dash), commits + 3, "{what}");
        }
    }
}

#[test]
fn its_read_transaction_may_stay_open_while_dash_commits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    made(&path);
    let mut early = early(&path, "DELETE");
    early.must("BEGIN");
    assert_eq!(workload::number(&early.must(STATE)), 0);
    let mut dash = Session::dash(&path, Part::default()).unwrap();
    // The first commit goes to the new shadow; the second one needs the file that is being read.
    dash.must("UPDATE spread SET n = 1");
    assert_eq!(dash.sql("INSERT INTO log VALUES (1, 0)").unwrap_err(), "database is locked");
    assert_eq!(workload::number(&early.must(STATE)), 0);
    early.must("COMMIT");
    dash.must("PRAGMA busy_timeout=5000");
    dash.must("INSERT INTO log VALUES (1, 0)");
    assert_eq!(workload::number(&dash.must(STATE)), 1);
    assert_eq!(workload::number(&early.must(STATE)), 1);
}

#[test]
fn a_write_transaction_of_its_own_keeps_dash_out() {
    for journal in JOURNALS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        made(&path);
        let mut early = early(&path, journal);
        early.must("BEGIN IMMEDIATE");
        early.must("INSERT INTO foreign_rows VALUES (2)");
        let error = Session::dash(&path, Part::default()).err().unwrap();
        assert!(error.contains("locked"), "{journal}: {error}");
        early.must("COMMIT");
        let dash = open(&path);
        assert_eq!(suite::one::<i64>(&dash, "SELECT count(*) FROM foreign_rows"), 2, "{journal}");
        assert_eq!(workload::commit_next(&dash).unwrap(), 1);
        assert_eq!(workload::state(&dash), 1, "{journal}");
    }
}

#[test]
fn nor_in_a_database_too_large_to_be_compared_as_a_whole() {
    // A new shadow's intent covers 64 MiB at most; a foreign write beyond it is not seen by
    // comparing.
    for journal in ["DELETE", "MEMORY"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        let db = stock(&path);
        db.execute_batch(
            "CREATE TABLE t(id INTEGER PRIMARY KEY, n, pad); \
             WITH RECURSIVE i(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM i WHERE x < 9000) \
             INSERT INTO t SELECT x, 0, zeroblob(8000) FROM i",
        )
        .unwrap();
        db.close().unwrap();
        let mut early = Session::stock(&path);
        early.must(&format!("PRAGMA journal_mode={journal}"));
        early.must("SELECT n FROM t WHERE id BETWEEN 4500 AND 4510");
        let dash = open(&path);
        dash.execute_batch("UPDATE t SET n = 1 WHERE id = 1").unwrap();
        let mut late = Session::stock(&path);
        late.must("SELECT n FROM t WHERE id = 1");
        dash.close().unwrap();
        let written = early.sql("UPDATE t SET n = 1000 WHERE id = 4505");
        drop((early, late));
        let dash = open(&path);
        let first = suite::one::<i64>(&dash, "SELECT sum(n) FROM t");
        for more in 1..=4 {
            dash.execute("UPDATE t SET n = 1 WHERE id = 1 + ?", [more]).unwrap();
            let sum = suite::one::<i64>(&dash, "SELECT sum(n) FROM t");
            assert_eq!(
                sum,
                first + more,
                "{journal}: the copies differ; the write beside dash: {written:?}"
            );
        }
        assert!(written.is_err(), "{journal}: it wrote into the shadow");
    }
}

/// The fence that keeps others out keeps it out, too, whichever of the two files it has open.
#[test]
fn after_dash_was_killed_it_waits_like_any_other() {
    for commits in 1..5 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        made(&path);
        let mut early = early(&path, "delete");
        let mut dash = Session::dash(&path, Part::default()).expect("opens");
        for _ in 0..=commits {
            dash.must("INSERT INTO foreign_rows VALUES (2)");
        }
        dash.kill();
        assert_eq!(early.sql(STATE), Err("disk I/O error".to_owned()), "{commits}");
        assert!(early.sql("INSERT INTO foreign_rows VALUES (3)").is_err(), "{commits}");
        early.close();
        suite::check(&open(&path));
        let mut stock = Session::stock(&path);
        let rows = stock.must("SELECT count(*) FROM foreign_rows");
        assert_eq!(rows, (1 + 1 + commits).to_string());
        stock.must("INSERT INTO foreign_rows VALUES (4)");
    }
}
