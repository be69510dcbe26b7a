//! What stock SQLite left beside a database is dealt with before the engine opens it.

mod common;
use common::*;

const FILL: &str = "CREATE TABLE t(id INTEGER PRIMARY KEY, x); \
     WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<2000) INSERT INTO t(x) SELECT hex(zeroblob(100)) FROM n";

/// A database stays in mode shadow whatever it was left in.
const SHADOW: &str = "&dash_default=shadow";

/// A database and the hot journal of a transaction that was cut off in the middle.
fn hot_journal(folder: &Folder, name: &str) {
    let stock = folder.stock("source.db");
    stock.execute_batch(FILL).expect("commits");
    stock
        .execute_batch("PRAGMA cache_size=5; BEGIN; CREATE TABLE torn(x); UPDATE t SET x = 'torn'")
        .expect("spills");
    for suffix in ["", "-journal"] {
        std::fs::copy(
            folder.path(&format!("source.db{suffix}")),
            folder.path(&format!("{name}{suffix}")),
        )
        .expect("copies");
    }
    stock.execute_batch("ROLLBACK").expect("rolls back");
}

#[test]
fn a_hot_journal_is_rolled_back_first() {
    let folder = Folder::new();
    hot_journal(&folder, "app.db");
    let db = folder.open("app.db");
    assert_eq!(text(&db, "PRAGMA journal_mode"), "shadow");
    assert_eq!(number(&db, "SELECT count(*) FROM t WHERE x = 'torn'"), 0);
    assert_eq!(number(&db, "SELECT count(*) FROM t"), 2000);
    whole(&db);
    db.execute_batch("INSERT INTO t(x) VALUES (1)").expect("commits");
    db.execute_batch("INSERT INTO t(x) VALUES (2)").expect("commits");
    assert!(!folder.path("app.db-journal").is_file());
}

#[test]
fn a_hot_journal_is_respected_when_reading_only() {
    let folder = Folder::new();
    hot_journal(&folder, "app.db");
    let db = folder.try_open("app.db", "&mode=ro").expect("opens as stock does");
    // Stock says that it would have to write to roll back.
    let seen: Result<i64> =
        db.query_row("SELECT count(*) FROM t WHERE x = 'torn'", [], |row| row.get(0));
    assert_eq!(code(seen), ErrorCode::ReadOnly);
}

#[test]
fn a_kept_journal_of_persist_mode_is_removed() {
    let folder = Folder::new();
    let stock = folder.stock("app.db");
    stock
        .execute_batch("PRAGMA journal_mode=PERSIST; CREATE TABLE t(x); INSERT INTO t VALUES (1)")
        .expect("commits");
    drop(stock);
    assert!(folder.path("app.db-journal").is_file());
    let db = folder.open("app.db");
    for round in 0..4 {
        db.execute("INSERT INTO t VALUES (?)", [round]).expect("commits");
    }
    assert_eq!(number(&db, "SELECT count(*) FROM t"), 5);
}

#[test]
fn a_file_in_wal_mode_is_taken_out_of_it() {
    let folder = Folder::new();
    let stock = folder.stock("app.db");
    stock
        .execute_batch("PRAGMA journal_mode=WAL; CREATE TABLE t(x); INSERT INTO t VALUES (1)")
        .expect("commits");
    drop(stock);
    let db = folder.try_open("app.db", SHADOW).expect("opens");
    assert_eq!(text(&db, "PRAGMA journal_mode"), "shadow");
    db.execute_batch("INSERT INTO t VALUES (2)").expect("commits");
    assert_eq!(number(&db, "SELECT count(*) FROM t"), 2);
    drop(db);
    assert_eq!(text(&folder.stock("app.db"), "PRAGMA journal_mode"), "delete");
}

/// A database and the WAL of a process that was killed.
fn wal_of_a_killed_process(folder: &Folder) {
    let stock = folder.stock("source.db");
    stock.execute_batch("PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0").expect("sets");
    stock.execute_batch(FILL).expect("commits");
    for suffix in ["", "-wal"] {
        std::fs::copy(
            folder.path(&format!("source.db{suffix}")),
            folder.path(&format!("app.db{suffix}")),
        )
        .expect("copies");
    }
}

