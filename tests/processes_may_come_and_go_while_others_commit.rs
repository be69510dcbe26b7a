//! Connections open and close at any moment of the others' commits: also while the first commit of
//! a session makes the shadow anew, and while the last one of the others leaves.

mod suite;

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use suite::peers::{Part, Writer, last_error};
use suite::{check, one, open, uri, workload};

const WHILE: Duration = Duration::from_secs(5);

/// Opens, commits `commits` rows, closes.
fn visit(path: &Path, commits: i64) -> rusqlite::Result<()> {
    let db = Connection::open(uri(path, ""))?;
    db.busy_timeout(Duration::from_secs(20))?;
    for _ in 0..commits {
        db.execute_batch("INSERT INTO t VALUES (1)")?;
    }
    db.close().map_err(|(_, error)| error)
}

/// Visitors that come so many microseconds apart.
fn visitors(path: &Path, count: u64, apart: u64) {
    std::thread::scope(|scope| {
        for visitor in 0..count {
            scope.spawn(move || {
                std::thread::sleep(Duration::from_micros(visitor * apart));
                visit(path, 2)
                    .unwrap_or_else(|error| panic!("{apart} us apart: {error}; {}", last_error()));
            });
        }
    });
}

#[test]
fn while_the_first_commit_makes_the_shadow() {
    let begun = Instant::now();
    let mut round = 0;
    while begun.elapsed() < WHILE {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        // After one commit there is no second copy yet.
        let db = open(&path);
        db.execute_batch("CREATE TABLE t(a)").unwrap();
        db.close().unwrap();
        visitors(&path, 8, round * 17 % 400);
        let db = open(&path);
        assert_eq!(one::<i64>(&db, "SELECT count(*) FROM t"), 16);
        check(&db);
        round += 1;
    }
}

#[test]
fn while_others_come_and_go() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = open(&path);
    db.execute_batch("CREATE TABLE t(a)").unwrap();
    db.close().unwrap();
    let (begun, mut rounds) = (Instant::now(), 0);
    while begun.elapsed() < WHILE {
        visitors(&path, 4, rounds * 97 % 2000);
        rounds += 1;
    }
    let db = open(&path);
    assert_eq!(one::<i64>(&db, "SELECT count(*) FROM t"), i64::try_from(rounds).unwrap() * 8);
    check(&db);
}

#[test]
fn while_writers_are_killed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = open(&path);
    workload::make(&db);
    db.close().unwrap();
    let mut known = 0;
    for round in 0..12 {
        let mut writer = Writer::start(&path, Part::default());
        writer.reaches(known + 1);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(round * 3) {
            let db = open(&path);
            db.busy_timeout(Duration::from_secs(20)).unwrap();
            known = workload::commit_next(&db)
                .unwrap_or_else(|error| panic!("{error}; {}", last_error()));
        }
        let acknowledged = writer.kill().max(known);
        let db = open(&path);
        known = workload::state(&db);
        assert!(
            (acknowledged..=acknowledged + 1).contains(&known),
            "round {round}: {known} of {acknowledged}"
        );
    }
}
