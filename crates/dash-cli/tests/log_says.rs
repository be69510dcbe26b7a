//! What `sqlite-dash log` says beside the commits: what is missing, why nothing is there, and what
//! is no log of the database.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::process::Stdio;
use std::time::Duration;

use super::common::Home;
use rusqlite::Connection;
use serde_json::Value;

/// Commits, of which the first one is not in the log.
fn recording(home: &Home, rows: u32) -> Connection {
    let db = home.recorded("");
    db.execute_batch("CREATE TABLE t(id INTEGER PRIMARY KEY, a)").unwrap();
    (0..rows).for_each(|_| insert(&db));
    db
}

fn insert(db: &Connection) {
    db.execute("INSERT INTO t(a) VALUES ('x')", []).unwrap();
}

#[test]
fn commits_that_a_flush_of_the_wal_made_durable_are_missed_aloud() {
    let home = Home::new();
    let db = recording(&home, 2);
    let text = home.dash(&["log", "app.db"]).is(0).out();
    let first =
        "-- missing here: frames 1 to 2 of -wal (1 commit): made durable by a flush of -wal";
    assert!(text.starts_with(first), "{text}");
    db.execute_batch("PRAGMA wal_autocheckpoint=0; INSERT INTO t(a) VALUES (zeroblob(3000000))")
        .unwrap();
    insert(&db);
    let text = home.dash(&["log", "app.db", "--all"]).is(0).out();
    let lines = text.lines().filter(|line| line.starts_with("-- missing"));
    let lines: Vec<_> = lines.collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[1].ends_with("(1 commit): made durable by a flush of -wal"), "{text}");
    let json = home.dash(&["log", "app.db", "--all", "--json"]).is(0).out();
    let gaps: Vec<Value> = json
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["missing_before"].clone())
        .collect();
    assert_eq!(gaps.iter().filter(|gap| gap.is_null()).count(), gaps.len() - 2, "{gaps:?}");
    assert_eq!(gaps[0]["last_frame"], 2);
    let sql = home.dash(&["log", "app.db", "--sql"]).is(0).out();
    assert!(sql.starts_with("-- missing here: "), "{sql}");
    db.execute_batch(
        "PRAGMA synchronous=NORMAL; DELETE FROM t WHERE id=1; DELETE FROM t WHERE id=2",
    )
    .unwrap();
    let run = home.dash(&["log", "app.db"]).is(0);
    assert!(run.errors().contains("2 commits of app.db-wal, up to frame"), "{}", run.errors());
}

#[test]
fn an_empty_answer_says_why() {
    let home = Home::new();
    drop(recording(&home, 5));
    let run = home.dash(&["log", "app.db"]).is(0);
    assert_eq!(run.out(), "");
    run.says("the log holds 5 commits that are in the database by now: --all shows them");
    assert_eq!(home.dash(&["log", "app.db", "--all"]).is(0).out().matches("INSERT").count(), 5);
}

#[test]
fn what_has_no_log_says_why() {
    let home = Home::new();
    for command in [&["log", "app.db"][..], &["log", "app.db", "--follow"], &["replay", "app.db"]] {
        home.dash(command).is(2).says("app.db does not exist");
    }
    drop(home.plain());
    home.dash(&["log", "app.db"]).is(2).says("app.db has no log: it is not in WAL mode");
    home.dash(&["log", "."]).is(2).says("is a folder");
    fs::write(home.file("text"), [b'x'; 9000]).unwrap();
    home.dash(&["log", "text"]).is(2).says("text is not an SQLite database");
    let normal = Home::new();
    let db = normal.recorded("");
    db.execute_batch("PRAGMA synchronous=NORMAL; CREATE TABLE t(a); INSERT INTO t VALUES (1)")
        .unwrap();
    let run = normal.dash(&["log", "app.db"]).is(2);
    run.says("2 commits in -wal").says("as with synchronous=NORMAL");
    let off = Home::new();
    let db = off.recorded("&dash_statement_text=off");
    db.execute_batch("CREATE TABLE t(a); INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)")
        .unwrap();
    off.dash(&["log", "app.db"]).is(0).says("or with dash_statement_text=off");
}

#[test]
fn what_is_no_log_of_the_database_is_not_believed() {
    let (home, other) = (Home::new(), Home::new());
    let (db, theirs) = (recording(&home, 9), recording(&other, 12));
    theirs.execute_batch("PRAGMA user_version=7; CREATE TABLE u(x)").unwrap();
    let (mine, foreign) = (home.as_killed(), other.as_killed());
    drop((db, theirs));
    mine.dash(&["log", "app.db"]).is(0);
    let log = mine.file("app.db-dashlog");
    let whole = fs::read(&log).unwrap();
    fs::copy(foreign.file("app.db-dashlog"), &log).unwrap();
    mine.dash(&["log", "app.db"]).is(2).says("don't belong to app.db");
    let mut state = 7_u32;
    let random = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    });
    fs::write(&log, random.take(whole.len()).collect::<Vec<_>>()).unwrap();
    mine.dash(&["log", "app.db"]).is(2).says("is not a log of dash, or damaged throughout");
    // A record in the middle.
    fs::write(&log, &whole).unwrap();
    let json = mine.dash(&["log", "app.db", "--json"]).is(0).out();
    let records: Vec<Value> = json.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let needle = b"INSERT INTO t(a) VALUES ('x')";
    let found = whole.windows(needle.len()).enumerate().filter(|it| it.1 == needle);
    let at = found.map(|it| it.0).nth(3).unwrap();
    fs::OpenOptions::new().write(true).open(&log).unwrap().write_at(b"!", at as u64).unwrap();
    let run = mine.dash(&["log", "app.db"]).is(0);
    assert_eq!(run.out().matches("INSERT").count(), 3, "{}", run.out());
    let newest = &records.last().unwrap()["record"];
    run.says(&format!("to {newest} recovery takes none: one before them is missing or damaged"));
    // At rest a log that was made beside another file says so.
    let (home, other) = (Home::new(), Home::new());
    drop((recording(&home, 3), recording(&other, 3)));
    fs::copy(other.file("app.db-dashlog"), home.file("app.db-dashlog")).unwrap();
    home.dash(&["log", "app.db", "--all"]).is(0).says("was last used beside another file");
}

#[test]
fn it_follows_nobody_when_nobody_reads() {
    let home = Home::new();
    let db = recording(&home, 3);
    for waits in [true, false] {
        let mut following =
            home.command(&["log", "app.db", "--follow"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(following.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        drop(out);
        let mut turns = 0;
        while following.try_wait().unwrap().is_none() {
            if !waits {
                insert(&db);
            }
            std::thread::sleep(Duration::from_millis(20));
            turns += 1;
            assert!(turns < 3000, "it follows for ever");
        }
        assert!(following.wait().unwrap().success());
    }
}
