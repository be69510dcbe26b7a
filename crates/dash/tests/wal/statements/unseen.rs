//! What can't be recorded: each time the commit is there, and says why.

#![allow(unsafe_code, reason = "tests call SQLite's C interface directly")]

use core::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;

use rusqlite::MAIN_DB;
use rusqlite::ffi;
use rusqlite::functions::FunctionFlags;

use super::*;

fn says(db: &Connection, reason: Reason) {
    assert_eq!(self::reason(db), reason.sentence());
}

#[test]
fn a_blob_handle_writes_without_a_statement() {
    let folder = Folder::new();
    let db = database(&folder);
    db.execute_batch("INSERT INTO t VALUES (1, zeroblob(100)), (2, zeroblob(9000))").expect("ok");
    for row in [1, 2] {
        let open = || db.blob_open(MAIN_DB, "t", "c", row, false).expect("opens");
        // Within a transaction: what is closed, and what is open at the commit.
        db.execute_batch("BEGIN; UPDATE t SET id=id").expect("writes");
        open().write_at(b"abc", 0).expect("writes");
        db.execute_batch("COMMIT").expect("commits");
        says(&db, Reason::BlobHandle);
        assert_eq!(newest(&db, "sql"), ["UPDATE t SET id=id"]);
        let mut blob = open();
        db.execute_batch("BEGIN; INSERT INTO t(c) VALUES (2)").expect("writes");
        blob.write_at(b"abc", 4).expect("writes");
        drop(blob);
        db.execute_batch("COMMIT").expect("commits");
        says(&db, Reason::BlobHandle);
        // As the first one that writes.
        db.execute_batch("BEGIN").expect("begins");
        open().write_at(b"abc", 1).expect("writes");
        db.execute_batch("INSERT INTO t(c) VALUES (1); COMMIT").expect("commits");
        says(&db, Reason::BlobHandle);
        assert_eq!(newest(&db, "sql"), ["INSERT INTO t(c) VALUES (1);"]);
        // By itself.
        open().write_at(b"abc", 2).expect("writes");
        says(&db, Reason::BlobHandle);
        assert_eq!(newest(&db, "sql"), ["-"]);
        insert(&db, 1);
        assert_eq!(reason(&db), "-", "the next transaction has nothing of it");
    }
    assert_eq!(text(&db, "SELECT hex(substr(c, 1, 7)) FROM t WHERE id=1"), "61616162636263");
}

#[test]
fn an_open_query_hides_what_a_blob_handle_may_write() {
    let folder = Folder::new();
    let db = database(&folder);
    db.execute_batch("INSERT INTO t(c) SELECT zeroblob(3000) FROM (VALUES (1), (2), (3), (4))")
        .expect("commits");
    let mut query = db.prepare("SELECT length(c) FROM t").expect("prepares");
    db.execute_batch("BEGIN; INSERT INTO t(c) VALUES (5)").expect("writes");
    let mut rows = query.query([]).expect("queries");
    rows.next().expect("a row");
    db.execute_batch("INSERT INTO t(c) VALUES (6)").expect("writes");
    rows.next().expect("a row");
    rows.next().expect("a row");
    db.execute_batch("INSERT INTO t(c) VALUES (7)").expect("writes");
    drop(rows);
    db.execute_batch("COMMIT").expect("commits");
    says(&db, Reason::OpenQuery);
    assert_eq!(newest(&db, "sql").len(), 3);
}

#[test]
fn full_text_indexes_run_statements_of_their_own() {
    let folder = Folder::new();
    let db = database(&folder);
    db.execute_batch("CREATE VIRTUAL TABLE f USING fts5(x)").expect("commits");
    says(&db, Reason::OtherProgram);
    let before = commits(&db);
    db.execute("INSERT INTO f VALUES (?)", ["some words"]).expect("commits");
    assert_eq!(newest(&db, "sql"), ["INSERT INTO f VALUES (?)"]);
    assert_eq!(newest(&db, "parameters"), ["'some words'"]);
    assert!(newest(&db, "nested")[0].parse::<i64>().expect("a number") > 1);
    says(&db, Reason::OtherProgram);
    db.execute_batch("BEGIN; INSERT INTO f VALUES ('more'); INSERT INTO t(c) VALUES (1); COMMIT")
        .expect("commits");
    assert_eq!(newest(&db, "sql").len(), 2);
    says(&db, Reason::OtherProgram);
    assert_eq!(commits(&db), before + 2);
    assert_eq!(number(&db, "SELECT count(*) FROM f WHERE f MATCH 'words OR more'"), 2);
}

