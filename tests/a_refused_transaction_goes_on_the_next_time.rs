//! A transaction that was refused, as others had written what it had read: those that its
//! connection begins next take the write lock before they read, so that they meet nobody.

mod suite;

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};
use suite::one;
use suite::sql::{refused, run, stat};

const ADD: &str = "UPDATE t SET v = v + 1";
const READ: &str = "SELECT v FROM t";

fn opened(path: &Path) -> Connection {
    let db = suite::open_dash(path.as_os_str(), "").expect("opens");
    db.busy_timeout(Duration::ZERO).expect("sets");
    db
}

/// A connection that was refused just now.
fn refused_one(path: &Path) -> Connection {
    let db = opened(path);
    run(&db, "BEGIN");
    let _: i64 = one(&db, READ);
    run(&opened(path), ADD);
    assert_eq!(refused(&db, ADD).0, 517);
    run(&db, "ROLLBACK");
    db
}

fn database(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("app.db");
    run(&opened(&path), "PRAGMA journal_mode = WAL; CREATE TABLE t(v); INSERT INTO t VALUES (0)");
    path
}

/// What another thread is answered that adds one.
fn another(db: &Connection) -> rusqlite::Result<usize> {
    let path = db.path().expect("a file").to_owned();
    let path = Path::new(&path);
    let other = opened(path);
    other.busy_timeout(Duration::from_secs(30))?;
    std::thread::scope(|scope| scope.spawn(move || other.execute(ADD, ())).join())
        .expect("no panic")
}

fn is_kept_out(other: Connection) -> bool {
    let answer = std::thread::spawn(move || other.execute(ADD, ())).join().expect("no panic");
    answer.is_err_and(|error| error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy))
}

/// A connection that was refused, in its next transaction, and whether another thread was kept out
/// when it had read; where that took so long that it may have let others pass, once more.
fn reading(path: &Path) -> (Connection, bool) {
    loop {
        let (db, other) = (refused_one(path), opened(path));
        run(&db, "BEGIN");
        let begun = Instant::now();
        let _: i64 = one(&db, READ);
        let kept_out = is_kept_out(other);
        if begun.elapsed() < Duration::from_millis(8) {
            return (db, kept_out);
        }
        run(&db, "ROLLBACK");
    }
}

#[test]
fn and_nobody_writes_while_it_reads() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(folder.path());
    let (db, kept_out) = reading(&path);
    assert!(kept_out);
    run(&db, ADD);
    run(&db, "COMMIT");
    assert!(!is_kept_out(opened(&path)));
    // It is one like any other then.
    let before = stat(&db, "upgrades_refused");
    run(&db, "BEGIN");
    let _: i64 = one(&db, READ);
    assert!(!is_kept_out(opened(&path)));
    assert_eq!(refused(&db, ADD).0, 517);
    run(&db, "ROLLBACK");
    assert_eq!(stat(&db, "upgrades_refused"), before + 1);
}

/// One statement alone has nothing to meet.
#[test]
fn but_it_keeps_nobody_out_without_a_begin() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(folder.path());
    let db = refused_one(&path);
    let mut statement = db.prepare("SELECT a.v FROM t AS a, t AS b").unwrap();
    let mut rows = statement.query(()).unwrap();
    assert!(rows.next().unwrap().is_some());
    assert!(!is_kept_out(opened(&path)));
}

#[test]
fn unless_it_only_reads() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(folder.path());
    let (db, kept_out) = reading(&path);
    assert!(kept_out);
    run(&db, "COMMIT");
    for _ in 0..2 {
        assert!(!is_kept_out(opened(&path)));
        run(&db, "BEGIN");
        let _: i64 = one(&db, READ);
        assert!(!is_kept_out(opened(&path)));
        run(&db, "COMMIT");
    }
}

/// Others wait for it for a moment only.
#[test]
fn or_takes_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(folder.path());
    let db = refused_one(&path);
    run(&db, "BEGIN");
    assert_eq!(one::<i64>(&db, READ), 1);
    assert_eq!(another(&db), Ok(1));
    assert_eq!(one::<i64>(&db, READ), 1);
    assert_eq!(refused(&db, ADD).0, 517);
}

/// A thread that has several connections would wait for itself.
#[test]
fn and_it_is_not_in_the_way_of_its_own_thread() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(folder.path());
    let [first, second] = [refused_one(&path), refused_one(&path)];
    for db in [&first, &second] {
        run(db, "BEGIN");
        assert_eq!(one::<i64>(db, READ), 2);
    }
    let third = opened(&path);
    run(&third, ADD);
    for db in [first, second] {
        assert_eq!(refused(&db, ADD).0, 517);
    }
}

/// Transactions that all meet: each comes to its end.
#[test]
fn and_those_that_always_meet_get_on() {
    const EACH: i64 = 150;
    let folder = tempfile::tempdir().unwrap();
    let path = database(folder.path());
    let adds = || {
        let db = suite::open_dash(path.as_os_str(), "").expect("opens");
        db.busy_timeout(Duration::from_secs(60)).expect("sets");
        let tries = || {
            run(&db, "BEGIN");
            let _: i64 = one(&db, READ);
            std::thread::yield_now();
            let added = db.execute(ADD, ()).map_err(|error| error.sqlite_error_code());
            run(&db, if added.is_ok() { "COMMIT" } else { "ROLLBACK" });
            added
        };
        for _ in 0..EACH {
            while let Err(code) = tries() {
                assert_eq!(code, Some(ErrorCode::DatabaseBusy));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(adds);
        }
    });
    assert_eq!(one::<i64>(&opened(&path), READ), 4 * EACH);
}
