//! SHADOW-16, against A17. A stock process that has the database open and idle since before dash
//! had it must not take the journal of another stock process for its own: it would roll that back
//! into the file that it has open, remove it, and leave nothing to undo the other one's
//! half-written transaction.

mod suite;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use dash_testing::names::beside;
use suite::peers::{Part, Session};
use suite::workload::{self, STATE};
use suite::{check, open, stock};
use tempfile::TempDir;

/// A database that only stock SQLite has seen, in state 0, and its folder.
fn made() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.db");
    let db = stock(&path);
    workload::make(&db);
    db.close().expect("closes");
    (folder, path)
}

fn inode(path: &Path) -> u64 {
    path.metadata().expect("exists").ino()
}

#[test]
fn and_a_killed_stock_writer_is_rolled_back() {
    for commits in 1..=4 {
        let (_folder, path) = made();
        let mut idle = Session::stock(&path);
        idle.must(STATE);
        let held = inode(&path);
        let dash = open(&path);
        for _ in 0..commits {
            workload::commit_next(&dash).expect("commits");
        }
        dash.close().expect("closes");
        assert_eq!(inode(&path), held, "after {commits} commits");
        assert!(!beside(&path, "-journal").exists(), "the name fence is left");

        let mut writer = Session::stock(&path);
        let journal = writer.writes_in_part(&path);
        let seen = idle.sql(STATE);
        assert_eq!(seen.expect_err("somebody writes"), "database is locked");
        assert!(journal.exists(), "the journal of a writer was removed");
        writer.kill();
        // The first one rolls back what is its own to roll back.
        assert_eq!(workload::number(&idle.must(STATE)), commits);
        idle.must("UPDATE spread SET pad = 1 WHERE id = 1");
        idle.close();
        let db = stock(&path);
        assert_eq!(workload::state(&db), commits);
        db.close().expect("closes");
        let dash = open(&path);
        assert_eq!(workload::commit_next(&dash).expect("commits"), commits + 1);
        assert_eq!(workload::state(&dash), commits + 1);
    }
}

#[test]
fn also_after_a_session_that_commits_nothing() {
    let (_folder, path) = made();
    let mut idle = Session::stock(&path);
    idle.must("BEGIN");
    idle.must(STATE);
    let held = inode(&path);
    let dash = open(&path);
    workload::commit_next(&dash).expect("commits");
    // The file can't be written while it is being read, and closing does not wait.
    dash.close().expect("closes");
    assert_ne!(inode(&path), held);
    idle.must("COMMIT");
    let dash = open(&path);
    assert_eq!(workload::state(&dash), 1);
    dash.close().expect("closes");
    assert_eq!(inode(&path), held);
    assert_eq!(workload::number(&idle.must(STATE)), 1);
}

/// A database in state 1 at rest, with one stock process that has the file of before, and one that
/// has the present one.
fn with_both_open() -> (TempDir, PathBuf, Session, Session) {
    let (folder, path) = made();
    let mut early = Session::stock(&path);
    early.must(STATE);
    let dash = open(&path);
    workload::commit_next(&dash).expect("commits");
    let mut late = Session::stock(&path);
    late.must(STATE);
    dash.close().expect("closes");
    (folder, path, early, late)
}

const WRITE: &str = "UPDATE spread SET pad = 1 WHERE id = 1";

/// Panics unless stock SQLite reads `path` here, and is refused when it wants to write.
fn only_read(path: &Path) {
    let db = stock(path);
    check(&db);
    let error = db.execute_batch(WRITE).expect_err("another program has the older file open");
    assert!(error.to_string().contains("readonly"), "{error}");
}

#[test]
fn with_both_files_open_elsewhere_stock_sqlite_reads_and_does_not_write() {
    let (_folder, path, mut early, mut late) = with_both_open();
    let named = inode(&path);
    let told = suite::peers::last_error();
    assert!(told.contains("app.db-shadow") && told.contains("can read"), "{told}");
    for stock in [&mut early, &mut late] {
        assert!((0..=1).contains(&workload::number(&stock.must(STATE))));
        let error = stock.sql("DELETE FROM log").expect_err("the other one has the other file");
        assert!(error.contains("readonly"), "{error}");
    }
    only_read(&path);
    // dash goes on as ever, and so it stays where it made no commit.
    for commits in [0, 1] {
        let dash = open(&path);
        for _ in 0..commits {
            workload::commit_next(&dash).expect("commits");
        }
        assert_eq!(workload::state(&dash), 1 + commits);
        check(&dash);
        dash.close().expect("closes");
        only_read(&path);
    }
    // Once the later one is gone, the name is the earlier one's again.
    late.close();
    let dash = open(&path);
    assert_eq!(workload::state(&dash), 2);
    dash.close().expect("closes");
    assert_ne!(inode(&path), named);
    assert_eq!(workload::number(&early.must(STATE)), 2);
    let db = stock(&path);
    check(&db);
    db.execute_batch(WRITE).expect("nobody has the older file");
}

