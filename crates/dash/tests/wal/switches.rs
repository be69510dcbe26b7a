//! PRAGMA journal_mode, in every direction.

use crate::common::*;
use crate::{at_rest, beside, create};

const MODES: [&str; 5] = ["shadow", "wal", "statement", "delete", "persist"];

fn set(db: &Connection, mode: &str) -> String {
    text(db, &format!("PRAGMA journal_mode={mode}"))
}

fn engine_of(mode: &str) -> &str {
    match mode {
        "shadow" | "wal" | "statement" => mode,
        _ => "plain",
    }
}

#[test]
fn a_connection_goes_from_every_mode_to_every_other() {
    for from in MODES {
        for to in MODES {
            let folder = Folder::new();
            let db = folder.open("app.db");
            assert_eq!(set(&db, from), from);
            db.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").expect("commits");
            assert_eq!(text(&db, "SELECT dash_engine()"), engine_of(from));
            assert_eq!(set(&db, to), to, "{from} to {to}");
            assert_eq!(text(&db, "PRAGMA journal_mode"), to, "{from} to {to}");
            assert_eq!(text(&db, "SELECT dash_engine()"), engine_of(to), "{from} to {to}");
            db.execute_batch("INSERT INTO t VALUES (2)").expect("commits");
            assert_eq!(number(&db, "SELECT sum(x) FROM t"), 3, "{from} to {to}");
            assert_eq!(set(&db, from), from, "{to} back to {from}");
            db.execute_batch("INSERT INTO t VALUES (3)").expect("commits");
            assert_eq!(set(&db, to), to, "{from} to {to} again");
            db.execute_batch("INSERT INTO t VALUES (4)").expect("commits");
            whole(&db);
            db.close().expect("closes");
            let left = beside(&folder, "app.db");
            let may_stay = match to {
                "shadow" => "app.db-shadow",
                "wal" | "statement" => "app.db-dashlog",
                _ => "app.db-journal",
            };
            assert!(left.iter().all(|name| name == may_stay), "{from} to {to}: {left:?}");
            let stock = folder.stock("app.db");
            assert_eq!(number(&stock, "SELECT sum(x) FROM t"), 10, "{from} to {to}");
            whole(&stock);
        }
    }
}

#[test]
fn an_empty_database_changes_its_mode_as_well() {
    for to in MODES {
        let folder = Folder::new();
        let db = folder.open("app.db");
        assert_eq!(set(&db, "wal"), "wal");
        assert_eq!(set(&db, to), to);
        assert_eq!(set(&db, "wal"), "wal");
        db.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)")
            .unwrap_or_else(|error| panic!("{to}: {error}: {}", last_error(&db)));
        assert_eq!(text(&db, "SELECT dash_engine()"), "wal");
        db.close().expect("closes");
        at_rest(&folder, "app.db");
    }
}

#[test]
fn what_stands_before_the_change_is_kept() {
    let folder = Folder::new();
    let db = folder.open("app.db");
    db.execute_batch("PRAGMA page_size=1024; PRAGMA auto_vacuum=FULL; PRAGMA encoding='UTF-16le'")
        .expect("sets");
    assert_eq!(set(&db, "wal"), "wal");
    db.execute_batch("CREATE TABLE t(x)").expect("commits");
    assert_eq!(number(&db, "PRAGMA page_size"), 1024);
    assert_eq!(number(&db, "PRAGMA auto_vacuum"), 1);
    assert_eq!(text(&db, "PRAGMA encoding"), "UTF-16le");
}

/// Stock SQLite reads 1, and overwrites the 2 with a 3 that should be a 4.
#[test]
fn what_others_have_committed_is_seen_after_wal_mode_was_left() {
    for to in ["delete", "shadow"] {
        let folder = Folder::new();
        let db = create(&folder, "app.db");
        db.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (0)").expect("commits");
        db.close().expect("closes");
        let db = folder.open("app.db");
        db.execute_batch("UPDATE t SET x = 1").expect("commits");
        assert_eq!(number(&db, "SELECT x FROM t"), 1);
        let other = folder.open("app.db");
        other.execute_batch("UPDATE t SET x = 2").expect("commits");
        other.close().expect("closes");
        assert_eq!(set(&db, to), to);
        assert_eq!(number(&db, "SELECT x FROM t"), 2, "{to}");
        db.execute_batch("UPDATE t SET x = x + 2").expect("commits");
        db.close().expect("closes");
        assert_eq!(number(&folder.stock("app.db"), "SELECT x FROM t"), 4, "{to}");
    }
}

#[test]
fn the_mode_stays_within_a_transaction() {
    let folder = Folder::new();
    let db = create(&folder, "app.db");
    db.execute_batch("CREATE TABLE t(x); BEGIN").expect("begins");
    for begin in ["SELECT * FROM t", "INSERT INTO t VALUES (1)"] {
        db.execute_batch(begin).expect("goes on");
        assert!(
            message(db.execute_batch("PRAGMA journal_mode=shadow"))
                .contains("within a transaction")
        );
        assert_eq!(text(&db, "SELECT dash_engine()"), "wal");
    }
    db.execute_batch("COMMIT").expect("commits");
    let shadow = folder.open("shadow.db");
    shadow.execute_batch("CREATE TABLE t(x); BEGIN; INSERT INTO t VALUES (1)").expect("begins");
    let said = message(shadow.execute_batch("PRAGMA journal_mode=wal"));
    assert!(said.contains("within a transaction"), "{said}");
    shadow.execute_batch("COMMIT").expect("commits");
    assert_eq!(set(&shadow, "wal"), "wal");
    assert_eq!(number(&shadow, "SELECT count(*) FROM t"), 1);
}

