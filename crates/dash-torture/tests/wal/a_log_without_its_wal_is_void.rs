//! WAL-16: the name of `-wal` was durable before the first record, so one that is missing was
//! deleted, which follows a complete checkpoint. A database that holds an older image of a page
//! says that it was a hand.

use std::ffi::OsStr;
use std::path::Path;

use dash_simulated::OperationKind;
use dash_storage::{Directory, File, OpenMode, Storage};

use crate::common::{Db, Tale, remove};

/// A session whose checkpoint did not get the last commits.
pub(crate) fn session() -> (Tale, Db) {
    let (tale, db) = Tale::begun();
    db.put();
    // As long as it reads no other generation begins.
    let reader = tale.open();
    reader.ok("BEGIN; SELECT * FROM t");
    db.checkpoint("PASSIVE");
    db.put();
    // A page that a stock survivor leaves as it is.
    db.ok("INSERT INTO big VALUES ('a')");
    reader.kill();
    (tale, db)
}

#[test]
pub(crate) fn unless_the_database_lacks_what_it_says() {
    for power in [false, true] {
        let (tale, db) = session();
        db.kill();
        let tale = match power {
            true => {
                let mut all = dash_simulated::Everything;
                tale.after(tale.machine.power_loss(&mut all))
            }
            false => tale,
        };
        remove(&tale.machine, "-wal");
        let refused = tale.is_refused("app.db-wal is missing");
        assert!(refused.contains("sqlite-dash recover"), "{refused}");
        // Nothing was touched: put back, it is all there.
        assert!(!tale.machine.exists("/app.db-wal"));
    }
}

/// Nothing was copied there yet, so no page is older than in the log; but its header is (WAL-18).
#[test]
pub(crate) fn nor_where_it_is_shorter_than_that() {
    let (tale, db) = Tale::begun();
    for _ in 0..6 {
        db.put();
    }
    db.kill();
    remove(&tale.machine, "-wal");
    let refused = tale.is_refused("app.db-dashlog holds commits");
    assert!(refused.contains("sqlite-dash recover"), "{refused}");
}

/// Nor where rows were changed, which leaves header and length as they are.
#[test]
pub(crate) fn nor_where_rows_were_changed() {
    let (tale, db) = Tale::begun();
    db.ok("INSERT INTO big VALUES ('a')");
    db.checkpoint("TRUNCATE");
    for to in ["b", "c", "d"] {
        db.ok(&format!("UPDATE big SET v = '{to}'"));
    }
    db.kill();
    remove(&tale.machine, "-wal");
    let refused = tale.is_refused("app.db-wal is missing");
    assert!(refused.contains("sqlite-dash recover"), "{refused}");
}

/// A session whose last commits wrote a page that they left as it was: that is as in its last image
/// before anything was copied, and tells nothing.
fn session_with_a_page_as_it_was() -> (Tale, Db) {
    let (tale, db) = Tale::begun();
    let row = |letter: &str, number: u32| format!("'{letter}{number:03}' || hex(zeroblob(450))");
    db.ok("CREATE TABLE long(id INTEGER PRIMARY KEY, v); CREATE INDEX by_long ON long(v)");
    for number in 0..60 {
        db.ok(&format!("INSERT INTO long VALUES ({number}, {})", row("a", number)));
    }
    db.checkpoint("RESTART");
    for number in 0..30 {
        db.ok(&format!("UPDATE long SET v = {} WHERE id = {number}", row("d", number)));
    }
    db.checkpoint("PASSIVE");
    for number in 0..3 {
        db.ok(&format!("UPDATE long SET v = {} WHERE id = {number}", row("e", number)));
    }
    (tale, db)
}

/// Nor where a commit wrote a page that it left as it was.
#[test]
pub(crate) fn nor_where_a_page_was_written_as_it_was() {
    for power in [false, true] {
        let (tale, db) = session_with_a_page_as_it_was();
        db.kill();
        let tale = match power {
            true => tale.after(tale.machine.power_loss(&mut dash_simulated::Everything)),
            false => tale,
        };
        remove(&tale.machine, "-wal");
        for _ in 0..2 {
            tale.is_refused("app.db-wal is missing");
        }
    }
}

