//! `-wal` and the wal-index in the memory of one process: a kill takes from `-wal` what a power
//! loss may take, and the log has it (WAL-35 to WAL-38).

use dash_simulated::{Effect, Fault, OperationKind};
use dash_torture::sim::Stock;

use crate::common::{DB, Fate, Tale, changes, content, is_fenced};

/// What is left when the process is killed now, and when the power goes after that.
fn survives_a_kill(tale: &Tale) {
    let killed = tale.machine.killed();
    tale.survives(&killed).unwrap_or_else(|what| panic!("killed: {what}"));
    let lost = tale.machine.killed().power_loss(&mut Fate::nothing());
    tale.survives(&lost).unwrap_or_else(|what| panic!("killed, power lost: {what}"));
}

/// What the disk is given out in.
const BLOCK: usize = 4096;

/// What has room in memory.
const IN_MEMORY: usize = 20 << 10;

fn size(tale: &Tale, ending: &str) -> usize {
    tale.machine.file_view(format!("{DB}{ending}")).map_or(0, |bytes| bytes.len())
}

/// Commits write no frame, and neither a kill nor a power loss takes one of them.
#[test]
pub(crate) fn and_a_kill_takes_no_commit() {
    let (tale, db) = Tale::begun_alone();
    let before = tale.writes("-wal");
    for round in 0..10 {
        db.put();
        survives_a_kill(&tale);
        tale.survives_all();
        // Later ones are behind what has room in memory.
        assert!(round > 2 || tale.writes("-wal") == before);
    }
    let number = db.content();
    db.kill();
    assert_eq!(tale.open().content(), number);
}

/// A kill takes none of those either that a power loss may take.
#[test]
pub(crate) fn nor_one_that_was_not_flushed() {
    for level in ["NORMAL", "OFF"] {
        let (tale, db) = Tale::begun_alone();
        db.synchronous(level);
        for _ in 0..5 {
            db.put();
            tale.with(db.content()).all_counts();
            let killed = tale.machine.killed();
            assert_eq!(tale.after(killed).open().content(), db.content(), "{level}");
        }
    }
}

/// Whatever is lost at any step: over checkpoints, headers, frames that are behind what has room in
/// memory, and the end.
#[test]
pub(crate) fn whatever_is_lost_at_any_step() {
    let tale = Tale::alone();
    tale.watch();
    session(&tale);
    tale.done();
    tale.survives_all();
}

/// And if the process is killed at any.
#[test]
pub(crate) fn whenever_it_is_killed() {
    let tale = Tale::alone();
    let watched = tale.clone();
    tale.machine.watch(move |machine, operation| {
        if changes(operation.kind) {
            let found = watched.survives(&machine.killed());
            watched
                .note(found.map(drop).map_err(|what| format!("before {}: {what}", operation.kind)));
        }
    });
    session(&tale);
    tale.done();
    tale.survives_all();
}

fn session(tale: &Tale) {
    let db = tale.open();
    for _ in 0..12 {
        db.put();
    }
    db.restart();
    db.put();
    db.scribble(60).unwrap();
    db.ok("COMMIT");
    for _ in 0..3 {
        db.put();
    }
    db.checkpoint("PASSIVE");
    db.put();
    db.close();
}

/// A transaction that is too large for a record is written back, and so is what came before it.
#[test]
pub(crate) fn and_what_the_log_has_no_room_for_is_written_back() {
    let (tale, db) = Tale::begun_alone();
    db.put();
    let before = tale.writes("-wal");
    db.scribble(60).unwrap();
    db.ok("COMMIT");
    assert!(tale.writes("-wal") > before);
    db.put();
    survives_a_kill(&tale);
    tale.survives_all();
}

/// Where what is written over takes space anew a flush may find none. The commit is seen, and
/// durable with the next one that finds space; what came before stays so (WAL-43).
#[test]
pub(crate) fn and_a_flush_that_finds_no_space_is_made_later() {
    for level in ["FULL", "NORMAL"] {
        let (tale, db) = Tale::begun_alone();
        db.synchronous(level);
        for ending in ["-wal", "-dashlog"] {
            let full = Fault::new(Effect::Error(libc::ENOSPC)).on(OperationKind::Write);
            tale.machine.fail(full.of_inode(tale.inode(ending)).forever());
        }
        for _ in 0..2 {
            let number = db.content();
            let told = db.try_put().unwrap_err();
            assert!(told.contains("durable with the next one that finds space"), "{told}");
            assert_eq!(db.content(), number + 1);
            tale.survives_all();
            tale.survives(&tale.machine.killed()).unwrap();
        }
        tale.machine.stop_failing();
        db.put();
        tale.all_counts();
        survives_a_kill(&tale);
        if level == "FULL" {
            tale.survives_all();
        }
        db.put();
        survives_a_kill(&tale);
        db.close();
        tale.survives_all();
    }
}

