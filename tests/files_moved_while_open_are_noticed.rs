//! What users do to the files while a connection has them open (T7): a file that was moved away or
//! replaced is not written to any more (SQLITE_READONLY_DBMOVED), what was put in its place is not
//! touched, and a backup copied over the file in place is what the connection reads from then on.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

mod suite;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use dash_testing::names::beside;
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

/// In mode wal: an open connection, a backup of the first 100 rows, and after the next ones and
/// perhaps a checkpoint `commits` more, of which few begin no session of the log.
fn made_in_wal(
    commits: i64,
    checkpoint: bool,
) -> (tempfile::TempDir, PathBuf, PathBuf, Connection) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let backup = folder.path().join("backup");
    let db = open(&path);
    let fill = |from: i64, to: i64| {
        format!(
            "WITH n(i) AS (SELECT {from} UNION ALL SELECT i+1 FROM n WHERE i < {to}) \
             INSERT INTO t SELECT i, hex(randomblob(200)) FROM n"
        )
    };
    db.execute_batch("PRAGMA journal_mode=wal; CREATE TABLE t(a, b); CREATE INDEX i ON t(b)")
        .unwrap();
    db.execute_batch(&fill(1, 100)).unwrap();
    db.execute("VACUUM INTO ?", [backup.to_str().unwrap()]).unwrap();
    db.execute_batch(&fill(101, 600)).unwrap();
    db.execute_batch("DELETE FROM t WHERE a % 3 = 0").unwrap();
    if checkpoint {
        let _: i64 = one(&db, "PRAGMA wal_checkpoint(truncate)");
    }
    insert(&db, commits);
    (folder, path, backup, db)
}

fn insert(db: &Connection, commits: i64) {
    for _ in 0..commits {
        db.execute_batch("INSERT INTO t VALUES (0, hex(randomblob(200)))").unwrap();
    }
}

/// Stock SQLite finds it whole, with so many rows; then dash does.
fn is_whole(path: &std::path::Path, expected: i64) {
    for db in [stock(path), open(path)] {
        check(&db);
        assert_eq!(rows(&db), expected);
    }
}

/// A close left `-wal`, and the next opening took it for the backup's: it was malformed, or as
/// before the restore.
#[test]
fn in_mode_wal_a_backup_moved_over_it_is_what_the_next_opening_finds() {
    for checkpoint in [true, false] {
        for commits in [1, 2, 20] {
            let (_folder, path, backup, db) = made_in_wal(commits, checkpoint);
            fs::rename(&backup, &path).unwrap();
            insert(&db, commits);
            db.close().unwrap();
            assert!(last_error().contains("app.db was removed or replaced"), "{}", last_error());
            assert!(!beside(&path, "-wal").exists(), "{checkpoint} {commits}");
            is_whole(&path, 100);
        }
    }
}

#[test]
fn in_mode_wal_a_file_moved_away_keeps_every_commit() {
    for commits in [1, 2, 20] {
        let (folder, path, _, db) = made_in_wal(commits, true);
        let aside = folder.path().join("aside.db");
        fs::rename(&path, &aside).unwrap();
        insert(&db, commits);
        db.close().unwrap();
        assert!(!path.exists() && !beside(&path, "-wal").exists());
        is_whole(&aside, 400 + 2 * commits);
        // Nothing keeps another one from beginning under the name.
        open(&path).execute_batch("CREATE TABLE t(a)").unwrap();
    }
}

/// The `-wal` that was moved there with it is not removed.
#[test]
fn in_mode_wal_what_was_moved_over_both_files_stays_as_it_is() {
    let (folder, path, _, db) = made_in_wal(1, true);
    let other = folder.path().join("other.db");
    let theirs = stock(&other);
    theirs
        .execute_batch("PRAGMA journal_mode=wal; CREATE TABLE t(a); INSERT INTO t VALUES (7)")
        .unwrap();
    let wal = fs::read(beside(&other, "-wal")).unwrap();
    fs::copy(&other, folder.path().join("copy")).unwrap();
    fs::copy(beside(&other, "-wal"), folder.path().join("copy-wal")).unwrap();
    fs::rename(folder.path().join("copy"), &path).unwrap();
    fs::rename(folder.path().join("copy-wal"), beside(&path, "-wal")).unwrap();
    drop(db);
    assert!(fs::read(beside(&path, "-wal")).unwrap() == wal);
}

/// As after a kill: the log is of what was there before.
#[test]
fn in_mode_wal_a_backup_is_refused_where_a_reader_keeps_the_former_wal() {
    let (_folder, path, backup, db) = made_in_wal(20, true);
    let mut reader = Session::stock(&path);
    reader.must("BEGIN");
    reader.must("SELECT count(*) FROM t");
    fs::rename(&backup, &path).unwrap();
    insert(&db, 1);
    db.close().unwrap();
    drop(reader);
    let opened = dash_opens(&path);
    assert!(opened.contains("sqlite-dash recover"), "{opened}");
}

/// Why it is not opened.
fn dash_opens(path: &std::path::Path) -> String {
    Session::dash(path, suite::peers::Part::default())
        .and_then(|mut session| session.sql("SELECT count(*) FROM t"))
        .expect_err("it is opened")
}

/// In a mode of SQLite's own it is SQLite that refuses it, where dash is asked for nothing.
#[test]
fn a_plain_file_that_is_removed_is_not_written_and_that_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = suite::open_dash(path.as_os_str(), "&journal_mode=delete").unwrap();
    db.execute_batch("CREATE TABLE t(a)").unwrap();
    fs::remove_file(&path).unwrap();
    for _ in 0..2 {
        let (code, _) = suite::sql::refused(&db, "INSERT INTO t VALUES (1)");
        assert_eq!(code, MOVED);
        assert!(last_error().contains("is not the file that was opened"), "{}", last_error());
    }
}
