//! `sqlite-dash inspect`, `recover` and `convert` for databases whose log lies elsewhere.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

use std::fs;
use std::path::Path;

use super::common::Home;
use super::common::killed::{lose_power, run_and_kill, whole_with};
use dash_testing::extension;
use dash_testing::mounts::folder_in_memory;
use rusqlite::Connection;

/// A database with 200 rows, and so many commits of a row each on top that a killed process left,
/// in a log elsewhere. A session before has made that, long enough for the next one to use it from
/// its second commit on.
fn killed_elsewhere(home: &Home, logs: &Path, commits: usize) {
    drop(home.plain());
    home.dash(&["convert", "app.db", "--to", "wal"]).is(0);
    extension::load();
    let uri = format!("file:{}?vfs=dash&dash_log={}", home.db().display(), logs.display());
    let db = Connection::open(uri).unwrap();
    for number in 0..12 {
        db.execute_batch(&format!("PRAGMA user_version={number}")).unwrap();
    }
    db.close().unwrap();
    let insert = |number| format!("INSERT INTO t (body) VALUES ('by dash {number}');");
    run_and_kill(home, &(0..commits).map(insert).collect::<Vec<_>>());
}

#[test]
fn a_log_elsewhere_is_shown_recovered_from_and_given_up() {
    let (home, logs) = (Home::new(), tempfile::tempdir().unwrap());
    killed_elsewhere(&home, logs.path(), 3);
    lose_power(&home, 1);
    let log = fs::read_dir(logs.path()).unwrap().next().unwrap().unwrap().path();
    let shown = home.dash(&["inspect", "app.db"]);
    shown.is(0).says(&format!("the log is {}", log.display()));
    let commits = home.dash(&["log", "app.db"]).is(0).out();
    assert_eq!(commits.lines().filter(|line| line.starts_with("commit ")).count(), 2, "{commits}");
    // Lost, as on a tmpfs, refuses the database, and is put back.
    let aside = home.path().join("aside");
    fs::rename(&log, &aside).unwrap();
    let lost = format!("{} is missing", log.display());
    home.dash(&["inspect", "app.db"]).is(1).says(&lost);
    home.dash(&["log", "app.db"]).is(2).says(&lost);
    home.dash(&["recover", "app.db"]).is(1).says(&lost);
    home.dash(&["recover", "app.db", "--keep"]).is(1).says("nothing was done");
    fs::copy(&aside, &log).unwrap();
    home.dash(&["recover", "app.db", "--yes"]).is(0);
    whole_with(&home, 203);
    // At rest it may be given up, and nothing is lost.
    fs::remove_file(&log).unwrap();
    home.dash(&["recover", "app.db", "--discard", "--yes"]).is(0).says("go on without the log");
    whole_with(&home, 203);
    assert!(!home.file("app.db-dashlog").exists());
}

#[test]
fn of_a_copy_and_the_log_of_its_original_a_person_chooses() {
    for (choice, kept) in [("--keep", 203), ("--discard", 201)] {
        let (home, logs) = (Home::new(), tempfile::tempdir().unwrap());
        killed_elsewhere(&home, logs.path(), 3);
        lose_power(&home, 1);
        // Another inode: moved to another disk, for instance.
        let aside = home.path().join("aside");
        fs::copy(home.db(), &aside).unwrap();
        fs::rename(&aside, home.db()).unwrap();
        home.dash(&["recover", "app.db"]).is(1).says("app.db is a copy");
        home.dash(&["recover", "app.db", choice, "--yes"]).is(0);
        whole_with(&home, kept);
    }
}

/// Emptied or written over after a power loss it is missed as if it were gone.
#[test]
fn of_a_sign_that_was_wiped_a_person_is_told() {
    for wreck in ["", "no sign"] {
        let (home, logs) = (Home::new(), tempfile::tempdir().unwrap());
        killed_elsewhere(&home, logs.path(), 3);
        lose_power(&home, 1);
        let sign = home.file("app.db-dashlog");
        let whole = fs::read(&sign).unwrap();
        fs::write(&sign, wreck).unwrap();
        for command in ["inspect", "recover"] {
            home.dash(&[command, "app.db"]).is(1).says("is neither a log nor says where");
        }
        home.dash(&["recover", "app.db", "--keep"]).is(1).says("there is no log");
        // It may be put back, or be done without.
        match wreck.is_empty() {
            true => {
                fs::write(&sign, whole).unwrap();
                home.dash(&["recover", "app.db", "--yes"]).is(0);
                whole_with(&home, 203);
            }
            false => {
                home.dash(&["recover", "app.db", "--discard", "--yes"]).is(0);
                whole_with(&home, 201);
            }
        }
    }
}

