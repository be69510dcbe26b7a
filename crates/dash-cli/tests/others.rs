//! What `inspect` and `recover` say where files were removed or replaced under those who have the
//! database open: what opening says.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Child;

use rusqlite::Connection;
use serde_json::Value;

use super::common::Home;
use super::common::killed::run_and_kill;
use super::recover::keeps_every_input;

/// A process on dash that has committed, and stays.
struct Living(Child);

impl Living {
    fn of(home: &Home) -> Self {
        let mut shell = home.shell();
        let input = shell.stdin.as_mut().unwrap();
        for number in 0..3 {
            writeln!(input, "INSERT INTO t (body) VALUES ('by dash {number}');").unwrap();
        }
        writeln!(input, "SELECT 'done';").unwrap();
        let mut said = String::new();
        BufReader::new(shell.stdout.as_mut().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said, "done\n");
        Self(shell)
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn in_mode(mode: &str) -> Home {
    let home = Home::new();
    drop(home.plain());
    home.dash(&["convert", "app.db", "--to", mode]).is(0);
    home
}

fn does(home: &Home) -> Value {
    let report = home.dash(&["inspect", "app.db", "--json"]).out();
    serde_json::from_str::<Value>(&report).unwrap()["opening"]["does"].clone()
}

/// Another file with the same bytes.
fn replace(home: &Home, name: &str) {
    let (file, copy) = (home.file(name), home.file("copy"));
    fs::copy(&file, &copy).unwrap();
    fs::rename(copy, file).unwrap();
}

#[test]
fn a_database_whose_name_is_another_files_is_not_joined() {
    for mode in ["wal", "shadow"] {
        let home = in_mode(mode);
        let living = Living::of(&home);
        assert_eq!(does(&home), "join", "{mode}");
        replace(&home, "app.db");
        assert_eq!(does(&home), "refuse others", "{mode}");
        let words = "`VACUUM INTO` there makes a copy";
        home.dash(&["recover", "app.db"]).is(1).says("was replaced").says(words);
        home.dash(&["shell", "app.db", "--", "SELECT 1 FROM t"]).is(2).says("was replaced");
        drop(living);
    }
}

#[test]
fn nor_is_one_whose_index_or_log_of_pages_is() {
    for name in ["app.db-shm", "app.db-wal"] {
        let home = in_mode("wal");
        let living = Living::of(&home);
        replace(&home, name);
        assert_eq!(does(&home), "refuse others", "{name}");
        let words = format!("{name} was replaced, or removed, while process {}", living.0.id());
        home.dash(&["recover", "app.db"]).is(1).says(&words);
        home.dash(&["shell", "app.db", "--", "SELECT 1 FROM t"]).is(2).says(&words);
    }
}

/// Where a stock program goes on with the former `-wal`, a copy of it would be the end of both.
#[test]
fn beside_a_stock_program_only_the_very_wal_is_put_back() {
    let home = in_mode("wal");
    let stock = Connection::open(home.db()).unwrap();
    let read =
        || -> i64 { stock.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap() };
    let before = read();
    let commit = |number| format!("INSERT INTO t (body) VALUES ('by dash {number}');");
    run_and_kill(&home, &(0..4).map(commit).collect::<Vec<_>>());
    let (wal, aside) = (home.file("app.db-wal"), home.file("aside"));
    fs::rename(&wal, &aside).unwrap();
    let missing = format!("process {} has a lock on app.db", std::process::id());
    for keep in [&["recover", "app.db"][..], &["recover", "app.db", "--keep", "log"]] {
        home.dash(keep).is(1).says("app.db-wal is missing or blank").says(&missing).says("`mv`");
    }
    fs::copy(&aside, &wal).unwrap();
    assert_eq!(does(&home), "refuse others");
    home.dash(&["recover", "app.db"]).is(1).says("another file than it was").says("`mv`");
    home.dash(&["shell", "app.db", "--", "SELECT 1 FROM t"]).is(2).says("another file than it was");
    fs::rename(&aside, &wal).unwrap();
    home.sql("INSERT INTO t (body) VALUES ('by dash')");
    assert_eq!(read(), before + 5);
}

#[test]
fn of_a_backup_put_there_after_a_kill_a_person_chooses() {
    for kept in ["database", "shadow"] {
        let home = Home::new();
        home.shadowed();
        let backup = fs::read(home.db()).unwrap();
        let commit = |number| format!("INSERT INTO t (body) VALUES ('later {number}');");
        run_and_kill(&home, &(0..4).map(commit).collect::<Vec<_>>());
        fs::write(home.db(), &backup).unwrap();
        let words = "is older than the last commit to it";
        for _ in 0..2 {
            home.dash(&["shell", "app.db", "--", "SELECT 1 FROM t"]).is(2).says(words);
            home.dash(&["recover", "app.db"]).is(1).says(words).says("--keep database");
        }
        keeps_every_input(&home, &["recover", "app.db", "--yes", "--keep", kept]);
        let later = home.sql("SELECT count(*) FROM t WHERE body LIKE 'later%'");
        assert_eq!(later.trim(), if kept == "database" { "0" } else { "3" }, "{kept}");
    }
}
