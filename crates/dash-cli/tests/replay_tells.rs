//! What SQLite does not do twice: a replay comes to something else, says where, and gives a reason.
//! The commits themselves are what they were.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

use std::ffi::c_int;
use std::ptr::null_mut;

use super::common::Home;
use rusqlite::functions::FunctionFlags;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::{Connection, ffi};

/// A recording connection with tables; what `setup` commits is in the database when the log begins.
fn recording(home: &Home, setup: &str) -> Connection {
    let db = home.recorded("&dash_statement_text=full");
    db.execute_batch("CREATE TABLE t(id INTEGER PRIMARY KEY, a CHECK (a <> 'no'), b)").unwrap();
    db.execute_batch(setup).unwrap();
    db
}

/// The last commit diverges, for a reason with these words; the others come to the same.
fn the_last_one_diverges(home: &Home, words: &str) {
    let said = home.dash(&["replay", "app.db"]).is(1).out();
    assert_eq!(said.matches(" diverges: ").count(), 1, "{said}");
    let reason = said.lines().nth(1).unwrap();
    assert!(reason.contains(words), "{said}");
}

/// A statement that failed for a lock of the time succeeds in a replay: here it drops a table.
#[test]
fn what_failed_for_a_lock_succeeds() {
    let home = Home::new();
    let db = recording(&home, "CREATE TABLE z(x); INSERT INTO z VALUES (1), (2)");
    let mut query = db.prepare("SELECT x FROM z").unwrap();
    let mut rows = query.query([]).unwrap();
    rows.next().unwrap();
    db.execute_batch("BEGIN").unwrap();
    assert!(db.execute_batch("DROP TABLE z").is_err());
    drop(rows);
    db.execute_batch("INSERT INTO t(a) VALUES (1); COMMIT").unwrap();
    the_last_one_diverges(&home, "a statement that failed then");
    home.dash(&["replay", "app.db"]).is(1).says("the schema is another one");
}

/// So does one that failed for want of room.
#[test]
fn what_failed_for_want_of_room_succeeds() {
    let home = Home::new();
    let db = recording(&home, "INSERT INTO t(a) VALUES (0)");
    let pages: i64 = db.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    let limit = format!("PRAGMA max_page_count={}", pages + 2);
    db.query_row(&limit, [], |_| Ok(())).unwrap();
    db.execute_batch("BEGIN; INSERT INTO t(a) VALUES (1)").unwrap();
    let rows = "INSERT INTO t(a) SELECT zeroblob(30000) FROM (SELECT 1 UNION ALL SELECT 2)";
    assert!(db.execute_batch(rows).is_err());
    db.execute_batch("COMMIT").unwrap();
    the_last_one_diverges(&home, "a statement that failed then");
}

/// A PRAGMA that changes what statements do is in force without a statement that writes.
#[test]
fn a_setting_that_is_not_found_is_a_reason() {
    let home = Home::new();
    let db = recording(&home, "INSERT INTO t(a) VALUES (0)");
    db.execute_batch("PRAGMA ignore_check_constraints=1; INSERT INTO t(a) VALUES ('no')").unwrap();
    the_last_one_diverges(&home, "CHECK constraint failed");
}

/// Settings that explain what differs are taken for what they were.
#[test]
fn settings_that_explain_it_are_found() {
    let home = Home::new();
    let trigger = "CREATE TRIGGER g AFTER UPDATE ON t WHEN new.b < 5 BEGIN
                   UPDATE t SET b = b + 1 WHERE id = new.id; END;
                   INSERT INTO t(a, b) VALUES (1, 0)";
    let db = recording(&home, trigger);
    db.execute_batch("PRAGMA recursive_triggers=1; UPDATE t SET b = 1").unwrap();
    let b: i64 = db.query_row("SELECT b FROM t", [], |row| row.get(0)).unwrap();
    assert_eq!(b, 5);
    home.dash(&["replay", "app.db"]).is(0).says("0 to something else");
}

/// SQLite's own functions and collations can be replaced, which leaves no sign.
#[test]
fn a_function_that_was_replaced_is_a_reason() {
    let home = Home::new();
    let db = recording(&home, "INSERT INTO t(a) VALUES (0)");
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    db.create_scalar_function("upper", 1, flags, |_| Ok("mine")).unwrap();
    db.execute_batch("INSERT INTO t(a) VALUES (upper('x'))").unwrap();
    the_last_one_diverges(&home, "a function");
}

/// A table with the greatest rowid gets random ones, without a function that says so.
#[test]
fn a_rowid_chosen_at_random_is_a_reason() {
    let home = Home::new();
    let db = recording(&home, "INSERT INTO t(id, a) VALUES (9223372036854775807, 0)");
    db.execute_batch("INSERT INTO t(a) VALUES (1)").unwrap();
    the_last_one_diverges(&home, "a rowid that was chosen at random");
}

/// What a connection knows besides: the last rowid, and a temporary table in a table's place.
#[test]
fn what_only_the_connection_knew_is_a_reason() {
    let home = Home::new();
    let db = recording(&home, "INSERT INTO t(id, a) VALUES (7, 0)");
    db.execute_batch("INSERT INTO t(a) VALUES (last_insert_rowid())").unwrap();
    the_last_one_diverges(&home, "last_insert_rowid() answers something else");
    let home = Home::new();
    let db = recording(&home, "CREATE TABLE s(x); INSERT INTO s VALUES (1)");
    db.execute_batch(
        "CREATE TEMP TABLE s(x); INSERT INTO temp.s VALUES (2); INSERT INTO t(a) SELECT x FROM s",
    )
    .unwrap();
    the_last_one_diverges(&home, "a temporary or attached table");
}

