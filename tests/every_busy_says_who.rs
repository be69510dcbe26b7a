//! "database is locked" is what SQLite says. Who has it locked, since when, whether that process
//! runs, and what to do is said by `dash_last_error()` and in SQLite's error log, in every mode.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

mod suite;

use std::path::PathBuf;
use std::time::Duration;

use rusqlite::Connection;
use suite::error_log::{listen, log};
use suite::parts::{Part, last_error};
use suite::peers::{Session, Writer};
use suite::sql::{refused, run};
use suite::workload;
use tempfile::TempDir;

const BUSY: i32 = 5;
const BUSY_SNAPSHOT: i32 = 517;
const ADD: &str = "INSERT INTO t VALUES (1)";
const MODES: [&str; 4] = ["wal", "statement", "shadow", "delete"];

/// A database in a mode, and a connection to it that waits for nothing.
struct Made {
    _folder: TempDir,
    path: PathBuf,
    parameters: String,
    db: Connection,
}

impl Made {
    fn another(&self) -> Connection {
        let db = suite::open_dash(self.path.as_os_str(), &self.parameters).unwrap();
        db.busy_timeout(Duration::ZERO).unwrap();
        db
    }

    fn elsewhere(&self) -> Session {
        Session::dash(&self.path, Part { parameters: &self.parameters, ..Part::default() }).unwrap()
    }
}

fn made(mode: &str) -> Made {
    listen();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let parameters = format!("&journal_mode={mode}");
    let db = suite::open_dash(path.as_os_str(), &parameters).unwrap();
    run(&db, "CREATE TABLE t(x); INSERT INTO t VALUES (1)");
    db.busy_timeout(Duration::ZERO).unwrap();
    log();
    Made { _folder: folder, path, parameters, db }
}

/// What is said where a statement gets `SQLITE_BUSY`.
fn busy(db: &Connection, sql: &str, code: i32) -> String {
    assert_eq!(refused(db, sql).0, code, "{sql}");
    last_error()
}

fn has(said: &str, words: &[&str]) {
    for word in words {
        assert!(said.contains(word), "{word:?} is not in {said:?}");
    }
}

fn writes(made: &Made) -> Session {
    let mut other = made.elsewhere();
    other.must("BEGIN IMMEDIATE");
    other.must(ADD);
    other
}

/// `process 17 (name), on dash`
fn named(session: &Session) -> [String; 2] {
    [format!("process {} (", session.id()), "), on dash, has been".to_owned()]
}

#[test]
fn a_writer_in_another_process() {
    for mode in MODES {
        let made = made(mode);
        let other = writes(&made);
        for sql in [ADD, "BEGIN IMMEDIATE"] {
            let said = busy(&made.db, sql, BUSY);
            let [process, kind] = named(&other);
            has(
                &said,
                &["app.db is locked: ", &process, &kind, "has been writing", "BEGIN IMMEDIATE"],
            );
            has(&said, &["SQLite did not wait for it: set busy_timeout, or, where"]);
            assert_eq!(said.contains("writing for 0."), mode != "delete", "{mode}: {said}");
            assert_eq!(log(), [said], "{mode}");
        }
        refused(&made.db, ADD);
        refused(&made.db, "PRAGMA dash_nothing");
        has(&last_error(), &["no such PRAGMA: dash_nothing"]);
    }
}

/// With a timeout it is told in time, without being asked, and once.
#[test]
fn and_the_log_hears_of_it_when_sqlite_gives_up() {
    for mode in MODES {
        let made = made(mode);
        let other = writes(&made);
        made.db.busy_timeout(Duration::from_millis(300)).unwrap();
        assert_eq!(refused(&made.db, ADD).0, BUSY);
        let heard = log();
        let [process, kind] = named(&other);
        let last = heard.last().unwrap();
        has(last, &[&process, &kind, "This connection has asked for ", "(busy_timeout)"]);
        assert_eq!(last_error(), *last, "{mode}");
        assert_eq!(log(), [""; 0], "{mode}");
    }
}

/// Who got the lock in the end has nothing to tell.
#[test]
fn and_hears_nothing_where_waiting_was_enough() {
    for mode in MODES {
        let made = made(mode);
        let mut other = writes(&made);
        made.db.busy_timeout(Duration::from_secs(20)).unwrap();
        let ends = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            other.must("COMMIT");
        });
        run(&made.db, ADD);
        ends.join().unwrap();
        assert_eq!(log(), [""; 0], "{mode}");
    }
}

#[test]
fn a_writer_in_this_process() {
    for mode in ["wal", "wal&dash_wal=memory", "statement", "shadow"] {
        let made = made(mode);
        let other = made.another();
        run(&other, "BEGIN IMMEDIATE");
        run(&other, ADD);
        let said = busy(&made.db, ADD, BUSY);
        let own = format!("another connection of this process, {}", std::process::id());
        has(&said, &[&own, "has been writing for 0."]);
    }
}

