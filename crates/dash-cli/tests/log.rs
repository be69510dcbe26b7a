//! `sqlite-dash log`: what a log holds.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use super::common::Home;
use rusqlite::Connection;
use rusqlite::params;
use serde_json::Value;

/// A database whose statements are recorded, with a table; the first commit is not in the log.
fn recording(home: &Home, more: &str) -> Connection {
    let db = home.recorded(more);
    db.execute_batch("CREATE TABLE t(id INTEGER PRIMARY KEY, a, b)").unwrap();
    db
}

fn insert(db: &Connection, number: i64) {
    db.execute("INSERT INTO t(a, b) VALUES (?, ?)", params![0.1 + 0.2, -number]).unwrap();
}

#[test]
fn a_log_is_shown_while_it_is_written_and_after_a_kill() {
    let home = Home::new();
    let db = recording(&home, "");
    insert(&db, 1);
    db.execute_batch(
        "BEGIN; UPDATE t SET b = b + 1; SAVEPOINT s; DELETE FROM t; ROLLBACK TO s; COMMIT",
    )
    .unwrap();
    let after = home.as_killed();
    for home in [&home, &after] {
        let before = home.contents();
        let text = home.dash(&["log", "app.db"]).is(0).out();
        // The first commit of a session is not in the log, which is said.
        let lines: Vec<_> = text.lines().skip(1).map(str::trim).collect();
        assert!(lines[0].starts_with("commit 1.") && lines[0].contains("connection"), "{text}");
        assert_eq!(lines[1], "INSERT INTO t(a, b) VALUES (3.0000000000000004e-1, (-1));");
        assert_eq!(
            lines[3..],
            ["UPDATE t SET b = b + 1;", "SAVEPOINT s;", "DELETE FROM t;", "ROLLBACK TO s;"]
        );
        assert_eq!(home.contents(), before, "it wrote something");
        let json = home.dash(&["log", "app.db", "--json"]).is(0).out();
        let commits: Vec<Value> =
            json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(commits.len(), 2);
        assert_eq!(commits[0]["statements"][0]["values"][1], "-1");
        assert_eq!(commits[1]["process"], std::process::id());
        let report = home.dash(&["inspect", "app.db", "--json"]).out();
        let report: Value = serde_json::from_str(&report).unwrap();
        assert_eq!(commits[0]["record_bytes"], report["log"]["block"], "one block");
    }
    db.execute_batch("PRAGMA dash_statement_text = off").unwrap();
    insert(&db, 2);
    let text = home.dash(&["log", "app.db"]).is(0).out();
    assert!(text.lines().last().unwrap().contains("-- not recorded: by a connection"), "{text}");
}

#[test]
fn its_sql_makes_the_same_rows() {
    let home = Home::new();
    let db = recording(&home, "&dash_statement_text=full");
    let blob = vec![7_u8; 5000];
    db.execute("INSERT INTO t VALUES (?, ?, ?)", params![1, "it's -- a\nline", blob]).unwrap();
    db.execute("INSERT INTO t VALUES (:id, :a, :a)", &[(":id", &-5_i64), (":a", &7)]).unwrap();
    db.execute_batch(
        "BEGIN; UPDATE t SET a = 9 -- for now\n WHERE id = 1; DELETE FROM t WHERE id = 8; COMMIT",
    )
    .unwrap();
    let sql = home.dash(&["log", "app.db", "--sql"]).is(0).out();
    let again = Connection::open_in_memory().unwrap();
    again.execute_batch("CREATE TABLE t(id INTEGER PRIMARY KEY, a, b)").unwrap();
    again.execute_batch(&sql).unwrap_or_else(|error| panic!("{error}\n{sql}"));
    let rows = "SELECT group_concat(quote(id) || quote(a) || quote(b)) FROM t";
    let read = |db: &Connection| db.query_row(rows, [], |row| row.get::<_, String>(0)).unwrap();
    assert_eq!(read(&again), read(&db));
}

#[test]
fn it_follows_others() {
    let home = Home::new();
    let db = recording(&home, "");
    insert(&db, 1);
    let mut following = home
        .command(&["log", "app.db", "--json", "--follow"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    for number in 1..6 {
        assert_eq!(next()["statements"][0]["values"][1], (-number).to_string());
        insert(&db, number + 1);
    }
    following.kill().unwrap();
    following.wait().unwrap();
}
