//! `sqlite-dash backup`: what it says, what it refuses, and what is there when it is stopped.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use super::common::{Home, program};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rusqlite::Connection;

/// When the signal comes, in milliseconds.
const MOMENTS: [u64; 9] = [0, 10, 30, 60, 100, 150, 220, 320, 500];

const UNFINISHED: &str = "copy.db.dash-backup-unfinished";

fn rows(home: &Home, name: &str) -> i64 {
    let db = Connection::open(home.file(name)).unwrap();
    let whole: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(whole, "ok");
    db.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap()
}

#[test]
fn it_makes_a_plain_file_in_every_mode() {
    for mode in ["shadow", "wal", "plain"] {
        let home = Home::new();
        drop(home.plain());
        home.dash(&["convert", "app.db", "--to", mode]).is(0);
        home.dash(&["backup", "app.db", "copy.db"]).is(0).says("read back and checked");
        assert_eq!(rows(&home, "copy.db"), 200);
        let names: Vec<_> =
            home.contents().into_keys().filter(|name| name.contains("copy")).collect();
        assert_eq!(names, ["copy.db"]);
    }
}

#[test]
fn it_says_what_it_made_for_programs() {
    let home = Home::new();
    home.shadowed();
    let run = home.dash(&["backup", "app.db", "copy.db", "--json"]).is(0);
    let found: serde_json::Value = serde_json::from_str(&run.out()).unwrap();
    let len = home.file("copy.db").metadata().unwrap().len();
    assert_eq!(found["bytes"], len);
    assert_eq!(found["pages"], len / 4096);
    assert_eq!(found["mode"], "shadow");
    let source = fs::read(home.db()).unwrap();
    let counter = u32::from_be_bytes(source[24..28].try_into().unwrap());
    assert_eq!(found["change_counter"], counter);
    assert!(found["seconds"].is_f64() && found["began"].is_u64());
}

#[test]
fn it_replaces_a_file_only_when_told() {
    let home = Home::new();
    home.shadowed();
    fs::write(home.file("copy.db"), "mine").unwrap();
    home.dash(&["backup", "app.db", "copy.db"]).is(2).says("copy.db exists").says("--force");
    assert_eq!(fs::read(home.file("copy.db")).unwrap(), b"mine");
    let refused = home.dash(&["backup", "app.db", "copy.db", "--force"]).is(2);
    refused.says("is neither an SQLite database nor empty");
    assert_eq!(fs::read(home.file("copy.db")).unwrap(), b"mine");
    fs::remove_file(home.file("copy.db")).unwrap();
    fs::create_dir(home.file("elsewhere")).unwrap();
    for to in ["elsewhere/copy.db", "copy.db"] {
        for force in [&[][..], &["--force"]] {
            home.dash(&[&["backup", "app.db", to], force].concat()).is(0);
            assert_eq!(rows(&home, to), 203);
        }
    }
    home.dash(&["backup", "app.db", "app.db", "--force"]).is(2).says("itself; name another file");
}

/// It said that there was none, beside the former copy.
#[test]
fn stopped_it_says_that_a_former_copy_is_as_it_was() {
    let home = large("wal");
    home.dash(&["backup", "app.db", "copy.db"]).is(0);
    let before = fs::read(home.file("copy.db")).unwrap();
    let mut command = home.command(&["backup", "app.db", "copy.db", "--force"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !home.file(UNFINISHED).exists() {
        std::thread::yield_now();
    }
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM).unwrap();
    let run = super::common::Run(child.wait_with_output().unwrap()).is(1);
    run.says("copy.db is as it was");
    assert!(before == fs::read(home.file("copy.db")).unwrap());
}

#[test]
fn it_says_what_is_no_database() {
    let home = Home::new();
    home.dash(&["backup", "app.db", "copy.db"]).is(2).says("does not exist");
    fs::write(home.db(), vec![b'x'; 5000]).unwrap();
    home.dash(&["backup", "app.db", "copy.db"]).is(2).says("is not an SQLite database");
    fs::create_dir(home.file("folder")).unwrap();
    home.dash(&["backup", "folder", "copy.db"]).is(2).says("is a folder, not a database");
    assert!(!home.file("copy.db").exists() && !home.file(UNFINISHED).exists());
}

/// As any opening does.
#[test]
fn it_recovers_a_database_after_a_crash() {
    let home = Home::new();
    home.shadowed();
    home.lose_the_last_exchange();
    home.dash(&["backup", "app.db", "copy.db"]).is(0);
    assert_eq!(rows(&home, "copy.db"), 204);
}

#[test]
fn it_leaves_nothing_where_nothing_may_be_written() {
    let home = Home::new();
    home.shadowed();
    let Some(mut command) = home.forbidden(&["backup", "app.db", "copy.db"]) else { return };
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("copy.db") || said.contains("app.db"), "{said}");
}

/// In blocks of 512 bytes, of which dash's own files take a few hundred.
#[test]
fn a_limit_on_file_sizes_is_an_error_and_leaves_no_copy() {
    let home = large("wal");
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "ulimit -f 4000; exec \"$0\" backup app.db copy.db"]);
    command.arg(program()).current_dir(home.path());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("copy.db") && said.contains("File too large"), "{said}");
    let left = |name: &str| home.file(name).exists();
    assert!(!left("copy.db") && !left("copy.db.dash-backup-unfinished"), "{said}");
}

fn large(mode: &str) -> Home {
    let home = Home::new();
    let db = home.plain();
    db.execute_batch(
        "PRAGMA synchronous=OFF;
         WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
         INSERT INTO t (body) SELECT hex(zeroblob(500)) FROM n",
    )
    .unwrap();
    drop(db);
    home.dash(&["convert", "app.db", "--to", mode]).is(0);
    home
}

/// How often it was there already when the signal came.
fn stopped_at_every_moment(signal: Signal, leaves_a_file: bool) {
    let mut stopped = 0;
    for mode in ["wal", "shadow"] {
        let home = large(mode);
        for moment in MOMENTS {
            let mut child = home
                .command(&["backup", "app.db", "copy.db"])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_millis(moment));
            kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
            child.wait().unwrap();
            if home.file("copy.db").exists() {
                assert_eq!(rows(&home, "copy.db"), 30_200, "{signal} after {moment} ms");
                fs::remove_file(home.file("copy.db")).unwrap();
            } else {
                stopped += 1;
            }
            assert!(leaves_a_file || !home.file(UNFINISHED).exists(), "{signal} after {moment} ms");
        }
        home.dash(&["backup", "app.db", "copy.db"]).is(0);
        assert_eq!(rows(&home, "copy.db"), 30_200);
        assert!(!home.file(UNFINISHED).exists());
        assert_eq!(home.sql("SELECT count(*) FROM t"), "30200\n");
    }
    assert!(stopped > 0, "no signal came before the copy was whole");
}

#[test]
fn ctrl_c_leaves_no_copy_and_no_other_file() {
    stopped_at_every_moment(Signal::SIGINT, false);
}

#[test]
fn so_does_the_signal_to_end() {
    stopped_at_every_moment(Signal::SIGTERM, false);
}

#[test]
fn kill_9_leaves_no_copy_and_the_next_one_cleans_up() {
    stopped_at_every_moment(Signal::SIGKILL, true);
}

/// The progress is on standard error, the result alone on standard output.
#[test]
fn its_result_is_one_line() {
    let home = Home::new();
    home.shadowed();
    let run = home.dash(&["backup", "app.db", "copy.db"]).is(0);
    assert_eq!(run.out().lines().count(), 1, "{}", run.out());
}