#[test]
fn who_keeps_writers_out_though_he_only_reads() {
    let made = made("shadow");
    let mut other = made.elsewhere();
    other.must("PRAGMA locking_mode=EXCLUSIVE");
    other.must("SELECT count(*) FROM t");
    let said = busy(&made.db, ADD, BUSY);
    let who = format!("process {} (", other.id());
    has(&said, &[&who, "on dash, has been reading under locking_mode=EXCLUSIVE"]);
    assert!(!said.contains("this process"), "{said}");
}

/// Reading takes the write lock there, and nobody was named.
#[test]
fn a_writer_who_keeps_out_who_reads_under_locking_mode_exclusive() {
    let made = made("shadow");
    let other = writes(&made);
    run(&made.db, "PRAGMA locking_mode=EXCLUSIVE");
    let [process, kind] = named(&other);
    for sql in ["SELECT count(*) FROM t", "BEGIN IMMEDIATE"] {
        has(&busy(&made.db, sql, BUSY), &[&process, &kind, "has been writing for 0."]);
    }
}

#[test]
fn a_writer_that_is_stopped() {
    for mode in MODES {
        let made = made(mode);
        let other = writes(&made);
        other.stop();
        let said = busy(&made.db, ADD, BUSY);
        let remedy = format!("and is stopped: kill -CONT {} lets it go on", other.id());
        let [process, kind] = named(&other);
        has(&said, &[&process, &kind, &remedy]);
    }
}

/// It may have been stopped anywhere: in nobody's way, or as above.
#[test]
fn a_writer_that_is_stopped_amid_its_commits() {
    for mode in MODES {
        let made = made(mode);
        workload::make(&made.db);
        let mut other =
            Writer::start(&made.path, Part { parameters: &made.parameters, ..Part::default() });
        other.reaches(20);
        other.stop();
        if made.db.execute_batch(ADD).is_err() {
            has(&last_error(), &[&format!("process {} (", other.id()), "lets it go on"]);
        }
    }
}

#[test]
fn a_reader_of_dash_is_in_no_writers_way() {
    for mode in ["wal", "statement", "shadow"] {
        let made = made(mode);
        let mut other = made.elsewhere();
        other.must("BEGIN");
        other.must("SELECT count(*) FROM t");
        for _ in 0..3 {
            run(&made.db, ADD);
        }
        // Stock SQLite has only its own words for it, and what it is refused is no news here.
        let mut stock = Session::stock(&made.path);
        assert!(stock.sql(ADD).unwrap_err().contains("database is locked"));
        assert_eq!(log(), [""; 0], "{mode}");
    }
}

#[test]
fn a_reader_where_the_mode_is_to_be_left() {
    for mode in ["wal", "shadow"] {
        let made = made(mode);
        let mut other = made.elsewhere();
        other.must("BEGIN");
        other.must("SELECT count(*) FROM t");
        let said = busy(&made.db, "PRAGMA journal_mode=delete", BUSY);
        has(&said, &["app.db", &format!("process {} (", other.id()), "on dash, has had it open"]);
        assert!(!said.contains("this process"), "{said}");
        let _another = made.another();
        let said = busy(&made.db, "PRAGMA journal_mode=delete", BUSY);
        has(&said, &["another connection of this process, "]);
    }
}

/// A program asks for WAL by habit, and gets what the database is in.
#[test]
fn a_connection_where_wal_is_asked_for_and_not_had() {
    let made = made("shadow");
    let mut other = made.elsewhere();
    other.must("SELECT count(*) FROM t");
    let mode: String = suite::one(&made.db, "PRAGMA journal_mode=WAL");
    assert_eq!(mode, "shadow");
    let who = format!("process {} (", other.id());
    has(&last_error(), &["journal_mode can't be changed", &who, "on dash, has had it open"]);
}

#[test]
fn a_reader_where_all_is_to_be_checkpointed() {
    for stock in [false, true] {
        let made = made("wal");
        let mut other = if stock { Session::stock(&made.path) } else { made.elsewhere() };
        other.must("BEGIN");
        other.must("SELECT count(*) FROM t");
        run(&made.db, ADD);
        log();
        let busy: i64 = suite::one(&made.db, "PRAGMA wal_checkpoint(TRUNCATE)");
        assert_eq!(busy, 1);
        let said = last_error();
        let kind =
            if stock { "stock SQLite, has been reading" } else { "on dash, has been reading for" };
        has(&said, &[&format!("process {} (", other.id()), kind, "The checkpoint"]);
    }
}

/// SQLite tries that by itself, and goes on.
#[test]
fn but_not_where_a_checkpoint_of_sqlites_own_goes_as_far_as_it_can() {
    let made = made("wal");
    let mut other = made.elsewhere();
    other.must("BEGIN");
    other.must("SELECT count(*) FROM t");
    run(&made.db, "PRAGMA wal_autocheckpoint=1");
    for _ in 0..10 {
        run(&made.db, ADD);
    }
    assert!(!last_error().contains(&other.id().to_string()), "{}", last_error());
    assert_eq!(log(), [""; 0]);
}

