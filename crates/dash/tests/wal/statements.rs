//! `dash_statements`: what transactions ran, with exact values, and why that may not be all.

use dash_statement::{Reason, literal};
use rusqlite::types::{Null, Value};
use rusqlite::{ToSql, params};

use crate::common::*;

mod bulk;
mod exclusive;
mod inside;
mod kept;
mod unseen;

/// A database whose statements are recorded, with a table `t`.
fn database(folder: &Folder) -> Connection {
    let db = recording(folder);
    db.execute_batch("CREATE TABLE t(id INTEGER PRIMARY KEY, c)").expect("commits");
    db
}

fn recording(folder: &Folder) -> Connection {
    folder.try_open("app.db", "&journal_mode=wal&dash_statements=on").expect("opens")
}

/// A column of the newest commit's rows; NULL is "-".
fn newest(db: &Connection, column: &str) -> Vec<String> {
    let last = "SELECT max(commit_number) FROM dash_statements";
    let sql = format!(
        "SELECT ifnull({column}, '-') || '' FROM dash_statements WHERE commit_number=({last})"
    );
    let mut rows = db.prepare(&sql).expect("prepares");
    let rows = rows.query_map([], |row| row.get(0)).expect("queries");
    rows.collect::<Result<_>>().expect("reads")
}

/// Why the newest commit may have done more.
fn reason(db: &Connection) -> String {
    let mut reasons = newest(db, "reason");
    reasons.dedup();
    reasons.join("|")
}

fn commits(db: &Connection) -> i64 {
    number(db, "SELECT ifnull(max(commit_number), 0) FROM dash_statements")
}

fn insert(db: &Connection, value: impl ToSql) {
    db.execute("INSERT INTO t(c) VALUES (?)", [value]).expect("commits");
}