/// A transaction over several databases would read another database in a replay. It becomes durable
/// by a flush of `-wal`, and so is in no log.
#[test]
fn a_transaction_over_two_databases_is_in_no_log() {
    let home = Home::new();
    let db = recording(&home, "INSERT INTO t(a) VALUES (0)");
    let other = home.file("other.db").display().to_string();
    db.execute_batch(&format!(
        "ATTACH 'file:{other}?vfs=dash&journal_mode=wal' AS k; CREATE TABLE k.q(x);
         BEGIN; INSERT INTO t(a) VALUES (1); INSERT INTO k.q SELECT a FROM t; COMMIT"
    ))
    .unwrap();
    home.dash(&["log", "app.db"]).is(0).says("1 commit of app.db-wal, up to frame");
    home.dash(&["replay", "app.db"]).is(0).says("1 commits were run again: 1 came to the same");
}

/// A statement that found the database locked did nothing; in a replay nobody is in its way. It is
/// known for what it was: it changed no row.
#[test]
fn what_found_the_database_locked_succeeds_and_is_not_called_provable() {
    let home = Home::new();
    let db = recording(&home, "CREATE TABLE s(x)");
    let other = home.recorded("");
    db.execute_batch("INSERT INTO s VALUES (0); BEGIN").unwrap();
    other.execute_batch("BEGIN IMMEDIATE; INSERT INTO s VALUES (1)").unwrap();
    db.busy_timeout(std::time::Duration::ZERO).unwrap();
    assert!(db.execute_batch("INSERT INTO s VALUES (2)").is_err());
    other.execute_batch("COMMIT").unwrap();
    db.execute_batch("INSERT INTO s VALUES (3); COMMIT").unwrap();
    the_last_one_diverges(&home, "a statement within a transaction failed or changed no row");
    let said = home.dash(&["replay", "app.db"]).is(1).out();
    assert!(said.contains("2 of the commits provably replay"), "{said}");
    assert!(
        said.contains("1 may not: a statement within a transaction failed or changed no row"),
        "{said}"
    );
}

/// An authorizer may have SQLite leave a column as it is, of which nobody is told.
#[test]
fn what_an_authorizer_has_ignored_is_a_reason() {
    let home = Home::new();
    let mut db =
        recording(&home, "CREATE TABLE s(id INTEGER PRIMARY KEY, x); INSERT INTO s VALUES (1, 1)");
    let ignores = |asked: AuthContext<'_>| match asked.action {
        AuthAction::Update { column_name: "x", .. } => Authorization::Ignore,
        _ => Authorization::Allow,
    };
    db.authorizer(Some(ignores)).unwrap();
    db.execute_batch("UPDATE s SET id = 2, x = 2 WHERE id = 1").unwrap();
    the_last_one_diverges(&home, "an authorizer");
}

/// How many digits of a real number become a text is a setting of the connection, where one is
/// stored in a column of texts.
#[test]
fn what_was_written_with_fewer_digits_is_not_called_provable() {
    const FP_DIGITS: c_int = 1023;
    let home = Home::new();
    let db = recording(&home, "CREATE TABLE s(x TEXT); INSERT INTO s VALUES ('0')");
    #[expect(unsafe_code, reason = "rusqlite does not know this setting")]
    // SAFETY: an open connection, and for this setting a number and a place that may be missing.
    let code =
        unsafe { ffi::sqlite3_db_config(db.handle(), FP_DIGITS, 6 as c_int, null_mut::<c_int>()) };
    assert_eq!(code, ffi::SQLITE_OK);
    db.execute("INSERT INTO s VALUES (?)", [1.0 / 3.0]).unwrap();
    let x: String = db.query_row("SELECT max(x) FROM s", [], |row| row.get(0)).unwrap();
    assert_eq!(x, "0.333333");
    let said = home.dash(&["replay", "app.db"]).is(1).out();
    assert_eq!(said.matches(" diverges: ").count(), 1, "{said}");
    assert!(
        said.contains("1 may not: its connection was not set as SQLite is as a rule"),
        "{said}"
    );
}

/// SQLite takes any bytes; here it gets texts.
#[test]
fn a_statement_that_is_no_utf_8_is_not_run() {
    let home = Home::new();
    let db = recording(&home, "INSERT INTO t(a) VALUES (0)");
    let sql = c"INSERT INTO t(a) VALUES ('\xff\xc3(')";
    #[expect(unsafe_code, reason = "rusqlite takes no such text")]
    // SAFETY: an open connection, a C string, and nothing to be told.
    let code =
        unsafe { ffi::sqlite3_exec(db.handle(), sql.as_ptr(), None, null_mut(), null_mut()) };
    assert_eq!(code, ffi::SQLITE_OK);
    db.execute_batch("INSERT INTO t(a) VALUES (2)").unwrap();
    let said = home.dash(&["replay", "app.db"]).is(0).out();
    assert!(said.contains("is no UTF-8") && !said.contains("diverges"), "{said}");
}
