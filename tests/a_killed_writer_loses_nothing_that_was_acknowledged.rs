//! The contract with stock SQLite, third row: after `kill -9` of every dash process, and before
//! dash has opened the database again, stock SQLite is refused or sees a committed state, and may
//! not write. Then dash opens it: nothing that was acknowledged is lost, and the name fence is
//! lifted.

mod suite;

use std::path::Path;
use std::time::Duration;

use dash_testing::names::{beside, exists, names};
use suite::peers::{Part, Session, Writer};
use suite::workload::{self, STATE};
use suite::{one, open};

/// What a fresh stock process can read: a committed state, or why it is refused.
fn stock_state(path: &Path) -> Result<i64, String> {
    let mut stock = Session::stock(path);
    let state = workload::number(&stock.sql(STATE)?);
    assert_eq!(stock.sql("PRAGMA integrity_check")?, "ok");
    Ok(state)
}

/// A number that looks random but is the same in every run of a round.
fn scatter(round: u64, below: u64) -> u64 {
    let mut z = round.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(0xD1B5_4A32_D192_ED03);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (z ^ (z >> 31)) % below
}

/// Kills writers at moments of all kinds, `rounds` times over one database.
fn rounds(rounds: u64, seed: u64, writers: usize, part: Part<'_>) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.db");
    let db = open(&path);
    workload::make(&db);
    db.close().expect("closes");
    // Without either there is an instant without a name, in which stock SQLite makes an empty file.
    let is_refusal =
        |error: &str| is_refusal(error) || (part.no_links && error.starts_with("no such table"));
    let mut known = 0;
    for round in 0..rounds {
        let mut long_open = Session::stock(&path);
        long_open.must("PRAGMA busy_timeout=5000");
        let before = workload::number(&long_open.must(STATE));
        let mut running: Vec<_> = (0..writers).map(|_| Writer::start(&path, part)).collect();
        let commits = i64::try_from(scatter(seed + round, 8)).expect("small");
        if commits > 0 {
            running[0].reaches(known + commits);
        }
        std::thread::sleep(Duration::from_micros(scatter(seed + round + 1000, 12_000)));
        let acknowledged = running.into_iter().map(Writer::kill).max().expect("some").max(known);
        let what = format!("seed {seed}, round {round}, {acknowledged} acknowledged after {known}");
        let most = acknowledged + i64::try_from(writers).expect("small");

        // Before dash has opened it again.
        match stock_state(&path) {
            Ok(state) => {
                assert!((acknowledged..=most).contains(&state), "{what}: stock reads {state}")
            }
            Err(error) => assert!(is_refusal(&error), "{what}: {error}"),
        }
        match long_open.sql(STATE) {
            Ok(answer) => {
                assert!((before..=most).contains(&workload::number(&answer)), "{what}: {answer}")
            }
            Err(error) => assert!(is_refusal(&error), "{what}: {error}"),
        }
        if acknowledged >= known + 3 {
            for stock in [&mut Session::stock(&path), &mut long_open] {
                let error = stock.sql("DELETE FROM log").expect_err(&what);
                assert!(is_refusal(&error) || error.contains("readonly"), "{what}: {error}");
            }
        }
        drop(long_open);

        // Dash opens it; every third time with a commit before it is closed.
        let db = open(&path);
        known = workload::state(&db);
        assert!((acknowledged..=most).contains(&known), "{what}: {known} found");
        if round % 3 == 0 {
            known = workload::commit_next(&db).expect("commits");
            assert_eq!(workload::state(&db), known);
        }
        db.close().expect("closes");
        assert!(!exists(&beside(&path, "-journal")), "{what}: the fence stands");
        // Killed while a shadow was being made, there is none until the next commit.
        let mut names = names(folder.path());
        names.retain(|name| name != "app.db-shadow");
        assert_eq!(names, ["app.db"], "{what}");
        assert_eq!(stock_state(&path).as_ref(), Ok(&known), "{what}");
    }
    assert!(known > 0, "no writer ever committed");
}

/// How SQLite says that it won't touch a file.
fn is_refusal(error: &str) -> bool {
    [
        "disk I/O error",
        "file is not a database",
        "database is locked",
        "unable to open database file",
    ]
    .contains(&error)
}

#[test]
fn one_writer_killed_at_random_moments() {
    rounds(24, 1, 1, Part::default());
}

#[test]
fn two_writers_killed_at_random_moments() {
    rounds(16, 100, 2, Part::default());
}

#[test]
fn a_writer_under_the_protocol_of_the_paper() {
    rounds(12, 200, 1, Part { parameters: "&dash_commit=paper", ..Part::default() });
}

#[test]
fn a_writer_where_the_kernel_cannot_exchange_names() {
    rounds(16, 300, 1, Part { no_exchange: true, ..Part::default() });
}

#[test]
fn a_writer_where_a_file_cannot_have_two_names_either() {
    rounds(16, 400, 1, Part { no_exchange: true, no_links: true, ..Part::default() });
}

#[test]
fn a_killed_writer_beside_a_living_connection_is_finished_by_the_next_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = open(&path);
    workload::make(&db);
    let mut stock = Session::stock(&path);
    stock.must("PRAGMA busy_timeout=5000");
    let mut known = 0;
    for round in 0..16 {
        let mut writer = Writer::start(&path, Part::default());
        writer.reaches(known + 1);
        std::thread::sleep(Duration::from_micros(scatter(round, 9_000)));
        let acknowledged = writer.kill();
        // A reader needs no repair to go on.
        let read = workload::state(&db);
        assert!((acknowledged..=acknowledged + 1).contains(&read), "{read} of {acknowledged}");
        match stock.sql(STATE) {
            Ok(answer) => assert!(workload::number(&answer) <= read + 1),
            Err(error) => assert!(is_refusal(&error), "{error}"),
        }
        known = workload::commit_next(&db).unwrap();
        assert!(
            (acknowledged + 1..=acknowledged + 2).contains(&known),
            "{known} after {acknowledged}"
        );
        assert_eq!(workload::state(&db), known);
        // The fence in the header is gone as well: every stock descriptor reads again.
        assert!(workload::number(&stock.must(STATE)) <= known);
    }
    db.close().unwrap();
    assert_eq!(stock_state(&path).unwrap(), known);
}

#[test]
fn an_idle_process_that_is_killed_leaves_a_database_that_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = open(&path);
    db.execute_batch("CREATE TABLE t(a)").unwrap();
    db.close().unwrap();
    for round in 0..6 {
        let mut dash = Session::dash(&path, Part::default()).unwrap();
        for _ in 0..round {
            dash.must("INSERT INTO t VALUES (1)");
        }
        dash.must("BEGIN IMMEDIATE");
        dash.must("INSERT INTO t VALUES (2)");
        dash.kill();
        let db = open(&path);
        assert_eq!(one::<i64>(&db, "SELECT count(*) FROM t"), (0..=round).sum::<i64>());
        suite::check(&db);
    }
}