#[test]
fn converting_takes_a_log_elsewhere_along() {
    let (home, logs) = (Home::new(), tempfile::tempdir().unwrap());
    killed_elsewhere(&home, logs.path(), 3);
    home.dash(&["convert", "app.db", "--to", "plain"]).is(0);
    assert_eq!(fs::read_dir(logs.path()).unwrap().count(), 0);
    assert!(!home.file("app.db-dashlog").exists());
    whole_with(&home, 203);
}

/// What refuses every opening is nothing that needs no recovery.
#[test]
fn a_name_more_is_said_wherever_the_log_lies() {
    let (home, logs) = (Home::new(), tempfile::tempdir().unwrap());
    killed_elsewhere(&home, logs.path(), 3);
    let log = fs::read_dir(logs.path()).unwrap().next().unwrap().unwrap().path();
    let (db, other) = (home.db(), home.path().join("other"));
    let refused = |file: &Path, said: &str| {
        fs::hard_link(file, &other).unwrap();
        for command in ["inspect", "recover"] {
            home.dash(&[command, "app.db"]).is(1).says(said);
        }
        fs::remove_file(&other).unwrap();
    };
    refused(&log, "is left alone");
    refused(&home.file("app.db-wal"), "hard links");
    home.dash(&["recover", "app.db", "--yes"]).is(0);
    refused(&log, "is left alone");
    let uri = format!("file:{}?vfs=dash&dash_log={}", db.display(), home.path().display());
    Connection::open(uri).unwrap().execute_batch("CREATE TABLE more(x)").unwrap();
    run_and_kill(&home, &["INSERT INTO more VALUES (1);".to_owned()]);
    fs::write(home.file("app.db-dashlog"), "").unwrap();
    refused(&home.file("app.db-dashlog"), "hard links");
}

/// By the same rules: not where somebody else has put the sign.
#[test]
fn nobody_looks_where_another_users_sign_leads() {
    use std::fs::hard_link;
    use std::os::unix::fs::chown;
    let (home, logs) = (Home::new(), tempfile::tempdir().unwrap());
    killed_elsewhere(&home, logs.path(), 3);
    let sign = home.file("app.db-dashlog");
    let refused = || {
        for (command, code) in [("log", 2), ("inspect", 1)] {
            home.dash(&[command, "app.db"]).is(code).says("is not followed");
        }
    };
    hard_link(&sign, home.file("other")).unwrap();
    refused();
    fs::remove_file(home.file("other")).unwrap();
    home.dash(&["log", "app.db"]).is(0);
    if dash_testing::machine::root_for("giving a file away") {
        chown(&sign, Some(2003), Some(2003)).unwrap();
        refused();
    }
}

/// As `make_the_samples` of `wal.rs` does, of a log in memory, where records are compact.
#[test]
#[ignore = "writes the stored sample of the engine with a log in memory"]
fn make_the_sample_of_a_log_in_memory() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dash-wal/tests/samples/v3/memory");
    let (home, logs) = (Home::new(), folder_in_memory().expect("a tmpfs"));
    let stock = Connection::open(home.db()).unwrap();
    stock
        .execute_batch(
            "PRAGMA page_size = 512; CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT);
             WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20)
             INSERT INTO t SELECT i, printf('%040d', i) FROM n",
        )
        .unwrap();
    drop(stock);
    home.dash(&["convert", "app.db", "--to", "wal"]).is(0);
    extension::load();
    let uri = format!("file:{}?vfs=dash&dash_log={}", home.db().display(), logs.path().display());
    let db = Connection::open(uri).unwrap();
    for number in 0..12 {
        db.execute_batch(&format!("PRAGMA user_version={number}")).unwrap();
    }
    db.close().unwrap();
    let work = (0..9).map(|turn| {
        let (row, length) = (turn * 7 % 20 + 1, 10 + turn * 13 % 60);
        match turn % 4 {
            3 => format!(
                "INSERT INTO t (body) SELECT printf('%0120d', id) FROM t WHERE id > {turn} LIMIT 9;"
            ),
            _ => format!("UPDATE t SET body = printf('%0{length}d', {turn}) WHERE id = {row};"),
        }
    });
    run_and_kill(&home, &work.collect::<Vec<_>>());
    let log = fs::read_dir(logs.path()).unwrap().next().unwrap().unwrap().path();
    fs::create_dir_all(&folder).unwrap();
    for name in ["app.db", "app.db-wal"] {
        fs::copy(home.file(name), folder.join(name)).unwrap();
    }
    let mut bytes = fs::read(log).unwrap();
    let used = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    bytes.truncate(used.next_multiple_of(512));
    // Beside the database it is a copy, which is written as any file.
    fs::write(folder.join("app.db-dashlog"), bytes).unwrap();
}
