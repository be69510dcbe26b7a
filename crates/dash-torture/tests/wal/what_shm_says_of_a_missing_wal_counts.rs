//! WAL-16: what `-shm` says of checkpoints counts before the pages do, for as long as the log is
//! not closed. A `-wal` that is missing may have held commits that are nowhere else.

use std::ffi::OsStr;
use std::path::Path;

use dash_simulated::OperationKind;
use dash_storage::{Directory, OpenMode, Storage};
use dash_wal::{Choice, recover};

use crate::common::{DB, Db, Tale, overwrite, remove};

/// A reader keeps what comes from being copied; and all are killed, and `-wal` is removed.
fn without_wal_after(tale: &Tale, db: Db, commits: impl Fn(&Db)) {
    let reader = tale.open();
    reader.ok("BEGIN; SELECT * FROM big");
    db.checkpoint("PASSIVE");
    commits(&db);
    db.kill();
    reader.kill();
    remove(&tale.machine, "-wal");
}

/// That it was refused once changes nothing.
fn stays_refused(tale: &Tale, when: &str) {
    for opening in 0..3 {
        let refused = tale.try_open().err();
        let refused = refused.unwrap_or_else(|| panic!("{when}: opening {opening} took it"));
        assert!(refused.contains("app.db-wal is missing"), "{when}: {refused}");
    }
}

/// All pages are as in the log, and the last commit was in `-wal` alone.
#[test]
pub(crate) fn where_no_page_of_the_log_is_missing() {
    let (tale, db) = Tale::begun();
    db.ok("INSERT INTO big VALUES ('a')");
    db.ok("UPDATE big SET v = 'b'");
    without_wal_after(&tale, db, |db| {
        db.synchronous("NORMAL");
        db.ok("UPDATE big SET v = 'c'");
    });
    stays_refused(&tale, "a commit in NORMAL");
}

/// The header in the database is newer than any that the log has: the first commit came into
/// `-wal` before the log was begun.
#[test]
pub(crate) fn where_the_header_is_newer_than_the_logs() {
    for commits in [1, 3] {
        let tale = Tale::new();
        let db = tale.open();
        db.ok("CREATE TABLE first(x)");
        for to in ["b", "c", "d"] {
            db.ok(&format!("INSERT INTO big VALUES ('{to}')"));
        }
        without_wal_after(&tale, db, |db| {
            for number in 0..commits {
                db.ok(&format!("UPDATE big SET v = '{number}'"));
            }
        });
        stays_refused(&tale, &format!("{commits} commits"));
    }
}

/// Statements carry the last commits of the log, and what they made is in the database.
#[test]
pub(crate) fn where_statements_carry_commits() {
    let (tale, db) = Tale::begun();
    db.ok("PRAGMA carries=1");
    db.put();
    db.put();
    without_wal_after(&tale, db, |db| {
        db.ok("PRAGMA carries=0");
        db.synchronous("NORMAL");
        db.ok("INSERT INTO big VALUES ('a')");
    });
    stays_refused(&tale, "statements");
}

/// A connection that had only opened finds out first what was left.
#[test]
pub(crate) fn also_to_who_had_only_opened() {
    for empties in [false, true] {
        let (tale, db) = Tale::begun();
        db.ok("INSERT INTO big VALUES ('a')");
        db.ok("UPDATE big SET v = 'b'");
        let waits = tale.opened_only();
        without_wal_after(&tale, db, |db| {
            db.synchronous("NORMAL");
            db.ok("UPDATE big SET v = 'c'");
        });
        if empties {
            let folder = tale.machine.process().open_directory(Path::new("/")).unwrap();
            let created = OpenMode::Create { permissions: 0o644 };
            folder.open(OsStr::new("app.db-wal"), created).unwrap();
        }
        for _ in 0..2 {
            waits.query_row("SELECT count(*) FROM t", (), |_| Ok(())).unwrap_err();
        }
        drop(waits);
        stays_refused(&tale, "one had opened it");
    }
}