/// The header of a generation is on the device before its frames are in the log.
#[test]
pub(crate) fn its_header_is_on_the_device() {
    let (tale, db) = Tale::begun_alone();
    for _ in 0..3 {
        db.restart();
        db.put();
        survives_a_kill(&tale);
        tale.survives_all();
    }
}

/// A second process is refused, and says who has it; a second connection is not.
#[test]
pub(crate) fn and_no_other_one_joins() {
    let (tale, db) = Tale::begun_alone();
    for other in [tale.clone(), tale.untold()] {
        let refused = other.try_open().map(drop).unwrap_err();
        assert!(refused.contains("dash_wal=memory"), "{refused}");
        assert!(refused.contains(&std::process::id().to_string()), "{refused}");
    }
    let another = db.another();
    another.put();
    db.put();
    assert_eq!(another.content(), db.content());
    another.close();
    db.close();
    assert_eq!(tale.untold().open().content(), tale.tried());
}

/// Who has it in a file keeps it there.
#[test]
pub(crate) fn nor_is_it_begun_beside_others() {
    let (tale, db) = Tale::begun();
    let refused = Tale::alone_on(&tale).try_open().map(drop).unwrap_err();
    assert!(refused.contains("in a file"), "{refused}");
    db.put();
}

/// Stock SQLite is refused while the memory is ahead: whoever comes, and whoever was there before,
/// also once the process was killed in the middle of a checkpoint. Then the engine recovers, and it
/// goes on (WAL-36).
#[test]
pub(crate) fn stock_sqlite_sees_nothing_of_it() {
    let tale = Tale::alone();
    let stock = tale.open_stock();
    let before = content(&stock.db).unwrap();
    let db = tale.open();
    for _ in 0..5 {
        db.put();
    }
    let refused = || {
        let seen = content(&stock.db);
        assert!(seen.is_err(), "{seen:?}, and it was {before}");
        let seen = Stock::open_sharing(tale.machine.process()).and_then(|stock| stock.checked());
        assert!(seen.is_err(), "{:?}", seen.map(drop));
        tale.put_stock(&stock).unwrap_err();
    };
    refused();
    let database = tale.inode("");
    let died = db.dies(
        true,
        move |operation| operation.kind == OperationKind::Write && operation.inode == database,
        |db| drop(db.run("PRAGMA wal_checkpoint(PASSIVE)")),
    );
    assert!(died, "a checkpoint writes the database");
    assert!(is_fenced(&tale.machine));
    refused();
    let next = tale.untold().open();
    assert_eq!(next.content(), tale.tried());
    assert_eq!(content(&stock.db).unwrap(), tale.tried());
    next.put();
    next.close();
    assert_eq!(content(&stock.db).unwrap(), tale.tried());
}

/// Nor is one that has looked for a hot journal while the process lived, and locks `-shm` when it
/// is dead: it makes an index of its own, of the file of `-wal` (WAL-45). It may write, too, and
/// close, which deletes `-wal`.
#[test]
pub(crate) fn nor_does_one_that_is_opening_it_at_a_kill() {
    let mut number = 0;
    while stock_opens_at_a_kill(number) {
        number += 1;
    }
    assert!(number > 10, "stock SQLite opens a database in {number} calls");
}

/// The process dies before this operation of a stock process; whether it came to that.
fn stock_opens_at_a_kill(number: usize) -> bool {
    let (tale, db) = Tale::begun_alone();
    for _ in 0..4 {
        db.put();
    }
    let committed = tale.acknowledged();
    let came = db.dies_at(false, number, |_| {
        let opened = Stock::open_sharing(tale.machine.process());
        if let Ok(stock) = opened {
            let seen = content(&stock.db);
            assert!(seen.is_err(), "killed before its operation {number}, it is shown {seen:?}");
            tale.put_stock(&stock).unwrap_err();
            drop(
                stock
                    .db
                    .execute_batch("PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode=DELETE"),
            );
            drop(stock.db.close());
        }
    });
    let next = tale.open();
    assert_eq!(next.content(), committed, "killed before operation {number} of stock SQLite");
    next.put();
    next.close();
    came
}

