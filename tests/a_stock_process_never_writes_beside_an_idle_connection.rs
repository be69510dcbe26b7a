//! Stock writers stay out as long as any dash connection is open. An idle one holds the locks of
//! the pair of files that it knew; when somebody made a new shadow since, committed into it and was
//! killed, RESERVED of `app.db` was free, and a stock process could write: noticed by the idle
//! connection, unless it came between two looks. Now the name fence stands in that case, until
//! somebody closes the database cleanly.

mod suite;

use std::path::Path;

use dash_testing::names::{beside, exists};
use suite::damage::shadow;
use suite::peers::{Part, Session};

/// An idle connection, after another one has made so many new shadows, each with a commit, and was
/// killed.
fn idle_beside(path: &Path, shadows: u64, has_read: bool) -> Session {
    let mut maker = Session::dash(path, Part::default()).expect("opens");
    maker.must("CREATE TABLE t(a)");
    maker.must("INSERT INTO t VALUES (1)");
    maker.close();
    let mut idle = Session::dash(path, Part::default()).expect("opens");
    if has_read {
        idle.must("SELECT a FROM t");
    }
    let mut other = Session::dash(path, Part::default()).expect("opens");
    for number in 0..shadows {
        std::fs::remove_file(shadow(path)).expect("is there");
        other.must(&format!("INSERT INTO t VALUES ({})", 10 + number));
    }
    other.kill();
    idle
}

/// What stock SQLite says to a write, which it must refuse.
fn refused(path: &Path, mode: &str) -> String {
    let mut stock = Session::stock(path);
    let _refused_or_not = stock.sql(&format!("PRAGMA journal_mode={mode}"));
    stock.sql("INSERT INTO t VALUES (1000)").expect_err("stock SQLite wrote beside dash")
}

#[test]
fn whatever_has_become_of_the_files_since() {
    for shadows in 1..5 {
        for mode in ["delete", "persist", "memory", "off", "wal"] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("app.db");
            let mut idle = idle_beside(&path, shadows, shadows % 2 == 1);
            refused(&path, mode);
            let sum = 1 + (0..shadows).map(|number| 10 + number).sum::<u64>();
            assert_eq!(idle.must("SELECT sum(a) FROM t"), sum.to_string());
            // From its first look on it holds the locks of the files that are there now.
            assert_eq!(refused(&path, mode), "database is locked");
            assert_eq!(Session::stock(&path).must("SELECT sum(a) FROM t"), sum.to_string());
            idle.must("INSERT INTO t VALUES (3)");
            assert_eq!(idle.must("SELECT sum(a) FROM t"), (sum + 3).to_string());
            idle.close();
            assert!(!exists(&beside(&path, "-journal")), "the fence stands at rest");
            let mut stock = Session::stock(&path);
            stock.must("INSERT INTO t VALUES (4)");
            assert_eq!(stock.must("SELECT sum(a) FROM t"), (sum + 7).to_string());
        }
    }
}

/// The same where the idle connection is the only one left and never looks again.
#[test]
fn nor_when_it_is_closed_without_having_looked() {
    for has_read in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        let idle = idle_beside(&path, 1, has_read);
        refused(&path, "delete");
        idle.close();
        let mut stock = Session::stock(&path);
        stock.must("INSERT INTO t VALUES (4)");
        assert_eq!(stock.must("SELECT sum(a) FROM t"), "15");
        assert_eq!(stock.must("PRAGMA integrity_check"), "ok");
    }
}