/// What one has found that had only opened is no matter of later sessions.
#[test]
pub(crate) fn nor_does_an_older_time_of_the_log() {
    let (tale, db) = Tale::begun();
    let waits = tale.opened_only();
    db.ok("INSERT INTO big VALUES ('a')");
    db.kill();
    waits.execute_batch("UPDATE big SET v = 'b'; PRAGMA wal_checkpoint").unwrap();
    let db = tale.open();
    db.ok("UPDATE big SET v = 'c'");
    db.ok("UPDATE big SET v = 'd'");
    drop(waits);
    db.kill();
    remove(&tale.machine, "-wal");
    remove(&tale.machine, "-shm");
    stays_refused(&tale, "the log was written since");
}

/// Without the frames before its first one a log makes no database.
#[test]
pub(crate) fn a_log_is_kept_behind_no_gap() {
    let tale = Tale::new();
    let db = tale.open();
    for _ in 0..4 {
        db.put();
    }
    db.kill();
    remove(&tale.machine, "-wal");
    stays_refused(&tale, "a gap");
    let kept = recover(&tale.machine.process(), Path::new(DB), Choice::Keep).unwrap_err();
    assert!(kept.to_string().contains("app.db-wal alone held"), "{kept}");
    recover(&tale.machine.process(), Path::new(DB), Choice::Discard).unwrap();
    drop(tale.open());
}

/// A database of the same header that was put in its place is another one: somebody has written it
/// since.
#[test]
pub(crate) fn nor_on_top_of_a_sister() {
    let (tale, db) = Tale::begun();
    db.restart();
    let file = tale.machine.file_view(DB).unwrap();
    db.put();
    db.ok("CREATE TABLE another(x)");
    db.kill();
    remove(&tale.machine, "-wal");
    overwrite(&tale.machine, "app.db", &file);
    let refused = tale.try_open().err().unwrap();
    assert!(refused.contains("don't belong to app.db"), "{refused}");
}

/// A stock survivor has copied all, and cuts `-wal` to nothing and dies, or closes; and before that
/// openers died, wherever they were.
#[test]
pub(crate) fn also_after_openers_that_were_killed() {
    let kinds = &[
        OperationKind::Open,
        OperationKind::Lock,
        OperationKind::SetLen,
        OperationKind::Write,
        OperationKind::Flush,
    ];
    for at in 0..400_usize {
        let (closes, at) = (at % 2 == 1, at / 2);
        let (tale, db) = Tale::begun();
        db.ok("INSERT INTO big VALUES ('a')");
        db.checkpoint("TRUNCATE");
        ["b", "c", "d"].into_iter().for_each(|to| db.ok(&format!("UPDATE big SET v = '{to}'")));
        let stock = tale.open_stock();
        db.kill();
        stock.db.execute_batch("UPDATE big SET v = 'e'").unwrap();
        let mode = if closes { "RESTART" } else { "TRUNCATE" };
        stock.db.execute_batch(&format!("PRAGMA wal_checkpoint({mode})")).unwrap();
        if !closes {
            tale.machine.kill(&stock.process);
        }
        let killed = tale.open_killed(at, kinds);
        drop(stock);
        let next =
            tale.try_open().unwrap_or_else(|why| panic!("closes {closes}, killed at {at}: {why}"));
        assert_eq!(next.value::<String>("SELECT v FROM big").unwrap(), "e");
        if !killed {
            assert!(at > 20, "{at}");
            return;
        }
    }
    panic!("it never came to its end");
}

/// Nothing was copied since the generation began, so the header is one that the log knows: a person
/// can have the log kept on top of it, and has all commits.
#[test]
pub(crate) fn a_log_is_of_a_database_into_which_nothing_was_copied() {
    for copies in [false, true] {
        let (tale, db) = Tale::begun();
        db.restart();
        for number in 0..6 {
            db.put();
            if copies && number == 3 {
                db.checkpoint("PASSIVE");
            }
        }
        db.ok("CREATE TABLE another(x)");
        db.kill();
        remove(&tale.machine, "-wal");
        stays_refused(&tale, "a header of before");
        recover(&tale.machine.process(), Path::new(DB), Choice::Keep).unwrap();
        let db = tale.open();
        assert_eq!(db.content(), tale.acknowledged(), "copies {copies}");
        assert_eq!(db.value::<i64>("SELECT count(*) FROM another").unwrap(), 0);
        assert_eq!(db.value::<String>("PRAGMA integrity_check").unwrap(), "ok");
    }
}