/// A stock connection that reads while dash closes does not look at the header again: it must find
/// no way to write a journal.
#[test]
fn nor_does_a_connection_that_was_reading_meanwhile() {
    for before in ["BEGIN", "PRAGMA locking_mode=EXCLUSIVE"] {
        let (_folder, path) = made();
        let mut early = Session::stock(&path);
        early.must(STATE);
        let dash = open(&path);
        workload::commit_next(&dash).expect("commits");
        let mut late = Session::stock(&path);
        late.must(before);
        late.must(STATE);
        dash.close().expect("closes");
        let told = suite::peers::last_error();
        assert!(told.contains("can't open the database"), "{told}");
        stock(&path).execute_batch("SELECT * FROM log").expect_err("the name fence");
        late.sql(WRITE).expect_err("it would write a journal");
        drop((early, late));
        let dash = open(&path);
        assert_eq!(workload::state(&dash), 1, "{before}");
        dash.close().expect("closes");
        let db = stock(&path);
        db.execute_batch(WRITE).expect("nobody has the older file");
        check(&db);
    }
}

#[test]
fn they_may_write_again_once_nobody_has_the_older_one() {
    let (_folder, path, early, late) = with_both_open();
    early.close();
    only_read(&path);
    // A copy is protected, too, and dash finds that nobody has another one.
    let copy = path.with_file_name("copy.db");
    std::fs::copy(&path, &copy).expect("copies");
    for path in [&path, &copy] {
        open(path).execute_batch("SELECT * FROM log").expect("reads");
        let db = stock(path);
        db.execute_batch(WRITE).expect("nobody has the older file");
        check(&db);
        assert_eq!(workload::state(&open(path)), 1);
    }
    drop(late);
}

#[test]
fn nor_does_stock_sqlite_write_where_dash_was_killed_after_its_first_commit() {
    for closes in [false, true] {
        let (_folder, path) = made();
        let mut early = Session::stock(&path);
        early.must(STATE);
        let mut dash = Session::dash(&path, Part::default()).expect("opens");
        dash.must("UPDATE spread SET pad = 2 WHERE id = 1");
        if closes {
            dash.close();
            // With the name given back it is the second commit's copy.
            dash = Session::dash(&path, Part::default()).expect("opens");
            dash.must("UPDATE spread SET pad = 3 WHERE id = 1");
        }
        dash.kill();
        let error = stock(&path).execute_batch(WRITE).expect_err("the older one is open");
        assert!(error.to_string().contains("disk I/O"), "the name fence: {error}");
        let dash = open(&path);
        check(&dash);
        dash.close().expect("closes");
        assert_eq!(workload::number(&early.must(STATE)), 0);
        stock(&path).execute_batch(WRITE).expect("it is given its name back");
    }
}

#[test]
fn mode_shadow_is_not_left_while_both_files_are_open_elsewhere() {
    let (_folder, path, early, late) = with_both_open();
    let dash = open(&path);
    let left = |dash: &rusqlite::Connection| {
        dash.query_row("PRAGMA journal_mode=delete", [], |row| row.get::<_, String>(0))
    };
    let mode = left(&dash);
    assert!(mode.as_ref().map_or(true, |mode| mode == "shadow"), "{mode:?}");
    assert!(beside(&path, "-shadow").exists());
    assert_eq!(workload::state(&dash), 1);
    drop((early, late));
    assert_eq!(left(&dash).expect("leaves"), "delete");
    dash.execute_batch(WRITE).expect("writes as stock SQLite does");
    assert!(!beside(&path, "-shadow").exists());
    check(&stock(&path));
}

#[test]
fn nothing_is_committed_where_nobody_has_it_open() {
    let (_folder, path) = made();
    for n in 1..=4 {
        let before = inode(&path);
        let mut dash = Session::dash(&path, Part::default()).expect("opens");
        dash.must(&format!("UPDATE spread SET pad = {n} WHERE id = 1"));
        dash.close();
        assert_ne!(inode(&path), before, "an odd number of commits exchanges the names");
    }
}
