//! SQLite does not clean the free middle of page 1: cells that were dropped stay there, and all of
//! them when the schema outgrows the page. A commit block goes where they were, and the checksum of
//! page 1 has to be right all the same (SHADOW-15).

mod suite;

use std::fs;
use std::path::Path;

use dash_testing::names::beside;
use rusqlite::Connection;
use suite::damage::{first_page_block, shadow};
use suite::{check, one, open, stock};

/// A schema that fills page 1, or outgrows it; then most of it is dropped, or not.
fn with_schema(db: &Connection, page: u32, tables: u32, dropped: u32) {
    db.pragma_update(None, "page_size", page).expect("sets");
    db.execute_batch("CREATE TABLE kept(n)").expect("creates");
    for n in 0..tables {
        let columns: Vec<_> = (0..6).map(|c| format!("column_{c} NOT NULL")).collect();
        let sql = format!("CREATE TABLE t{n}({})", columns.join(", "));
        db.execute_batch(&sql).expect("creates");
    }
    for n in 0..dropped {
        db.execute_batch(&format!("DROP TABLE t{n}")).expect("drops");
    }
}

/// Whether SQLite left anything in the free middle of page 1's first sector.
fn has_garbage(path: &Path) -> bool {
    let page = fs::read(path).expect("reads");
    let number = |at: usize| usize::from(page[at]) << 8 | usize::from(page[at + 1]);
    let pointers = if page[100] == 5 { 112 } else { 108 };
    let content = if number(105) == 0 { 65_536 } else { number(105) };
    page[pointers + 2 * number(103)..content.min(512)].iter().any(|&byte| byte != 0)
}

/// The files as they stand, in inodes of their own, as after a power loss that lost the exchanges.
fn with_the_names_behind(path: &Path, folder: &Path) -> Connection {
    let copy = folder.join("app.db");
    fs::copy(path, shadow(&copy)).expect("copies");
    fs::copy(shadow(path), &copy).expect("copies");
    fs::create_dir(beside(&copy, "-journal")).expect("makes");
    open(&copy)
}

#[test]
fn a_commit_is_whole_whatever_the_free_middle_held() {
    let (mut in_page_1, mut garbage) = (0, 0);
    for page in [512, 1024, 4096, 65_536] {
        for (tables, dropped) in [(0, 0), (4, 3), (24, 0), (24, 22), (70, 0), (70, 69)] {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("app.db");
            // What stock SQLite leaves is what dash finds.
            let made = stock(&path);
            with_schema(&made, page, tables, dropped);
            made.close().expect("closes");
            garbage += u32::from(has_garbage(&path));
            let db = open(&path);
            db.execute_batch("PRAGMA journal_mode=shadow").expect("sets");
            for n in 1..5 {
                db.execute("INSERT INTO kept VALUES (?)", [n]).expect("inserts");
                let copies = tempfile::tempdir().expect("a folder");
                let after = with_the_names_behind(&path, copies.path());
                let seen: i64 = one(&after, "SELECT max(n) FROM kept");
                assert_eq!(seen, n, "pages of {page}, {tables} tables, {dropped} dropped");
                check(&after);
            }
            in_page_1 += u32::from(first_page_block(&path).is_some());
            check(&db);
            db.close().expect("closes");
            let plain = stock(&path);
            check(&plain);
            assert_eq!(one::<i64>(&plain, "SELECT count(*) FROM kept"), 4);
        }
    }
    assert!(in_page_1 > 10 && garbage > 5, "{in_page_1} blocks in page 1, {garbage} with garbage");
}