/// A stock process in the middle of reading is waited for: a checkpoint would take its snapshot
/// away.
#[test]
pub(crate) fn a_stock_reader_is_waited_for() {
    let tale = Tale::new();
    let db = tale.open();
    db.put();
    db.close();
    let stock = tale.open_stock();
    stock.db.execute_batch("BEGIN; SELECT n FROM u").unwrap();
    let tale = Tale::alone_on(&tale);
    let refused = tale.try_open().map(drop).unwrap_err();
    assert!(refused.contains("reads it"), "{refused}");
    stock.db.execute_batch("COMMIT").unwrap();
    tale.open().put();
}

/// It is a plain database at rest, also where `-wal` is to stay.
#[test]
pub(crate) fn it_is_plain_at_rest() {
    for keeps in [false, true] {
        let (tale, db) = Tale::begun_alone();
        db.ok(&format!("PRAGMA keeps_log={}", u8::from(keeps)));
        let another = db.another();
        another.ok(&format!("PRAGMA keeps_log={}", u8::from(keeps)));
        for _ in 0..4 {
            db.put();
            another.put();
        }
        another.close();
        db.put();
        db.close();
        assert_eq!(size(&tale, "-wal") > 0, keeps);
        let after = tale.machine.power_loss(&mut Fate::nothing());
        let stock = Stock::open_sharing(after.process()).unwrap();
        assert_eq!(content(&stock.db).unwrap(), tale.tried());
    }
}

/// It comes to rest as from files: what it holds is in `-wal`'s file by then.
#[test]
pub(crate) fn and_comes_to_rest() {
    let (tale, db) = Tale::begun_alone();
    for _ in 0..4 {
        db.put();
    }
    db.ok("PRAGMA rests");
    assert!(!is_fenced(&tale.machine));
    let stock = Stock::open_sharing(tale.machine.killed().process()).unwrap();
    assert_eq!(content(&stock.db).unwrap(), tale.tried());
    db.put();
    survives_a_kill(&tale);
    tale.survives_all();
    // Also where `-wal` has no header then: the next one is of no session.
    db.checkpoint("TRUNCATE");
    db.ok("PRAGMA rests");
    db.put();
    tale.survives_all();
}

/// The last connection that has the index leaves nothing in memory alone, though others have the
/// database open: a stock SQLite that was there before goes on with `-wal`'s file (WAL-37).
#[test]
pub(crate) fn nobody_leaves_it_behind() {
    let tale = Tale::alone();
    let stock = tale.open_stock();
    let db = tale.open();
    let idle = db.another();
    idle.ok("PRAGMA keeps_log=1");
    db.ok("PRAGMA keeps_log=1");
    for _ in 0..3 {
        db.put();
    }
    let read_nothing = db.opened_only();
    idle.close();
    db.close();
    assert_eq!(content(&stock.db).unwrap(), tale.tried());
    drop(read_nothing);
}

/// WAL-42: a full disk is told of where a transaction writes, and what was committed before can be
/// recovered and read there.
#[test]
pub(crate) fn and_a_full_disk_takes_no_commit() {
    for spare in 0..24 {
        let (tale, db) = Tale::begun_alone();
        let note = "-journal/open-this-database-through-dash-first.txt";
        let files = ["", "-shm", "-dash", "-dashlog", note];
        let used = files.iter().map(|file| size(&tale, file).next_multiple_of(BLOCK));
        let used = used.sum::<usize>() + IN_MEMORY;
        tale.machine.set_capacity(Some((used + spare * BLOCK) as u64));
        let rows = |db: &crate::common::Db| db.value::<i64>("SELECT count(*) FROM big").unwrap();
        let (before, mut refused) = (rows(&db), 0);
        for round in 0..12 {
            let done = db.run("BEGIN IMMEDIATE").and_then(|()| {
                db.run(&format!("INSERT INTO big VALUES (randomblob({}))", 100 * round))?;
                db.run("COMMIT")
            });
            if let Err(error) = done {
                let is_full = error.contains("is full") || error.contains("No space left");
                assert!(is_full && !error.contains("not known"), "{spare}, {round}: {error}");
                refused += 1;
                drop(db.run("ROLLBACK"));
            }
        }
        let number = rows(&db);
        assert_eq!(number, before + 12 - refused, "{spare}: what was refused is not there");
        db.kill();
        let next = tale.open();
        assert_eq!(rows(&next), number, "{spare}");
        tale.machine.set_capacity(None);
        next.put();
    }
}
