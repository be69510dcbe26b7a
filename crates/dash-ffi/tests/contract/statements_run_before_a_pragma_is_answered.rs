//! A file may have statements run on its own connection before it answers a PRAGMA.

use crate::common::Database;

#[test]
fn statements_run_before_a_pragma_is_answered() {
    let (database, second) = (Database::new(), Database::new());
    let db = database.open("").unwrap();
    let ask = |sql: &str| db.query_row(sql, [], |row| row.get::<_, String>(0));
    db.execute_batch("PRAGMA journal_mode=WAL; CREATE TABLE t(x)").unwrap();

    assert_eq!(ask("PRAGMA pass_run='INSERT INTO %.t VALUES (7)'").unwrap(), "ran");
    assert_eq!(ask("SELECT x || '' FROM t").unwrap(), "7");
    assert_eq!(ask("PRAGMA pass_run='PRAGMA %.journal_mode=DELETE'").unwrap(), "ran");
    assert_eq!(ask("PRAGMA journal_mode").unwrap(), "delete");
    // It runs while the statement around it is prepared, and that one goes on as if nothing was.
    let mut statement = db.prepare("PRAGMA pass_run='PRAGMA %.journal_mode=WAL'").unwrap();
    assert_eq!(ask("PRAGMA journal_mode").unwrap(), "wal");
    let answer = statement.query_row([], |row| row.get::<_, String>(0)).unwrap();
    assert_eq!(answer, "ran");

    db.execute_batch(&format!("ATTACH '{}' AS 'a \"b'", second.path.display())).unwrap();
    let run = "PRAGMA \"a \"\"b\".pass_run='CREATE TABLE %.u(x)'";
    assert_eq!(ask(run).unwrap(), "ran");
    assert_eq!(ask("SELECT name FROM \"a \"\"b\".sqlite_schema").unwrap(), "u");

    let error = ask("PRAGMA pass_run='INSERT INTO %.missing VALUES (7)'").unwrap_err();
    assert!(error.to_string().contains("no such table"), "{error}");
    db.execute_batch("BEGIN; SELECT * FROM t").unwrap();
    let error = ask("PRAGMA pass_run='PRAGMA %.journal_mode=DELETE'").unwrap_err();
    assert!(error.to_string().contains("within a transaction"), "{error}");
    db.execute_batch("INSERT INTO t VALUES (8); COMMIT; INSERT INTO t VALUES (9)").unwrap();
    assert_eq!(ask("SELECT group_concat(x) FROM t").unwrap(), "7,8,9");
}
