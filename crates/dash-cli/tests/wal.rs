//! `sqlite-dash inspect`, `recover` and `convert` for databases in WAL mode.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::common::Home;
use super::common::killed::{lose_power, run_and_kill, wal_bytes, whole_with};
use rusqlite::Connection;
use serde_json::Value;

/// A database with 200 rows, and so many commits of a row each on top that a killed process left in
/// `-wal` and in the log. The first commit of a session needs no log, so that begins with the
/// second.
fn killed(commits: usize) -> Home {
    let home = Home::new();
    drop(home.plain());
    home.dash(&["convert", "app.db", "--to", "wal"]).is(0);
    let insert = |number| format!("INSERT INTO t (body) VALUES ('by dash {number}');");
    run_and_kill(&home, &(0..commits).map(insert).collect::<Vec<_>>());
    home
}

/// The database as of so many commits, checkpointed by stock SQLite, and no `-wal`: what a hand
/// leaves that removes it after a checkpoint was cut off.
fn remove_wal(home: &Home, checkpointed: u64) {
    let aside = home.path().join("aside");
    fs::create_dir(&aside).unwrap();
    for name in ["app.db", "app.db-wal"] {
        fs::copy(home.file(name), aside.join(name)).unwrap();
    }
    let wal = fs::OpenOptions::new().write(true).open(aside.join("app.db-wal")).unwrap();
    wal.set_len(wal_bytes(checkpointed)).unwrap();
    let stock = Connection::open(aside.join("app.db")).unwrap();
    stock.query_row("PRAGMA wal_checkpoint", [], |_| Ok(())).unwrap();
    drop(stock);
    fs::copy(aside.join("app.db"), home.db()).unwrap();
    fs::remove_dir_all(aside).unwrap();
    lose_power(home, 0);
    fs::remove_file(home.file("app.db-wal")).unwrap();
}

/// Neither the database nor what it needs has changed; the wal-index and the coordination file may.
fn as_before(home: &Home, before: &BTreeMap<String, Vec<u8>>) {
    let after = home.contents();
    for name in ["app.db", "app.db-wal", "app.db-dashlog"] {
        assert!(before.get(name) == after.get(name), "{name} has changed");
    }
}

fn json(home: &Home) -> Value {
    serde_json::from_str(&home.dash(&["inspect", "app.db", "--json"]).out()).unwrap()
}

#[test]
fn what_stock_sqlite_may_do_is_said_while_it_is_open() {
    let home = Home::new();
    drop(home.plain());
    home.dash(&["convert", "app.db", "--to", "wal"]).is(0);
    dash_testing::extension::load();
    for stock in ["read", "write", "checkpoint"] {
        let uri = format!("file:{}?vfs=dash&dash_stock={stock}", home.db().display());
        let db = Connection::open(uri).unwrap();
        db.execute("INSERT INTO t (body) VALUES (?)", [stock]).unwrap();
        let joins = format!("joins the connections that have it open with dash_stock={stock}");
        home.dash(&["inspect", "app.db"]).is(0).says(&joins);
        home.dash(&["doctor", "--no-hosts", "app.db"]).says(&joins);
        assert_eq!(json(&home)["dash_stock"], stock);
        let top = ["top", "app.db", "--once", "--interval", "0.1"];
        home.dash(&top).is(0).says(&format!("mode wal, dash_stock={stock}, 1 connection"));
    }
    assert_eq!(json(&home)["dash_stock"], Value::Null);
}

#[test]
fn inspecting_changes_no_byte_and_no_name() {
    let home = killed(4);
    let before = home.contents();
    home.dash(&["inspect", "app.db"])
        .is(0)
        .says("in WAL mode")
        .says("frames  4 valid, 4 commits")
        .says("records 1 to 3: frames 2 to 4, 3 commits")
        .says("left behind by processes that were killed")
        .says("writes the log's frames into -wal");
    let report = json(&home);
    assert_eq!(report["log"]["window"]["first_frame"], 2);
    assert_eq!(report["relation"], "same");
    assert_eq!(report["name_fence"], true);
    assert_eq!(report["opening"]["does"], "replay");
    assert!(before == home.contents(), "something has changed");
}

