//! `dash demo` on data of its own, on a copy of a user's file and on recorded SQL.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

mod common;

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{Home, Run};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The two figures of a row of the table.
fn row(run: &Run, label: &str) -> (String, String) {
    let out = run.out();
    let line = out
        .lines()
        .find(|line| line.trim_start().starts_with(label))
        .unwrap_or_else(|| panic!("{label}: {out}"));
    let mut words = line.split_whitespace().rev();
    let dash = words.next().unwrap_or_default().to_owned();
    (words.next().unwrap_or_default().to_owned(), dash)
}

fn finds_what_was_acknowledged(run: &Run) {
    let (acknowledged, found) = (row(run, "commits acknowledged"), row(run, "of those found"));
    assert_eq!(acknowledged, found);
    assert!(acknowledged.1.parse::<u32>().unwrap() > 0);
    assert_eq!(row(run, "integrity_check"), ("ok".into(), "ok".into()));
}

#[test]
fn made_up_data_runs_on_both_sides_and_leaves_nothing_behind() {
    let home = Home::new();
    let run = home.dash(&["demo", "--transactions", "150"]).is(0);
    assert_eq!(row(&run, "durable transactions "), ("150".into(), "150".into()));
    finds_what_was_acknowledged(&run);
    assert!(home.contents().is_empty(), "{:?}", home.contents().keys());
}

#[test]
fn a_copy_of_the_users_file_is_used_and_the_file_is_not_touched() {
    let home = Home::new();
    home.shadowed();
    let before = home.contents();
    let run = home.dash(&["demo", "app.db", "--transactions", "20"]).is(0).says("a copy of app.db");
    finds_what_was_acknowledged(&run);
    assert_eq!(before, home.contents());
}

#[test]
fn a_log_that_belongs_to_the_users_file_is_read_and_not_touched() {
    let home = Home::new();
    let db = home.plain();
    db.query_row("PRAGMA journal_mode=WAL", [], |_| Ok(())).unwrap();
    db.execute_batch("INSERT INTO t (body) VALUES ('in the log')").unwrap();
    let before = home.contents();
    home.dash(&["demo", "app.db", "--transactions", "20"]).is(0);
    assert_eq!(before, home.contents());
}

#[test]
fn a_folder_with_a_benchset_is_replayed_with_its_failures_counted() {
    let home = Home::new();
    fs::create_dir_all(home.file("trace/benchset")).unwrap();
    fs::write(home.file("trace/loading.sql"), "CREATE TABLE a (x UNIQUE);\nCREATE TABLE b (x);")
        .unwrap();
    fs::write(home.file("trace/benchset/0.sql"), "BEGIN EXCLUSIVE;\nINSERT INTO a VALUES (1)\nCOMMIT;\nINSERT INTO a VALUES (1);\nSELECT * FROM a").unwrap();
    fs::write(
        home.file("trace/benchset/1.sql"),
        "PRAGMA synchronous=OFF;\nINSERT INTO b VALUES (';');\nSELECT nonsense\n",
    )
    .unwrap();
    let run = home
        .dash(&["demo", "--replay", "trace"])
        .is(0)
        .says("2 connections at the same time")
        .says("1 statements were left out");
    assert_eq!(row(&run, "durable transactions "), ("2".into(), "2".into()));
    assert_eq!(row(&run, "statements that failed"), ("2".into(), "2".into()));
    finds_what_was_acknowledged(&run);
}

#[test]
fn a_folder_of_plain_files_is_replayed() {
    let home = Home::new();
    fs::create_dir(home.file("trace")).unwrap();
    fs::write(
        home.file("trace/x_load.sql"),
        "CREATE TABLE a (x);\n/* ; */\nINSERT INTO a\nVALUES (0);",
    )
    .unwrap();
    fs::write(
        home.file("trace/x.sql"),
        "UPDATE a\nSET x = x + 1;\nPRAGMA user_version;;\nUPDATE a SET x = x + 1",
    )
    .unwrap();
    let run = home.dash(&["demo", "--replay", "trace"]).is(0).says("1 connection");
    assert_eq!(row(&run, "durable transactions "), ("2".into(), "2".into()));
}

/// dash commits what creates a table, too, which is no row changed: both counts are still of the
/// same transactions.
#[test]
fn both_counts_have_the_same_denominator() {
    let home = Home::new();
    fs::create_dir(home.file("trace")).unwrap();
    fs::write(home.file("trace/x_load.sql"), "CREATE TABLE a (x);").unwrap();
    let tables: String = (0..10).map(|table| format!("CREATE TABLE t{table} (x);\n")).collect();
    fs::write(home.file("trace/x.sql"), format!("{tables}INSERT INTO a VALUES (1)")).unwrap();
    let run = home.dash(&["demo", "--replay", "trace"]).is(0).says("per durable transaction");
    assert_eq!(row(&run, "durable transactions "), ("1".into(), "1".into()));
    let flushes: f64 = row(&run, "flushes, by dash's own count").1.parse().unwrap();
    assert!(flushes >= 10.0, "{flushes} for eleven commits");
}

#[test]
fn wrong_arguments_say_what_is_wrong() {
    let home = Home::new();
    home.dash(&["demo", "nothing.db"]).is(2).says("nothing.db is not a file");
    home.dash(&["demo", "--replay", "."]).is(2).says("has nothing to replay");
    home.dash(&["demo", "--dir", "nowhere"]).is(2).says("--dir");
    home.dash(&["demo", "--transactions", "0"]).is(2);
}

/// Whether there is a database in the demo's folder.
fn has_begun(home: &Home) -> bool {
    let in_it = |entry: fs::DirEntry| fs::read_dir(entry.path()).ok()?.flatten().next();
    fs::read_dir(home.path()).unwrap().flatten().find_map(in_it).is_some()
}

#[test]
fn ctrl_c_stops_a_demo_and_removes_its_folder() {
    let home = Home::new();
    let mut demo = home
        .command(&["demo", "--transactions", "1000000"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while !has_begun(&home) {
        assert!(begun.elapsed() < Duration::from_secs(60), "it makes no database");
        std::thread::sleep(Duration::from_millis(5));
    }
    let process = Pid::from_raw(i32::try_from(demo.id()).unwrap());
    kill(process, Signal::SIGINT).unwrap();
    assert_eq!(demo.wait().unwrap().code(), Some(2));
    assert!(home.contents().is_empty(), "{:?}", home.contents().keys());
}
