//! What users do to the files of a closed database: rename, copy, delete, replace, restore, put an
//! old shadow back. `app.db` is what counts, a restore is never undone (T8), and where `app.db` is
//! gone nothing takes its place silently.

mod suite;

use std::fs;
use std::path::{Path, PathBuf};

use dash_testing::names::names;
use suite::damage::{copy_over, shadow, swap};
use suite::peers::{Part, Session, last_error};
use suite::{check, one, open};

/// A folder with `app.db`, `rows` rows in as many commits and `more` kept open no longer.
fn made(rows: i64) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.db");
    let db = open(&path);
    db.execute_batch("CREATE TABLE t(a)").expect("commits");
    db.close().expect("closes");
    add(&path, rows);
    (folder, path)
}

fn add(path: &Path, rows: i64) {
    let db = open(path);
    for _ in 0..rows {
        db.execute_batch("INSERT INTO t SELECT 1 + coalesce(max(a), 0) FROM t").expect("commits");
    }
    db.close().expect("closes");
}

/// Opens, finds 1 … `rows`, and goes on committing into both copies; then stock SQLite agrees.
fn goes_on_with(path: &Path, rows: i64, what: &str) {
    let db = open(path);
    let sum = |rows: i64| (rows, rows * (rows + 1) / 2);
    let found = |db: &rusqlite::Connection| {
        (
            one::<i64>(db, "SELECT count(*) FROM t"),
            one::<i64>(db, "SELECT coalesce(sum(a), 0) FROM t"),
        )
    };
    assert_eq!(found(&db), sum(rows), "{what}");
    for more in 1..=3 {
        db.execute_batch("INSERT INTO t SELECT 1 + coalesce(max(a), 0) FROM t")
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(found(&db), sum(rows + more), "{what}");
    }
    check(&db);
    db.close().expect("closes");
    let mut stock = Session::stock(path);
    assert_eq!(stock.must("SELECT count(*) FROM t"), (rows + 3).to_string(), "{what}");
    assert_eq!(stock.must("PRAGMA integrity_check"), "ok", "{what}");
}

/// The message of opening and reading through dash, which must fail.
fn refusal(path: &Path) -> String {
    match Session::dash(path, Part::default()) {
        Err(message) => message,
        Ok(mut dash) => dash.sql("SELECT count(*) FROM sqlite_master").expect_err("refused"),
    }
}

#[test]
fn both_files_renamed_or_moved_to_another_folder() {
    let (folder, path) = made(5);
    let other = folder.path().join("elsewhere/other.db");
    fs::create_dir(other.parent().unwrap()).unwrap();
    fs::rename(&path, &other).unwrap();
    fs::rename(shadow(&path), shadow(&other)).unwrap();
    goes_on_with(&other, 5, "moved");
}

#[test]
fn app_db_renamed_without_its_shadow() {
    let (folder, path) = made(5);
    let other = folder.path().join("other.db");
    fs::rename(&path, &other).unwrap();
    goes_on_with(&other, 5, "renamed");
    // And under the old name nothing is made up.
    add_first(&path);
}

fn add_first(path: &Path) {
    let db = open(path);
    db.execute_batch("CREATE TABLE t(a)").expect("a fresh start, as was said");
    db.close().expect("closes");
    goes_on_with(path, 0, "afresh");
}

#[test]
fn copied_with_or_without_the_shadow() {
    let (folder, path) = made(6);
    let alone = folder.path().join("alone.db");
    fs::copy(&path, &alone).unwrap();
    let both = folder.path().join("both.db");
    fs::copy(&path, &both).unwrap();
    fs::copy(shadow(&path), shadow(&both)).unwrap();
    let mixed = folder.path().join("mixed.db");
    fs::copy(&path, &mixed).unwrap();
    for copy in [&alone, &both, &mixed] {
        // A copy is plain SQLite, writable at once.
        let mut stock = Session::stock(copy);
        assert_eq!(stock.must("SELECT count(*) FROM t"), "6");
        stock.must("BEGIN IMMEDIATE");
        stock.must("ROLLBACK");
    }
    goes_on_with(&alone, 6, "alone");
    goes_on_with(&both, 6, "both");
    // The copy beside the original's shadow of later.
    add(&path, 1);
    fs::copy(shadow(&path), shadow(&mixed)).unwrap();
    goes_on_with(&mixed, 6, "mixed");
    goes_on_with(&path, 7, "the original");
}

#[test]
fn a_folder_where_the_second_copy_is_to_be_put_aside_is_named() {
    let (folder, path) = made(4);
    fs::remove_file(&path).unwrap();
    fs::create_dir(folder.path().join("app.db-shadow-old")).unwrap();
    let opened = suite::open_dash(path.as_os_str(), "");
    let refused = opened.and_then(|db| db.execute_batch("CREATE TABLE t(a)"));
    assert!(refused.is_err());
    let message = last_error();
    assert!(message.contains("app.db-shadow-old is a folder"), "{message}");
    assert_eq!(names(folder.path()), ["app.db-shadow", "app.db-shadow-old"]);
    fs::remove_dir(folder.path().join("app.db-shadow-old")).unwrap();
    open(&path).execute_batch("CREATE TABLE t(a)").expect("a fresh start");
}