#[test]
fn a_database_that_is_open_or_at_rest_says_so() {
    let home = Home::new();
    drop(home.plain());
    home.dash(&["convert", "app.db", "--to", "wal"]).is(0);
    home.sql("INSERT INTO t (body) VALUES ('a'); INSERT INTO t (body) VALUES ('b')");
    let report = json(&home);
    assert_eq!(report["log"]["head"], "clean");
    assert_eq!(report["open"], false);
    assert_eq!(report["opening"]["does"], "leave");
    home.dash(&["recover", "app.db"]).is(0).says("needs no recovery");
    home.dash(&["recover", "app.db", "--discard"]).is(1).says("nothing to choose");
}

#[test]
fn what_a_power_loss_took_from_wal_comes_back_from_the_log() {
    for frames in [1, 3] {
        let home = killed(5);
        lose_power(&home, frames);
        home.dash(&["recover", "app.db"]).is(0).says("the power was lost");
        whole_with(&home, 205);
        home.dash(&["recover", "app.db"]).is(0).says("needs no recovery");
    }
}

/// The database holds an older image of a page than the log, which no checkpoint leaves (WAL-16).
#[test]
fn of_a_removed_wal_and_its_log_a_person_chooses() {
    for (choice, rows) in [
        (&["app.db", "--keep"][..], 205),
        (&["--keep", "app.db"], 205),
        (&["--keep", "log", "app.db"], 205),
        (&["app.db", "--keep=log"], 205),
        (&["app.db", "--discard"], 203),
    ] {
        let home = killed(5);
        remove_wal(&home, 3);
        let before = home.contents();
        home.dash(&["inspect", "app.db"]).is(1).says("app.db-wal is missing").says("--discard");
        home.dash(&["recover", "app.db", "--yes"]).is(1).says("--keep takes the commits");
        home.dash(&["shell", "app.db", "--", "SELECT 1"]).is(2).says("sqlite-dash recover");
        as_before(&home, &before);
        let run = home.dash(&[&["recover", "--yes"], choice].concat()).is(0);
        run.says(if rows == 205 { "Lost is what was written" } else { "Lost are those of the 4" });
        whole_with(&home, rows);
        let after = home.contents();
        assert_eq!(after.get("app.db-dashlog.before-recover-1"), before.get("app.db-dashlog"));
        home.dash(&["recover", "app.db"]).is(0).says("needs no recovery");
        home.sql("INSERT INTO t (body) VALUES ('on')");
        whole_with(&home, rows + 1);
    }
}

/// A stock program deletes `-wal` after it has checkpointed everything (WAL-16).
#[test]
fn a_wal_that_was_checkpointed_and_deleted_is_not_missed() {
    let home = killed(5);
    remove_wal(&home, 5);
    home.dash(&["inspect", "app.db"]).is(0).says("marks the log void");
    home.dash(&["recover", "app.db", "--yes"]).is(0);
    whole_with(&home, 205);
}

#[test]
fn a_wal_that_was_cut_is_refused_and_can_be_given_up() {
    let home = killed(5);
    lose_power(&home, 0);
    home.dash(&["inspect", "app.db"]).is(1).says("lacks commits");
    home.dash(&["recover", "app.db", "--yes"]).is(1).says("may mix two states");
    home.dash(&["recover", "app.db", "--yes", "--keep"]).is(1).says("alone");
    home.dash(&["recover", "app.db", "--yes", "--discard"]).is(0);
    whole_with(&home, 200);
    assert!(home.file("app.db-wal.before-recover-1").exists());
}

/// The same where no log knows of it, as nearly all services are killed at rest (WAL-56).
#[test]
fn a_wal_that_no_log_knows_of_can_be_given_up_as_well() {
    for cut in [None, Some(0)] {
        let home = killed(1);
        match cut {
            None => fs::remove_file(home.file("app.db-wal")).unwrap(),
            Some(frames) => {
                let wal = fs::OpenOptions::new().write(true).open(home.file("app.db-wal"));
                wal.unwrap().set_len(wal_bytes(frames)).unwrap();
            }
        }
        let says = if cut.is_none() { "is missing or blank" } else { "lacks commits" };
        home.dash(&["inspect", "app.db"]).is(1).says(says);
        home.dash(&["recover", "app.db", "--yes"]).is(1).says(says).says("--discard");
        home.dash(&["recover", "app.db", "--yes", "--keep", "log"]).is(1).says("no log has");
        home.dash(&["recover", "app.db", "--yes", "--discard"]).is(0).says("integrity_check: ok");
        whole_with(&home, 200);
    }
}