#[test]
fn a_stock_reader_in_mode_shadow_and_with_a_journal() {
    for mode in ["shadow", "delete"] {
        let made = made(mode);
        let mut other = Session::stock(&made.path);
        other.must("BEGIN");
        other.must("SELECT count(*) FROM t");
        other.stop();
        run(&made.db, "BEGIN IMMEDIATE");
        run(&made.db, ADD);
        if mode == "shadow" {
            run(&made.db, "COMMIT; BEGIN IMMEDIATE");
            run(&made.db, ADD);
        }
        let said = busy(&made.db, "COMMIT", BUSY);
        let who = format!("process {} (", other.id());
        has(&said, &[&who, "stock SQLite, has been reading, and is stopped", "nd", "transaction"]);
        assert!(!said.contains("this process"), "{mode}: {said}");
        assert_eq!(log(), [said], "{mode}");
    }
}

#[test]
fn a_stock_writer_that_came_first() {
    for mode in ["wal", "statement", "shadow"] {
        let Made { path, parameters, db, _folder } = made(mode);
        db.close().unwrap();
        let mut other = Session::stock(&path);
        other.must("BEGIN IMMEDIATE");
        other.must(ADD);
        let opened = suite::open_dash(path.as_os_str(), &parameters);
        let failed = match opened {
            Ok(db) => db.execute_batch(ADD),
            Err(error) => Err(error),
        };
        let error = failed.unwrap_err();
        assert_eq!(error.sqlite_error().unwrap().extended_code, BUSY, "{error}");
        let said = last_error();
        let who = format!("process {} (", other.id());
        has(&said, &[&who, "stock SQLite, has been writing"]);
        assert!(!said.contains("beside it and in use by"), "{said}");
        let waits = said.contains("Opening waits 2 s for that, whatever busy_timeout is");
        assert_eq!(waits, mode != "shadow", "{said}");
    }
}

#[test]
fn a_transaction_that_read_before_somebody_committed() {
    for mode in ["wal", "statement", "shadow"] {
        let made = made(mode);
        let other = made.another();
        run(&other, "BEGIN; SELECT count(*) FROM t");
        run(&made.db, ADD);
        log();
        let said = busy(&other, ADD, BUSY_SNAPSHOT);
        has(&said, &["app.db: this transaction has read", "No timeout helps", "BEGIN IMMEDIATE"]);
        assert_eq!(log(), [said], "{mode}");
        run(&other, "ROLLBACK; BEGIN IMMEDIATE");
        run(&other, ADD);
        run(&other, "COMMIT");
    }
}

#[test]
fn a_transaction_that_read_before_it_writes() {
    for mode in MODES {
        let made = made(mode);
        let other = made.another();
        // In mode wal it waits, as one does that has not read; SQLite has no other one wait.
        let waits = matches!(mode, "wal" | "statement");
        other.busy_timeout(Duration::from_millis(if waits { 50 } else { 60_000 })).unwrap();
        run(&other, "BEGIN; SELECT count(*) FROM t");
        let writer = writes(&made);
        let said = busy(&other, ADD, BUSY);
        let [process, kind] = named(&writer);
        has(&said, &[&process, &kind]);
        match waits {
            true => has(&said, &["has asked for", "(busy_timeout)", "wait longer"]),
            false => has(
                &said,
                &["where it is set and this transaction has read before", "BEGIN IMMEDIATE"],
            ),
        }
    }
}

/// Without being asked, too, once it is clear that nobody asks again.
#[test]
fn and_is_logged_with_the_next_call() {
    for mode in MODES {
        let made = made(mode);
        let other = writes(&made);
        assert_eq!(refused(&made.db, ADD).0, BUSY);
        run(&made.db, "SELECT count(*) FROM t");
        let heard = log();
        assert_eq!(heard.len(), 1, "{mode}: {heard:?}");
        has(&heard[0], &[&format!("process {}", other.id())]);
    }
}

#[test]
fn who_has_gone_meanwhile_is_not_named_as_being_there() {
    for mode in ["wal", "shadow"] {
        let made = made(mode);
        let mut other = writes(&made);
        let id = other.id();
        assert_eq!(refused(&made.db, ADD).0, BUSY);
        other.must("COMMIT");
        has(&last_error(), &[&format!("process {id} held the lock and has released it since")]);
        other.must("BEGIN IMMEDIATE");
        assert_eq!(refused(&made.db, ADD).0, BUSY);
        other.kill();
        let said = last_error();
        has(
            &said,
            &[&format!("knows itself as {id}"), "or gone by now", "has been writing for 0."],
        );
    }
}
