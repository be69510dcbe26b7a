//! Readers keep their snapshots while others commit, and a commit does not wait for them: not even
//! for one that stays at an old state (T16), nor under BEGIN EXCLUSIVE (T18). An upgrade of a stale
//! one is refused (T17).

mod suite;

use std::time::Duration;

use dash_testing::roles::{Role, role, say, told};
use rusqlite::Connection;
use suite::sql::{at_rest, content, refused, run, stat};

const ROWS: &str = "SELECT * FROM t ORDER BY id";
const BUSY: i32 = 5;
const BUSY_SNAPSHOT: i32 = 517;

fn made(path: &std::path::Path) -> Connection {
    let db = suite::open(path);
    run(
        &db,
        "CREATE TABLE t(id INTEGER PRIMARY KEY, v);
         WITH n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 500) INSERT INTO t SELECT i, randomblob(200) FROM n",
    );
    db.busy_timeout(Duration::ZERO).expect("sets");
    db
}

/// T16: the next commit goes through at once, with no busy timeout at all.
#[test]
fn that_came_after_the_last_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let (db, reader) = (made(&path), suite::open(&path));
    for round in 0..20 {
        run(&reader, "BEGIN");
        let snapshot = content(&reader, ROWS);
        run(&db, &format!("UPDATE t SET v = randomblob(201) WHERE id % 7 = {round} % 7"));
        assert_eq!(content(&reader, ROWS), snapshot, "{round}");
        suite::check(&reader);
        run(&reader, "COMMIT");
        assert_eq!(content(&reader, ROWS), content(&db, ROWS));
    }
}

/// A snapshot that stays while many commits pass: with small ones nobody waits and nobody is
/// refused; whatever can't go around it fails without harm.
#[test]
fn that_stays_at_an_old_state() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = made(&path);
    let readers: Vec<_> = (0..4).map(|_| suite::open(&path)).collect();
    let mut snapshots = Vec::new();
    let mut busy = 0;
    for round in 0..40_usize {
        if let Some(reader) = readers.get(round / 5)
            && round % 5 == 0
        {
            run(reader, "BEGIN");
            snapshots.push((reader, content(reader, ROWS)));
        }
        let before = content(&db, ROWS);
        match db.execute_batch(&format!(
            "UPDATE t SET v = randomblob(202) WHERE id % 11 = {}",
            round % 11
        )) {
            Ok(()) => assert_ne!(content(&db, ROWS), before),
            Err(error) => {
                busy += 1;
                assert_eq!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::DatabaseBusy));
                assert_eq!(content(&db, ROWS), before);
            }
        }
        for (reader, snapshot) in &snapshots {
            assert_eq!(content(reader, ROWS), *snapshot, "commit {round}");
        }
    }
    assert_eq!(busy, 0, "commits were refused because of old snapshots");
    for (reader, _) in snapshots {
        suite::check(reader);
        run(reader, "COMMIT");
        assert_eq!(content(reader, ROWS), content(&db, ROWS));
    }
    let last = content(&db, ROWS);
    drop((db, readers));
    assert_eq!(content(&at_rest(&path), ROWS), last);
}

/// The same with the snapshots in another process, which is killed while it holds one.
#[test]
fn in_another_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = made(&path);
    for _ in 0..3 {
        let mut reader = Role::start("a_process_that_holds_a_snapshot", &path);
        reader.hear("reading");
        for _ in 0..6 {
            run(&db, "UPDATE t SET v = randomblob(200) WHERE id < 20");
        }
        reader.tell("again");
        assert_eq!(reader.hear("same"), "true");
        run(&db, "UPDATE t SET v = randomblob(200) WHERE id < 20");
        reader.kill();
        for _ in 0..3 {
            run(&db, "UPDATE t SET v = randomblob(200) WHERE id > 480");
        }
    }
    suite::check(&db);
    let last = content(&db, ROWS);
    drop(db);
    assert_eq!(content(&at_rest(&path), ROWS), last);
}

#[test]
#[ignore = "a role of the test above"]
fn a_process_that_holds_a_snapshot() {
    let Some(path) = role("a_process_that_holds_a_snapshot") else { return };
    let db = suite::open(path.as_ref());
    run(&db, "BEGIN; PRAGMA cache_size = 1");
    let snapshot = content(&db, ROWS);
    say("reading", "");
    while told().is_some() {
        say("same", content(&db, ROWS) == snapshot);
    }
}