#[test]
fn a_wal_that_a_killed_process_left_is_checkpointed_first() {
    let folder = Folder::new();
    wal_of_a_killed_process(&folder);
    let db = folder.try_open("app.db", SHADOW).expect("opens");
    assert_eq!(number(&db, "SELECT count(*) FROM t"), 2000);
    assert!(!folder.exists("app.db-wal") && !folder.exists("app.db-shm"));
    whole(&db);
}

/// Stock SQLite writes the header through a journal when it leaves WAL mode.
#[test]
fn a_plain_file_that_was_being_taken_out_of_wal_mode_is_taken_out_of_it() {
    const PAGE: usize = 4096;
    const VERSIONS: std::ops::Range<usize> = 18..20;
    let folder = Folder::new();
    hot_journal(&folder, "app.db");
    let path = folder.path("app.db-journal");
    let mut journal = std::fs::read(&path).expect("reads");
    // The header is in a sector of its own; a page has its number before it, a sum behind it, which
    // leaves these bytes out.
    let page = journal[512..]
        .chunks_mut(PAGE + 8)
        .find(|record| record.starts_with(&1_u32.to_be_bytes()))
        .expect("page 1 is in it");
    page[4..][VERSIONS].fill(2);
    std::fs::write(&path, journal).expect("writes");
    let db = folder.try_open("app.db", "&journal_mode=delete").expect("opens");
    assert_eq!(number(&db, "SELECT count(*) FROM t WHERE x = 'torn'"), 0);
    assert_eq!(number(&db, "SELECT count(*) FROM t"), 2000);
    assert_eq!(text(&db, "PRAGMA journal_mode"), "delete");
    whole(&db);
}

#[test]
fn a_plain_file_begins_empty_beside_an_old_journal() {
    let folder = Folder::new();
    hot_journal(&folder, "app.db");
    std::fs::remove_file(folder.path("app.db")).expect("there");
    let db = folder.try_open("app.db", "&journal_mode=delete").expect("opens");
    assert_eq!(number(&db, "SELECT count(*) FROM sqlite_schema"), 0);
    db.execute_batch("CREATE TABLE t(x)").expect("commits");
}

/// The shadow of a session that was closed lies beside it, and says nothing of what stock SQLite
/// was at since.
#[test]
fn beside_a_shadow_a_checkpoint_that_was_cut_off_is_finished_first() {
    let folder = Folder::new();
    let db = folder.open("app.db");
    db.execute_batch("CREATE TABLE before(x); INSERT INTO before VALUES (1)").expect("commits");
    db.close().expect("closes");
    let stock = folder.stock("app.db");
    stock.execute_batch("PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0").expect("sets");
    stock.execute_batch(FILL).expect("commits");
    let path = |name| folder.path(name);
    let read = |name| std::fs::read(path(name)).expect("reads");
    let (mut before, wal) = (read("app.db"), read("app.db-wal"));
    stock.close().expect("closes");
    before[..4096].copy_from_slice(&read("app.db")[..4096]);
    std::fs::write(path("app.db"), before).expect("writes");
    std::fs::write(path("app.db-wal"), wal).expect("writes");
    assert!(folder.exists("app.db-shadow"));
    let db = folder.try_open("app.db", "&journal_mode=wal").expect("opens");
    assert_eq!(number(&db, "SELECT count(*) FROM t"), 2000);
    whole(&db);
}

/// Somebody has copied a database with its WAL and the fence, and nothing else: what to do is said,
/// whatever mode is asked for.
#[test]
fn a_wal_beside_a_name_fence_is_refused_with_what_to_do() {
    for (parameters, remedy) in [
        ("&journal_mode=delete", "the name fence of dash"),
        ("&journal_mode=shadow", "`sqlite-dash recover app.db --keep database`"),
        ("&journal_mode=wal", "`sqlite-dash recover app.db --discard`"),
        ("", "`sqlite-dash recover app.db --discard`"),
    ] {
        let folder = Folder::new();
        wal_of_a_killed_process(&folder);
        std::fs::create_dir(folder.path("app.db-journal")).expect("makes");
        assert_eq!(code(folder.try_open("app.db", parameters)), ErrorCode::CannotOpen);
        let said = last_error(&folder.stock(":memory:"));
        assert!(said.contains(remedy), "{parameters}: {said}");
        assert!(folder.exists("app.db-wal"), "{parameters}");
    }
}

