//! After a large transaction the other copy is settled in the background: the next commit does
//! not carry all of it (F7).

mod suite;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use dash_testing::names::beside;
use suite::sql::{run, stat};

/// How long the thread may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// What a commit after a settled one carries at most; the large one changed a hundred times that.
const SMALL: i64 = 100_000;

/// The commit that the shadow was last brought up to: a word of the coordination file
/// (`coordination.rs`).
fn settled(path: &Path) -> u64 {
    const WORD: usize = 40;
    let words = fs::read(beside(path, "-dash")).expect("it is open");
    let word = words[8 * WORD..][..8].try_into().expect("eight bytes");
    u64::from_ne_bytes(word)
}

/// Waits until the shadow is brought up; whether it was. The thread that does it gives up where
/// somebody is in its way for a tenth of a second, as on a machine that stands still for so long.
fn is_settled_after(path: &Path, before: u64) -> bool {
    let begun = Instant::now();
    while settled(path) <= before {
        if begun.elapsed() > PATIENCE {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

#[test]
fn the_pages_of_the_large_one_are_not_carried() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = suite::open(&path);
    run(&db, "CREATE TABLE t(a INTEGER PRIMARY KEY, b)");
    let mut rounds = 0;
    for round in 0..5 {
        let (commit, before) = (settled(&path), stat(&db, "page_bytes"));
        run(
            &db,
            &format!(
                "INSERT OR REPLACE INTO t SELECT value, zeroblob(3000 + {round}) FROM
                 (WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n LIMIT 3000) SELECT value FROM n)"
            ),
        );
        assert!(stat(&db, "page_bytes") - before > 50 * SMALL, "a large one");
        let settled = is_settled_after(&path, commit);
        let before = stat(&db, "carried_bytes");
        run(&db, "UPDATE t SET b = 1 WHERE a = 1");
        let carried = stat(&db, "carried_bytes") - before;
        assert!(carried < SMALL || !settled, "round {round}: {carried} bytes carried");
        rounds += u32::from(settled);
    }
    assert!(rounds > 0, "it was never settled");
    println!("settled in {rounds} of 5 rounds");
    suite::check(&db);
    drop(db);
    suite::check(&suite::stock(&path));
}

#[test]
fn a_process_that_closes_leaves_a_plain_file_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = suite::open(&path);
    db.execute_batch(
        "CREATE TABLE t(b); INSERT INTO t VALUES (zeroblob(20000000)); INSERT INTO t VALUES (1)",
    )
    .unwrap();
    drop(db);
    assert!(!path.with_extension("db-dash").exists());
    assert!(!path.with_extension("db-journal").exists());
    suite::check(&suite::stock(&path));
}