/// A backup comes into the place of the database, and its `-wal` goes (WAL-18).
#[test]
fn a_log_that_is_missing_after_a_power_loss_is_missed_and_can_be_given_up() {
    let home = killed(3);
    lose_power(&home, 1);
    fs::remove_file(home.file("app.db-dashlog")).unwrap();
    let before = home.contents();
    home.dash(&["inspect", "app.db"]).is(1).says("app.db-dashlog is missing").says("--discard");
    home.dash(&["recover", "app.db"]).is(1).says("app.db-dashlog is missing");
    home.dash(&["recover", "app.db", "--keep", "log"]).is(1).says("there is no log");
    as_before(&home, &before);
    home.dash(&["recover", "app.db", "--yes", "--discard"]).is(0);
    whole_with(&home, 201);
    home.dash(&["recover", "app.db"]).is(0).says("needs no recovery");
}

#[test]
fn a_log_of_another_state_is_refused_and_can_be_given_up() {
    let home = Home::new();
    drop(home.plain());
    home.dash(&["convert", "app.db", "--to", "wal"]).is(0);
    fs::copy(home.db(), home.file("backup")).unwrap();
    let insert = |number| format!("INSERT INTO t (body) VALUES ('by dash {number}');");
    run_and_kill(&home, &(0..5).map(insert).collect::<Vec<_>>());
    lose_power(&home, 5);
    fs::remove_file(home.file("app.db-wal")).unwrap();
    fs::rename(home.file("backup"), home.db()).unwrap();
    let before = home.contents();
    home.dash(&["inspect", "app.db"]).is(1).says("commits that don't belong to app.db");
    home.dash(&["recover", "app.db", "--yes"]).is(1).says("put back what belongs together");
    home.dash(&["recover", "app.db", "--yes", "--keep"]).is(1).says("nothing was done");
    home.dash(&["shell", "app.db", "--", "SELECT 1"]).is(2).says("sqlite-dash recover");
    as_before(&home, &before);
    home.dash(&["recover", "app.db", "--yes", "--discard"]).is(0).says("without the 4 commits");
    whole_with(&home, 200);
    let after = home.contents();
    assert_eq!(after.get("app.db-dashlog.before-recover-1"), before.get("app.db-dashlog"));
    home.sql("INSERT INTO t (body) VALUES ('on')");
    whole_with(&home, 201);
}

/// Who may only read can't recover it, and is told who can.
#[test]
fn a_reader_without_rights_is_told_what_to_do_after_a_crash() {
    let home = killed(3);
    let Some(mut reader) = home.forbidden(&["shell", "app.db", "--", "SELECT count(*) FROM t"])
    else {
        return;
    };
    let before = home.contents();
    let said = reader.output().unwrap();
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.contains("as somebody who may write it and its folder"), "{said}");
    assert!(before == home.contents(), "something has changed");
    home.dash(&["recover", "app.db", "--yes"]).is(0);
    whole_with(&home, 203);
}

#[test]
fn a_log_of_a_newer_dash_is_left_alone() {
    let home = killed(3);
    let log = fs::OpenOptions::new().write(true).open(home.file("app.db-dashlog")).unwrap();
    log.write_all_at(&2_u32.to_le_bytes(), 8).unwrap();
    let before = home.contents();
    home.dash(&["inspect", "app.db"]).is(1).says("newer version of dash");
    for choice in [&[][..], &["--keep"], &["--discard"]] {
        let run = home.dash(&[&["recover", "app.db", "--yes"], choice].concat()).is(1);
        run.says("newer version of dash");
    }
    home.dash(&["shell", "app.db", "--", "SELECT 1"]).is(2).says("newer version of dash");
    as_before(&home, &before);
}

#[test]
fn a_database_is_not_made_beside_its_log() {
    let home = killed(3);
    fs::remove_file(home.db()).unwrap();
    let before = home.contents();
    home.dash(&["inspect", "app.db"]).is(1).says("app.db is missing, but app.db-dashlog holds");
    home.dash(&["recover", "app.db", "--yes", "--discard"]).is(1).says("put app.db back");
    home.dash(&["convert", "app.db", "--to", "plain"]).is(2).says("sqlite-dash recover");
    assert!(before == home.contents(), "something has changed");
}