#[test]
fn values_are_exactly_what_was_bound() {
    let folder = Folder::new();
    let db = database(&folder);
    let real = |value: f64| Value::Real(value);
    for (value, shown) in [
        (real(0.1 + 0.2), "3.0000000000000004e-1"),
        (real(f64::INFINITY), "9e999"),
        (real(-0.0), "-0.0000000000000000e0"),
        (Value::Integer(i64::MIN), "-9223372036854775808"),
        (Value::Text("it's".into()), "'it''s'"),
        (Value::Text("a\0b".into()), r"replace('a\zb', '\z', char(0))"),
        (Value::Blob(vec![0, 1, 255]), "X'0001FF'"),
        (Value::Null, "NULL"),
    ] {
        insert(&db, value);
        assert_eq!(newest(&db, "parameters"), [shown]);
        assert_eq!(newest(&db, "sql"), ["INSERT INTO t(c) VALUES (?)"]);
        assert_eq!(reason(&db), "-");
    }
    insert(&db, rusqlite::blob::ZeroBlob(5000));
    assert_eq!(newest(&db, "parameters"), ["zeroblob(5000)"]);
    let blob: Vec<u8> = (0..100_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    insert(&db, &blob);
    let shown = literal(&dash_statement::Value::Blob(blob));
    assert_eq!(newest(&db, "parameters"), [shown]);
}

/// As text it would be `c=c--5 WHERE id=1`: a comment, and every row would be changed.
#[test]
fn a_negative_value_stays_a_value() {
    let folder = Folder::new();
    let db = database(&folder);
    insert(&db, 1);
    db.execute("UPDATE t SET c=c-? WHERE id=?", [-5, 1]).expect("commits");
    assert_eq!(newest(&db, "sql"), ["UPDATE t SET c=c-? WHERE id=?"]);
    assert_eq!(newest(&db, "parameters"), ["-5, 1"]);
    assert_eq!(number(&db, "SELECT c FROM t"), 6);
}

#[test]
fn many_parameters_and_those_that_are_left_out() {
    let folder = Folder::new();
    let db = database(&folder);
    db.execute("INSERT INTO t(c) VALUES (?3)", params![1, 2, 3]).expect("commits");
    assert_eq!(newest(&db, "parameters"), ["1, 2, 3"]);
    let count = 2500;
    let places = vec!["(?)"; count].join(",");
    let values = rusqlite::params_from_iter(0..count as i64);
    db.execute(&format!("INSERT INTO t(c) VALUES {places}"), values).expect("commits");
    let shown: Vec<_> = (0..count).map(|value| value.to_string()).collect();
    assert_eq!(newest(&db, "parameters"), [shown.join(", ")]);
    // The values are the statement's again.
    let mut statement = db.prepare("INSERT INTO t(id, c) VALUES (NULL, ?)").expect("prepares");
    statement.raw_bind_parameter(1, "kept").expect("binds");
    for _ in 0..3 {
        statement.raw_execute().expect("commits");
    }
    assert_eq!(number(&db, "SELECT count(*) FROM t WHERE c='kept'"), 3);
}

#[test]
fn a_savepoint_that_was_rolled_back_is_kept_with_what_it_undid() {
    let folder = Folder::new();
    let db = database(&folder);
    db.execute_batch(
        "BEGIN; SELECT count(*) FROM t; INSERT INTO t VALUES (1, 'a'); SAVEPOINT s; \
         INSERT INTO t VALUES (2, 'b'); ROLLBACK TO s; RELEASE s; UPDATE t SET c='c'; COMMIT",
    )
    .expect("commits");
    let ran = [
        "INSERT INTO t VALUES (1, 'a');",
        "SAVEPOINT s;",
        "INSERT INTO t VALUES (2, 'b');",
        "ROLLBACK TO s;",
        "RELEASE s;",
        "UPDATE t SET c='c';",
    ];
    assert_eq!(newest(&db, "sql"), ran);
    assert_eq!(reason(&db), "-");
    // One that is the whole transaction.
    db.execute_batch("SAVEPOINT s; DELETE FROM t; RELEASE s").expect("commits");
    assert_eq!(newest(&db, "sql"), ["SAVEPOINT s;", "DELETE FROM t;", "RELEASE s"]);
}

/// A statement that fails may have moved the next rowid, and SQLite does not tell that it failed.
#[test]
fn statements_that_failed_are_kept_and_transactions_that_did_are_not() {
    let folder = Folder::new();
    let db = database(&folder);
    insert(&db, 1);
    let before = commits(&db);
    db.execute("INSERT INTO t VALUES (1, ?)", [9]).expect_err("there is one");
    db.execute_batch("BEGIN; INSERT INTO t VALUES (7, 7); ROLLBACK").expect("rolls back");
    assert_eq!(commits(&db), before, "nothing was committed");
    db.execute_batch("BEGIN").expect("begins");
    db.execute("INSERT INTO t VALUES (1, ?)", [2]).expect_err("there is one");
    db.execute("INSERT INTO t VALUES (2, ?)", [3]).expect("inserts");
    db.execute_batch("COMMIT").expect("commits");
    assert_eq!(newest(&db, "parameters"), ["2", "3"]);
    assert_eq!(commits(&db), before + 1);
}

#[test]
fn rows_that_are_returned_may_be_left_half_read() {
    let folder = Folder::new();
    let db = database(&folder);
    let before = commits(&db);
    let mut returning =
        db.prepare("INSERT INTO t(c) VALUES (?), (?) RETURNING id").expect("prepares");
    let mut rows = returning.query([1, 2]).expect("runs");
    assert!(rows.next().expect("a row").is_some());
    // What is written meanwhile joins the transaction, after it.
    insert(&db, 3);
    drop(rows);
    assert_eq!(commits(&db), before + 1, "the reset has committed");
    let ran = ["INSERT INTO t(c) VALUES (?), (?) RETURNING id", "INSERT INTO t(c) VALUES (?)"];
    assert_eq!(newest(&db, "sql"), ran);
    assert_eq!(newest(&db, "parameters"), ["1, 2", "3"]);
    assert_eq!(reason(&db), "-");
    assert_eq!(number(&db, "SELECT count(*) FROM t"), 3);
}

#[test]
fn what_triggers_run_is_part_of_their_statement() {
    let folder = Folder::new();
    let db = database(&folder);
    db.execute_batch(
        "CREATE TABLE log(x); CREATE TRIGGER g AFTER INSERT ON t BEGIN \
         INSERT INTO log VALUES (new.c); INSERT INTO log VALUES (datetime('now')); END",
    )
    .expect("commits");
    insert(&db, 5);
    assert_eq!(newest(&db, "sql"), ["INSERT INTO t(c) VALUES (?)"]);
    assert_eq!(newest(&db, "parameters"), ["5"]);
    assert!(newest(&db, "nested")[0].parse::<i64>().expect("a number") >= 1);
    assert_ne!(newest(&db, "clock"), ["-"]);
    assert_eq!(reason(&db), "-");
}

/// SQLite tells of the program of a foreign key's action as if its statement began again.
#[test]
fn a_statement_that_foreign_keys_go_on_with_is_there_once() {
    let folder = Folder::new();
    let db = database(&folder);
    db.execute_batch(
        "PRAGMA foreign_keys=ON;
         CREATE TABLE one(t REFERENCES t ON DELETE CASCADE ON UPDATE CASCADE, at DEFAULT CURRENT_TIMESTAMP);
         CREATE TABLE two(t REFERENCES t ON DELETE SET NULL);
         INSERT INTO t(c) VALUES ('a'), ('b'), ('c');
         INSERT INTO one(t) VALUES (1), (2), (2), (3); INSERT INTO two VALUES (1), (2)",
    )
    .expect("commits");
    let statements = ["UPDATE t SET id=id+? WHERE id=3", "DELETE FROM t WHERE id<?"];
    for (sql, value) in statements.into_iter().zip([5, 3]) {
        db.execute(sql, [value]).expect("commits");
        let [shown, values, clock, reasons] =
            ["sql", "parameters", "clock", "reason"].map(|column| newest(&db, column));
        assert_eq!((shown, values), (vec![sql.to_owned()], vec![value.to_string()]));
        assert_eq!((clock, reasons), (vec!["-".to_owned()], vec!["-".to_owned()]));
        assert_ne!(newest(&db, "nested"), ["0"]);
    }
    db.execute_batch("BEGIN; DELETE FROM t WHERE id=8; INSERT INTO t(c) VALUES ('d'); COMMIT")
        .expect("commits");
    assert_eq!(newest(&db, "sql"), ["DELETE FROM t WHERE id=8;", "INSERT INTO t(c) VALUES ('d');"]);
    assert_eq!((newest(&db, "parameters"), reason(&db)), (vec![String::new(); 2], "-".into()));
}

#[test]
fn the_time_that_a_statement_was_told_is_kept() {
    let folder = Folder::new();
    let db = database(&folder);
    let now = "strftime('%Y-%m-%d %H:%M:%f', 'now')";
    db.execute_batch(&format!("INSERT INTO t(c) VALUES ({now})")).expect("commits");
    let clock = "strftime('%Y-%m-%d %H:%M:%f', clock, 'unixepoch')";
    assert_eq!(newest(&db, clock), [text(&db, "SELECT c FROM t")]);
    insert(&db, 1);
    assert_eq!(newest(&db, "clock"), ["-"]);
    db.execute_batch("BEGIN; INSERT INTO t(c) VALUES (1)").expect("inserts");
    db.execute_batch(&format!("INSERT INTO t(c) VALUES ({now}); COMMIT")).expect("commits");
    let clocks = newest(&db, "clock IS NULL");
    assert_eq!(clocks, ["1", "0"]);
}

#[test]
fn the_statistics_say_whether_statements_are_recorded() {
    let folder = Folder::new();
    let says = |db: &Connection| text(db, "SELECT value FROM dash_stats WHERE name='statements'");
    let db = database(&folder);
    assert_eq!(says(&db), "on");
    let plain = folder.try_open("app.db", "").expect("opens");
    assert_eq!(says(&plain), "off");
    drop((db, plain));
    let db = folder.try_open("app.db", "").expect("opens");
    db.query_row("PRAGMA journal_mode=statement", [], |_| Ok(())).expect("answers");
    assert_eq!(says(&db), Reason::OpenedBefore.sentence());
}

/// SQLite runs a statement again whose schema has changed; that has happened once.
#[test]
fn a_statement_that_is_prepared_again_is_there_once() {
    let folder = Folder::new();
    let db = database(&folder);
    let mut statement = db.prepare("INSERT INTO t(c) VALUES (?)").expect("prepares");
    statement.execute([1]).expect("commits");
    db.execute_batch("CREATE TABLE other(x); BEGIN; INSERT INTO other VALUES (1)").expect("begins");
    statement.execute([2]).expect("inserts");
    db.execute_batch("COMMIT").expect("commits");
    assert_eq!(newest(&db, "parameters"), ["", "2"]);
    folder.try_open("app.db", "").expect("opens").execute_batch("CREATE TABLE u(x)").expect("ok");
    statement.execute([3]).expect("commits");
    assert_eq!(newest(&db, "parameters"), ["3"]);
    assert_eq!((reason(&db), newest(&db, "clock")), ("-".to_owned(), vec!["-".to_owned()]));
}

/// A program that was planned for its values (`LIKE ?`) goes on working while they are read.
#[test]
fn statements_planned_for_their_values_run_on() {
    let folder = Folder::new();
    let db = database(&folder);
    db.execute_batch("CREATE INDEX i ON t(c); CREATE TABLE u(x)").expect("commits");
    for value in ["abc", "abd", "x"] {
        insert(&db, value);
    }
    let sql = "INSERT INTO u SELECT c FROM t WHERE c LIKE ? LIMIT ?";
    let mut statement = db.prepare(sql).expect("prepares");
    for _ in 0..6 {
        assert_eq!(statement.execute(params!["ab%", 5]), Ok(2));
        assert_eq!(newest(&db, "parameters"), ["'ab%', 5"]);
    }
    assert_eq!(statement.execute(params![Null, 5]), Ok(0));
    // SQLite plans them anew each time: none is taken for the one before, run again.
    db.execute_batch("BEGIN").expect("begins");
    for limit in 1..3_u8 {
        assert_eq!(statement.execute(params!["ab%", limit]), Ok(limit.into()));
    }
    db.execute_batch("COMMIT").expect("commits");
    assert_eq!(newest(&db, "parameters"), ["'ab%', 1", "'ab%', 2"]);
}

/// What the rules are is tested where they are; here, that what they need comes to them.
#[test]
fn each_commit_says_whether_it_provably_replays() {
    let folder = Folder::new();
    let db = database(&folder);
    assert!(newest(&db, "replay")[0].starts_with("a statement is neither an INSERT of one row"));
    let provable = |expected: &str| {
        for said in newest(&db, "replay") {
            assert!(said.starts_with(expected), "{said}");
        }
    };
    insert(&db, 1);
    provable("provable");
    db.execute_batch("BEGIN; INSERT INTO t VALUES (7, 1); UPDATE t SET c = 2 WHERE id = 7; COMMIT")
        .expect("commits");
    provable("provable");
    db.execute_batch("UPDATE t SET c = 2").expect("commits");
    provable("a statement is neither");
    db.execute("INSERT INTO t(c) VALUES (abs(?))", [7]).expect("commits");
    provable("a statement calls a function");
    insert(&db, 2);
    db.execute_batch("CREATE TRIGGER g AFTER DELETE ON t BEGIN SELECT 1; END").expect("commits");
    insert(&db, 3);
    provable("a table that is written has a trigger");
    db.execute_batch("DROP TRIGGER g; CREATE TABLE u(x)").expect("commits");
    insert(&db, 4);
    provable("provable");
    db.execute_batch("CREATE TEMP TABLE t(id, c)").expect("is temporary");
    db.execute_batch("INSERT INTO main.t(c) VALUES (5)").expect("commits");
    provable("its connection may have had temporary tables");
}

/// Of a database that is attached, too, nothing is certain, whatever its connection is told of.
#[test]
fn a_database_beside_another_is_not_provable() {
    let folder = Folder::new();
    let db = database(&folder);
    db.execute_batch("ATTACH ':memory:' AS m; CREATE TABLE m.t(id, c)").expect("attaches");
    insert(&db, 1);
    assert!(newest(&db, "replay")[0].starts_with("a statement names another database than main"));
    db.execute_batch("DETACH m").expect("detaches");
    insert(&db, 2);
    assert_eq!(newest(&db, "replay"), ["provable"]);
}
