//! Every workload runs on every kind of engine and does what it says.

use rusqlite::Connection;

use super::{Name, Settings, Skew, Step, Worker, Workload};
use crate::extension::Extension;
use crate::rows::named;

fn settings(name: Name) -> Settings {
    Settings {
        name,
        operations: 3,
        size: Some(40_000),
        skew: Skew::Zipf,
        share: 50,
        replay: None,
        busy: 20,
    }
}

/// Runs so many steps on some engines; what the last one left behind.
fn run(settings: &Settings, steps: usize) -> (Vec<Step>, Connection, tempfile::TempDir) {
    let _extension = Extension::load().expect("libdash.so is built beside the tests");
    // In memory where there is such a folder: three thousand flushes are nothing to wait for.
    let memory = std::path::Path::new("/dev/shm");
    let folder = match memory.is_dir() {
        true => tempfile::tempdir_in(memory),
        false => tempfile::tempdir(),
    };
    let folder = folder.expect("a folder");
    let workload = settings.workload().expect("a workload");
    let mut last: Option<(Vec<Step>, Connection)> = None;
    for row in ["delete", "toy", "wal", "dash-single"].map(named) {
        let path = folder.path().join(row.word);
        let base = named("floor").open(&path).expect("a base");
        workload.build(&base).expect("built");
        drop(base);
        let db = row.open(&path).expect("opens");
        let done = {
            let db = workload.stays_open().then_some(&db);
            let worker = Worker { row, path: &path, db, index: 0, of: 1 };
            let mut session = workload.session(&worker).expect("a session");
            session.before().expect("before");
            let done: Vec<Step> = (0..steps).map(|_| session.step().expect("a step")).collect();
            session.before().expect("before the next block");
            assert_eq!(session.failures(), 0);
            done
        };
        if let Some((before, ..)) = &last {
            assert_eq!(before, &done, "{} does something else", row.name);
        }
        last = Some((done, db));
    }
    let (done, db) = last.expect("engines");
    (done, db, folder)
}

fn count(db: &Connection, sql: &str) -> i64 {
    db.query_row(sql, [], |row| row.get(0)).expect(sql)
}

#[test]
fn inserts_go_into_every_table() {
    let (done, db, _folder) = run(&settings(Name::Insert), 7);
    assert!(done.iter().all(|step| *step == Step::Wrote));
    let before = count(
        &db,
        "SELECT min(n) FROM (SELECT count(*) AS n FROM t0 UNION ALL SELECT count(*) FROM t2)",
    );
    assert_eq!(before, count(&db, "SELECT max(id) FROM t1"));
    assert_eq!(count(&db, "SELECT length(body) FROM t0 ORDER BY id DESC LIMIT 1"), 100);
}

#[test]
fn updates_change_what_they_touch() {
    let (_, db, _folder) = run(&settings(Name::Update), 5);
    let changed = count(&db, "SELECT count(*) FROM t1 WHERE CAST(body AS INTEGER) <> id");
    assert!((1..=5).contains(&changed), "{changed}");
}

#[test]
fn deletes_find_something_and_it_comes_back_for_the_next_block() {
    let (_, db, _folder) = run(&settings(Name::Delete), 20);
    assert_eq!(count(&db, "SELECT count(*) FROM t0"), count(&db, "SELECT max(id) FROM t0"));
    assert!(count(&db, "SELECT total_changes()") >= 60);
}

#[test]
fn androbench_ends_with_an_empty_table() {
    let (done, db, _folder) = run(&settings(Name::Androbench), 3 * 1024 + 1);
    assert_eq!(done.last(), Some(&Step::End));
    assert_eq!(done.iter().filter(|step| **step == Step::Wrote).count(), 3 * 1024);
    assert_eq!(count(&db, "SELECT count(*) FROM contacts"), 0);
    assert_eq!(count(&db, "SELECT seq FROM sqlite_sequence"), 1024);
}

#[test]
fn random_updates_have_no_locality() {
    let (_, db, _folder) = run(&settings(Name::RandomA), 50);
    let changed = "SELECT count(*) FROM partsupp WHERE ps_availqty <> id % 9999";
    assert_eq!(count(&db, changed), 50);
    let (_, db, _folder) = run(&settings(Name::RandomB), 1);
    assert_eq!(count(&db, changed), 2000);
    assert_eq!(count(&db, "SELECT count(*) FROM partsupp"), 60_000);
}

#[test]
fn cycles_bulk_loads_and_shared_tables_write() {
    let (_, db, _folder) = run(&settings(Name::Cycles), 4);
    assert!(count(&db, "SELECT count(*) FROM t WHERE CAST(body AS INTEGER) <> id") >= 1);
    let (_, db, _folder) = run(&settings(Name::Bulk), 2);
    assert_eq!(count(&db, "SELECT count(*) FROM t"), 20_000);
    let (_, db, _folder) = run(&settings(Name::Duplication), 4);
    // Three operations, half of them shared: two tables have every transaction's row, one has half.
    let rows = |table: usize| count(&db, &format!("SELECT count(*) FROM t{table}"));
    assert_eq!([rows(0), rows(1), rows(2), rows(5)], [4, 4, 2, 2]);
}

#[test]
fn reading_reads_and_mixing_does_both() {
    for name in [Name::Reads, Name::Scans] {
        let (done, ..) = run(&settings(name), 9);
        assert!(done.iter().all(|step| *step == Step::Read));
    }
    let (done, ..) = run(&settings(Name::Mixed), 200);
    let reads = done.iter().filter(|step| **step == Step::Read).count();
    assert!((60..140).contains(&reads), "{reads} of 200 with a share of a half");
}

#[test]
fn a_recording_is_replayed_with_its_transactions() {
    let folder = tempfile::tempdir().expect("a folder");
    let benchset = folder.path().join("benchset");
    std::fs::create_dir(&benchset).expect("a folder in it");
    std::fs::write(
        folder.path().join("loading.sql"),
        "CREATE TABLE t (x);\nINSERT INTO t VALUES (1);",
    )
    .expect("written");
    std::fs::write(benchset.join("0.sql"), "PRAGMA synchronous=OFF\nBEGIN EXCLUSIVE;\nINSERT INTO t VALUES (2)\nINSERT INTO t VALUES (3)\nCOMMIT;\nSELECT * FROM t\n")
        .expect("written");
    let settings = Settings { replay: Some(folder.path().to_owned()), ..settings(Name::Replay) };
    assert_eq!(settings.workload().expect("a workload").steps(), Some(2));
    let (done, db, _folder) = run(&settings, 3);
    assert_eq!(done, [Step::Wrote, Step::Read, Step::End]);
    assert_eq!(count(&db, "SELECT sum(x) FROM t"), 6);
}

#[test]
fn every_workload_says_what_it_is() {
    for name in <Name as clap::ValueEnum>::value_variants() {
        if *name != Name::Replay {
            let workload: std::sync::Arc<dyn Workload> = settings(*name).workload().expect("one");
            assert!(workload.about().len() > 20 && !workload.title().is_empty());
            assert!(workload.block() > 0);
        }
    }
}