/// What is said of opening it is what happens, whatever has become of the log.
#[test]
fn nor_beside_a_wal_or_a_fence_that_may_hold_commits() {
    for emptied in [false, true] {
        for log in ["whole", "cut", "empty", "gone"] {
            let home = killed(3);
            match log {
                "cut" => fs::write(home.file("app.db-dashlog"), [1; 1000]).unwrap(),
                "empty" => fs::write(home.file("app.db-dashlog"), []).unwrap(),
                "gone" => fs::remove_file(home.file("app.db-dashlog")).unwrap(),
                _ => {}
            }
            fs::remove_file(home.db()).unwrap();
            if emptied {
                fs::write(home.db(), []).unwrap();
            }
            let wal = fs::read(home.file("app.db-wal")).unwrap();
            home.dash(&["recover", "app.db"]).is(1);
            home.dash(&["shell", "app.db", "--", "SELECT 1"]).is(2);
            home.dash(&["recover", "app.db"]).is(1);
            if log == "gone" {
                for more in [&[][..], &["--discard"], &["--keep", "database"], &["--keep", "log"]] {
                    let run = home.dash(&[&["recover", "app.db", "--yes"], more].concat()).is(1);
                    run.says("put app.db back");
                }
                home.dash(&["inspect", "app.db"]).is(1).says("put app.db back");
            }
            assert!(wal == fs::read(home.file("app.db-wal")).unwrap(), "{emptied} {log}");
            assert_eq!(home.db().exists(), emptied, "{log}");
        }
    }
}

#[test]
fn there_and_back_in_every_direction_keeps_every_row() {
    let home = Home::new();
    drop(home.plain());
    let mut rows = 200;
    for mode in ["wal", "shadow", "wal", "plain", "shadow", "plain", "wal", "plain"] {
        home.dash(&["convert", "app.db", "--to", mode]).is(0);
        let report = json(&home);
        assert_eq!(report["mode"] == "wal", mode == "wal", "{mode}: {report:#}");
        if mode == "plain" {
            assert_eq!(home.contents().keys().collect::<Vec<_>>(), ["app.db"]);
        } else {
            home.sql("INSERT INTO t (body) VALUES ('x'); INSERT INTO t (body) VALUES ('y')");
            rows += 2;
        }
        let count = home.sql("SELECT count(*) FROM t");
        assert_eq!(count, format!("{rows}\n"), "{mode}");
    }
    whole_with(&home, rows);
}

/// Writes what the engine keeps of each format that is released, for ever; never again for the same
/// one. `crates/dash-wal/tests/released_formats_open_for_ever.rs` reads it.
#[test]
#[ignore = "writes the stored samples of the engine"]
fn make_the_samples() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dash-wal/tests/samples/v1");
    let update = |turn: usize| {
        let (row, length) = (turn * 7 % 20 + 1, 10 + turn * 13 % 60);
        format!("UPDATE t SET body = printf('%0{length}d', {turn}) WHERE id = {row};")
    };
    let insert = |turn: usize| {
        format!(
            "INSERT INTO t (body) SELECT printf('%0120d', id) FROM t WHERE id > {turn} LIMIT 9;"
        )
    };
    let work = |turns: std::ops::Range<usize>| -> Vec<String> {
        turns.map(|turn| if turn % 4 == 3 { insert(turn) } else { update(turn) }).collect()
    };
    for sample in ["within", "generation", "rest"] {
        let home = Home::new();
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
        let restart = vec!["PRAGMA wal_checkpoint(RESTART);".to_owned()];
        match sample {
            "within" => run_and_kill(&home, &work(0..9)),
            "generation" => run_and_kill(&home, &[work(0..5), restart, work(5..12)].concat()),
            _ => drop(home.sql(&work(0..6).concat())),
        }
        let folder = samples.join(sample);
        fs::create_dir_all(&folder).unwrap();
        for name in ["app.db", "app.db-wal", "app.db-dashlog"] {
            let Ok(mut bytes) = fs::read(home.file(name)) else { continue };
            if name == "app.db-dashlog" {
                // The ring is long, and nothing was written there.
                let used = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
                bytes.truncate(used.next_multiple_of(512));
            }
            fs::write(folder.join(name), bytes).unwrap();
        }
    }
}
