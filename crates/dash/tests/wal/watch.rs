//! What can be looked at from SQL: the last commits, locks and readers, of all processes.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use dash_testing::roles::{Role, role, say, told};

use crate::common::*;

const ROLE: &str = "watch::another_process";

#[test]
#[ignore = "a role of the tests below"]
fn another_process() {
    let Some(folder) = role(ROLE) else { return };
    register();
    let db = Connection::open(uri(&Path::new(&folder).join("app.db"), "dash", "")).expect("opens");
    db.busy_timeout(Duration::from_secs(20)).expect("sets");
    say("process", std::process::id());
    while let Some(sql) = told() {
        say("begins", 0);
        db.execute_batch(&sql).expect("runs");
        say("done", 0);
    }
}

fn start(folder: &Folder) -> (Role, i64) {
    let mut other = Role::start(ROLE, folder.path("."));
    let process = other.hear("process").parse().expect("a number");
    (other, process)
}

fn run(other: &mut Role, sql: &str) {
    other.tell(sql);
    other.hear("done");
}

/// A database whose commits go to the log, with a table `t`.
fn database(folder: &Folder) -> Connection {
    let parameters = "&journal_mode=wal&dash_rest=off";
    let db = folder.try_open("app.db", parameters).expect("opens in mode wal");
    db.execute_batch("CREATE TABLE t(x)").expect("commits");
    for _ in 0..5 {
        db.execute_batch("INSERT INTO t VALUES (1)").expect("commits");
    }
    assert_eq!(number(&db, "SELECT value FROM dash_stats WHERE name='log'"), 1);
    db
}

fn own() -> i64 {
    std::process::id().into()
}

