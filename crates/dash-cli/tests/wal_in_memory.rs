//! What the program says of a database whose `-wal` is in the memory of another process
//! (`dash_wal=memory`), and of one whose process was killed.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

use super::common::Home;
use super::common::killed::whole_with;
use dash_testing::extension;
use rusqlite::Connection;
use serde_json::Value;

/// A database with 200 rows, and this process's connection that has committed 20 more in memory.
fn in_memory() -> (Home, Connection) {
    let home = Home::new();
    drop(home.plain());
    home.dash(&["convert", "app.db", "--to", "wal"]).is(0);
    extension::load();
    let db = Connection::open(format!("file:{}?vfs=dash&dash_wal=memory", home.db().display()));
    let db = db.unwrap();
    for number in 0..20 {
        db.execute("INSERT INTO t (body) VALUES (?)", [number]).unwrap();
    }
    (home, db)
}

fn json(home: &Home, arguments: &[&str]) -> Value {
    serde_json::from_str(&home.dash(arguments).out()).unwrap()
}

/// Who has it is named, and that it can't be joined. WAL-35: its file is behind.
#[test]
fn while_it_is_open_others_are_said_to_be_refused() {
    let (home, db) = in_memory();
    let process = format!("process {} has", std::process::id());
    let refused = format!("is refused to other processes: {process} it open with dash_wal=memory");
    home.dash(&["inspect", "app.db"]).is(0).says(&refused).says("its file is behind on purpose");
    let report = json(&home, &["inspect", "app.db", "--json"]);
    assert_eq!(report["in_memory"]["process"], std::process::id(), "{report:#}");
    assert_eq!(report["opening"]["does"], "refuse in memory");
    assert_eq!(report["open"], true);
    let doctor = home.dash(&["doctor", "--no-hosts", "app.db"]).says(&refused);
    assert!(!doctor.out().contains("joins"), "{}", doctor.out());
    home.dash(&["recover", "app.db"]).is(0).says("needs no recovery").says(&refused);
    home.dash(&["recover", "app.db", "--keep"]).is(1).says("nothing to choose").says(&refused);
    // What is refused says what works.
    for arguments in [&["backup", "app.db", "copy.db"][..], &["shell", "app.db", "--", "SELECT 1"]]
    {
        home.dash(arguments).is(2).says(&process).says("SELECT dash_backup(path)");
    }
    db.query_row("SELECT dash_backup(?)", [home.file("copy.db").to_str()], |_| Ok(())).unwrap();
    db.close().unwrap();
    let report = json(&home, &["inspect", "app.db", "--json"]);
    assert_eq!((&report["in_memory"], &report["opening"]["does"]), (&Value::Null, &"leave".into()));
    whole_with(&home, 220);
}

/// All commits since the last checkpoint are in the log alone.
#[test]
fn after_a_kill_its_file_is_said_to_lack_what_was_in_memory() {
    let (home, db) = in_memory();
    let killed = home.as_killed();
    let had = format!("process {} had -wal in memory", std::process::id());
    let inspected = killed.dash(&["inspect", "app.db"]).is(0).says(&had).says("its file is behind");
    assert!(!inspected.out().contains("on purpose"), "{}", inspected.out());
    let report = json(&killed, &["inspect", "app.db", "--json"]);
    assert_eq!(report["in_memory"]["process"], std::process::id(), "{report:#}");
    assert_eq!(report["opening"]["does"], "replay");
    for arguments in [&["doctor", "--no-hosts", "app.db"][..], &["recover", "app.db"]] {
        let said = killed.dash(arguments).says(&had).out();
        assert!(!said.contains("mostly nothing"), "{said}");
    }
    killed.dash(&["recover", "app.db", "--yes"]).is(0);
    whole_with(&killed, 220);
    db.close().unwrap();
}

/// Nothing else has them; a person may go on without.
#[test]
fn without_the_log_the_commits_in_memory_are_gone() {
    let (home, db) = in_memory();
    let killed = home.as_killed();
    drop(db);
    std::fs::remove_file(killed.file("app.db-dashlog")).unwrap();
    killed.dash(&["inspect", "app.db"]).is(1).says("app.db-dashlog is missing");
    killed.dash(&["recover", "app.db", "--discard", "--yes"]).is(0);
    // A session's first commit may be in `-wal`'s file.
    let rows = killed.stock_rows();
    assert!((200..=201).contains(&rows), "{rows}");
    whole_with(&killed, rows);
}

/// Readers say so in the coordination file, though the wal-index is in memory; frames are in none.
#[test]
fn top_names_who_reads_and_says_nothing_of_frames() {
    let (home, db) = in_memory();
    let reader = Connection::open(format!("file:{}?vfs=dash", home.db().display())).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM t").unwrap();
    db.execute_batch("INSERT INTO t (body) VALUES ('behind it')").unwrap();
    let seen = json(&home, &["top", "app.db", "--once", "--json", "--interval", "0.2"]);
    let readers = seen["readers"].as_array().unwrap();
    assert_eq!(readers.len(), 1, "{seen:#}");
    assert_eq!(
        (&readers[0]["process"], &readers[0]["kind"]),
        (&std::process::id().into(), &"dash".into())
    );
    assert!(readers[0].get("kept_bytes").is_none(), "{seen:#}");
    assert_eq!(seen["commits"], 21);
}
