//! `dash inspect` says what is there and changes nothing.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

mod common;

use std::io::Write;
use std::process::Stdio;

use common::Home;
use serde_json::Value;

fn json(home: &Home) -> Value {
    serde_json::from_str(&home.dash(&["inspect", "app.db", "--json"]).out()).unwrap()
}

#[test]
fn inspecting_changes_no_byte_and_no_name() {
    let home = Home::new();
    home.shadowed();
    home.lose_the_last_exchange();
    let before = home.contents();
    home.dash(&["inspect", "app.db"]).is(0).says("it is newer").says("completes the newest commit");
    home.dash(&["inspect", "app.db", "--json"]).is(0);
    assert_eq!(before, home.contents());
}

#[test]
fn a_closed_database_agrees_with_its_shadow() {
    let home = Home::new();
    home.shadowed();
    let report = json(&home);
    assert_eq!(report["kinds"]["database"], "Whole");
    assert_eq!(report["kinds"]["relation"], "Parent");
    assert_eq!(report["open"], false);
    assert_eq!(report["locks"].as_array().unwrap().len(), 0);
    assert_eq!(report["database"]["commit"]["as_committed"], true);
    assert_eq!(report["database"]["commit"]["place"], "in page 1");
}

#[test]
fn an_open_database_says_who_has_it() {
    let home = Home::new();
    home.shadowed();
    let mut shell = home
        .command(&["shell", "app.db"])
        .env("PATH", "")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = shell.stdin.take().unwrap();
    writeln!(input, "BEGIN IMMEDIATE; SELECT 'begun';").unwrap();
    let mut said = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(shell.stdout.take().unwrap()),
        &mut said,
    )
    .unwrap();
    assert_eq!(said, "begun\n");
    let report = json(&home);
    assert_eq!(report["open"], true);
    assert_eq!(report["opening"]["does"], "join");
    let holders = report["holders"].as_array().unwrap();
    assert!(holders.iter().any(|holder| holder["process"] == shell.id()), "{holders:?}");
    let writer = report["locks"].as_array().unwrap().iter().any(|lock| lock["place"] == "WRITER");
    assert!(writer, "{report:#}");
    drop(input);
    shell.wait().unwrap();
}

#[test]
fn a_plain_a_foreign_and_a_missing_file_are_told_apart() {
    let home = Home::new();
    home.dash(&["inspect", "app.db"]).is(2).says("does not exist");
    std::fs::write(home.db(), "no database".repeat(1000)).unwrap();
    home.dash(&["inspect", "app.db"]).is(1).says("not an SQLite database");
    std::fs::remove_file(home.db()).unwrap();
    drop(home.plain());
    home.dash(&["inspect", "app.db"]).is(0).says("a plain SQLite database");
}
