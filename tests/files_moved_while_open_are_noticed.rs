//! What users do to the files while a connection has them open (T7): a file that was moved away or
//! replaced is not written to any more (SQLITE_READONLY_DBMOVED), what was put in its place is not
//! touched, and a backup copied over the file in place is what the connection reads from then on.

mod suite;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use rusqlite::Connection;
use suite::damage::{copy_over, shadow, swap};
use suite::peers::{Session, last_error};
use suite::{check, one, open, stock};

/// `SQLITE_READONLY_DBMOVED`.
const MOVED: i32 = 8 | 4 << 8;

/// An open connection on a database of `rows` rows, each a commit, and a backup of the first two.
fn made(rows: i64) -> (tempfile::TempDir, PathBuf, PathBuf, Connection) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.db");
    let backup = folder.path().join("backup");
    let db = open(&path);
    db.execute_batch("CREATE TABLE t(a); INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)")
        .expect("commits");
    db.close().expect("closes");
    fs::copy(&path, &backup).expect("copies");
    let db = open(&path);
    db.busy_timeout(Duration::from_secs(5)).expect("sets");
    for row in 3..=rows {
        db.execute("INSERT INTO t VALUES (?)", [row]).expect("commits");
    }
    (folder, path, backup, db)
}

fn rows(db: &Connection) -> i64 {
    one(db, "SELECT count(*) FROM t")
}

/// A write is refused because the file was moved.
fn refused(db: &Connection, what: &str) {
    for _ in 0..3 {
        match db.execute_batch("INSERT INTO t VALUES (100)") {
            Err(rusqlite::Error::SqliteFailure(error, _)) => {
                assert_eq!(error.extended_code, MOVED, "{what}: {error}");
                assert!(last_error().contains("close all connections"), "{what}: {}", last_error());
            }
            other => panic!("{what}: {other:?}"),
        }
    }
}

#[test]
fn another_database_moved_over_it_is_never_written_to() {
    for commits in 2..=5 {
        let (folder, path, _, db) = made(commits);
        let other = folder.path().join("other.db");
        stock(&other).execute_batch("CREATE TABLE other(a); INSERT INTO other VALUES (7)").unwrap();
        let content = fs::read(&other).unwrap();
        fs::rename(&other, &path).unwrap();
        refused(&db, "replaced");
        assert_eq!(rows(&db), commits, "what was open can still be read");
        drop(db);
        assert!(fs::read(&path).unwrap() == content, "{commits}: touched");
        let db = open(&path);
        assert_eq!(one::<i64>(&db, "SELECT a FROM other"), 7);
        db.execute_batch("INSERT INTO other VALUES (8); INSERT INTO other VALUES (9)").unwrap();
        check(&db);
        assert_eq!(one::<i64>(&db, "SELECT count(*) FROM other"), 3);
    }
}

#[test]
fn a_backup_moved_over_it_is_never_written_to_and_wins() {
    for commits in 2..=5 {
        let (_folder, path, backup, db) = made(commits);
        fs::rename(&backup, &path).unwrap();
        refused(&db, "restored by mv");
        db.close().unwrap();
        let db = open(&path);
        assert_eq!(rows(&db), 2, "{commits}: the restore was undone");
        db.execute_batch("INSERT INTO t VALUES (3); INSERT INTO t VALUES (4)").unwrap();
        check(&db);
        assert_eq!(rows(&db), 4);
    }
}

#[test]
fn a_backup_copied_over_it_in_place_is_what_it_reads() {
    for commits in 2..=6 {
        let (_folder, path, backup, db) = made(commits);
        copy_over(&backup, &path);
        std::thread::sleep(Duration::from_millis(3));
        assert_eq!(rows(&db), 2, "{commits}: the old state was read");
        for row in 3..=6 {
            db.execute("INSERT INTO t VALUES (?)", [row])
                .unwrap_or_else(|error| panic!("{commits}: {error}; {}", last_error()));
            assert_eq!(rows(&db), row, "{commits}");
        }
        check(&db);
        db.close().unwrap();
        let mut stock = Session::stock(&path);
        assert_eq!(stock.must("SELECT count(*), sum(a) FROM t"), "6,21", "{commits}");
        let db = open(&path);
        assert_eq!(rows(&db), 6);
        check(&db);
    }
}

#[test]
fn a_backup_copied_over_it_in_place_is_not_undone_by_closing() {
    for commits in 2..=6 {
        let (_folder, path, backup, db) = made(commits);
        copy_over(&backup, &path);
        db.close().unwrap();
        let db = open(&path);
        assert_eq!(rows(&db), 2, "{commits}: the restore was undone");
        db.execute_batch("INSERT INTO t VALUES (3); INSERT INTO t VALUES (4)").unwrap();
        check(&db);
    }
}

