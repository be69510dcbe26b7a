//! A PRAGMA that the file answers returns one text; its error's message is what the user reads.

use crate::common::{Database, Fault};
use dash_ffi::Code;

#[test]
fn pragma_texts_reach_the_user() {
    let database = Database::new();
    let db = database.open("").unwrap();
    let ask = |sql: &str| db.query_row(sql, [], |row| row.get::<_, String>(0));

    assert_eq!(ask("PRAGMA pass_echo='100% of %s%n'").unwrap(), "100% of %s%n");
    assert_eq!(ask("PRAGMA main.pass_echo(füñf)").unwrap(), "füñf");
    db.execute_batch("PRAGMA pass_echo").unwrap();

    let fault = Fault::Error(Code::ERROR, Some("no: 100% of %s%n; do this instead"));
    database.probe.fail("pass_echo", fault);
    let error = db.execute_batch("PRAGMA pass_echo=1").unwrap_err();
    assert!(error.to_string().contains("no: 100% of %s%n; do this instead"), "{error}");

    database.probe.fail("pass_echo", Fault::Panic("half way"));
    let error = db.execute_batch("PRAGMA pass_echo=1").unwrap_err();
    assert!(error.to_string().contains("half way"), "{error}");
}

#[test]
fn other_pragmas_are_sqlites_own() {
    let database = Database::new();
    let db = database.open("").unwrap();
    let size: i64 = db.query_row("PRAGMA page_size", [], |row| row.get(0)).unwrap();
    assert_eq!(size, 4096);
}
