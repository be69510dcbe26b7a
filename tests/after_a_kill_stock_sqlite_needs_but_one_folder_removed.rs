//! A database that its programs left by `kill -9`, where dash is not at hand: the name fence is
//! removed, and the note in it, and stock SQLite has all that was acknowledged. So LIMITS.md says.
//! Where `-wal` was in memory it stays refused.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

mod suite;

use std::path::PathBuf;
use std::time::Duration;

use suite::parts::Part;
use suite::peers::Writer;
use suite::sql::run;
use suite::workload::{self, STATE};
use tempfile::TempDir;

/// One whose writer was killed, and its newest commit that was acknowledged.
fn killed(parameters: &str, after: u64) -> (TempDir, PathBuf, i64) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = suite::open_dash(path.as_os_str(), parameters).unwrap();
    workload::make(&db);
    db.close().unwrap();
    let mut writer = Writer::start(&path, Part { parameters, ..Part::default() });
    writer.reaches(6);
    std::thread::sleep(Duration::from_micros(after * 700));
    let acknowledged = writer.kill();
    (folder, path, acknowledged)
}

fn refused(path: &std::path::Path) -> String {
    let stock = suite::stock(path);
    let error = stock.query_row(STATE, [], |row| row.get::<_, i64>(0)).unwrap_err();
    error.to_string()
}

#[test]
fn after_a_kill_stock_sqlite_needs_but_one_folder_removed() {
    for mode in ["wal", "statement&dash_commit=paper", "shadow", "shadow&dash_commit=paper"] {
        let parameters = format!("&journal_mode={mode}");
        for after in 0..8 {
            let (_folder, path, acknowledged) = killed(&parameters, after);
            assert_eq!(refused(&path), "disk I/O error", "{mode}");
            suite::fence::remove(&path);
            let stock = suite::stock(&path);
            let found = stock
                .query_row(STATE, [], |row| {
                    let [n, rows, last] = [row.get(0)?, row.get(1)?, row.get::<_, i64>(2)?];
                    assert!(n == rows && rows == last, "{mode}: {n}, {rows}, {last}");
                    Ok(n)
                })
                .unwrap();
            assert!((acknowledged..=acknowledged + 1).contains(&found), "{mode}: {found}");
            suite::check(&stock);
            // It may go on without dash, and dash later with what it has made.
            run(&stock, "INSERT INTO log VALUES (1000000, 'by stock')");
            drop(stock);
            let dash = suite::open(&path);
            let rows: i64 = suite::one(&dash, "SELECT count(*) FROM log");
            assert_eq!(rows, found + 1, "{mode}");
            suite::check(&dash);
        }
    }
}

#[test]
fn but_not_what_had_wal_in_memory() {
    let (_folder, path, acknowledged) = killed("&journal_mode=wal&dash_wal=memory", 0);
    assert_eq!(refused(&path), "disk I/O error");
    suite::fence::remove(&path);
    assert_eq!(refused(&path), "unable to open database file");
    let dash = suite::open(&path);
    let found = suite::one::<i64>(&dash, "SELECT coalesce(max(n), 0) FROM log");
    assert!((acknowledged..=acknowledged + 1).contains(&found), "{found}");
}
