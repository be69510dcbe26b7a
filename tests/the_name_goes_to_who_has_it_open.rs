//! SHADOW-16, against A17. A stock process that has the database open and idle since before dash had it must
//! not take the journal of another stock process for its own: it would roll that back into the file
//! that it has open, remove it, and leave nothing to undo the other one's half-written transaction.

mod suite;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use suite::damage::beside;
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

#[test]
fn with_both_files_open_elsewhere_the_user_is_told_and_nobody_is_refused() {
    let (_folder, path) = made();
    let mut early = Session::stock(&path);
    early.must(STATE);
    let dash = open(&path);
    workload::commit_next(&dash).expect("commits");
    let mut late = Session::stock(&path);
    late.must(STATE);
    let named = inode(&path);
    dash.close().expect("closes");
    assert_eq!(inode(&path), named);
    let told = suite::peers::last_error();
    assert!(told.contains("app.db-shadow") && told.contains("open the database again"), "{told}");
    for stock in [&mut early, &mut late] {
        assert!((0..=1).contains(&workload::number(&stock.must(STATE))));
    }
    let error = early.sql("DELETE FROM log").expect_err("it has the shadow");
    assert!(error.contains("readonly"), "{error}");
    // Once the later one is gone, the name is the earlier one's again.
    late.close();
    let dash = open(&path);
    assert_eq!(workload::state(&dash), 1);
    dash.close().expect("closes");
    assert_ne!(inode(&path), named);
    assert_eq!(workload::number(&early.must(STATE)), 1);
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
