//! Several processes, and processes that are killed: what one committed is there, what it had begun
//! is not.

mod common;
use common::*;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// What the killed process does, chosen by this variable; the test below is its `main`.
const ROLE: &str = "DASH_TEST_ROLE";
const FOLDER: &str = "DASH_TEST_FOLDER";

#[test]
fn role_of_a_process_that_is_killed() {
    let (Ok(role), Ok(folder)) = (std::env::var(ROLE), std::env::var(FOLDER)) else {
        return; // run by itself it has nothing to do
    };
    register();
    let folder = Path::new(&folder);
    let db = Connection::open(uri(&folder.join("main.db"), "dash", "")).unwrap_or_else(|error| {
        let scratch = Connection::open_in_memory().expect("opens");
        panic!("{error}: {}", last_error(&scratch))
    });
    db.execute("ATTACH ? AS side", [uri(&folder.join("side.db"), "dash", "")]).expect("attaches");
    db.execute_batch("CREATE TABLE IF NOT EXISTS main.m(x); CREATE TABLE IF NOT EXISTS side.s(x)")
        .expect("commits");
    let first = number(&db, "SELECT ifnull(max(x), 0) FROM m");
    for round in first + 1.. {
        let sql = if role == "own" {
            "CREATE TABLE IF NOT EXISTS u(x); INSERT INTO u VALUES (1)".to_owned()
        } else if role == "both" {
            format!("BEGIN; INSERT INTO m VALUES ({round}); INSERT INTO s VALUES ({round}); COMMIT")
        } else {
            format!("INSERT INTO m VALUES ({round})")
        };
        if let Err(error) = db.execute_batch(&sql) {
            panic!("{error}: {}", last_error(&db));
        }
        println!("acknowledged {round}");
    }
}

fn start(folder: &Folder, role: &str) -> Child {
    Command::new(std::env::current_exe().expect("known"))
        .args(["role_of_a_process_that_is_killed", "--exact", "--nocapture", "--test-threads=1"])
        .env(ROLE, role)
        .env(FOLDER, folder.path("."))
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts")
}

/// Kills the process after some commits; answers the last one it had acknowledged.
fn kill_after(mut child: Child, commits: usize) -> i64 {
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut acknowledged = |line: std::io::Result<String>| {
        let line = line.ok()?;
        line.rsplit_once("acknowledged ").and_then(|(_, number)| number.parse().ok())
    };
    let mut last = lines.by_ref().filter_map(&mut acknowledged).nth(commits - 1).expect("commits");
    child.kill().expect("kills");
    child.wait().expect("ends");
    // What it still said before it died was acknowledged, too.
    if let Some(later) = lines.filter_map(&mut acknowledged).last() {
        last = later;
    }
    last
}

#[test]
fn every_acknowledged_commit_survives_a_kill() {
    let folder = Folder::new();
    for round in 0..8 {
        let last = kill_after(start(&folder, "one"), 1 + round * 3);
        let db = folder.open("main.db");
        let found = number(&db, "SELECT max(x) FROM m");
        assert!(found == last || found == last + 1, "{last} acknowledged, {found} found");
        assert_eq!(number(&db, "SELECT count(*) FROM m"), found);
        whole(&db);
        drop(db);
        let stock = folder.stock("main.db");
        assert_eq!(number(&stock, "SELECT count(*) FROM m"), found);
        whole(&stock);
    }
}

#[test]
fn a_transaction_over_two_databases_survives_a_kill_in_both_or_in_none() {
    let folder = Folder::new();
    for round in 0..12 {
        let last = kill_after(start(&folder, "both"), 1 + round % 5);
        let (main, side) = (folder.open("main.db"), folder.open("side.db"));
        let found = number(&main, "SELECT ifnull(max(x), 0) FROM m");
        assert!(found == last || found == last + 1, "{last} acknowledged, {found} found");
        assert_eq!(number(&side, "SELECT ifnull(max(x), 0) FROM s"), found);
        assert_eq!(number(&side, "SELECT count(*) FROM s"), found);
        whole(&main);
        whole(&side);
    }
    let left: Vec<_> = std::fs::read_dir(folder.path("."))
        .expect("lists")
        .filter_map(|entry| entry.expect("lists").file_name().into_string().ok())
        .filter(|name| name.contains("-mj"))
        .collect();
    println!("super-journals left: {left:?}");
}

#[test]
fn stock_sees_a_whole_state_or_is_refused_after_a_kill() {
    let folder = Folder::new();
    for round in 0..6 {
        let last = kill_after(start(&folder, "one"), 2 + round);
        let stock = folder.stock("main.db");
        let seen: Result<i64> = stock.query_row("SELECT count(*) FROM m", [], |row| row.get(0));
        if let Ok(seen) = seen {
            assert!(seen <= last + 1);
            whole(&stock);
        }
        drop(stock);
        assert!(number(&folder.open("main.db"), "SELECT count(*) FROM m") >= last);
    }
}

#[test]
fn the_mode_is_not_left_while_another_process_has_the_database_open() {
    let folder = Folder::new();
    let db = folder.open("main.db");
    let mut child = start(&folder, "own");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    assert!(lines.any(|line| line.is_ok_and(|line| line.contains("acknowledged"))));
    let said = message(db.execute_batch("PRAGMA journal_mode=delete"));
    assert!(said.contains("another connection"), "{said}");
    assert_eq!(text(&db, "SELECT dash_engine()"), "shadow");
    db.execute_batch("CREATE TABLE IF NOT EXISTS mine(x); INSERT INTO mine VALUES (1)")
        .expect("commits");
    child.kill().expect("kills");
    child.wait().expect("ends");
    assert_eq!(text(&db, "PRAGMA journal_mode=delete"), "delete");
    assert!(!folder.exists("main.db-shadow"));
    whole(&db);
}

#[test]
fn two_processes_and_this_one_write_in_turns() {
    let folder = Folder::new();
    let db = folder.open("main.db");
    let mut children = [start(&folder, "own"), start(&folder, "own")];
    for _ in 0..200 {
        db.execute_batch("CREATE TABLE IF NOT EXISTS t(x); INSERT INTO t VALUES (1)")
            .expect("waits for its turn");
    }
    for child in &mut children {
        child.kill().expect("kills");
        child.wait().expect("ends");
    }
    assert_eq!(number(&db, "SELECT count(*) FROM t"), 200);
    whole(&db);
}
