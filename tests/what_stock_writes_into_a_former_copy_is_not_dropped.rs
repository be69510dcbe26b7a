//! A stock connection that is reading since before a commit of dash's has a former copy of the
//! database open. With `journal_mode=MEMORY` or `OFF` stock SQLite does not ask whether its file
//! still has its name (pager.c `databaseIsUnmoved`): once no dash connection lives that keeps it
//! from writing, it writes there, and tells its user that the commit was made. Both files hold
//! commits then that the other lacks.

mod suite;

use std::path::{Path, PathBuf};

use suite::damage::shadow;
use suite::peers::Session;
use suite::workload::{self, STATE};
use suite::{open, stock, uri};
use tempfile::TempDir;

/// When the reader begins.
#[derive(Debug, Clone, Copy)]
enum Since {
    /// Before dash had the database.
    Before,
    /// In dash's session, after its second commit.
    Within,
}

/// A database that was closed through dash while a stock connection was reading the state before
/// the last commit, which then made commits of its own.
fn diverged(mode: &str, page_size: u32, since: Since, commits: usize) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.db");
    let db = stock(&path);
    db.execute_batch(&format!("PRAGMA page_size = {page_size}")).expect("sets");
    workload::make(&db);
    db.close().expect("closes");
    let mut reader = Session::stock(&path);
    reader.must(&format!("PRAGMA journal_mode = {mode}"));
    let begin = |reader: &mut Session| {
        reader.must("BEGIN");
        reader.must(STATE);
    };
    if let Since::Before = since {
        begin(&mut reader);
    }
    let dash = open(&path);
    if let Since::Within = since {
        for _ in 0..2 {
            workload::commit_next(&dash).expect("commits");
        }
        begin(&mut reader);
    }
    workload::commit_next(&dash).expect("commits");
    reader.sql("UPDATE spread SET pad = 1 WHERE id = 1").expect_err("dash keeps it from writing");
    reader.must("SELECT 1");
    dash.close().expect("closes");
    for number in 0..commits {
        reader.must(&format!("UPDATE spread SET pad = {number} WHERE id = 20"));
        let _in_a_transaction = (number == 0).then(|| reader.must("COMMIT"));
    }
    reader.close();
    (folder, path)
}

/// Panics unless dash refuses it, and both choices can be made.
fn refused(path: &Path, what: &str) {
    let rows = "SELECT count(*) FROM log";
    let open = || {
        rusqlite::Connection::open(uri(path, ""))
            .and_then(|db| db.query_row(rows, [], |row| row.get::<_, i64>(0)))
    };
    let error = open().expect_err(what);
    let told = suite::peers::last_error();
    assert!(told.contains("--keep"), "{what}: {error}; {told}");
}

#[test]
fn but_refused_with_both_states_to_choose_from() {
    suite::load();
    for mode in ["MEMORY", "OFF"] {
        for page_size in [512, 4096] {
            for since in [Since::Before, Since::Within] {
                for commits in 1..=3 {
                    let (_folder, path) = diverged(mode, page_size, since, commits);
                    assert!(shadow(&path).exists());
                    refused(&path, &format!("{mode} {page_size} {since:?} {commits}"));
                }
            }
        }
    }
}
