//! VACUUM, VACUUM INTO and every page size: T21 (sizes), T22 (the page size changes inside one
//! commit), T24 (a moved tail leaves no second one).

mod suite;

use std::fs;
use std::path::Path;

use dash_testing::names::beside;
use rusqlite::Connection;
use suite::sql::{at_rest, content, run, stat};

const SIZES: [i64; 8] = [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536];
const ROWS: &str = "SELECT * FROM t ORDER BY id";

fn filled(path: &Path, page_size: i64) -> Connection {
    let db = suite::open(path);
    run(
        &db,
        &format!(
            "PRAGMA page_size = {page_size};
             CREATE TABLE t(id INTEGER PRIMARY KEY, v, data); CREATE INDEX t_v ON t(v, data);
             WITH n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 300)
             INSERT INTO t SELECT i, i % 17, randomblob(i * 7) FROM n;"
        ),
    );
    assert_eq!(suite::one::<i64>(&db, "PRAGMA page_size"), page_size);
    db
}

/// The commit blocks in a file: places where one begins.
fn blocks(path: &Path) -> Vec<usize> {
    let bytes = fs::read(path).expect("readable");
    let magic = *b"\xff\xff\xff\xffDSHC";
    (0..bytes.len()).step_by(512).filter(|at| bytes[*at..].starts_with(&magic)).collect()
}

#[test]
fn databases_are_made_and_changed_with_every_page_size() {
    for size in SIZES {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        let (db, other) = (filled(&path, size), suite::open(&path));
        for round in 0..4 {
            run(
                &db,
                "UPDATE t SET data = randomblob(length(data) + 1) WHERE v = 3; DELETE FROM t WHERE id % 40 = 1; INSERT INTO t(v, data) VALUES (1, zeroblob(100000))",
            );
            assert_eq!(content(&other, ROWS), content(&db, ROWS), "{size} {round}");
            suite::check(&other);
        }
        let last = content(&db, ROWS);
        drop((db, other));
        let stock = at_rest(&path);
        assert_eq!(suite::one::<i64>(&stock, "PRAGMA page_size"), size);
        assert_eq!(content(&stock, ROWS), last);
    }
}

#[test]
fn vacuum_changes_any_page_size_into_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = filled(&path, 4096);
    let other = suite::open(&path);
    let before = content(&db, ROWS);
    let mut changes = 0;
    for from in SIZES {
        for to in SIZES {
            run(
                &db,
                &format!("PRAGMA page_size = {from}; VACUUM; PRAGMA page_size = {to}; VACUUM"),
            );
            changes += 1;
            assert_eq!(suite::one::<i64>(&db, "PRAGMA page_size"), to);
            assert_eq!(content(&other, ROWS), before, "{from} to {to}");
            if changes % 4 == 0 {
                suite::check(&other);
                run(&other, "UPDATE t SET v = v WHERE id < 20");
                suite::check(&db);
            }
        }
    }
    assert_eq!(suite::one::<i64>(&other, "PRAGMA page_size"), 65536);
    drop((db, other));
    assert_eq!(content(&at_rest(&path), ROWS), before);
    for file in [path.clone(), beside(&path, "-shadow")] {
        assert_eq!(blocks(&file).len(), 1, "{}: {:?}", file.display(), blocks(&file));
    }
}

#[test]
fn vacuum_gives_the_pages_of_deleted_rows_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = filled(&path, 4096);
    run(&db, "INSERT INTO t(v, data) SELECT v, randomblob(20000) FROM t");
    let large = suite::one::<i64>(&db, "PRAGMA page_count");
    run(&db, "DELETE FROM t WHERE length(data) = 20000");
    assert_eq!(suite::one::<i64>(&db, "PRAGMA page_count"), large);
    let rows = content(&db, ROWS);
    let commits = stat(&db, "commits");
    run(&db, "VACUUM");
    assert_eq!(stat(&db, "commits"), commits + 1);
    let small = suite::one::<i64>(&db, "PRAGMA page_count");
    assert!(small * 10 < large, "{small} of {large} pages");
    drop(db);
    let stock = at_rest(&path);
    assert_eq!(suite::one::<i64>(&stock, "PRAGMA page_count"), small);
    assert_eq!(content(&stock, ROWS), rows);
}

#[test]
fn vacuum_into_writes_a_plain_file_and_one_of_dash() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = filled(&path, 4096);
    let before = content(&db, ROWS);
    let (plain, through_dash) =
        (folder.path().join("plain.db"), folder.path().join("through dash.db"));
    // A name without a VFS of its own goes through the VFS of `main`.
    db.execute("VACUUM INTO ?", [plain.to_str()]).unwrap();
    db.execute("VACUUM INTO ?", [suite::uri(&through_dash, "")]).unwrap();
    db.execute(
        "VACUUM INTO ?",
        [format!("file:{}?vfs=unix", folder.path().join("stock.db").display())],
    )
    .unwrap();
    for copy in [plain, through_dash, folder.path().join("stock.db")] {
        assert_eq!(content(&at_rest(&copy), ROWS), before, "{}", copy.display());
        run(&suite::stock(&copy), "INSERT INTO t(v) VALUES (1)");
    }
    run(&db, "INSERT INTO t(v) VALUES (2)");
    suite::check(&db);
}