/// T17: SQLite's rollback mode has no such case and would overwrite the commit in between.
#[test]
fn and_a_stale_snapshot_is_not_written_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let (db, stale) = (made(&path), suite::open(&path));
    for _ in 0..3 {
        run(&stale, "BEGIN");
        let snapshot = content(&stale, ROWS);
        run(&db, "UPDATE t SET v = v || 'x' WHERE id = 1");
        let (code, _) = refused(&stale, "UPDATE t SET v = 'overwritten' WHERE id = 1");
        assert_eq!(code, BUSY_SNAPSHOT);
        assert_eq!(content(&stale, ROWS), snapshot);
        run(&stale, "ROLLBACK; UPDATE t SET v = v || 'y' WHERE id = 2");
        assert_eq!(content(&stale, ROWS), content(&db, ROWS));
        // BEGIN IMMEDIATE begins with what is newest.
        run(&stale, "BEGIN IMMEDIATE; UPDATE t SET v = v || 'z' WHERE id = 3");
        assert_eq!(refused(&db, "UPDATE t SET v = 0").0, BUSY);
        run(&stale, "COMMIT");
    }
    suite::check(&db);
}

/// T18: as in WAL mode, readers see the last commit while somebody writes, however that one began.
#[test]
fn and_no_writer_keeps_readers_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let (db, reader) = (made(&path), suite::open(&path));
    reader.busy_timeout(Duration::ZERO).unwrap();
    run(&db, "PRAGMA cache_size = 10");
    let before = content(&reader, ROWS);
    for begin in ["BEGIN", "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"] {
        run(&db, &format!("{begin}; UPDATE t SET v = randomblob(20000)"));
        assert!(stat(&db, "spills") > 0 || begin == "BEGIN");
        assert_eq!(content(&reader, ROWS), before, "{begin}");
        suite::check(&reader);
        assert_eq!(refused(&reader, "UPDATE t SET v = 0").0, BUSY, "{begin}");
        run(&db, "ROLLBACK");
    }
    run(&db, "BEGIN EXCLUSIVE; UPDATE t SET v = 1; COMMIT");
    assert_ne!(content(&reader, ROWS), before);
}

/// SHADOW-24 as a user meets it: an unfinished SELECT of this process fills what may be kept. A
/// transaction is refused where it begins, with the reader's name; nothing is lost, and the space
/// comes back as soon as the SELECT ends.
#[test]
fn and_at_the_limit_it_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = made(&path);
    run(
        &db,
        "PRAGMA dash_kept_limit = 1048576;
         WITH n(i) AS (VALUES (501) UNION ALL SELECT i + 1 FROM n WHERE i < 20000) INSERT INTO t SELECT i, randomblob(200) FROM n",
    );
    let reader = suite::open(&path);
    let mut forgotten = reader.prepare(ROWS).expect("prepares");
    let mut rows = forgotten.query([]).expect("begins");
    assert!(rows.next().expect("reads").is_some());
    let refused_at = (0..200).find(|round| {
        let update = format!("UPDATE t SET v = randomblob(200) WHERE id % 200 = {round}");
        let Err(error) = db.execute_batch(&format!("BEGIN IMMEDIATE; {update}; COMMIT")) else {
            return false;
        };
        assert_eq!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::DatabaseBusy), "{error}");
        assert!(db.is_autocommit(), "it was refused at BEGIN, not at COMMIT");
        true
    });
    assert!(refused_at.is_some_and(|at| at > 0), "{refused_at:?}");
    let text = |sql: &str| db.query_row(sql, [], |row| row.get::<_, String>(0)).expect("a text");
    let (why, me) = (text("SELECT dash_last_error()"), std::process::id().to_string());
    for part in ["app.db", "dash_kept_limit", "in this process", &me, "finalize its statements"] {
        assert!(why.contains(part), "{part}: {why}");
    }
    let listed = text(
        "SELECT pid || ' ' || kind || ' ' || (since <= unixepoch('subsec')) || ' ' || (kept_bytes >= 1048576) \
         FROM dash_readers ORDER BY frame LIMIT 1",
    );
    assert_eq!(listed, format!("{me} dash 1 1"));
    let shared = path.with_file_name("app.db-dash");
    let len = || std::fs::metadata(&shared).expect("is there").len();
    assert!(len() > 1 << 20 && stat(&db, "kept_bytes") >= 1 << 20);
    let left = std::iter::from_fn(|| rows.next().expect("reads").map(drop)).count();
    assert_eq!(left, 19_999, "the snapshot is whole");
    drop(rows);
    drop(forgotten);
    assert!(len() <= 64 << 10 && stat(&db, "kept_bytes") == 0, "given back: {}", len());
    run(&db, "BEGIN IMMEDIATE; UPDATE t SET v = 0 WHERE id = 1; COMMIT");
    suite::check(&db);
}