/// `SELECT w(5)`, where `w` runs an INSERT.
#[test]
fn a_function_runs_a_statement_inside_a_query() {
    let folder = Folder::new();
    let db = database(&folder);
    db.create_scalar_function("w", 1, FunctionFlags::SQLITE_UTF8, |context| {
        // SAFETY: used during the call only.
        let db = unsafe { context.get_connection() }?;
        db.execute("INSERT INTO t(c) VALUES (?)", [context.get::<i64>(0)?]).map(|_| 0)
    })
    .expect("registers");
    let before = commits(&db);
    let call = |value: i64| db.query_row("SELECT w(?)", [value], |row| row.get::<_, i64>(0));
    assert_eq!(call(5), Ok(0));
    assert_eq!(commits(&db), before + 1);
    assert_eq!(newest(&db, "sql"), ["SELECT w(?)"]);
    says(&db, Reason::OtherProgram);
    // In a transaction its values are known, too.
    db.execute_batch("BEGIN").expect("begins");
    assert_eq!(call(6), Ok(0));
    db.execute_batch("COMMIT").expect("commits");
    assert_eq!(
        (newest(&db, "parameters"), newest(&db, "nested")),
        (vec!["6".into()], vec!["1".into()])
    );
    // A query that others commit beside runs on.
    insert(&db, 1);
    let mut query = db.prepare("SELECT w(id), ? FROM t LIMIT 3").expect("prepares");
    let mut rows = query.query(["x%"]).expect("queries");
    for _ in 0..3 {
        assert!(rows.next().expect("runs on").is_some());
        insert(&db, 2);
    }
    drop(rows);
    assert_eq!(number(&db, "SELECT count(*) FROM t"), 9);
    // Also one that SQLite would plan anew, for its value.
    let sql =
        "SELECT w(id), (SELECT count(*) FROM t AS u WHERE u.c LIKE ? AND u.id >= t.id) FROM t";
    let mut query = db.prepare(sql).expect("prepares");
    let mut rows = query.query(["x%"]).expect("queries");
    for _ in 0..3 {
        assert!(rows.next().expect("runs on").is_some());
        insert(&db, 2);
    }
}

extern "C" fn ignore(_: c_uint, _: *mut c_void, _: *mut c_void, _: *mut c_void) -> c_int {
    0
}

#[test]
fn a_host_that_takes_the_hook_has_it() {
    let folder = Folder::new();
    let db = database(&folder);
    let take = |call: Option<_>| {
        // SAFETY: an open connection of this thread's.
        assert_eq!(unsafe { ffi::sqlite3_trace_v2(db.handle(), 1, call, null_mut()) }, 0);
    };
    db.execute_batch("BEGIN; INSERT INTO t(c) VALUES (1)").expect("writes");
    take(Some(ignore));
    db.execute_batch("INSERT INTO t(c) VALUES (2); COMMIT").expect("commits");
    says(&db, Reason::HookTaken);
    assert_eq!(newest(&db, "sql"), ["INSERT INTO t(c) VALUES (1)"]);
    // Ours is not set again, whatever the host does with its own.
    take(None);
    insert(&db, 3);
    says(&db, Reason::HookTaken);
    assert_eq!(newest(&db, "sql"), ["-"]);
    db.execute_batch("BEGIN; INSERT INTO t(c) VALUES (4); COMMIT").expect("commits");
    says(&db, Reason::HookTaken);
    assert_eq!(number(&db, "SELECT count(*) FROM t"), 4);
    assert_eq!(commits(&db), 4);
}

/// What was rolled back after the hook was lost is not taken for what the next commit did.
#[test]
fn nothing_of_a_transaction_whose_end_was_not_seen_stays() {
    let folder = Folder::new();
    let db = database(&folder);
    db.execute_batch("BEGIN; INSERT INTO t(c) VALUES (1)").expect("writes");
    // SAFETY: an open connection of this thread's.
    unsafe { ffi::sqlite3_trace_v2(db.handle(), 0, None, null_mut()) };
    db.execute_batch("ROLLBACK; BEGIN; INSERT INTO t(c) VALUES (2); COMMIT").expect("commits");
    assert_eq!(newest(&db, "sql"), ["-"]);
    says(&db, Reason::HookTaken);
}

#[test]
fn a_database_that_is_attached_to_a_connection_that_records_nothing_says_so() {
    let folder = Folder::new();
    let db = folder.open("other.db");
    let attached = uri(&folder.path("app.db"), "dash", "&journal_mode=wal&dash_statements=on");
    db.execute_batch(&format!("ATTACH '{attached}' AS a; CREATE TABLE a.t(x)")).expect("commits");
    let found = text(&db, "SELECT reason FROM dash_statements('a') WHERE connection IS NULL");
    assert_eq!(found, Reason::OpenedBefore.sentence());
}

