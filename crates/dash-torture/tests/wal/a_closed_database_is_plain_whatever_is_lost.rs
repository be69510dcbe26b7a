//! WAL-6: how a generation ends. What it held is durable in the database before the log says that
//! `-wal` is void, and that before `-wal` goes, and that before stock SQLite may come in. What
//! stays is flushed.

use dash_simulated::{Metadata, OperationKind};

use crate::common::{Fate, Left, Tale, changes, is_fenced};

/// A session with all sorts of frames in it.
fn session(level: &str) -> (Tale, crate::common::Db) {
    let (tale, db) = Tale::begun();
    db.synchronous(level);
    db.put();
    db.checkpoint("PASSIVE");
    db.put();
    db.restart();
    db.put();
    (tale, db)
}

#[test]
pub(crate) fn when_the_last_one_closes() {
    for level in ["FULL", "NORMAL", "OFF"] {
        let (tale, db) = session(level);
        let before = tale.acknowledged();
        tale.watch();
        db.close();
        tale.done();
        assert!(before <= tale.tried());
        tale.all_counts();
        tale.survives_all();
        assert!(!is_fenced(&tale.machine), "{level}: the fence is left behind");
        assert!(!tale.machine.exists("/app.db-wal"), "{level}: -wal is left behind");
    }
}

/// The beginning of `-wal` is durable, and older than what is in the database.
#[test]
pub(crate) fn when_a_part_of_wal_would_come_back() {
    let (tale, db) = Tale::begun();
    db.put();
    db.put();
    tale.watch();
    db.close();
    tale.done();
    tale.survives_all();
}

#[test]
pub(crate) fn when_it_is_closed_by_a_fresh_connection() {
    let (tale, db) = session("FULL");
    let last = tale.open();
    db.close();
    tale.watch();
    last.close();
    tale.done();
    tale.survives_all();
}

#[test]
pub(crate) fn when_a_checkpoint_truncates_it() {
    for level in ["FULL", "NORMAL", "OFF"] {
        let (tale, db) = session(level);
        tale.watch();
        db.checkpoint("TRUNCATE");
        tale.all_counts();
        tale.survives_all();
        db.put();
        db.put();
        db.checkpoint("TRUNCATE");
        db.close();
        tale.done();
        tale.all_counts();
        tale.survives_all();
    }
}

/// `SQLITE_FCNTL_PERSIST_WAL`: it is flushed instead.
#[test]
pub(crate) fn when_it_is_to_stay() {
    for limit in [-1, 0] {
        for level in ["FULL", "NORMAL", "OFF"] {
            let (tale, db) = session(level);
            db.ok(&format!("PRAGMA keeps_log=1; PRAGMA journal_size_limit={limit}"));
            tale.watch();
            db.close();
            tale.done();
            tale.all_counts();
            tale.survives_all();
            assert!(tale.machine.exists("/app.db-wal"), "it was to stay");
            let next = tale.open();
            tale.watch();
            next.put();
            next.put();
            tale.done();
            tale.survives_all();
        }
    }
}

/// A stock reader has the database open, so that SQLite leaves `-wal` where it is.
#[test]
pub(crate) fn when_a_stock_reader_keeps_it() {
    let (tale, db) = session("FULL");
    let stock = tale.open_stock();
    tale.watch();
    db.close();
    tale.done();
    tale.survives_all();
    assert!(tale.machine.exists("/app.db-wal"), "the reader needs it");
    assert!(!is_fenced(&tale.machine));
    // It is a plain database now.
    tale.watch();
    tale.put_stock(&stock).unwrap();
    stock.db.close().unwrap();
    tale.done();
    tale.survives_all();
}

/// `journal_size_limit` cuts `-wal` within the first commit of a generation, which goes on.
#[test]
pub(crate) fn not_by_a_limit_in_its_first_commit() {
    let (tale, db) = Tale::begun();
    db.ok("PRAGMA journal_size_limit=4000");
    for _ in 0..3 {
        for _ in 0..6 {
            db.put();
        }
        let long = tale.machine.file_view("/app.db-wal").unwrap().len();
        tale.watch();
        db.restart();
        tale.survives_all();
        db.put();
        tale.done();
        tale.survives_all();
        assert!(tale.machine.file_view("/app.db-wal").unwrap().len() < long, "it was cut");
    }
}

/// What stock SQLite writes after that may be what the log had once, and is not taken for what
/// somebody left behind by removing `-wal`.
#[test]
pub(crate) fn and_an_older_value_may_come_back() {
    let (tale, db) = Tale::begun();
    db.ok("INSERT INTO big VALUES(7001)");
    db.ok("UPDATE big SET v = 7002");
    db.close();
    // The log's own flushes count, and nothing else of it.
    let fate = Fate { names: Left::Newest, db: Left::Newest, ..Fate::nothing() };
    let tale = tale.after(tale.machine.power_loss(&mut fate.of(&tale.machine)));
    let stock = tale.open_stock();
    stock.db.execute_batch("UPDATE big SET v = 7001").unwrap();
    stock.db.close().unwrap();
    tale.machine.write_back();
    tale.survives_all();
}

/// A session of one commit, which is too large for the log.
fn large() -> (Tale, crate::common::Db) {
    let tale = Tale::new();
    let db = tale.open();
    db.scribble(400).unwrap();
    db.ok("COMMIT");
    (tale, db)
}

/// On a file system without a journal the inode may be back after a power loss, under a `-wal` that
/// was made since. Where there is a journal, and the log was not used, that can't be.
#[test]
pub(crate) fn and_nothing_is_in_what_is_deleted() {
    for (metadata, used, emptied) in [
        (Metadata::Journaled, true, true),
        (Metadata::OneSector, true, true),
        (Metadata::OneSector, false, true),
        (Metadata::Journaled, false, false),
    ] {
        let (tale, db) = if used { Tale::begun() } else { large() };
        tale.machine.set_metadata(metadata);
        let wal = tale.inode("-wal");
        db.close();
        let entries = tale.machine.journal().entries;
        let deleted = entries.iter().rposition(|entry| {
            let names = &entry.operation.names;
            entry.operation.kind == OperationKind::Unlink
                && names.iter().any(|name| name == "app.db-wal")
        });
        let before = entries[..deleted.unwrap()].iter().map(|entry| &entry.operation);
        let before = before.filter(|operation| operation.inode == wal && changes(operation.kind));
        let mut last = before.map(|operation| (operation.kind, operation.range.clone())).rev();
        let last = [last.next(), last.next()];
        let cut = [(OperationKind::Flush, None), (OperationKind::SetLen, Some(0..0))].map(Some);
        assert_eq!(last == cut, emptied, "{metadata:?}, used {used}: {last:?}");
    }
}

/// A process is killed anywhere in the close; then the power goes.
#[test]
pub(crate) fn where_the_close_is_cut_off() {
    for after in [false, true] {
        for step in 0.. {
            let (tale, db) = session("FULL");
            let mut seen = 0;
            let died = db.dies(
                after,
                move |operation| {
                    seen += usize::from(crate::common::changes(operation.kind));
                    seen == step + 1
                },
                |db| drop(db.run("PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode=DELETE")),
            );
            tale.survives_all();
            let next = tale.after(tale.machine.killed());
            next.survives(&next.machine).unwrap();
            // What was deleted may come back once more, if nobody made that durable.
            let next = tale.after(tale.machine.killed());
            next.open().kill();
            next.survives_all();
            if !died {
                break;
            }
        }
    }
}
