//! Mode wal with `dash_stock=write` (WAL-50): programs without dash write while others have the
//! database open through it, and checkpoint where nobody has committed for a while. With
//! `dash_stock=checkpoint` (WAL-53) they checkpoint at any time.

mod suite;

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use suite::peers::{Part, Writer};
use suite::workload;

const WRITERS: i64 = 4;
const COMMITS: i64 = 150;

const LAST_ERROR: &str = "SELECT dash_last_error()";

fn commits(db: &Connection, who: i64) {
    db.busy_timeout(Duration::from_secs(20)).expect("a time-out");
    for number in 0..COMMITS {
        let sql = format!("BEGIN IMMEDIATE; INSERT INTO t VALUES ({who}, {number}); COMMIT");
        db.execute_batch(&sql).expect("commits");
    }
}

#[test]
fn and_none_of_both_loses_a_commit() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.db");
    let parameters = "&journal_mode=wal&dash_rest=50&dash_stock=write";
    let open = || suite::open_dash(path.as_os_str(), parameters).expect("opens");
    let first = open();
    suite::sql::run(&first, "CREATE TABLE t (who, number)");
    std::thread::scope(|scope| {
        for who in 0..WRITERS {
            scope.spawn(move || commits(&open(), who));
        }
        for (who, level) in ["FULL", "NORMAL", "OFF"].into_iter().enumerate() {
            let path = &path;
            scope.spawn(move || {
                let stock = suite::stock(path);
                suite::sql::run(&stock, &format!("PRAGMA synchronous={level}"));
                commits(&stock, WRITERS + i64::try_from(who).expect("a number"));
                suite::sql::run(&stock, "CREATE TABLE IF NOT EXISTS u AS SELECT * FROM t; ANALYZE");
            });
        }
    });
    let stock = suite::stock(&path);
    for db in [&first, &stock] {
        assert_eq!(suite::one::<i64>(db, "SELECT count(*) FROM t"), COMMITS * (WRITERS + 3));
        suite::check(db);
    }
    let begun = Instant::now();
    while suite::one::<i64>(&stock, "PRAGMA wal_checkpoint(TRUNCATE)") != 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "it comes to rest");
        std::thread::sleep(Duration::from_millis(50));
    }
    commits(&stock, 90);
    commits(&first, 91);
    assert_eq!(suite::one::<i64>(&stock, "SELECT count(*) FROM t"), COMMITS * (WRITERS + 5));
}

/// A session that begins while a checkpoint has taken WRITER holds up neither of both.
#[test]
fn and_dash_commits_beside_its_own_checkpoints() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.db");
    let parameters = "&journal_mode=wal&dash_rest=50&dash_stock=write";
    let open = || {
        let db = suite::open_dash(path.as_os_str(), parameters).expect("opens");
        db.busy_timeout(Duration::from_secs(5)).expect("a time-out");
        db
    };
    let first = open();
    suite::sql::run(&first, "CREATE TABLE t (who, number)");
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let write = |who: i64| {
            let db = open();
            for number in 0..12 * 30 {
                suite::sql::run(&db, &format!("INSERT INTO t VALUES ({who}, {number})"));
                if number % 30 == 0 {
                    std::thread::sleep(Duration::from_millis(450));
                }
            }
        };
        let writers = [0, 1].map(|who| scope.spawn(move || write(who)));
        scope.spawn(|| {
            let db = open();
            while !ended.load(SeqCst) {
                suite::one::<i64>(&db, "PRAGMA wal_checkpoint(RESTART)");
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        let done = writers.map(|writer| writer.join());
        ended.store(true, SeqCst);
        for writer in done {
            writer.expect("nobody is told that the database is locked");
        }
    });
    assert_eq!(suite::one::<i64>(&first, "SELECT count(*) FROM t"), 2 * 12 * 30);
}

#[test]
fn what_the_first_one_chose_holds_for_all() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.db");
    let open = |more: &str| {
        let opened = suite::open_dash(path.as_os_str(), &format!("&journal_mode=wal{more}"));
        opened.and_then(|db| {
            db.execute_batch("CREATE TABLE IF NOT EXISTS t (x); SELECT * FROM t")?;
            Ok(db)
        })
    };
    let insert = || suite::stock(&path).execute("INSERT INTO t VALUES (1)", []);
    let asked = |db: &Connection| suite::one::<String>(db, "PRAGMA dash_stock");
    let refused = |more: &str| {
        open(more).expect_err("refused");
        suite::one::<String>(&suite::open_dash(":memory:".as_ref(), "").expect("opens"), LAST_ERROR)
    };
    for (chosen, other, writes) in
        [("read", "write", false), ("write", "checkpoint", true), ("checkpoint", "write", true)]
    {
        let first = open(&format!("&dash_stock={chosen}")).expect("opens");
        let same = open("").expect("takes what is so");
        assert_eq!([asked(&first), asked(&same)], [chosen, chosen]);
        assert_eq!(insert().is_ok(), writes);
        let said = refused(&format!("&dash_stock={other}"));
        assert!(said.contains(&format!("is open with dash_stock={chosen}")), "{said}");
        let pragma = first.query_row(&format!("PRAGMA dash_stock={other}"), [], |_| Ok(()));
        assert!(pragma.expect_err("an error").to_string().contains("close all connections"));
    }
    assert_eq!(asked(&open("").expect("opens")), "read");
    for stock in ["write", "checkpoint"] {
        let said = refused(&format!("&dash_stock={stock}&dash_wal=memory"));
        assert!(said.contains(&format!("{stock} isn't available with dash_wal=memory")), "{said}");
    }
}

