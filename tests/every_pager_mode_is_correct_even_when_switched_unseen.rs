//! `PRAGMA journal_mode` on a main database in memory sets the pager mode of attached dash files
//! without one call to dash (T19). Whatever it sets, commits, rollbacks and savepoints stay right
//! (T2).

mod suite;

use std::path::Path;

use rusqlite::Connection;
use suite::sql::{at_rest, content, refused, run, stat_of};

const ROWS: &str = "SELECT * FROM a.t ORDER BY id";
const MODES: [&str; 6] = ["delete", "truncate", "persist", "memory", "off", "wal"];

/// A memory database with `path` attached as `a`, and the pager's own mode set behind dash's back.
fn attached(path: &Path, mode: &str) -> Connection {
    suite::load();
    let db = Connection::open_in_memory().expect("opens");
    db.execute("ATTACH ? AS a", [suite::uri(path, "")]).expect("attaches");
    run(&db, &format!("PRAGMA a.cache_size = 10; PRAGMA journal_mode = {mode}"));
    assert_eq!(suite::one::<String>(&db, "SELECT dash_engine('a')"), "shadow");
    db
}

fn filled(path: &Path, rows: u32) {
    let db = suite::open(path);
    run(
        &db,
        &format!(
            "CREATE TABLE t(id INTEGER PRIMARY KEY, v UNIQUE, data);
             WITH n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
             INSERT INTO t SELECT i, i, randomblob(3000) FROM n"
        ),
    );
}

/// What holds afterwards, seen by others and at rest.
fn settled(path: &Path, db: Connection, expected: u64, mode: &str) {
    let other = suite::open(path);
    let rows = "SELECT * FROM t ORDER BY id";
    assert_eq!(content(&other, rows), expected, "{mode}");
    suite::check(&other);
    drop((db, other));
    assert_eq!(content(&at_rest(path), rows), expected, "{mode}");
}

#[test]
fn commits_and_savepoints_are_right_in_every_mode() {
    for mode in MODES {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        filled(&path, 400);
        let db = attached(&path, mode);
        let other = suite::open(&path);
        for round in 0..3 {
            run(&db, "UPDATE a.t SET data = randomblob(3001) WHERE id % 3 = 1");
            run(
                &db,
                "BEGIN; DELETE FROM a.t WHERE id % 50 = 7; INSERT INTO a.t(v, data) SELECT -id, data FROM a.t; DELETE FROM a.t WHERE v < 0; COMMIT",
            );
            let now = content(&db, ROWS);
            assert_eq!(content(&other, "SELECT * FROM t ORDER BY id"), now, "{mode} {round}");
        }
        if mode != "off" {
            // Without a journal SQLite itself can't go back to a savepoint, in any file.
            run(&db, "BEGIN; DELETE FROM a.t WHERE id < 10; SAVEPOINT s");
            let kept = content(&db, ROWS);
            run(&db, "UPDATE a.t SET data = randomblob(5000); ROLLBACK TO s");
            assert_eq!(content(&db, ROWS), kept, "{mode}");
            assert_eq!(refused(&db, "UPDATE a.t SET v = max(v, 300), data = 'x'").0 & 0xff, 19);
            assert_eq!(content(&db, ROWS), kept, "{mode}");
            run(&db, "COMMIT");
        }
        let last = content(&db, ROWS);
        drop(other);
        settled(&path, db, last, mode);
    }
}

/// With `small` transactions everything is in SQLite's cache and in memory; large ones reach the
/// shadow.
#[test]
fn rollbacks_are_right_in_every_mode() {
    for (rows, spills) in [(300, false), (3000, true)] {
        for mode in
            MODES.into_iter().filter(|mode| !spills || ["delete", "memory", "off"].contains(mode))
        {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("app.db");
            filled(&path, rows);
            let db = attached(&path, mode);
            let before = content(&db, ROWS);
            run(
                &db,
                "BEGIN; UPDATE a.t SET data = randomblob(2999); INSERT INTO a.t(data) VALUES (zeroblob(1000000)); ROLLBACK",
            );
            assert_eq!(stat_of(&db, "a", "spills") > 0, spills, "{mode}");
            // In mode off SQLite throws the changes away, and here that is a rollback; only its own
            // cache is undefined then, as its manual says, until the next transaction of somebody
            // else.
            if mode != "off" {
                assert_eq!(content(&db, ROWS), before, "{mode}");
                run(&db, "UPDATE a.t SET data = 'after' WHERE id = 5");
                assert_ne!(content(&db, ROWS), before);
            }
            let last = if mode == "off" { before } else { content(&db, ROWS) };
            settled(&path, db, last, mode);
        }
    }
}

/// Qualified, or as main, the PRAGMA comes by dash: it answers what is true.
#[test]
fn and_dash_answers_shadow_when_it_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    filled(&path, 10);
    let db = attached(&path, "off");
    assert_eq!(suite::one::<String>(&db, "PRAGMA a.journal_mode"), "shadow");
    // T20: stock SQLite would say `delete` and leave it at that.
    assert_eq!(suite::one::<String>(&db, "PRAGMA a.journal_mode = wal"), "wal");
    assert_eq!(suite::one::<String>(&db, "PRAGMA main.journal_mode"), "off");
}
