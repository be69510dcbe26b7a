//! WAL-55: connections that have a database open at the same time have the same `-shm` and the same
//! `-wal`, whatever somebody removes or puts in the place of a name.

use std::ffi::OsStr;
use std::path::Path;

use dash_storage::{Directory, OpenMode, Storage};

use crate::common::{Tale, overwrite, remove, said};

/// What becomes of a file whose connections live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Removed,
    Copied,
}

impl Fate {
    fn befall(self, tale: &Tale, ending: &str) {
        let name = format!("/app.db{ending}");
        let bytes = tale.machine.file_view(&name).unwrap();
        remove(&tale.machine, ending);
        if self == Self::Copied {
            overwrite(&tale.machine, &format!("app.db{ending}"), &bytes);
        }
    }
}

/// Nobody comes in beside who lives.
fn keeps_out(tale: &Tale, what: &str, when: &str) {
    for opening in 0..3 {
        let refused = tale.try_open().err();
        let refused = refused.unwrap_or_else(|| panic!("{when}: opening {opening} joined"));
        assert!(refused.contains(what), "{when}: {refused}");
        assert!(refused.contains("close all connections of app.db there"), "{when}: {refused}");
    }
}

fn has_all(tale: &Tale, when: &str) {
    let db = tale.open();
    assert_eq!(db.content(), tale.acknowledged(), "{when}");
    db.put();
    db.close();
}

/// A connection that has the former one goes on with it, and ends by a close or by a kill.
#[test]
pub(crate) fn where_shm_was_replaced() {
    for fate in [Fate::Removed, Fate::Copied] {
        for (copies, rests, killed) in
            [(false, false, false), (true, false, true), (false, true, true), (true, true, false)]
        {
            let when = format!("{fate:?}, copies {copies}, rests {rests}, killed {killed}");
            let (tale, db) = Tale::begun();
            if copies {
                db.checkpoint("PASSIVE");
            }
            if rests {
                db.ok("PRAGMA rests");
            }
            fate.befall(&tale, "-shm");
            keeps_out(&tale, "app.db-shm was replaced", &when);
            db.put();
            db.put();
            keeps_out(&tale, "app.db-shm was replaced", &when);
            if killed {
                db.kill()
            } else {
                db.close()
            }
            has_all(&tale, &when);
        }
    }
}

/// One that came, and was refused, is let in once the others are gone.
#[test]
pub(crate) fn until_those_who_have_the_former_one_are_gone() {
    let (tale, db) = Tale::begun();
    let waits = tale.opened_only();
    remove(&tale.machine, "-shm");
    waits.query_row("SELECT count(*) FROM t", (), |_| Ok(())).unwrap_err();
    db.put();
    db.close();
    let found: i64 = waits.query_row("SELECT count(*) FROM t", (), |row| row.get(0)).unwrap();
    assert_eq!(found, tale.acknowledged());
}

/// One that only opened, and closes, ends no session of those whose `-shm` it does not find.
#[test]
pub(crate) fn nor_does_one_that_leaves_end_their_session() {
    let (tale, db) = Tale::begun();
    let waits = tale.opened_only();
    remove(&tale.machine, "-shm");
    let flushes = tale.flushes("-wal");
    drop(waits);
    assert_eq!(tale.flushes("-wal"), flushes);
    db.put();
    db.kill();
    has_all(&tale, "one has left");
}

/// One that comes is refused before it has a lock of the database, so that the last one to close is
/// the last one to SQLite, too. Connections that have the former one are told at their next attempt
/// to write, as a kill would take what only that has; and the last close copies all.
#[test]
pub(crate) fn where_wal_was_replaced() {
    for (copies, rests) in [(false, false), (true, false), (false, true), (true, true)] {
        let when = format!("copies {copies}, rests {rests}");
        let (tale, db) = Tale::begun();
        if copies {
            db.checkpoint("PASSIVE");
            db.put();
        }
        if rests {
            db.ok("PRAGMA rests");
            db.put();
        }
        let waits = tale.opened_only();
        Fate::Copied.befall(&tale, "-wal");
        db.put();
        // It holds no lock that would keep the last close from copying.
        waits.query_row("SELECT count(*) FROM t", (), |_| Ok(())).unwrap_err();
        keeps_out(&tale, "app.db-wal was replaced", &when);
        let refused = db.try_put().unwrap_err();
        assert!(refused.contains("app.db-wal was replaced"), "{when}: {refused}");
        keeps_out(&tale, "app.db-wal was replaced", &when);
        assert_eq!(db.content(), tale.acknowledged(), "{when}");
        db.close();
        let found: i64 = waits.query_row("SELECT count(*) FROM t", (), |row| row.get(0)).unwrap();
        assert_eq!(found, tale.acknowledged(), "{when}");
        drop(waits);
        has_all(&tale, &when);
    }
}