#[test]
fn a_transaction_over_two_databases_says_so_in_both() {
    let folder = Folder::new();
    let db = database(&folder);
    let other = uri(&folder.path("other.db"), "dash", "&journal_mode=wal&dash_statements=on");
    db.execute_batch(&format!("ATTACH '{other}' AS a; CREATE TABLE a.u(x)")).expect("commits");
    db.execute_batch("BEGIN; INSERT INTO t(c) VALUES (1); INSERT INTO u VALUES (2); COMMIT")
        .expect("commits");
    for schema in ["main", "a"] {
        let last = format!("FROM dash_statements('{schema}') LIMIT 1");
        assert_eq!(text(&db, &format!("SELECT sql {last}")), "INSERT INTO t(c) VALUES (1);");
        let said = text(&db, &format!("SELECT reason {last}"));
        assert_eq!(said, Reason::SeveralDatabases.sentence());
    }
    insert(&db, 1);
    assert_eq!(reason(&db), "-");
}

/// Both take the lock of writers, and write nothing.
#[test]
fn repairs_of_the_wal_index_and_checkpoints_are_no_sign_of_a_blob_handle() {
    let folder = Folder::new();
    drop(database(&folder));
    // The first to read makes the wal-index.
    let db = recording(&folder);
    db.execute_batch("BEGIN; INSERT INTO t(c) VALUES (1); COMMIT").expect("commits");
    assert_eq!(reason(&db), "-");
    db.execute_batch("BEGIN").expect("begins");
    // SAFETY: an open connection of this thread's; null is all databases, and no answer.
    let code = unsafe {
        let (all, restart) = (core::ptr::null(), ffi::SQLITE_CHECKPOINT_RESTART);
        ffi::sqlite3_wal_checkpoint_v2(db.handle(), all, restart, null_mut(), null_mut())
    };
    assert_eq!(code, 0);
    db.execute_batch("INSERT INTO t(c) VALUES (2); COMMIT").expect("commits");
    assert_eq!(newest(&db, "sql"), ["INSERT INTO t(c) VALUES (2);"]);
    assert_eq!(reason(&db), "-");
}

/// What SQLite does besides running a program is the doing of the statement that asks for it.
#[test]
fn every_statement_that_commits_is_known() {
    let folder = Folder::new();
    let db = database(&folder);
    db.execute_batch("PRAGMA wal_autocheckpoint=1").expect("sets");
    for sql in [
        "VACUUM",
        "PRAGMA auto_vacuum=2; VACUUM",
        "INSERT INTO t(c) VALUES (zeroblob(100000)), (1)",
        "DELETE FROM t WHERE c=zeroblob(100000)",
        "PRAGMA incremental_vacuum",
        "PRAGMA user_version=3",
        "CREATE INDEX i ON t(c)",
        "ANALYZE",
        "ALTER TABLE t ADD COLUMN d",
        "DROP INDEX i",
    ] {
        db.execute_batch(sql).expect("commits");
        let last = sql.rsplit("; ").next().unwrap_or_default();
        assert_eq!((newest(&db, "sql"), reason(&db)), (vec![last.to_owned()], "-".into()), "{sql}");
    }
    assert_eq!(number(&db, "SELECT count(*) FROM t"), 1);
}

#[test]
fn a_backup_is_no_statement() {
    let folder = Folder::new();
    let source = Connection::open_in_memory().expect("opens");
    source.execute_batch("PRAGMA page_size=4096; CREATE TABLE t(id, c)").expect("commits");
    let mut db = database(&folder);
    insert(&db, 1);
    let backup = rusqlite::backup::Backup::new(&source, &mut db).expect("begins");
    backup.step(-1).expect("copies");
    drop(backup);
    says(&db, Reason::NoStatement);
    assert_eq!(newest(&db, "sql"), ["-"]);
}

#[test]
fn more_than_a_quarter_of_a_mebibyte_is_dropped() {
    let folder = Folder::new();
    let db = database(&folder);
    db.execute_batch("BEGIN").expect("begins");
    for _ in 0..4 {
        insert(&db, vec![1_u8; 100_000]);
    }
    db.execute_batch("COMMIT").expect("commits");
    assert_eq!(newest(&db, "parameters IS NULL"), ["0", "0", "1"]);
    let said = format!("{}; 1 statements were dropped", Reason::Full.sentence());
    assert_eq!(reason(&db), said);
    // Zeros that were bound as a number are not even made.
    insert(&db, rusqlite::blob::ZeroBlob(300_000));
    assert_eq!(newest(&db, "parameters"), ["-"]);
    says(&db, Reason::Full);
    insert(&db, 1);
    assert_eq!(reason(&db), "-");
    assert_eq!(number(&db, "SELECT count(*) FROM t"), 6);
}

