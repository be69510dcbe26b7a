//! Leaving mode shadow beside an idle connection of another process. It held the locks of the pair
//! of files that it knew; when somebody had made a new shadow since and published into it, RESERVED
//! of `app.db` was free, and `PRAGMA journal_mode=delete` went through. Then one process wrote with
//! a journal and the other exchanged the names: an acknowledged commit was lost. Found by killing
//! processes at random (`dash-torture --ring kill`).

mod suite;

use std::fs::File;

use dash_testing::locks::lock;
use nix::libc;
use suite::damage::shadow;
use suite::one;
use suite::peers::{Part, Session};
use suite::sql::{refused, run};

#[test]
fn whatever_has_become_of_the_files_since() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let mut idle = Session::dash(&path, Part::default()).unwrap();
    idle.must("CREATE TABLE t(a)");
    idle.must("INSERT INTO t VALUES (1)");
    let db = suite::open(&path);
    // A new shadow, and the names exchanged so that it becomes `app.db`.
    std::fs::remove_file(shadow(&path)).unwrap();
    db.execute_batch("INSERT INTO t VALUES (2)").unwrap();
    let mode = db.query_row("PRAGMA journal_mode=delete", [], |row| row.get::<_, String>(0));
    let left = mode.is_ok_and(|mode| mode == "delete");
    assert!(!left, "mode shadow was left beside an open connection");
    idle.must("INSERT INTO t VALUES (3)");
    db.execute_batch("INSERT INTO t VALUES (4)").unwrap();
    assert_eq!(one::<i64>(&db, "SELECT sum(a) FROM t"), 10);
    idle.close();
    assert_eq!(one::<String>(&db, "PRAGMA journal_mode=delete"), "delete");
}

/// A byte that mode shadow locks of a database for as long as a connection has it open, and mode
/// wal never.
const LIFE: i64 = 0x4000_0201;

/// SQLite gives WAL mode up by itself before the other mode is tried: the connection was left with
/// a plain file then, which somebody else could exchange.
#[test]
fn nor_where_the_other_one_can_not_be_had() {
    for (mode, locking) in [("wal", "NORMAL"), ("wal", "EXCLUSIVE"), ("statement", "NORMAL")] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        let db = suite::open_dash(path.as_os_str(), &format!("&journal_mode={mode}")).unwrap();
        run(&db, &format!("PRAGMA locking_mode={locking}; CREATE TABLE t(a)"));
        let other = File::open(&path).unwrap();
        lock(&other, libc::F_RDLCK, LIFE, 1);
        let (_, said) = refused(&db, "PRAGMA journal_mode=shadow");
        assert!(!said.contains("has left"), "{mode} {locking}: {said}");
        assert_eq!(one::<String>(&db, "SELECT dash_engine()"), mode, "{locking}: {said}");
        run(&db, "INSERT INTO t VALUES (1)");
        assert_eq!(one::<String>(&db, "PRAGMA journal_mode"), mode, "{locking}: {said}");
        lock(&other, libc::F_UNLCK, LIFE, 1);
        assert_eq!(one::<String>(&db, "PRAGMA journal_mode=shadow"), "shadow", "{mode} {locking}");
        run(&db, "INSERT INTO t VALUES (2)");
        assert_eq!(one::<i64>(&db, "SELECT sum(a) FROM t"), 3);
    }
}

/// What is under the shadow's name keeps mode wal out, too.
#[test]
fn and_where_neither_can_be_had_that_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = suite::open_dash(path.as_os_str(), "&journal_mode=wal").unwrap();
    run(&db, "CREATE TABLE t(a)");
    std::fs::create_dir_all(shadow(&path).join("in the way")).unwrap();
    let (_, said) = refused(&db, "PRAGMA journal_mode=shadow");
    for words in ["app.db-shadow", "has left mode wal", "ask for a mode again"] {
        assert!(said.contains(words), "{said}");
    }
    std::fs::remove_dir_all(shadow(&path)).unwrap();
    run(&db, "INSERT INTO t VALUES (1)");
    assert_eq!(one::<i64>(&db, "SELECT sum(a) FROM t"), 1);
}
