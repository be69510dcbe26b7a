//! Tables: readable without CREATE, not creatable, with a hidden schema column, innocuous.

use crate::common::Database;
use rusqlite::Connection;
use rusqlite::types::Value;

fn rows(db: &Connection, sql: &str) -> rusqlite::Result<Vec<(String, Value)>> {
    db.prepare(sql)?.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

#[test]
fn tables_are_eponymous_and_know_their_schema() {
    let database = Database::new();
    let db = database.open("").unwrap();

    let all = rows(&db, "SELECT * FROM pass_table").unwrap();
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["schema", "version", "short"]);
    assert_eq!(all[0].1, Value::Null);
    assert_eq!(all[2].1, Value::Null);

    let aux = Value::Text("aux".to_owned());
    assert_eq!(rows(&db, "SELECT * FROM pass_table('aux')").unwrap()[0].1, aux);
    let by_column = "SELECT name, value FROM pass_table WHERE schema = 'aux' AND name = 'schema'";
    assert_eq!(rows(&db, by_column).unwrap(), [("schema".to_owned(), aux.clone())]);
    let hidden = "SELECT DISTINCT schema, schema FROM pass_table('aux')";
    assert_eq!(rows(&db, hidden).unwrap(), [("aux".to_owned(), aux)]);
    assert!(rows(&db, "SELECT * FROM pass_table(NULL)").unwrap().is_empty());

    let join = "SELECT d.name, t.value FROM pragma_database_list AS d, pass_table(d.name) AS t
                WHERE t.name = 'schema'";
    let main = Value::Text("main".to_owned());
    assert_eq!(rows(&db, join).unwrap(), [("main".to_owned(), main)]);
}

#[test]
fn tables_report_errors_and_panics() {
    let database = Database::new();
    let db = database.open("").unwrap();
    let error = rows(&db, "SELECT * FROM pass_table('missing')").unwrap_err();
    assert!(error.to_string().contains("no such schema: 100% of %s"), "{error}");
    let error = rows(&db, "SELECT * FROM pass_table('panic')").unwrap_err();
    assert!(error.to_string().contains("internal error in pass_table"), "{error}");
    let said = dash_ffi::last_error().unwrap();
    assert!(said.starts_with("internal error in pass_table: 100% of %s at "), "{said}");
}

#[test]
fn tables_are_innocuous_and_cannot_be_created_or_written() {
    let database = Database::new();
    let db = database.open("").unwrap();
    db.execute_batch("CREATE VIEW v AS SELECT * FROM pass_table; PRAGMA trusted_schema=OFF")
        .unwrap();
    assert_eq!(rows(&db, "SELECT name, value FROM v").unwrap().len(), 3);
    assert!(db.execute_batch("CREATE VIRTUAL TABLE mine USING pass_table").is_err());
    assert!(db.execute_batch("DELETE FROM pass_table").is_err());
}
