//! FT8: one process, one connection, nobody else, and "database is locked".
//! After a large transaction the other copy is brought up in the background; whoever met that was
//! refused: at once without a busy timeout, and on the upgrade of a read transaction with any, as
//! SQLite calls no busy handler there. Now who meets it waits inside the lock call, for as long as
//! one piece of that work takes.
//!
//! `DASH_SCRIPTS=100` runs as many scripts in the first test; without it there are few, under
//! `DASH_LONG=1` more.

mod suite;

use std::path::Path;
use std::time::{Duration, Instant};

use dash_testing::long::moment;
use rusqlite::Connection;
use suite::peers::{Part, Session, last_error};

/// A connection as drivers open it, without a busy timeout.
fn impatient(path: &Path) -> Connection {
    try_impatient(path).expect("opens")
}

/// The same, where opening may be refused.
fn try_impatient(path: &Path) -> rusqlite::Result<Connection> {
    suite::load();
    let db = Connection::open(suite::uri(path, ""))?;
    db.busy_timeout(Duration::ZERO)?;
    Ok(db)
}

/// A number below `end`, from a seed that it moves on.
fn draw(seed: &mut u64, end: u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) % end
}

/// One script: large transactions of 1 to 50 MB, small ones at once behind them. Answers how many
/// statements there were, and what was said to those that were refused.
fn script(path: &Path, mut seed: u64) -> (u64, Vec<String>) {
    let db = impatient(path);
    let (mut statements, mut refused) = (0, Vec::new());
    let mut run = |sql: &str| {
        statements += 1;
        if let Err(error) = db.execute_batch(sql) {
            refused.push(format!("{sql}: {error} ({})", last_error()));
        }
    };
    run("CREATE TABLE t(id INTEGER PRIMARY KEY, b)");
    for _ in 0..3 {
        let bytes = 1_000_000 + draw(&mut seed, 49_000_000);
        run(&format!("INSERT INTO t(b) VALUES (zeroblob({bytes}))"));
        for _ in 0..4 {
            // So that the work in the background is met at its beginning, in its middle and at its
            // end.
            std::thread::sleep(Duration::from_micros(draw(&mut seed, 40_000)));
            run("INSERT INTO t(b) VALUES (1)");
            run("BEGIN");
            run("SELECT count(*) FROM t");
            run("INSERT INTO t(b) VALUES (2)");
            run("COMMIT");
        }
        match draw(&mut seed, 3) {
            0 => run("DELETE FROM t"),
            1 => run("BEGIN IMMEDIATE; ROLLBACK"),
            _ => run("UPDATE t SET b = 3 WHERE id % 2"),
        }
    }
    (statements, refused)
}

#[test]
fn not_the_only_connection_whatever_it_has_just_written() {
    let scripts = std::env::var("DASH_SCRIPTS")
        .map_or(moment(2, 8), |number| number.parse().expect("how many"));
    let (mut statements, mut refused) = (0, Vec::new());
    for seed in 0..scripts {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        let (run, said) = script(&path, seed);
        statements += run;
        refused.extend(said);
        let stock = suite::stock(&path);
        suite::check(&stock);
    }
    println!("{scripts} scripts, {statements} statements, {} refused", refused.len());
    assert!(refused.is_empty(), "{} of {statements}: {:?}", refused.len(), refused.first());
}

/// A dash process that has just committed so much, and brings the other copy up.
fn keeping_house(path: &Path, bytes: u64) -> Session {
    let mut house = Session::dash(path, Part::default()).expect("opens");
    house.must("CREATE TABLE IF NOT EXISTS t(id INTEGER PRIMARY KEY, b)");
    house.must("INSERT INTO t(b) VALUES (1)");
    house.must(&format!("INSERT INTO t(b) VALUES (zeroblob({bytes}))"));
    house
}

#[test]
fn nor_another_process() {
    for round in moment(vec![0, 3], (0..6).collect()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        let house = keeping_house(&path, 30_000_000);
        let db = impatient(&path);
        std::thread::sleep(Duration::from_millis(5 * round));
        for number in 0..20 {
            db.execute_batch("BEGIN; SELECT count(*) FROM t; INSERT INTO t(b) VALUES (2); COMMIT")
                .unwrap_or_else(|error| panic!("round {round}, {number}: {error}"));
        }
        house.close();
        assert_eq!(suite::one::<i64>(&db, "SELECT count(*) FROM t"), 22);
        suite::check(&db);
    }
}

/// A stopped process keeps its locks. Who meets them waits, but not for ever; and when it is
/// killed, nothing of it is in the way.
#[test]
fn and_who_is_stopped_in_it_stops_nobody_for_ever() {
    for round in moment(vec![1], (0..3).collect()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        let house = keeping_house(&path, 30_000_000);
        std::thread::sleep(Duration::from_millis(10 * round));
        house.stop();
        // Opening may meet a lock that is held for an instant, too.
        let begun = Instant::now();
        let opened = try_impatient(&path);
        let insert = |db: &Connection| db.execute_batch("INSERT INTO t(b) VALUES (2)").is_ok();
        let first = opened.as_ref().is_ok_and(insert);
        assert!(begun.elapsed() < Duration::from_secs(60), "round {round}: it waits for ever");
        let again = Instant::now();
        let second = opened.as_ref().is_ok_and(insert);
        assert!(first || again.elapsed() < Duration::from_secs(5), "round {round}: and again");
        house.kill();
        let db = opened.unwrap_or_else(|_| impatient(&path));
        db.execute_batch("INSERT INTO t(b) VALUES (2)").expect("nobody is there any more");
        let rows = 3 + i64::from(first) + i64::from(second);
        assert_eq!(suite::one::<i64>(&db, "SELECT count(*) FROM t"), rows);
        suite::check(&db);
        db.close().expect("closes");
        suite::check(&suite::stock(&path));
    }
}

/// A new shadow, made by somebody who wrote nothing, is no newer state: it refuses no upgrade.
#[test]
fn nor_is_a_reader_refused_for_a_new_shadow() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = impatient(&path);
    db.execute_batch("CREATE TABLE t(b); INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)")
        .unwrap();
    let other = impatient(&path);
    db.execute_batch("BEGIN").unwrap();
    assert_eq!(suite::one::<i64>(&db, "SELECT count(*) FROM t"), 2);
    std::fs::remove_file(suite::damage::shadow(&path)).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE; ROLLBACK").unwrap();
    assert!(suite::damage::shadow(&path).exists(), "no new one was made");
    db.execute_batch("INSERT INTO t VALUES (3); COMMIT").expect("nothing was committed meanwhile");
    assert_eq!(suite::one::<i64>(&other, "SELECT count(*) FROM t"), 3);
    suite::check(&other);
}