/// No session ends while `-wal` is nowhere by its name: behind that it alone would have what the
/// log had.
#[test]
pub(crate) fn nor_does_a_session_end_without_its_wal() {
    for fate in [Fate::Removed, Fate::Copied] {
        let (tale, db) = Tale::begun();
        fate.befall(&tale, "-wal");
        db.put();
        db.ok("PRAGMA rests");
        assert!(tale.machine.exists("/app.db-journal"), "{fate:?}: the session has ended");
        let refused = db.try_put().unwrap_err();
        assert!(refused.contains("app.db-wal was replaced, or removed"), "{fate:?}: {refused}");
        db.kill();
        if fate == Fate::Copied {
            has_all(&tale, "killed");
        } else {
            let refused = tale.try_open().err().unwrap();
            assert!(refused.contains("app.db-wal is missing"), "{refused}");
        }
    }
}

/// At rest nobody is refused for a `-wal` that was made for nobody.
#[test]
pub(crate) fn nor_is_another_one_left() {
    let (tale, db) = Tale::begun();
    db.ok("PRAGMA rests");
    remove(&tale.machine, "-wal");
    keeps_out(&tale, "app.db-wal was replaced, or removed", "at rest");
    assert!(!tale.machine.exists("/app.db-wal"));
    db.close();
    has_all(&tale, "at rest");
}

/// Nor is anything recovered beside a stock program that goes on with either of them.
#[test]
pub(crate) fn nor_beside_a_stock_survivor_that_has_the_former_one() {
    for ending in ["-shm", "-wal"] {
        for fate in [Fate::Removed, Fate::Copied] {
            for opened in [false, true] {
                if (ending, fate) == ("-wal", Fate::Removed) {
                    // WAL-16 has it.
                    continue;
                }
                let when = format!("{ending}, {fate:?}, opened {opened}");
                let (tale, db) = Tale::begun();
                let waits = opened.then(|| tale.opened_only());
                let stock = tale.open_stock();
                db.kill();
                fate.befall(&tale, ending);
                if let Some(waits) = &waits {
                    let refused = waits.query_row("SELECT count(*) FROM t", (), |_| Ok(()));
                    let refused = said(&refused.unwrap_err());
                    assert!(refused.contains("another file than it was"), "{when}: {refused}");
                }
                for _ in 0..2 {
                    let refused = tale.try_open().err();
                    let refused = refused.unwrap_or_else(|| panic!("{when}: opened"));
                    assert!(refused.contains("another file than it was"), "{when}: {refused}");
                    assert!(refused.contains("end it first"), "{when}: {refused}");
                }
                tale.machine.kill(&stock.process);
                drop((stock, waits));
                has_all(&tale, &when);
            }
        }
    }
}

/// The last one to close removes both, and the next one makes others, while a connection stays that
/// has only opened; or all leave WAL mode, and one enters it again.
#[test]
pub(crate) fn but_nobody_where_they_were_closed_meanwhile() {
    for leaves in [false, true] {
        let (tale, db) = Tale::begun();
        let waits = tale.opened_only();
        let before = ["-shm", "-wal"].map(|ending| tale.inode(ending));
        if leaves {
            db.ok("PRAGMA journal_mode=DELETE");
            take_numbers(&tale);
            db.ok("PRAGMA journal_mode=WAL");
            db.put();
        } else {
            db.close();
            take_numbers(&tale);
            tale.open().put();
        }
        let db = tale.open();
        db.put();
        for (ending, before) in ["-shm", "-wal"].into_iter().zip(before) {
            assert_ne!(tale.inode(ending), before, "{ending}");
        }
        let found = waits.query_row("SELECT count(*) FROM t", (), |row| row.get(0));
        assert_eq!(found, Ok(tale.acknowledged()), "leaves {leaves}");
        let other = tale.open();
        other.put();
        db.put();
        other.close();
        has_all(&tale, "one has gone");
    }
}

/// Files that are made from here on get other numbers than those that were removed.
fn take_numbers(tale: &Tale) {
    let folder = tale.machine.process().open_directory(Path::new("/")).unwrap();
    for number in 0..8 {
        let created = OpenMode::Create { permissions: 0o644 };
        folder.open(OsStr::new(&format!("other-{number}")), created).unwrap();
    }
}
