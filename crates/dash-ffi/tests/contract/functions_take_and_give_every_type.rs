//! SQL functions: values pass unchanged in both directions, errors and panics are the statement's
//! error.

use crate::common::Database;
use rusqlite::types::Value;

#[test]
fn functions_take_and_give_every_type() {
    let database = Database::new();
    let db = database.open("").unwrap();
    let values = [
        Value::Null,
        Value::Integer(i64::MIN),
        Value::Real(0.1),
        Value::Text("füñf\u{0}zero".to_owned()),
        Value::Text(String::new()),
        Value::Blob(vec![0, 255, 37]),
        Value::Blob(vec![]),
    ];
    for value in values {
        let answer: Value =
            db.query_row("SELECT pass_echo(?1)", [&value], |row| row.get(0)).unwrap();
        assert_eq!(answer, value);
    }
    let answer: Value = db.query_row("SELECT pass_echo()", [], |row| row.get(0)).unwrap();
    assert_eq!(answer, Value::Null);
    assert!(db.query_row("SELECT pass_echo(1, 2)", [], |_| Ok(())).is_err());
}

#[test]
fn text_that_is_not_utf8_keeps_its_bytes() {
    let database = Database::new();
    let db = database.open("").unwrap();
    let sql = "SELECT hex(pass_echo(CAST(x'ff41' AS TEXT)))";
    let answer: String = db.query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(answer, "FF41");
}

#[test]
fn errors_and_panics_are_the_statements_error() {
    let database = Database::new();
    let db = database.open("").unwrap();
    let error = db.query_row("SELECT pass_kind(1)", [], |_| Ok(())).unwrap_err();
    assert!(error.to_string().contains("a schema's name, please; 100% of %s"), "{error}");
    assert_eq!(error.sqlite_error().unwrap().extended_code, rusqlite::ffi::SQLITE_MISMATCH);
    let error = db.query_row("SELECT pass_panic()", [], |_| Ok(())).unwrap_err();
    assert!(error.to_string().contains("internal error in pass_panic: 100% of %s"), "{error}");
}

#[test]
fn functions_that_act_are_refused_in_views() {
    let database = Database::new();
    let db = database.open("").unwrap();
    db.execute_batch(
        "CREATE VIEW reads AS SELECT pass_echo(1); CREATE VIEW acts AS SELECT pass_act()",
    )
    .unwrap();
    db.execute_batch("PRAGMA trusted_schema=OFF").unwrap();
    db.query_row("SELECT * FROM reads", [], |_| Ok(())).unwrap();
    let error = db.query_row("SELECT * FROM acts", [], |_| Ok(())).unwrap_err();
    assert!(error.to_string().contains("unsafe use of pass_act"), "{error}");
    db.query_row("SELECT pass_act()", [], |_| Ok(())).unwrap();
}
