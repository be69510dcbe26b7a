//! WAL-40: the last one to close copies all commits into the database, and deletes `-wal`. To
//! SQLite it is no failure if a step of that finds somebody in the way. Then `-wal` stays.

use dash_torture::sim::{Saved, Stock};

use crate::common::{DB, Db, Fate, Tale, content, is_fenced};

/// Where a checkpoint is cut short: at its barrier, at its first page, behind that.
const STEPS: [&str; 3] = ["flush 1", "write 1", "write 2"];

fn is_there(tale: &Tale) -> bool {
    tale.machine.exists("/app.db-wal")
}

/// The next checkpoint is cut short, and the connection closes.
fn close_at(db: Db, step: &str) {
    db.ok(&format!("PRAGMA busy='{step}'"));
    db.close();
    let said = dash_ffi::last_error().unwrap_or_default();
    assert!(said.contains("app.db-wal has commits that are not in app.db"), "{said}");
}

/// All is still there, for stock SQLite, too, and the next close goes as ever.
fn is_kept(tale: &Tale) {
    assert!(is_there(tale), "-wal has commits");
    assert!(!is_fenced(&tale.machine));
    tale.survives_all();
    tale.survives(&tale.machine.killed()).unwrap();
    let after = tale.machine.power_loss(&mut Fate::nothing());
    let stock = Stock::open_sharing(after.process()).unwrap();
    assert_eq!(content(&stock.db).unwrap(), tale.tried());
    let next = tale.open();
    next.put();
    next.put();
    next.close();
    assert!(!is_there(tale));
    tale.survives_all();
}

#[test]
pub(crate) fn by_the_last_one_to_close() {
    for step in STEPS {
        let (tale, db) = Tale::begun();
        db.put();
        db.checkpoint("PASSIVE");
        db.put();
        close_at(db, step);
        is_kept(&tale);
    }
}

/// Before the log is in use, and in NORMAL.
#[test]
pub(crate) fn nor_without_the_log() {
    for level in ["FULL", "NORMAL"] {
        let tale = Tale::new();
        let db = tale.open();
        db.synchronous(level);
        db.put();
        close_at(db, "write 1");
        tale.all_counts();
        is_kept(&tale);
    }
}

/// Of which SQLite has the wal-index on its heap.
#[test]
pub(crate) fn nor_by_one_that_has_the_database_for_itself() {
    for step in STEPS {
        for late in [false, true] {
            let tale = Tale::new();
            let db = tale.open_exclusive();
            db.put();
            db.checkpoint("PASSIVE");
            if late {
                db.restart();
                db.checkpoint("TRUNCATE");
            }
            db.put();
            close_at(db, step);
            is_kept(&tale);
        }
    }
}

/// By such a one, which has committed nothing itself, or what was rolled back.
#[test]
pub(crate) fn nor_what_was_there_before() {
    for step in STEPS {
        for scribbles in [false, true] {
            let (tale, db) = Tale::begun();
            close_at(db, "flush 1");
            let db = tale.open_exclusive();
            if scribbles {
                db.scribble(60).unwrap();
                db.ok("ROLLBACK");
            }
            close_at(db, step);
            is_kept(&tale);
        }
    }
}

/// Where `-wal` is to stay, and to be empty.
#[test]
pub(crate) fn nor_is_it_emptied() {
    for step in STEPS {
        for exclusive in [false, true] {
            let tale = Tale::new();
            let db = if exclusive { tale.open_exclusive() } else { tale.open() };
            db.ok("PRAGMA keeps_log=1; PRAGMA journal_size_limit=0");
            db.put();
            db.put();
            close_at(db, step);
            is_kept(&tale);
        }
    }
}

/// `PRAGMA journal_mode` fails, and the connection goes on; so does everybody else.
#[test]
pub(crate) fn nor_is_wal_mode_left() {
    for step in STEPS {
        for exclusive in [false, true] {
            let (tale, db) = Tale::begun();
            let db = if exclusive {
                db.close();
                tale.open_exclusive()
            } else {
                db
            };
            db.put();
            db.ok(&format!("PRAGMA busy='{step}'"));
            let left = db.value::<String>("PRAGMA journal_mode=DELETE").unwrap_err();
            assert!(left.contains("the database stays in WAL mode"), "{left}");
            assert_eq!(db.value::<String>("PRAGMA journal_mode").unwrap(), "wal");
            tale.survives_all();
            db.put();
            if !exclusive {
                let other = tale.open();
                other.put();
                assert_eq!(db.content(), other.content());
            }
            assert_eq!(db.value::<String>("PRAGMA journal_mode=DELETE").unwrap(), "delete");
            assert!(!is_there(&tale));
            db.synchronous("EXTRA");
            db.put();
            tale.survives_all();
        }
    }
}

/// What is in the memory of the process is in the file then.
#[test]
pub(crate) fn nor_from_memory() {
    for step in STEPS {
        let (tale, db) = Tale::begun_alone();
        db.put();
        close_at(db, step);
        is_kept(&tale);

        let (tale, db) = Tale::begun_alone();
        let idle = db.opened_only();
        db.put();
        close_at(db, step);
        tale.survives_all();
        let stock = Stock::open_sharing(tale.machine.killed().process()).unwrap();
        assert_eq!(content(&stock.db), Ok(tale.tried()), "no session is left to who has not read");
        drop(idle);
        is_kept(&tale);

        let (tale, db) = Tale::begun_alone();
        db.ok(&format!("PRAGMA busy='{step}'"));
        db.value::<String>("PRAGMA journal_mode=DELETE").unwrap_err();
        db.put();
        tale.survives_all();
        tale.survives(&tale.machine.killed()).unwrap();
        db.close();
        assert!(!is_there(&tale));
    }
}

/// One that holds no commit, or none that is not copied, goes as ever.
#[test]
pub(crate) fn but_all_else_goes() {
    for exclusive in [false, true] {
        for act in [nothing, rolls_back, copies, empties, begins_anew, in_off, goes_on] {
            for left in [none, by_stock, by_a_kill] {
                let tale = Tale::new();
                left(&tale);
                let db = if exclusive { tale.open_exclusive() } else { tale.open() };
                act(&db);
                db.close();
                assert!(!is_there(&tale), "exclusive {exclusive}");
                assert_eq!(tale.open().content(), tale.tried());
            }
        }
    }
}

/// No `-wal` was there before.
fn none(_: &Tale) {}

fn by_stock(tale: &Tale) {
    let stock = tale.open_stock();
    tale.put_stock(&stock).unwrap();
    let saved = Saved::take(&tale.machine, DB);
    tale.machine.kill(&stock.process);
    drop(stock);
    saved.restore();
}

fn by_a_kill(tale: &Tale) {
    let db = tale.open();
    for _ in 0..3 {
        db.put();
    }
    db.kill();
}

fn nothing(db: &Db) {
    db.content();
}

fn rolls_back(db: &Db) {
    db.scribble(60).unwrap();
    db.ok("ROLLBACK");
}

fn copies(db: &Db) {
    db.put();
    rolls_back(db);
    db.checkpoint("PASSIVE");
    rolls_back(db);
}

fn empties(db: &Db) {
    db.put();
    db.checkpoint("TRUNCATE");
}

fn begins_anew(db: &Db) {
    db.put();
    db.restart();
}

fn in_off(db: &Db) {
    db.synchronous("OFF");
    copies(db);
    db.put();
}

/// A checkpoint that was cut short is made good by the one at the close.
fn goes_on(db: &Db) {
    db.put();
    db.ok("PRAGMA busy='write 2'; PRAGMA wal_checkpoint(PASSIVE)");
    db.put();
}
