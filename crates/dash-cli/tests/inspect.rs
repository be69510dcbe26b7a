//! `sqlite-dash inspect` says what is there and changes nothing.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

use std::io::Write;
use std::process::Command;

use super::common::{Home, Run, program};
use dash_testing::machine::runs;
use dash_testing::{Need, skip};
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
    home.dash(&["inspect", "app.db"])
        .is(0)
        .says("agree: no: the shadow's commit")
        .says("it is newer")
        .says("completes the newest commit");
    home.dash(&["inspect", "app.db", "--json"]).is(0);
    assert_eq!(before, home.contents());
}

#[test]
fn a_closed_database_agrees_with_its_shadow() {
    let home = Home::new();
    home.shadowed();
    let report = json(&home);
    assert_eq!(report["kinds"]["database"], "whole");
    assert_eq!(report["kinds"]["relation"], "parent");
    assert_eq!(report["open"], false);
    assert_eq!(report["locks"].as_array().unwrap().len(), 0);
    assert_eq!(report["database"]["commit"]["as_committed"], true);
    assert_eq!(report["database"]["commit"]["place"], "in page 1");
}

#[test]
fn an_open_database_says_who_has_it() {
    let home = Home::new();
    home.shadowed();
    let mut shell = home.shell();
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
    let role = format!("WRITER (a write transaction), exclusive: {} (sqlite-dash)", shell.id());
    home.dash(&["inspect", "app.db"]).is(0).says(&role);
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

#[test]
fn whether_names_and_sequences_agree_is_yes_no_or_nothing_to_compare() {
    let home = Home::new();
    std::fs::write(home.db(), "").unwrap();
    home.dash(&["inspect", "app.db"]).is(0).says("agree: there is no shadow to compare with");
    std::fs::remove_file(home.db()).unwrap();
    home.shadowed();
    home.dash(&["inspect", "app.db"]).is(0).says("agree: yes: the database");
    std::fs::remove_file(home.db()).unwrap();
    home.dash(&["inspect", "app.db"]).is(0).says("agree: there is no database to compare with");
}

#[test]
fn a_shadow_copied_alone_is_told_from_a_plain_database() {
    let home = Home::new();
    home.shadowed();
    let number = json(&home)["database"]["commit"]["sequence"].to_string();
    std::fs::copy(home.file("app.db-shadow"), home.file("copy.db")).unwrap();
    home.dash(&["inspect", "copy.db"])
        .is(0)
        .says(&format!("copy.db: a copy of a shadow: the state before commit number {number},"));
    std::fs::copy(home.db(), home.file("copy.db")).unwrap();
    home.dash(&["inspect", "copy.db"])
        .is(0)
        .says(&format!("copy.db: a copy of the state after commit number {number}\n"));
    let stock = rusqlite::Connection::open(home.file("copy.db")).unwrap();
    stock.execute_batch("UPDATE t SET body = 'by stock'").unwrap();
    drop(stock);
    home.dash(&["inspect", "copy.db"]).is(0).says("copy.db: a plain SQLite database");
}

#[test]
fn a_folder_is_one_error() {
    let home = Home::new();
    std::fs::create_dir(home.db()).unwrap();
    for command in [
        &["inspect", "app.db"][..],
        &["recover", "app.db"],
        &["convert", "app.db", "--to", "plain"],
    ] {
        let run = home.dash(command).is(2).says("app.db is a folder, not a database");
        assert_eq!(run.errors().matches("folder").count(), 1);
    }
}

#[test]
fn a_named_pipe_is_not_waited_for() {
    let home = Home::new();
    nix::unistd::mkfifo(&home.db(), nix::sys::stat::Mode::from_bits_truncate(0o644)).unwrap();
    // Whoever opens it for reading waits no longer than this.
    let (pipe, (over, patience)) = (home.db(), std::sync::mpsc::channel());
    let writer = std::thread::spawn(move || {
        if patience.recv_timeout(std::time::Duration::from_secs(20)).is_err() {
            drop(std::fs::OpenOptions::new().read(true).write(true).open(pipe));
        }
    });
    for command in [
        &["inspect", "app.db"][..],
        &["recover", "app.db"],
        &["convert", "app.db", "--to", "plain"],
    ] {
        home.dash(command).is(2).says("app.db is not a regular file");
    }
    over.send(()).unwrap();
    writer.join().unwrap();
}

#[test]
fn a_database_made_plain_is_not_said_to_lack_its_shadow() {
    let home = Home::new();
    std::fs::write(home.db(), "").unwrap();
    home.dash(&["convert", "app.db", "--to", "shadow"]).is(0);
    home.dash(&["inspect", "app.db"]).is(0).says("1 run listed");
    home.dash(&["convert", "app.db", "--to", "plain"]).is(0);
    home.dash(&["inspect", "app.db"]).is(0).says("the database was made plain, or");
    home.dash(&["recover", "app.db"]).is(0).says("needs no recovery").says("was made plain, or");
}

#[test]
fn a_lock_that_a_process_of_another_container_holds_is_said_to_be_so() {
    let apart = ["--pid", "--fork", "--mount-proc"];
    if !runs("unshare", &[&apart[..], &["true"]].concat()) {
        skip(Need::Root, "no pid namespace can be made");
        return;
    }
    for mode in ["wal", "shadow"] {
        let home = Home::new();
        drop(home.plain());
        home.dash(&["convert", "app.db", "--to", mode]).is(0);
        dash_testing::extension::load();
        let uri = format!("file:{}?vfs=dash", home.db().display());
        let writer = rusqlite::Connection::open(uri).unwrap();
        writer.execute_batch("BEGIN IMMEDIATE").unwrap();
        let mut command = Command::new("unshare");
        command.args(apart).arg(program()).args(["inspect", "app.db"]).current_dir(home.path());
        Run(command.output().unwrap()).says("in another container: run this as root, on the host");
        let seen = home.dash(&["inspect", "app.db"]).says(&format!("{} (", std::process::id()));
        assert!(!seen.out().contains("another container"), "{}", seen.out());
    }
}
