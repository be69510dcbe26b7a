//! Several processes, and processes that are killed: what one committed is there, what it had begun
//! is not.

mod common;
use common::*;

use std::path::Path;

use dash_testing::roles::{Role, role, say};

#[test]
#[ignore = "a role of the tests below"]
fn a_process_that_is_killed() {
    let Some(argument) = role("a_process_that_is_killed") else { return };
    let (role, folder) = argument.split_once(' ').expect("two words");
    register();
    let folder = Path::new(folder);
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
        say("acknowledged", round);
    }
}

fn start(folder: &Folder, role: &str) -> Role {
    let folder = folder.path(".");
    Role::start("a_process_that_is_killed", format!("{role} {}", folder.display()))
}

/// Kills the process after some commits; answers the last one it had acknowledged.
fn kill_after(mut child: Role, commits: usize) -> i64 {
    let mut said = String::new();
    for _ in 0..commits {
        said = child.hear("acknowledged");
    }
    // What it still said before it died was acknowledged, too.
    child.kill_and_hear("acknowledged").pop().unwrap_or(said).parse().expect("a number")
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
    child.hear("acknowledged");
    let said = message(db.execute_batch("PRAGMA journal_mode=delete"));
    assert!(said.contains("another connection"), "{said}");
    assert_eq!(text(&db, "SELECT dash_engine()"), "shadow");
    db.execute_batch("CREATE TABLE IF NOT EXISTS mine(x); INSERT INTO mine VALUES (1)")
        .expect("commits");
    child.kill();
    assert_eq!(text(&db, "PRAGMA journal_mode=delete"), "delete");
    assert!(!folder.exists("main.db-shadow"));
    whole(&db);
}

#[test]
fn two_processes_and_this_one_write_in_turns() {
    let folder = Folder::new();
    let db = folder.open("main.db");
    let children = [start(&folder, "own"), start(&folder, "own")];
    for _ in 0..200 {
        db.execute_batch("CREATE TABLE IF NOT EXISTS t(x); INSERT INTO t VALUES (1)")
            .expect("waits for its turn");
    }
    children.into_iter().for_each(Role::kill);
    assert_eq!(number(&db, "SELECT count(*) FROM t"), 200);
    whole(&db);
}