/// Nor where somebody tried to open it before, and was killed: as long as the log says anything.
#[test]
pub(crate) fn nor_where_an_opener_was_killed() {
    let kinds = &[OperationKind::Write, OperationKind::Flush];
    for at in 0..40 {
        let (tale, db) = session_with_a_page_as_it_was();
        db.kill();
        let head =
            |tale: &Tale| tale.machine.file_view("/app.db-dashlog").unwrap()[..1024].to_vec();
        let before = head(&tale);
        let killed = tale.open_killed(at, kinds);
        if !killed || head(&tale) != before {
            assert!(at > 3, "it was killed before the log was void");
            return;
        }
        remove(&tale.machine, "-wal");
        let refused = tale.try_open().err();
        assert!(refused.is_some_and(|why| why.contains("app.db-wal is missing")), "{at}");
    }
}

/// Nor where it was emptied, and `-shm` says that not all was copied.
#[test]
pub(crate) fn nor_where_it_was_emptied() {
    let (tale, db) = session_with_a_page_as_it_was();
    db.kill();
    let folder = tale.machine.process().open_directory(Path::new("/")).unwrap();
    folder.open(OsStr::new("app.db-wal"), OpenMode::ReadWrite).unwrap().set_len(0).unwrap();
    for _ in 0..2 {
        tale.is_refused("app.db-wal is missing");
    }
}

/// Nor where it was in the memory of a process alone: no stock program has copied any of it.
#[test]
pub(crate) fn nor_where_it_was_in_memory() {
    let (tale, db) = Tale::begun_alone();
    db.ok("INSERT INTO big VALUES ('a')");
    db.checkpoint("TRUNCATE");
    ["b", "c"].into_iter().for_each(|to| db.ok(&format!("UPDATE big SET v = '{to}'")));
    db.checkpoint("PASSIVE");
    db.put();
    db.ok("UPDATE big SET v = 'c'");
    db.kill();
    remove(&tale.machine, "-wal");
    tale.is_refused("app.db-wal is missing");
}

/// But a stock survivor may have copied newer commits of dash's than the log has.
#[test]
pub(crate) fn after_a_stock_survivor_copied_what_the_log_lacks() {
    let (tale, db) = Tale::begun();
    db.ok("INSERT INTO big VALUES ('a')");
    db.checkpoint("TRUNCATE");
    for (to, level) in [("b", "FULL"), ("c", "FULL"), ("d", "NORMAL"), ("e", "NORMAL")] {
        db.synchronous(level);
        db.ok(&format!("UPDATE big SET v = '{to}'"));
    }
    let stock = tale.open_stock();
    db.kill();
    stock.db.execute_batch("SELECT * FROM big").unwrap();
    stock.db.close().unwrap();
    assert!(!tale.machine.exists("/app.db-wal"), "stock SQLite has deleted it");
    tale.open().close();
}

/// Also where an opener was killed in between.
#[test]
pub(crate) fn after_a_stock_survivor_deleted_it_beside_a_killed_opener() {
    for at in 0..12 {
        let (tale, db) = session();
        let stock = tale.open_stock();
        db.kill();
        tale.put_stock(&stock).unwrap();
        stock.db.execute_batch("PRAGMA wal_checkpoint").unwrap();
        tale.open_killed(at, &[OperationKind::Write, OperationKind::Flush]);
        drop(stock);
        tale.survives(&tale.machine.killed()).unwrap();
    }
}

/// A stock connection that was there before checkpoints everything, and deletes it.
#[test]
pub(crate) fn after_a_stock_survivor_deleted_it() {
    for writes in 0..3 {
        let (tale, db) = session();
        let stock = tale.open_stock();
        db.kill();
        tale.watch();
        for _ in 0..writes {
            tale.put_stock(&stock).unwrap();
        }
        stock.db.close().unwrap();
        tale.done();
        assert!(!tale.machine.exists("/app.db-wal"), "stock SQLite has deleted it");
        tale.survives_all();
        tale.survives(&tale.machine.killed()).unwrap();
        let next = tale.open();
        tale.watch();
        next.put();
        next.put();
        next.close();
        tale.done();
        tale.survives_all();
    }
}

/// One may have changed all pages of the log: that it took `-shm` along, and wrote the database
/// last, tells it from a hand. After a power loss nothing does.
#[test]
pub(crate) fn after_a_stock_survivor_left_no_page_of_it() {
    for power in [false, true] {
        let (tale, db) = Tale::begun();
        db.ok("INSERT INTO big VALUES ('a')");
        db.checkpoint("TRUNCATE");
        for to in ["b", "c", "d"] {
            db.ok(&format!("UPDATE big SET v = '{to}'"));
        }
        let stock = tale.open_stock();
        db.kill();
        stock.db.execute_batch("UPDATE big SET v = 'e'").unwrap();
        stock.db.close().unwrap();
        if !power {
            tale.open().close();
            continue;
        }
        let tale = tale.after(tale.machine.power_loss(&mut dash_simulated::Everything));
        tale.is_refused("--discard");
    }
}

