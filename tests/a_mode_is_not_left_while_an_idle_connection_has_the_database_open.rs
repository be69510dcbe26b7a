//! Leaving mode shadow beside an idle connection of another process. It held the locks of the pair
//! of files that it knew; when somebody had made a new shadow since and published into it, RESERVED
//! of `app.db` was free, and `PRAGMA journal_mode=delete` went through. Then one process wrote with
//! a journal and the other exchanged the names: an acknowledged commit was lost. Found by killing
//! processes at random (`dash-torture --ring kill`).

mod suite;

use suite::damage::shadow;
use suite::one;
use suite::peers::{Part, Session};

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
