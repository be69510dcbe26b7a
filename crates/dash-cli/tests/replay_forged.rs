//! `sqlite-dash replay` of a log that somebody has forged: nothing outside of the copy is read or
//! written, and it ends.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

use std::fs;

use super::common::forged::{Sender, control, statement};
use dash_statement::{Control, Event};
use rusqlite::Connection;

fn steps(texts: &[String]) -> Vec<Event> {
    texts.iter().map(|sql| statement(sql.as_bytes(), None)).collect()
}

/// SQLite tells an authorizer no name for an expression. SEC S2-3
#[test]
fn another_database_is_not_written() {
    let (sender, mine) = (Sender::new(), tempfile::tempdir().unwrap());
    let vault = mine.path().join("vault.db");
    let db = Connection::open(&vault).unwrap();
    db.execute_batch("CREATE TABLE s(x); INSERT INTO s VALUES ('kept')").unwrap();
    drop(db);
    let before = fs::read(&vault).unwrap();
    let folder = mine.path().display();
    for texts in [
        [format!("ATTACH ('{folder}/vault'||'.db') AS p"), "INSERT INTO p.s VALUES (1)".into()],
        [format!("ATTACH ('{folder}/vault'||'.db') AS p"), "DROP TABLE p.s".into()],
        [format!("ATTACH '{folder}/'||'new.db' AS p"), "CREATE TABLE p.x(a)".into()],
        [format!("SELECT 1; ATTACH ('{folder}/new'||'.db') AS p"), "CREATE TABLE p.x(a)".into()],
        [format!("VACUUM INTO '{folder}/new.db'"), "SELECT 1".into()],
        [format!("VACUUM INTO '{folder}/'||'new.db'"), "SELECT 1".into()],
        [format!("SELECT writefile('{folder}/new.db', 'x')"), "SELECT 1".into()],
    ] {
        let said = sender.forge(steps(&texts)).dash(&["replay", "app.db"]);
        assert!(!said.out().contains("panicked") && !said.errors().contains("panicked"));
        assert_eq!(fs::read(&vault).unwrap(), before, "{texts:?}");
        assert_eq!(fs::read_dir(mine.path()).unwrap().count(), 1, "{texts:?}");
    }
    for kind in [Control::Savepoint, Control::Release, Control::RollbackTo] {
        let attach = format!("ATTACH '{folder}/'||'new.db' AS p");
        let texts = [attach.as_bytes(), b"CREATE TABLE p.x(a)"].map(|sql| control(kind, sql));
        let said = sender.forge(texts.into()).dash(&["replay", "app.db"]);
        assert!(said.out().contains("is not the savepoint's that it says"), "{}", said.out());
        assert_eq!(fs::read_dir(mine.path()).unwrap().count(), 1);
    }
}

/// SEC S2-3
#[test]
fn it_says_what_it_did_not_run_and_goes_on() {
    let sender = Sender::new();
    let sql = b"ATTACH 'x'||'y' AS p";
    let said = sender.forge(vec![statement(sql, None)]).dash(&["replay", "app.db"]).is(0).out();
    assert!(
        said.contains("was not run again: a statement asks for ATTACH, which is not"),
        "{said}"
    );
    assert!(said.contains("commits were run again"), "{said}");
}

/// SEC S2-3
#[test]
fn a_statement_that_does_not_end_is_stopped() {
    let sender = Sender::new();
    let sql =
        b"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT count(*) FROM c";
    let said = sender.forge(vec![statement(sql, None)]).dash(&["replay", "app.db"]).is(0).out();
    assert!(said.contains("a statement was stopped after 1"), "{said}");
    assert!(said.contains("steps of SQLite's"), "{said}");
}