/// Or cut it to nothing, which it says in `-shm`, and stays.
#[test]
pub(crate) fn after_a_stock_survivor_cut_it_to_nothing() {
    for dies in [false, true] {
        let (tale, db) = Tale::begun();
        db.ok("INSERT INTO big VALUES ('a')");
        db.checkpoint("TRUNCATE");
        for to in ["b", "c", "d"] {
            db.ok(&format!("UPDATE big SET v = '{to}'"));
        }
        let stock = tale.open_stock();
        db.kill();
        stock.db.execute_batch("UPDATE big SET v = 'e'; PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        if dies {
            tale.machine.kill(&stock.process);
        }
        let next = tale.open();
        assert_eq!(next.value::<String>("SELECT v FROM big").unwrap(), "e");
        next.close();
    }
}

/// Under synchronous=OFF it flushes nothing of that: the database is durable before the log is
/// void. It may also have begun another generation, instead of an end.
#[test]
pub(crate) fn once_what_it_held_is_durable() {
    for begins in [false, true] {
        let (tale, db) = session();
        let stock = tale.open_stock();
        db.kill();
        stock.db.execute_batch("PRAGMA synchronous=OFF; PRAGMA wal_checkpoint(RESTART)").unwrap();
        if begins {
            tale.put_stock(&stock).unwrap();
            tale.machine.kill(&stock.process);
        } else {
            stock.db.close().unwrap();
        }
        assert_eq!(tale.machine.exists("/app.db-wal"), begins);
        let next = tale.open();
        tale.survives_all();
        next.close();
    }
}

/// It has made a page what that was before the last commit in the log, and the database longer.
#[test]
pub(crate) fn after_a_stock_survivor_took_a_change_back() {
    let (tale, db) = Tale::begun();
    db.ok("INSERT INTO big VALUES ('a')");
    let set = |to: &str| format!("UPDATE big SET v = '{to}'");
    ["b", "c", "d"].into_iter().for_each(|to| db.ok(&set(to)));
    let stock = tale.open_stock();
    db.kill();
    stock.db.execute_batch(&set("c")).unwrap();
    stock.db.execute_batch("CREATE TABLE more(x)").unwrap();
    stock.db.close().unwrap();
    assert!(!tale.machine.exists("/app.db-wal"), "stock SQLite has deleted it");
    let next = tale.open();
    assert_eq!(next.value::<String>("SELECT v FROM big").unwrap(), "c");
    next.close();
}

/// A process dies before its last commit is in the log. That one left the change counter as it was,
/// and a stock connection finds it in `-wal`.
#[test]
pub(crate) fn after_a_stock_survivor_deleted_a_commit_that_was_not_logged() {
    for raised in [false, true] {
        let (tale, db) = Tale::begun();
        db.scribble(8).unwrap();
        db.ok("COMMIT");
        db.restart();
        let other = tale.open();
        if raised {
            // It has not raised the counter yet.
            other.scribble(5).unwrap();
            other.ok("COMMIT");
        }
        let writer = if raised { &other } else { &db };
        for _ in 0..2 {
            writer.scribble(5).unwrap();
            writer.ok("COMMIT");
        }
        let (dies, other) = if raised { (other, db) } else { (db, other) };
        other.kill();
        let stock = tale.open_stock();
        let (log, logged) = (tale.inode("-dashlog"), tale.machine.file_view("/app.db-dashlog"));
        let died = dies.dies(
            false,
            move |operation| {
                let writes = [OperationKind::Write, OperationKind::WriteDurable];
                operation.inode == log && writes.contains(&operation.kind)
            },
            |db| drop(db.scribble(5).and_then(|()| db.run("COMMIT"))),
        );
        assert!(died && tale.machine.file_view("/app.db-dashlog") == logged);
        tale.watch();
        stock.db.close().unwrap();
        tale.done();
        assert!(!tale.machine.exists("/app.db-wal"), "stock SQLite has deleted it");
        tale.survives_all();
        tale.survives(&tale.machine.killed()).unwrap();
    }
}

/// The close was cut off right after the deletion.
#[test]
pub(crate) fn after_a_close_that_was_cut_off() {
    for after in [false, true] {
        let (tale, db) = session();
        let died = db.dies(
            after,
            |operation| {
                operation.kind == OperationKind::Unlink
                    && operation.names.iter().any(|name| name == "app.db-wal")
            },
            |db| drop(db.run("PRAGMA journal_mode=DELETE")),
        );
        assert!(died);
        tale.survives_all();
        tale.survives(&tale.machine.killed()).unwrap();
    }
}