/// Looks until `sql` answers something else than 0.
fn wait_for(db: &Connection, sql: &str) {
    let begun = Instant::now();
    while number(db, sql) == 0 {
        assert!(begun.elapsed() < Duration::from_secs(20), "{sql}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn the_last_commits_of_all_processes() {
    let folder = Folder::new();
    let db = database(&folder);
    let (mut other, process) = start(&folder);
    run(&mut other, "INSERT INTO t VALUES (zeroblob(10000))");
    run(&mut other, "BEGIN; INSERT INTO t VALUES (1); ROLLBACK");
    run(&mut other, "PRAGMA synchronous=NORMAL; INSERT INTO t VALUES (2)");
    db.execute_batch("INSERT INTO t VALUES (3)").expect("commits");
    let newest = |row: i64, what: &str| {
        text(&db, &format!("SELECT {what} FROM dash_commits LIMIT 1 OFFSET {row}"))
    };
    let pids = [0, 1, 2].map(|row| newest(row, "pid"));
    assert_eq!(pids, [own(), process, process].map(|pid| pid.to_string()), "newest first");
    assert_eq!(newest(1, "flush IS NULL AND log_bytes IS NULL AND group_size IS NULL"), "1");
    // The one in NORMAL before became durable with it.
    assert_eq!(newest(0, "group_size"), "2");
    assert_eq!(newest(0, "flush > 0 AND log_bytes > 0 AND frames = 1"), "1");
    assert_eq!(newest(2, "frames >= 3 AND wait = 0"), "1");
    let age = "abs(strftime('%s', 'now') - time) < 60";
    assert_eq!(newest(0, age), "1");
    for _ in 0..1100 {
        db.execute_batch("PRAGMA synchronous=OFF; INSERT INTO t VALUES (4)").expect("commits");
    }
    assert_eq!(number(&db, "SELECT count(*) FROM dash_commits"), 1000);
}

#[test]
fn who_has_a_lock_and_who_waits_for_it() {
    let folder = Folder::new();
    let db = database(&folder);
    assert_eq!(number(&db, "SELECT count(*) FROM dash_locks"), 0);
    db.execute_batch("BEGIN IMMEDIATE; INSERT INTO t VALUES (1)").expect("begins");
    let (mut other, process) = start(&folder);
    other.tell("INSERT INTO t VALUES (2)");
    other.hear("begins");
    let looks = folder.open("app.db");
    let waits = format!("SELECT count(*) FROM dash_locks WHERE place=1 AND pid={process}");
    wait_for(&looks, &waits);
    let holds = "SELECT pid FROM dash_locks WHERE lock='writer' AND place=0";
    assert_eq!(number(&looks, holds), own());
    std::thread::sleep(Duration::from_millis(20));
    db.execute_batch("COMMIT").expect("commits");
    other.hear("done");
    wait_for(&looks, "SELECT count(*) = 0 FROM dash_locks");
    let waited = format!("SELECT wait FROM dash_commits WHERE pid={process} LIMIT 1");
    assert!(number(&looks, &waited) >= 20_000, "{}", text(&looks, &waited));
}

#[test]
fn nobody_holds_a_lock_that_died_with_it() {
    let folder = Folder::new();
    let db = database(&folder);
    let (mut other, process) = start(&folder);
    run(&mut other, "BEGIN IMMEDIATE");
    assert_eq!(number(&db, "SELECT pid FROM dash_locks"), process);
    other.kill_and_hear("done");
    wait_for(&db, "SELECT count(*) = 0 FROM dash_locks");
}

#[test]
fn who_reads_and_what_that_keeps() {
    let folder = Folder::new();
    let db = database(&folder);
    let reads = folder.open("app.db");
    reads.execute_batch("BEGIN; SELECT * FROM t").expect("reads");
    let stock = folder.stock("app.db");
    stock.execute_batch("BEGIN; SELECT * FROM t").expect("reads");
    for _ in 0..3 {
        db.execute_batch("INSERT INTO t VALUES (2)").expect("commits");
    }
    // The connection that looks reads, too, and keeps nothing.
    let most = |kind: &str| {
        let rows = format!("FROM dash_readers WHERE kind='{kind}' AND pid={} AND frame > 0", own());
        number(&db, &format!("SELECT max(kept_bytes) {rows}"))
    };
    assert_eq!(most("dash"), 3 * (4096 + 24));
    // Both locks are of one slot, and the system shows the first one that stands in the way.
    stock.execute_batch("COMMIT").expect("ends");
    reads.execute_batch("COMMIT; BEGIN; SELECT * FROM t").expect("reads");
    stock.execute_batch("BEGIN; SELECT * FROM t").expect("reads");
    db.execute_batch("INSERT INTO t VALUES (2)").expect("commits");
    assert_eq!((most("dash"), most("stock")), (4096 + 24, 4096 + 24));
    reads.execute_batch("COMMIT").expect("ends");
    stock.execute_batch("COMMIT").expect("ends");
    assert_eq!(number(&db, "SELECT count(*) FROM dash_readers WHERE kept_bytes > 0"), 0);
}

#[test]
fn in_other_modes_these_tables_say_why_there_is_nothing() {
    let folder = Folder::new();
    let db = folder.open("shadow.db");
    db.execute_batch("CREATE TABLE t(x)").expect("commits");
    for table in ["dash_commits", "dash_locks"] {
        let said = message(db.prepare(&format!("SELECT * FROM {table}")).and_then(|mut rows| {
            let rows = rows.query_map([], |_| Ok(()))?;
            rows.collect::<Result<Vec<()>>>()
        }));
        assert!(said.contains("main is in mode shadow"), "{said}");
    }
    assert_eq!(number(&db, "SELECT count(*) FROM dash_readers WHERE kept_bytes > 0"), 0);
}

#[test]
fn where_nothing_is_counted_it_says_why() {
    let folder = Folder::new();
    let db = folder.open("app.db");
    db.execute_batch("PRAGMA journal_mode=DELETE; ATTACH ':memory:' AS aux").expect("runs");
    for table in ["dash_stats", "dash_latency"] {
        let said = |schema: &str| {
            message(db.query_row(&format!("SELECT * FROM {table}('{schema}')"), [], |_| Ok(())))
        };
        assert!(said("main").contains("main is in one of SQLite's own journal modes"), "{table}");
        assert!(said("aux").contains("aux is not open through dash"), "{table}: {}", said("aux"));
    }
}

#[test]
fn every_counter_says_what_it_means() {
    let folder = Folder::new();
    let (wal, shadow) = (database(&folder), folder.open("shadow.db"));
    shadow.execute_batch("CREATE TABLE t(x)").expect("commits");
    for db in [&wal, &shadow] {
        let sql = "SELECT name FROM dash_stats WHERE meaning IS NULL OR meaning = ''";
        let mut rows = db.prepare(sql).expect("prepares");
        let names = rows.query_map([], |row| row.get::<_, String>(0)).expect("queries");
        assert_eq!(names.collect::<Result<BTreeSet<_>>>().expect("reads"), BTreeSet::new());
    }
}