#[test]
fn a_smaller_or_larger_database_copied_over_it_in_place() {
    for pages in [1, 200] {
        let (folder, path, _, db) = made(4);
        let other = folder.path().join("other.db");
        let made = stock(&other);
        made.execute_batch("CREATE TABLE t(a)").unwrap();
        for _ in 0..pages {
            made.execute_batch("INSERT INTO t VALUES (zeroblob(3500))").unwrap();
        }
        drop(made);
        copy_over(&other, &path);
        std::thread::sleep(Duration::from_millis(3));
        assert_eq!(rows(&db), pages);
        check(&db);
        for more in 1..=3 {
            db.execute_batch("INSERT INTO t VALUES (1)")
                .unwrap_or_else(|error| panic!("{error}; {}", last_error()));
            assert_eq!(rows(&db), pages + more);
        }
        check(&db);
        db.close().unwrap();
        let mut stock = Session::stock(&path);
        assert_eq!(stock.must("SELECT count(*) FROM t"), (pages + 3).to_string());
        assert_eq!(stock.must("PRAGMA integrity_check"), "ok");
    }
}

#[test]
fn a_renamed_or_deleted_file_is_not_written_to() {
    for delete in [true, false] {
        for commits in 2..=5 {
            let (folder, path, _, db) = made(commits);
            if delete {
                fs::remove_file(&path).unwrap();
            } else {
                fs::rename(&path, folder.path().join("elsewhere.db")).unwrap();
            }
            refused(&db, "gone");
            assert_eq!(rows(&db), commits);
            drop(db);
            assert!(!path.exists(), "nothing takes its place");
            if !delete {
                let db = open(&folder.path().join("elsewhere.db"));
                assert_eq!(rows(&db), commits);
                db.execute_batch("INSERT INTO t VALUES (3); INSERT INTO t VALUES (4)").unwrap();
                check(&db);
            }
        }
    }
}

#[test]
fn a_deleted_shadow_is_made_anew_and_a_foreign_one_is_left_alone() {
    for commits in 2..=5 {
        let (_folder, path, _, db) = made(commits);
        fs::remove_file(shadow(&path)).unwrap();
        for more in 1..=3 {
            db.execute_batch("INSERT INTO t VALUES (0)")
                .unwrap_or_else(|error| panic!("{commits}: {error}; {}", last_error()));
            assert_eq!(rows(&db), commits + more);
        }
        check(&db);
        db.close().unwrap();
        let db = open(&path);
        assert_eq!(rows(&db), commits + 3);
        check(&db);
    }
    let (_folder, path, _, db) = made(4);
    fs::remove_file(shadow(&path)).unwrap();
    fs::write(shadow(&path), "somebody's notes").unwrap();
    refused(&db, "a foreign shadow");
    drop(db);
    let mut stock = Session::stock(&path);
    assert_eq!(stock.must("SELECT count(*) FROM t"), "4");
}

#[test]
fn files_swapped_by_hand_are_not_written_to() {
    for commits in 3..=6 {
        let (_folder, path, _, db) = made(commits);
        swap(&path, &shadow(&path));
        refused(&db, "swapped");
        assert_eq!(rows(&db), commits);
        // Put right again, it goes on.
        swap(&path, &shadow(&path));
        db.execute_batch("INSERT INTO t VALUES (0)").unwrap();
        db.close().unwrap();
        let db = open(&path);
        assert_eq!(rows(&db), commits + 1);
        check(&db);
    }
}

#[test]
fn a_folder_renamed_under_an_open_connection_goes_along() {
    let outer = tempfile::tempdir().unwrap();
    let (before, after) = (outer.path().join("before"), outer.path().join("after"));
    fs::create_dir(&before).unwrap();
    let db = open(&before.join("app.db"));
    db.execute_batch("CREATE TABLE t(a); INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)")
        .unwrap();
    fs::rename(&before, &after).unwrap();
    // It may be refused, but what it says is committed is there.
    let committed = (0..4).filter(|_| db.execute_batch("INSERT INTO t VALUES (3)").is_ok()).count();
    assert_eq!(rows(&db), 2 + i64::try_from(committed).unwrap());
    drop(db);
    let db = open(&after.join("app.db"));
    assert_eq!(rows(&db), 2 + i64::try_from(committed).unwrap());
    check(&db);
}