/// Checkpoints by stock SQLite, of each kind in turn, until `is_over`; how many were complete.
fn checkpoint_until(stock: &Connection, is_over: &AtomicBool) -> usize {
    stock.busy_timeout(Duration::from_millis(200)).expect("a time-out");
    let mut complete = 0;
    for mode in ["PASSIVE", "RESTART", "TRUNCATE"].into_iter().cycle() {
        let sql = format!("PRAGMA wal_checkpoint({mode})");
        let busy: rusqlite::Result<i64> = stock.query_row(&sql, [], |row| row.get(0));
        // After a kill it is refused until dash has opened the database.
        complete += usize::from(busy == Ok(0));
        if is_over.load(SeqCst) && complete > 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(7));
    }
    complete
}

#[test]
fn and_checkpoints_beside_live_writers_where_it_may() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.db");
    let open = || {
        let parameters = "&journal_mode=wal&dash_rest=50&dash_stock=checkpoint";
        suite::open_dash(path.as_os_str(), parameters).expect("opens")
    };
    let first = open();
    suite::sql::run(&first, "CREATE TABLE t (who, number); PRAGMA wal_autocheckpoint=0");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let checkpoints = scope.spawn(|| checkpoint_until(&suite::stock(&path), &is_over));
        let mut writers = Vec::new();
        for who in 0..WRITERS {
            writers.push(scope.spawn(move || commits(&open(), who)));
        }
        for (level, who) in ["FULL", "NORMAL"].into_iter().zip(WRITERS..) {
            let path = &path;
            writers.push(scope.spawn(move || {
                let stock = suite::stock(path);
                suite::sql::run(&stock, &format!("PRAGMA synchronous={level}"));
                commits(&stock, who);
            }));
        }
        let done: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        is_over.store(true, SeqCst);
        assert!(checkpoints.join().expect("checkpoints") > 0);
        assert!(done.iter().all(Result::is_ok), "all commit");
    });
    let stock = suite::stock(&path);
    for db in [&first, &stock] {
        assert_eq!(suite::one::<i64>(db, "SELECT count(*) FROM t"), COMMITS * (WRITERS + 2));
        suite::check(db);
    }
}

/// A writer of dash is killed again and again, alone or beside another connection of dash.
#[test]
fn and_takes_nothing_from_a_writer_that_is_killed() {
    for stays in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("app.db");
        let parameters = "&journal_mode=wal&dash_stock=checkpoint";
        let first = suite::open_dash(path.as_os_str(), parameters).expect("opens");
        workload::make(&first);
        let first = stays.then_some(first);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let stock = suite::stock(&path);
            let is_over = &is_over;
            scope.spawn(move || checkpoint_until(&stock, is_over));
            let part = Part { parameters, ..Part::default() };
            let done = std::panic::catch_unwind(|| {
                (0..10).for_each(|round| {
                    let mut writer = Writer::start(&path, part);
                    writer.reaches(0);
                    std::thread::sleep(Duration::from_millis(round * 41 % 170));
                    let acknowledged = writer.kill();
                    let db = suite::open_dash(path.as_os_str(), parameters).expect("opens");
                    suite::check(&db);
                    let found = workload::state(&db);
                    assert!((acknowledged..=acknowledged + 1).contains(&found), "round {round}");
                })
            });
            is_over.store(true, SeqCst);
            done.expect("ten rounds");
        });
        drop(first);
    }
}

#[test]
fn and_leaves_the_mode_in_none() {
    let folder = tempfile::tempdir().expect("a folder");
    for (number, mode) in
        ["wal", "wal&dash_stock=write", "wal&dash_stock=checkpoint", "shadow"].iter().enumerate()
    {
        let path = folder.path().join(format!("{number}.db"));
        let db = suite::open_dash(path.as_os_str(), &format!("&journal_mode={mode}"));
        let db = db.expect("opens");
        suite::sql::run(&db, "CREATE TABLE t (x); INSERT INTO t VALUES (1); SELECT * FROM t");
        let before = suite::one::<String>(&db, "PRAGMA journal_mode");
        let other = if before == "wal" { "DELETE" } else { "WAL" };
        let stock = suite::stock(&path);
        let left = stock.query_row(&format!("PRAGMA journal_mode={other}"), [], |_| Ok(()));
        let said = left.expect_err("refused").to_string();
        assert!(said.contains("locked"), "{mode}: {said}");
        assert_eq!(suite::one::<String>(&db, "PRAGMA journal_mode"), before);
    }
}
