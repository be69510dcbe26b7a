//! `sqlite3_backup` between dash and plain files, both ways: into empty, larger and smaller
//! targets, and ones with another page size; step by step while the source is written; given up
//! half-way (T15, T21).

mod suite;

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use suite::sql::{at_rest, content, run};

const ROWS: &str = "SELECT * FROM t ORDER BY id";

fn fill(db: &Connection, page_size: i64, rows: u32) {
    run(
        db,
        &format!(
            "PRAGMA page_size = {page_size};
             CREATE TABLE t(id INTEGER PRIMARY KEY, data); CREATE INDEX t_data ON t(data);
             WITH n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
             INSERT INTO t SELECT i, randomblob(300) FROM n;"
        ),
    );
}

fn copy(from: &Connection, to: &mut Connection, step: i32) {
    let backup = Backup::new(from, to).expect("begins");
    backup.run_to_completion(step, Duration::ZERO, None).expect("completes");
}

/// Opens through dash or as stock SQLite.
fn opened(path: &Path, dash: bool) -> Connection {
    if dash { suite::open(path) } else { suite::stock(path) }
}

#[test]
fn into_targets_of_every_kind() {
    for (from_dash, to_dash) in [(true, true), (true, false), (false, true)] {
        // Rows and page size of what the target holds before; None: no file.
        for target in
            [None, Some((20, 4096)), (Some((3000, 4096))), Some((500, 1024)), Some((500, 65536))]
        {
            for step in [3, 10_000] {
                let folder = tempfile::tempdir().unwrap();
                let (source, path) =
                    (folder.path().join("source.db"), folder.path().join("target.db"));
                let from = opened(&source, from_dash);
                fill(&from, 4096, 400);
                let mut to = opened(&path, to_dash);
                if let Some((rows, page_size)) = target {
                    fill(&to, page_size, rows);
                }
                let case = format!("dash {from_dash} to {to_dash}, {target:?}, step {step}");
                let watching = opened(&path, to_dash);
                suite::one::<i64>(&watching, "SELECT count(*) FROM sqlite_schema");
                copy(&from, &mut to, step);
                let rows = content(&from, ROWS);
                for db in [&to, &watching] {
                    assert_eq!(content(db, ROWS), rows, "{case}");
                    assert_eq!(suite::one::<i64>(db, "PRAGMA page_size"), 4096, "{case}");
                    suite::check(db);
                }
                // The copy lives on by itself.
                run(&watching, "DELETE FROM t WHERE id < 50");
                let rows = content(&watching, ROWS);
                drop((to, watching));
                assert_eq!(content(&at_rest(&path), ROWS), rows, "{case}");
                run(&from, "INSERT INTO t(data) VALUES (1)");
                suite::check(&from);
            }
        }
    }
}

#[test]
fn while_the_source_is_written() {
    for to_dash in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let (source, path) = (folder.path().join("source.db"), folder.path().join("target.db"));
        let (from, writer) = (suite::open(&source), suite::open(&source));
        fill(&from, 4096, 400);
        let mut to = opened(&path, to_dash);
        {
            let backup = Backup::new(&from, &mut to).unwrap();
            for round in 0..5 {
                assert_eq!(backup.step(5).unwrap(), StepResult::More);
                // Another connection's commit starts the copy again; the source's own is copied
                // along.
                let db = if round % 2 == 0 { &writer } else { &from };
                run(
                    db,
                    "UPDATE t SET data = randomblob(310) WHERE id % 40 = 7; INSERT INTO t(data) VALUES (zeroblob(9000))",
                );
            }
            while backup.step(20).unwrap() != StepResult::Done {}
        }
        assert_eq!(content(&to, ROWS), content(&writer, ROWS), "{to_dash}");
        suite::check(&to);
        drop(to);
        at_rest(&path);
    }
}

/// A backup that is given up is a rollback of the target, with its pages spilled.
#[test]
fn and_one_given_up_leaves_the_target_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let (source, path) = (folder.path().join("source.db"), folder.path().join("target.db"));
    let from = suite::stock(&source);
    fill(&from, 4096, 3000);
    let mut to = suite::open(&path);
    fill(&to, 4096, 1000);
    run(&to, "PRAGMA cache_size = 10");
    let before = content(&to, ROWS);
    for steps in [1, 10, 60] {
        let backup = Backup::new(&from, &mut to).unwrap();
        for _ in 0..steps {
            assert_eq!(backup.step(5).unwrap(), StepResult::More);
        }
        drop(backup);
        assert_eq!(content(&to, ROWS), before, "{steps} steps");
        run(&to, "UPDATE t SET data = data WHERE id < 5");
        suite::check(&to);
    }
    drop(to);
    assert_eq!(content(&at_rest(&path), ROWS), before);
}
