//! Mode wal with `dash_stock=write` (WAL-50): programs without dash write while others have the
//! database open through it, and checkpoint where nobody has committed for a while.

mod suite;

use std::time::{Duration, Instant};

use rusqlite::Connection;

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
    for (chosen, other, writes) in [("read", "write", false), ("write", "read", true)] {
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
    let said = refused("&dash_stock=write&dash_wal=memory");
    assert!(said.contains("isn't available with dash_wal=memory"), "{said}");
    assert!(refused("&dash_stock=checkpoint").contains("isn't available in dash yet"));
}
