//! Transactions end as stock SQLite's do: savepoints, rollbacks, spills, every pager mode.

mod common;
use common::*;

/// A few thousand rows, so that a small cache spills.
const FILL: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<5000) \
     INSERT INTO t(x) SELECT hex(randomblob(100)) FROM n";

fn filled(folder: &Folder) -> Connection {
    let db = folder.open("app.db");
    db.execute_batch("CREATE TABLE t(id INTEGER PRIMARY KEY, x)").expect("commits");
    db.execute_batch(FILL).expect("commits");
    db.execute_batch("PRAGMA cache_size=10").expect("sets");
    db
}

fn sum(db: &Connection) -> String {
    text(
        db,
        "SELECT count(*) || ' ' || sum(length(x)) || ' ' || group_concat(substr(x, 1, 2), '') FROM t",
    )
}

#[test]
fn a_rollback_after_a_cache_spill_leaves_everything_as_it_was() {
    let folder = Folder::new();
    let db = filled(&folder);
    let before = sum(&db);
    db.execute_batch("BEGIN; UPDATE t SET x = 'changed' || id; DELETE FROM t WHERE id % 3 = 0")
        .expect("writes");
    assert_ne!(sum(&db), before);
    db.execute_batch("ROLLBACK").expect("rolls back");
    assert_eq!(sum(&db), before);
    whole(&db);
    db.execute_batch("INSERT INTO t(x) VALUES ('after')").expect("commits");
    drop(db);
    let stock = folder.stock("app.db");
    assert_eq!(number(&stock, "SELECT count(*) FROM t"), 5001);
    whole(&stock);
}

#[test]
fn a_savepoint_rolls_back_inside_a_spilled_transaction() {
    let folder = Folder::new();
    let db = filled(&folder);
    db.execute_batch("BEGIN; UPDATE t SET x = 'kept'; SAVEPOINT s; UPDATE t SET x = 'dropped'; DELETE FROM t WHERE id > 10; ROLLBACK TO s; COMMIT")
        .expect("commits");
    assert_eq!(number(&db, "SELECT count(*) FROM t WHERE x = 'kept'"), 5000);
    whole(&db);
}

#[test]
fn a_failed_statement_undoes_only_itself() {
    let folder = Folder::new();
    let db = folder.open("app.db");
    db.execute_batch("CREATE TABLE u(x UNIQUE); INSERT INTO u VALUES (5)").expect("commits");
    db.execute_batch("BEGIN; INSERT INTO u VALUES (1)").expect("writes");
    assert_eq!(
        code(db.execute_batch("INSERT INTO u SELECT value FROM json_each('[2,3,5]')")),
        ErrorCode::ConstraintViolation
    );
    db.execute_batch("COMMIT").expect("commits");
    assert_eq!(text(&db, "SELECT group_concat(x) FROM u"), "5,1");
}

#[test]
fn every_pager_mode_is_correct_even_if_switched_unseen() {
    for mode in ["delete", "truncate", "persist", "memory", "off"] {
        let folder = Folder::new();
        filled(&folder);
        let db = Connection::open_in_memory().expect("opens");
        db.execute("ATTACH ? AS a", [uri(&folder.path("app.db"), "dash", "")]).expect("attaches");
        // `main` is in memory, so nobody asks the attached file (T19).
        db.execute_batch(&format!("PRAGMA a.cache_size=10; PRAGMA journal_mode={mode}"))
            .expect("sets");
        assert_eq!(text(&db, "SELECT dash_engine('a')"), "shadow");
        let before = sum(&db);
        db.execute_batch("BEGIN; UPDATE t SET x = 'x'; ROLLBACK").expect("rolls back");
        if mode != "off" {
            assert_eq!(sum(&db), before, "{mode}");
        }
        drop(db);
        let db = folder.open("app.db");
        assert_eq!(sum(&db), before, "{mode}");
        whole(&db);
        assert!(
            !folder.exists("app.db-journal") || folder.path("app.db-journal").is_dir(),
            "{mode}"
        );
    }
}

#[test]
fn vacuum_page_sizes_and_auto_vacuum_work() {
    let folder = Folder::new();
    let db = filled(&folder);
    for size in [1024, 65536, 512, 4096] {
        db.execute_batch(&format!("PRAGMA page_size={size}; VACUUM")).expect("vacuums");
        assert_eq!(number(&db, "PRAGMA page_size"), size);
        assert_eq!(number(&db, "SELECT count(*) FROM t"), 5000);
        whole(&db);
    }
    db.execute_batch("PRAGMA auto_vacuum=incremental; VACUUM; DELETE FROM t WHERE id > 100; PRAGMA incremental_vacuum").expect("vacuums");
    whole(&db);
    drop(db);
    let stock = folder.stock("app.db");
    assert_eq!(number(&stock, "SELECT count(*) FROM t"), 100);
    whole(&stock);
}

#[test]
fn a_large_journal_spills_to_a_file_without_a_name() {
    let folder = Folder::new();
    let db = filled(&folder);
    for _ in 0..4 {
        db.execute_batch("INSERT INTO t(x) SELECT hex(randomblob(100)) FROM t").expect("commits");
    }
    let before = sum(&db);
    assert!(
        number(&db, "PRAGMA page_count") * 4096 > 8 << 20,
        "more than the journal keeps in memory"
    );
    db.execute_batch("BEGIN; UPDATE t SET x = x || '1'; ROLLBACK").expect("rolls back");
    assert_eq!(sum(&db), before);
    whole(&db);
}

#[test]
fn every_level_of_synchronous_commits() {
    let folder = Folder::new();
    let db = folder.open("app.db");
    db.execute_batch("CREATE TABLE t(x)").expect("commits");
    for (level, flushed) in [("OFF", false), ("NORMAL", true), ("FULL", true), ("EXTRA", true)] {
        let unflushed =
            || number(&db, "SELECT value FROM dash_stats WHERE name='unflushed_commits'");
        let before = unflushed();
        db.execute_batch(&format!("PRAGMA synchronous={level}; INSERT INTO t VALUES ('{level}')"))
            .expect("commits");
        assert_eq!(unflushed() - before, i64::from(!flushed), "{level}");
    }
    drop(db);
    assert_eq!(number(&folder.stock("app.db"), "SELECT count(*) FROM t"), 4);
}

#[test]
fn mapped_reads_show_every_commit() {
    let folder = Folder::new();
    let db = filled(&folder);
    let other = folder.open("app.db");
    other.execute_batch("PRAGMA mmap_size=100000000").expect("sets");
    assert_eq!(number(&other, "PRAGMA mmap_size"), 100_000_000);
    for round in 0..20 {
        db.execute_batch(&format!(
            "UPDATE t SET x = 'round {round}' WHERE id % 50 = 0; INSERT INTO t(x) VALUES ('new')"
        ))
        .expect("commits");
        assert_eq!(
            number(&other, &format!("SELECT count(*) FROM t WHERE x = 'round {round}'")),
            100
        );
        assert_eq!(sum(&other), sum(&db));
    }
    other.execute_batch("BEGIN; UPDATE t SET x = 'mine'; ROLLBACK").expect("rolls back");
    assert_eq!(sum(&other), sum(&db));
    whole(&other);
}