/// As with stock SQLite a new one begins; what the shadow holds stays, and can be had.
#[test]
fn a_database_deleted_at_rest_leaves_its_second_copy_aside() {
    let (folder, path) = made(4);
    for _ in 0..2 {
        fs::remove_file(&path).unwrap();
        let db = open(&path);
        let message = last_error();
        assert!(message.contains("app.db-shadow-old") && message.contains("recover"), "{message}");
        db.execute_batch("CREATE TABLE t(a)").expect("a fresh start, as was said");
        db.close().expect("closes");
        assert_eq!(names(folder.path()), ["app.db", "app.db-shadow", "app.db-shadow-old"]);
        let old = folder.path().join("old.db");
        fs::rename(folder.path().join("app.db-shadow-old"), shadow(&old)).unwrap();
        dash_shadow::forget(&dash_storage::real::Real, &shadow(&old)).expect("is one of ours");
        let mut found = Session::stock(&shadow(&old));
        let count: i64 = found.must("SELECT count(*) FROM t").parse().expect("a number");
        assert!((3..=4).contains(&count), "the last state or the one before: {count}");
        drop(found);
        fs::remove_file(shadow(&old)).unwrap();
        add(&path, 4);
    }
}

/// A shadow that nothing was written into is no loss, and is not kept.
#[test]
fn a_database_of_one_commit_that_was_deleted_at_rest_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.db");
    for _ in 0..2 {
        let db = open(&path);
        db.execute_batch("CREATE TABLE t(a)").expect("commits");
        db.close().expect("closes");
        assert_eq!(names(folder.path()), ["app.db", "app.db-shadow"]);
        fs::remove_file(&path).unwrap();
    }
}

/// It may hold the newest commit; and who only reads, or makes no files, makes none here.
#[test]
fn a_database_deleted_after_a_kill_is_not_replaced_by_an_empty_one() {
    let (folder, path) = made(4);
    let mut dash = Session::dash(&path, Part::default()).expect("opens");
    dash.must("INSERT INTO t VALUES (5)");
    dash.kill();
    fs::remove_file(&path).unwrap();
    for _ in 0..2 {
        let message = refusal(&path);
        assert!(
            message.contains("missing") && message.contains("sqlite-dash recover"),
            "{message}"
        );
    }
    assert!(shadow(&path).exists() && !folder.path().join("app.db-shadow-old").exists());
    let (folder, path) = made(4);
    fs::remove_file(&path).unwrap();
    for mode in ["&mode=ro", "&mode=rw"] {
        let opened = rusqlite::Connection::open(suite::uri(&path, mode));
        let refused = opened.and_then(|db| db.execute_batch("SELECT * FROM sqlite_master"));
        refused.expect_err("there is none");
    }
    assert_eq!(names(folder.path()), ["app.db-shadow"]);
}

#[test]
fn a_deleted_shadow_is_made_anew() {
    let (_folder, path) = made(4);
    fs::remove_file(shadow(&path)).unwrap();
    goes_on_with(&path, 4, "without a shadow");
}

#[test]
fn replaced_by_another_database() {
    for commits in 1..=4 {
        let (folder, path) = made(commits);
        let (_other_folder, other) = made(9);
        // By mv of a file that dash knows, and of one that only stock SQLite made.
        fs::copy(&other, folder.path().join("new.db")).unwrap();
        fs::rename(folder.path().join("new.db"), &path).unwrap();
        goes_on_with(&path, 9, "mv");
        let plain = folder.path().join("plain.db");
        suite::stock(&plain).execute_batch("CREATE TABLE t(a); INSERT INTO t VALUES (1)").unwrap();
        fs::rename(&plain, &path).unwrap();
        goes_on_with(&path, 1, "mv of a plain file");
    }
}

#[test]
fn restored_from_a_backup_of_any_age() {
    for (before, after) in [(3, 1), (3, 2), (3, 5), (4, 1), (4, 2), (1, 1), (2, 3)] {
        for way in ["cp", "mv", "cp of both files", "stock backup"] {
            let (folder, path) = made(before);
            let backup = folder.path().join("backup");
            if way == "stock backup" {
                suite::stock(&path)
                    .backup("main", &backup, None::<fn(rusqlite::backup::Progress)>)
                    .unwrap();
            } else {
                fs::copy(&path, &backup).unwrap();
            }
            fs::copy(shadow(&path), shadow(&backup)).unwrap();
            add(&path, after);
            match way {
                "cp" | "stock backup" => copy_over(&backup, &path),
                "mv" => fs::rename(&backup, &path).unwrap(),
                _ => {
                    copy_over(&backup, &path);
                    copy_over(&shadow(&backup), &shadow(&path));
                }
            }
            goes_on_with(&path, before, &format!("{way} of {before} over {after} more"));
        }
    }
}

#[test]
fn an_older_shadow_put_back() {
    for (before, after) in [(3, 1), (3, 2), (4, 1), (4, 4), (5, 3)] {
        for in_place in [true, false] {
            let (folder, path) = made(before);
            let old = folder.path().join("old-shadow");
            fs::copy(shadow(&path), &old).unwrap();
            add(&path, after);
            if in_place {
                copy_over(&old, &shadow(&path));
            } else {
                fs::rename(&old, shadow(&path)).unwrap();
            }
            goes_on_with(
                &path,
                before + after,
                &format!("{before}, {after}, in place: {in_place}"),
            );
        }
    }
}

#[test]
fn swapped_by_hand_is_a_refusal_or_the_newest_state() {
    for rows in 1..=5 {
        let (_folder, path) = made(rows);
        swap(&path, &shadow(&path));
        let said = Session::dash(&path, Part::default());
        match said {
            Err(message) => {
                assert!(message.contains("sqlite-dash recover"), "{rows}: {message}");
                swap(&path, &shadow(&path));
            }
            Ok(dash) => dash.close(),
        }
        goes_on_with(&path, rows, "swapped");
    }
}