#[test]
fn the_mode_stays_while_another_connection_has_the_database_open() {
    let folder = Folder::new();
    let db = create(&folder, "app.db");
    db.execute_batch("CREATE TABLE t(x)").expect("commits");
    let other = folder.open("app.db");
    assert_eq!(number(&other, "SELECT count(*) FROM t"), 0);
    db.busy_timeout(std::time::Duration::ZERO).expect("sets");
    let said = message(db.execute_batch("PRAGMA journal_mode=shadow"));
    assert!(said.contains("another connection has"), "{said}");
    assert_eq!(code(db.execute_batch("PRAGMA journal_mode=delete")), ErrorCode::DatabaseBusy);
    for connection in [&db, &other] {
        connection.execute_batch("INSERT INTO t VALUES (1)").expect("goes on in mode wal");
        assert_eq!(text(connection, "SELECT dash_engine()"), "wal");
    }
    drop(other);
    assert_eq!(set(&db, "shadow"), "shadow");
    let other = folder.open("app.db");
    // Programs ask for WAL as a habit: they go on.
    assert_eq!(set(&db, "wal"), "shadow");
    assert!(last_error(&db).contains("another connection has"), "{}", last_error(&db));
    other.execute_batch("INSERT INTO t VALUES (1)").expect("goes on in mode shadow");
    assert_eq!(number(&db, "SELECT count(*) FROM t"), 3);
}

#[test]
fn an_attached_database_changes_its_mode_by_name() {
    let folder = Folder::new();
    let db = folder.open("main.db");
    db.execute_batch("CREATE TABLE m(x)").expect("commits");
    let uri = uri(&folder.path("app.db"), "dash", "");
    db.execute("ATTACH ? AS \"a b\"", [uri]).expect("attaches");
    db.execute_batch("CREATE TABLE \"a b\".t(x)").expect("commits");
    for mode in ["wal", "shadow", "wal", "delete", "wal", "shadow"] {
        assert_eq!(text(&db, &format!("PRAGMA \"a b\".journal_mode={mode}")), mode);
        assert_eq!(text(&db, "SELECT dash_engine('a b')"), engine_of(mode));
        assert_eq!(text(&db, "SELECT dash_engine()"), "shadow");
        db.execute_batch("INSERT INTO t VALUES (1); INSERT INTO m VALUES (1)").expect("commits");
    }
    assert_eq!(number(&db, "SELECT count(*) FROM t"), 6);
}

#[test]
fn a_locking_mode_of_exclusive_ends_before_the_mode_changes() {
    let folder = Folder::new();
    let db = create(&folder, "app.db");
    db.execute_batch("CREATE TABLE t(x); PRAGMA locking_mode=EXCLUSIVE; INSERT INTO t VALUES (1)")
        .expect("commits");
    let tried = db.execute_batch("PRAGMA journal_mode=shadow");
    if let Err(error) = tried {
        assert!(error.to_string().contains("locking_mode=EXCLUSIVE"), "{error}");
    }
    db.execute_batch("PRAGMA locking_mode=NORMAL; SELECT * FROM t").expect("sets");
    assert_eq!(set(&db, "shadow"), "shadow");
    assert_eq!(number(&db, "SELECT count(*) FROM t"), 1);
    whole(&db);
}

/// The URI takes a database out of the mode as well; its log goes with it once that is done, also
/// where a crash came before. One whose commits count stays.
#[test]
fn leaving_by_the_uri_takes_the_log_along() {
    for more in ["&journal_mode=delete", "&journal_mode=shadow", "&dash_default=shadow"] {
        let folder = Folder::new();
        let log = folder.path("app.db-dashlog");
        let db = create(&folder, "app.db");
        db.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)")
            .expect("commits");
        let in_use = std::fs::read(&log).expect("a log in use");
        db.close().expect("closes");
        let clean = std::fs::read(&log).expect("a clean log");
        let session = |rows: i64| {
            let db = folder.try_open("app.db", more).expect("opens");
            db.execute_batch("INSERT INTO t VALUES (1)").expect("commits");
            assert_eq!(number(&db, "SELECT count(*) FROM t"), rows, "{more}");
            db.close().expect("closes");
        };
        session(3);
        assert!(!log.exists(), "{more}: the log is left behind");
        std::fs::write(&log, clean).expect("written");
        session(4);
        assert!(!log.exists(), "{more}: what a crash had left stays");
        std::fs::write(&log, in_use).expect("written");
        session(5);
        assert!(log.exists(), "{more}: a log with commits was removed");
    }
}

/// SQLite opens `-wal` for a connection that has had another one before, in the same mode.
#[test]
fn it_comes_back_after_a_journal_that_is_kept() {
    for kept in ["truncate", "persist"] {
        let folder = Folder::new();
        let db = create(&folder, "app.db");
        db.execute_batch(
            "PRAGMA wal_autocheckpoint=5; CREATE TABLE t(x); INSERT INTO t VALUES (zeroblob(9000))",
        )
        .expect("commits");
        db.execute_batch("PRAGMA synchronous=OFF; INSERT INTO t VALUES (1)").expect("commits");
        assert_eq!(set(&db, kept), kept);
        db.execute_batch("BEGIN IMMEDIATE; INSERT INTO t VALUES (zeroblob(90000)); ROLLBACK")
            .expect("rolls back");
        for _ in 0..2 {
            db.execute_batch("INSERT INTO t VALUES (zeroblob(90000))").expect("commits");
        }
        assert_eq!(set(&db, "wal"), "wal", "{kept}: {}", last_error(&db));
        db.execute_batch("INSERT INTO t VALUES (2)").expect("commits");
        assert_eq!(number(&db, "SELECT count(*) FROM t"), 5);
        db.close().expect("closes");
        at_rest(&folder, "app.db");
    }
}
