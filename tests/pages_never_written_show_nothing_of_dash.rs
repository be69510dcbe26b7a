//! Pages that SQLite takes into the file without writing them (T23): zeros or old content of a
//! page, and never a piece of dash's tail that once stood there, also after the tail has moved
//! (T24).

mod suite;

use std::fs;
use std::path::Path;

use dash_testing::names::beside;
use suite::sql::{at_rest, content, run};

/// What dash's blocks begin with.
const MAGIC: &[u8; 7] = b"\xff\xff\xff\xffDSH";

/// Panics if a block of dash lies before the last page of the file.
fn no_tail_inside(file: &Path, pages: i64, page_size: i64) {
    let bytes = fs::read(file).expect("readable");
    let end = usize::try_from(pages * page_size).expect("a size");
    assert!(bytes.len() >= end, "{} is shorter than the database", file.display());
    for at in (0..end).step_by(512) {
        assert!(!bytes[at..].starts_with(MAGIC), "{}: a block at {at}", file.display());
    }
    let behind = bytes[end..]
        .chunks(512)
        .filter(|sector| sector.starts_with(b"\xff\xff\xff\xffDSHC"))
        .count();
    assert!(behind <= 1, "{}: {behind} commit blocks", file.display());
}

/// Grows the database and gives the new pages up within one transaction: they become free pages
/// that were never written.
const GROW_THEN_FREE: &str = "BEGIN; CREATE TABLE gone(x);
    INSERT INTO gone VALUES (zeroblob(53000)), (zeroblob(200000)), (zeroblob(1500000));
    INSERT INTO kept(data) VALUES (randomblob(3000));
    DROP TABLE gone; COMMIT";

#[test]
fn after_growing_and_freeing_in_one_transaction() {
    for page_size in [512, 4096, 65536] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        let db = suite::open(&path);
        run(
            &db,
            &format!(
                "PRAGMA page_size = {page_size}; CREATE TABLE kept(id INTEGER PRIMARY KEY, data)"
            ),
        );
        for round in 0..4 {
            run(&db, GROW_THEN_FREE);
            let pages = suite::one::<i64>(&db, "PRAGMA page_count");
            assert!(suite::one::<i64>(&db, "PRAGMA freelist_count") > 0);
            no_tail_inside(&path, pages, page_size);
            suite::check(&db);
            // The freed pages come into use.
            run(&db, &format!("INSERT INTO kept(data) VALUES (randomblob(50000 * {round}))"));
            suite::check(&suite::open(&path));
        }
        let rows = content(&db, "SELECT * FROM kept");
        let pages = suite::one::<i64>(&db, "PRAGMA page_count");
        drop(db);
        assert_eq!(content(&at_rest(&path), "SELECT * FROM kept"), rows);
        no_tail_inside(&path, pages, page_size);
    }
}

/// T24: the tail moves with every growth past the room behind the last page; the old one is wiped
/// first.
#[test]
fn after_growing_past_the_tail_again_and_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = suite::open(&path);
    run(&db, "CREATE TABLE kept(id INTEGER PRIMARY KEY, data)");
    for round in 0..60 {
        run(&db, &format!("INSERT INTO kept(data) VALUES (randomblob({}))", 2000 + round * 3500));
        if round % 7 == 0 {
            run(&db, "DELETE FROM kept WHERE id % 5 = 0");
        }
        if round % 20 == 19 {
            run(&db, "VACUUM");
        }
        let pages = suite::one::<i64>(&db, "PRAGMA page_count");
        no_tail_inside(&path, pages, 4096);
    }
    suite::check(&db);
    let (rows, pages) =
        (content(&db, "SELECT * FROM kept"), suite::one::<i64>(&db, "PRAGMA page_count"));
    drop(db);
    assert_eq!(content(&at_rest(&path), "SELECT * FROM kept"), rows);
    no_tail_inside(&path, pages, 4096);
    no_tail_inside(&beside(&path, "-shadow"), pages, 4096);
}