/// A killed process had it up, and the files that belong to it are elsewhere: stock SQLite, which
/// would say "disk I/O error", is not asked.
#[test]
fn no_database_is_put_into_wal_mode_beside_a_name_fence() {
    let folder = Folder::new();
    folder.stock("app.db").execute_batch("CREATE TABLE t(x)").expect("makes");
    std::fs::create_dir(folder.path("app.db-journal")).expect("makes");
    assert_eq!(code(folder.try_open("app.db", "&journal_mode=wal")), ErrorCode::CannotOpen);
    let said = last_error(&folder.stock(":memory:"));
    assert!(said.contains("app.db-shadow, which may hold its newest commit, is missing"), "{said}");
}

#[test]
fn a_file_in_wal_mode_and_in_use_is_refused_with_what_to_do() {
    let folder = Folder::new();
    let stock = folder.stock("app.db");
    stock
        .execute_batch(
            "PRAGMA journal_mode=WAL; CREATE TABLE t(x); BEGIN; INSERT INTO t VALUES (1)",
        )
        .expect("writes");
    assert_eq!(code(folder.try_open("app.db", "")), ErrorCode::DatabaseBusy);
    assert!(last_error(&stock).contains("in use by another process"), "{}", last_error(&stock));
    assert_eq!(code(folder.try_open("app.db", SHADOW)), ErrorCode::DatabaseBusy);
    let said = last_error(&stock);
    assert!(
        said.contains("is in WAL mode, and is in use by another process, or by a connection of this one; close it there first"),
        "{said}"
    );
    // Reading only, it is read as stock does.
    let reader = folder.try_open("app.db", "&mode=ro").expect("opens");
    assert_eq!(text(&reader, "SELECT dash_engine()"), "plain");
    assert_eq!(number(&reader, "SELECT count(*) FROM t"), 0);
    drop(reader);
    stock.execute_batch("COMMIT").expect("commits");
    drop(stock);
    assert_eq!(number(&folder.open("app.db"), "SELECT count(*) FROM t"), 1);
}

#[test]
fn the_name_fence_is_no_journal() {
    let folder = Folder::new();
    folder.open("app.db").execute_batch("CREATE TABLE t(x)").expect("commits");
    std::fs::create_dir(folder.path("app.db-journal")).expect("makes");
    let db = folder.open("app.db");
    db.execute_batch("INSERT INTO t VALUES (1)").expect("commits");
    db.execute_batch("INSERT INTO t VALUES (2)").expect("commits");
    assert_eq!(number(&db, "SELECT count(*) FROM t"), 2);
    drop(db);
    assert!(!folder.exists("app.db-journal"));
    assert_eq!(number(&folder.stock("app.db"), "SELECT count(*) FROM t"), 2);

    std::fs::create_dir(folder.path("app.db-journal")).expect("makes");
    let db = folder.try_open("app.db", "&journal_mode=wal").expect("opens");
    db.execute_batch("INSERT INTO t VALUES (3)").expect("commits");
    drop(db);
    assert!(!folder.exists("app.db-journal"));
    assert_eq!(number(&folder.stock("app.db"), "SELECT count(*) FROM t"), 3);
}

#[test]
fn an_empty_file_beside_an_old_journal_starts_empty() {
    let folder = Folder::new();
    hot_journal(&folder, "app.db");
    std::fs::remove_file(folder.path("app.db")).expect("removes");
    let db = folder.open("app.db");
    assert_eq!(number(&db, "SELECT count(*) FROM sqlite_schema"), 0);
    db.execute_batch("CREATE TABLE t(x)").expect("commits");
    db.execute_batch("INSERT INTO t VALUES (1)").expect("commits");
}