extern "C" fn deny_queries(
    _: *mut c_void,
    what: c_int,
    _: *const c_char,
    _: *const c_char,
    _: *const c_char,
    _: *const c_char,
) -> c_int {
    if what == ffi::SQLITE_SELECT { ffi::SQLITE_DENY } else { ffi::SQLITE_OK }
}

#[test]
fn an_authorizer_may_refuse_the_values_and_a_pointer_has_none() {
    let folder = Folder::new();
    let db = database(&folder);
    // SAFETY: an open connection of this thread's.
    let authorize = |call: Option<_>| unsafe {
        ffi::sqlite3_set_authorizer(db.handle(), call, null_mut());
    };
    authorize(Some(deny_queries));
    insert(&db, 1);
    authorize(None);
    says(&db, Reason::Unreadable);
    assert_eq!(newest(&db, "parameters"), ["-"]);
    let mut raw = null_mut();
    // SAFETY: an open connection, C strings, and a pointer that nobody follows.
    unsafe {
        let sql = c"INSERT INTO t(c) VALUES (?)".as_ptr();
        assert_eq!(ffi::sqlite3_prepare_v2(db.handle(), sql, -1, &raw mut raw, null_mut()), 0);
        let bind = ffi::sqlite3_bind_pointer;
        assert_eq!(bind(raw, 1, (&raw mut raw).cast(), c"kind".as_ptr(), None), 0);
        assert_eq!(ffi::sqlite3_step(raw), ffi::SQLITE_DONE);
        ffi::sqlite3_finalize(raw);
    }
    says(&db, Reason::Pointer);
    assert_eq!(newest(&db, "parameters"), ["NULL /* a pointer */"]);
}

#[test]
fn connections_have_numbers_and_the_last_thousand_statements_stay() {
    let folder = Folder::new();
    let db = database(&folder);
    let second = recording(&folder);
    insert(&second, 1);
    let last = |db: &Connection| newest(db, "connection")[0].clone();
    let (a, b) = (last(&db), {
        insert(&db, 2);
        last(&db)
    });
    assert_ne!(a, b);
    assert_eq!(last(&second), b, "both look at the same");
    db.execute_batch("PRAGMA dash_statement_text=full; BEGIN").expect("begins");
    for value in 0..1500 {
        insert(&db, value);
    }
    db.execute_batch("COMMIT").expect("commits");
    insert(&second, "last");
    assert_eq!(number(&db, "SELECT count(*) FROM dash_statements"), 1000);
    let first = "SELECT parameters FROM dash_statements ORDER BY rowid LIMIT 1";
    assert_eq!(text(&db, first), "'last'");
    assert_eq!(text(&db, "SELECT parameters FROM dash_statements LIMIT 1 OFFSET 1"), "501");
}

#[test]
fn by_default_no_hook_is_installed() {
    let folder = Folder::new();
    let hooks = "SELECT count(*) FROM pragma_function_list WHERE name='dash_statements_hook'";
    for (parameters, hook) in [("", 0), ("&dash_statements=off", 0), ("&dash_statements=ON", 1)] {
        let db = folder.try_open("app.db", &format!("&journal_mode=wal{parameters}")).expect("ok");
        db.execute_batch("CREATE TABLE IF NOT EXISTS t(x); INSERT INTO t VALUES (1)").expect("ok");
        assert_eq!(number(&db, hooks), hook, "{parameters}");
        assert_eq!(number(&db, "SELECT count(*) FROM dash_statements") > 0, hook == 1);
        db.close().expect("closes");
    }
}

#[test]
fn a_connection_closes_as_ever_and_a_mode_may_come_later() {
    let folder = Folder::new();
    let db = folder.try_open("app.db", "&dash_statements=on").expect("opens");
    db.execute_batch("CREATE TABLE t(id, c); PRAGMA journal_mode=WAL").expect("switches");
    insert(&db, 1);
    assert_eq!(newest(&db, "parameters"), ["1"]);
    db.execute_batch("BEGIN").expect("begins");
    insert(&db, 2);
    db.close().expect("no statement of dash's is left open");
    let db = folder.open("app.db");
    assert_eq!(number(&db, "SELECT count(*) FROM t"), 1);
}
