//! `sqlite-dash convert` there and back, and what it refuses.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::process::Stdio;

use super::common::{Home, Run};

#[test]
fn there_and_back_leaves_a_plain_file_and_nothing_beside_it() {
    let home = Home::new();
    drop(home.plain());
    home.dash(&["convert", "app.db", "--to", "shadow"])
        .is(0)
        .says("under dash now (journal mode shadow)");
    assert!(home.file("app.db-shadow").exists());
    home.sql("INSERT INTO t (body) VALUES ('x')");
    home.dash(&["convert", "app.db", "--to", "plain"]).is(0).says("ordinary SQLite file");
    assert_eq!(home.contents().keys().collect::<Vec<_>>(), ["app.db"]);
    assert_eq!(home.stock_rows(), 201);
}

#[test]
fn a_database_in_wal_mode_is_converted() {
    let home = Home::new();
    let db = home.plain();
    db.query_row("PRAGMA journal_mode=WAL", [], |_| Ok(())).unwrap();
    db.execute_batch("INSERT INTO t (body) VALUES ('in the log')").unwrap();
    drop(db);
    home.dash(&["convert", "app.db", "--to", "shadow"]).is(0);
    assert_eq!(home.sql("SELECT count(*) FROM t; PRAGMA journal_mode"), "201\nshadow\n");
}

#[test]
fn a_damaged_database_is_left_as_it_is() {
    let home = Home::new();
    drop(home.plain());
    let file = std::fs::OpenOptions::new().write(true).open(home.db()).unwrap();
    file.write_all_at(&[0xAB; 2000], 2 * 4096).unwrap();
    let before = home.contents();
    home.dash(&["convert", "app.db", "--to", "shadow"]).is(1).says("DAMAGED");
    assert_eq!(before, home.contents());
}

#[test]
fn nothing_is_converted_while_somebody_else_writes() {
    let home = Home::new();
    let db = home.plain();
    db.execute_batch("BEGIN EXCLUSIVE").unwrap();
    home.dash(&["convert", "app.db", "--to", "shadow"]).is(2).says("locked");
    db.execute_batch("COMMIT").unwrap();
    assert_eq!(home.stock_rows(), 200);
}

#[test]
fn a_missing_database_is_not_made() {
    let home = Home::new();
    home.dash(&["convert", "app.db", "--to", "shadow"]).is(2).says("does not exist");
    assert!(home.contents().is_empty());
    home.shadowed();
    std::fs::remove_file(home.db()).unwrap();
    home.dash(&["convert", "app.db", "--to", "plain"]).is(2).says("sqlite-dash recover");
}

#[test]
fn what_can_not_be_written_is_named() {
    let home = Home::new();
    home.shadowed();
    for kind in ["plain", "shadow"] {
        let Some(mut command) = home.forbidden(&["convert", "app.db", "--to", kind]) else {
            return;
        };
        let folder = home.path().canonicalize().unwrap();
        let run = Run(command.output().unwrap());
        run.is(2).says(&format!("{} can't be written (Permission denied)", folder.display()));
    }
}

#[test]
fn who_is_in_the_way_of_plain_is_said() {
    for mode in ["wal", "shadow"] {
        let home = Home::new();
        drop(home.plain());
        home.dash(&["convert", "app.db", "--to", mode]).is(0);
        let mut shell = home
            .command(&["shell", "app.db"])
            .env("PATH", "")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        writeln!(shell.stdin.as_mut().unwrap(), "SELECT count(*) FROM t;").unwrap();
        let mut answer = [0; 4];
        shell.stdout.as_mut().unwrap().read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"200\n");
        home.dash(&["convert", "app.db", "--to", "plain"])
            .is(2)
            .says("another connection has it")
            .says(&format!("process {} (sqlite-dash), on dash, has had it open", shell.id()));
        assert!(shell.wait_with_output().unwrap().status.success());
        home.dash(&["convert", "app.db", "--to", "plain"]).is(0);
        assert_eq!(home.stock_rows(), 200);
    }
}

#[test]
fn any_journal_mode_may_be_asked_for() {
    let home = Home::new();
    drop(home.plain());
    for mode in ["nonsense", "a b", ""] {
        home.dash(&["convert", "app.db", "--to", mode]).is(2).says("plain, shadow or wal");
    }
    assert_eq!(home.contents().keys().collect::<Vec<_>>(), ["app.db"]);
    let home = Home::new();
    home.shadowed();
    home.dash(&["convert", "app.db", "--to", "TRUNCATE"]).is(0).says("ordinary SQLite file");
    assert_eq!(home.contents().keys().collect::<Vec<_>>(), ["app.db"]);
    assert_eq!(home.stock_rows(), 203);
}
