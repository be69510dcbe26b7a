//! Commits that their statements carry, and that a power loss took from `-wal`: the program
//! `sqlite-dash` runs no statements, says who does, and goes on without them where a person
//! decides.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

use super::common::Home;
use rusqlite::Connection;

fn open(home: &Home) -> rusqlite::Result<Connection> {
    dash_testing::extension::load();
    let parameters = "vfs=dash&journal_mode=statement&dash_commit=paper";
    Connection::open(format!("file:{}?{parameters}", home.db().display()))
}

fn rows(db: &Connection) -> i64 {
    db.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap()
}

/// What is left of 3 commits in `-wal`, and 20 that only statements carry.
fn cut_off() -> Home {
    let home = Home::new();
    let db = open(&home).unwrap();
    db.execute_batch("CREATE TABLE t(id INTEGER PRIMARY KEY, a)").unwrap();
    let insert = || assert_eq!(db.execute("INSERT INTO t(a) VALUES (1)", []), Ok(1));
    (0..3).for_each(|_| insert());
    db.execute_batch("INSERT INTO t SELECT NULL, 2").unwrap();
    let len = std::fs::metadata(home.file("app.db-wal")).unwrap().len();
    (0..20).for_each(|_| insert());
    let lost = home.as_killed();
    for name in ["app.db-shm", "app.db-dash"] {
        std::fs::remove_file(lost.file(name)).unwrap();
    }
    let wal = std::fs::OpenOptions::new().write(true).open(lost.file("app.db-wal")).unwrap();
    wal.set_len(len).unwrap();
    lost
}

#[test]
fn it_says_who_runs_them_and_they_are_run_there() {
    let home = cut_off();
    let asked = home.dash(&["recover", "app.db"]).is(1);
    asked.says("20 commits by their statements alone").says("this program runs none");
    home.dash(&["inspect", "app.db"]).says("20 commits by their statements alone");
    home.dash(&["recover", "app.db", "--keep", "--yes"]).is(1).says("nothing was done");
    let db = open(&home).unwrap();
    assert_eq!(rows(&db), 24);
}

#[test]
fn it_goes_on_without_them() {
    let home = cut_off();
    let done = home.dash(&["recover", "app.db", "--discard", "--yes"]).is(0);
    done.says("20 commits that statements in the log carry");
    let db = Connection::open(home.db()).unwrap();
    assert_eq!(rows(&db), 4);
}

#[test]
fn without_its_wal_nothing_of_the_log_is_promised() {
    let home = cut_off();
    std::fs::remove_file(home.file("app.db-wal")).unwrap();
    let before = home.contents();
    home.dash(&["recover", "app.db", "--keep", "--yes"]).is(1).says("nothing was done");
    assert_eq!(home.contents(), before);
    home.dash(&["recover", "app.db", "--discard", "--yes"]).is(0);
    drop(open(&home).unwrap());
}

/// A log of somebody who may not write the database is not run, and `recover` goes on without all
/// of it. SEC S2-8.
#[test]
fn those_of_a_stranger_are_nobodys() {
    if !dash_testing::machine::root_for("giving a file away") {
        return;
    }
    let home = cut_off();
    home.dash(&["inspect", "app.db"]).says("to user 0, group 0: statements in it are run again");
    std::os::unix::fs::chown(home.file("app.db-dashlog"), Some(2003), Some(2003)).unwrap();
    let seen = home.dash(&["inspect", "app.db"]);
    seen.says("to user 2003, group 2003, and neither may write the database");
    let told = home.dash(&["recover", "app.db"]).is(1);
    told.says("it belongs to user 2003, group 2003").says("sqlite-dash recover app.db --discard");
    home.dash(&["recover", "app.db", "--keep", "--yes"]).is(1).says("nothing was done");
    assert!(open(&home).is_err());
    home.dash(&["recover", "app.db", "--discard", "--yes"]).is(0);
    assert!(home.file("app.db-dashlog.before-recover-1").exists());
    assert_eq!(rows(&open(&home).unwrap()), 4);
}
