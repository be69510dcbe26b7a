//! WAL-56: after a kill, where no record of the log counts, what the processes have left in memory
//! tells whether the database and `-wal` are those that they had. What was put in the place of
//! either, or cut, is refused, and nothing is changed; what stock SQLite made of both is taken.

use std::path::Path;

use dash_simulated::Everything;
use dash_wal::{Choice, recover};

use crate::a_log_of_another_state_is_refused::Files;
use crate::common::{DB, Db, Tale, remove};

const ALL: [&str; 4] = ["", "-wal", "-dashlog", "-shm"];

type Begin = fn() -> (Tale, Db);

/// The commits of a connection that is about to be killed, and that no record has.
const ACTS: [(&str, Begin); 4] = [
    ("at rest", at_rest),
    ("before a record", unlogged),
    ("behind a void generation", voided),
    ("behind a record", behind),
];

fn at_rest() -> (Tale, Db) {
    let (tale, db) = Tale::begun();
    db.ok("PRAGMA rests");
    (tale, db)
}

fn unlogged() -> (Tale, Db) {
    let tale = Tale::new();
    let db = tale.open();
    db.put();
    (tale, db)
}

fn voided() -> (Tale, Db) {
    let (tale, db) = Tale::begun();
    db.checkpoint("TRUNCATE");
    db.synchronous("NORMAL");
    db.put();
    (tale, db)
}

fn behind() -> (Tale, Db) {
    Tale::begun()
}

/// Commits more: of one that is too large for a record the log knows nothing.
fn goes_on(story: &str, db: &Db) {
    match story {
        "at rest" => {
            db.put();
            db.put();
            db.ok("PRAGMA rests");
        }
        "before a record" | "behind a void generation" => {
            db.synchronous("NORMAL");
            db.ok("UPDATE big SET v = 'b'; INSERT INTO big VALUES ('a')");
        }
        _ => {
            db.scribble(3000).unwrap();
            db.ok("COMMIT");
        }
    }
}

fn refused(tale: &Tale, says: &str, story: &str) {
    let before = Files::of(&tale.machine, &ALL);
    for opening in 0..2 {
        let told = tale.try_open().err();
        let told = told.unwrap_or_else(|| panic!("{story}: opening {opening} takes it"));
        assert!(told.contains(says) && told.contains("sqlite-dash recover"), "{story}: {told}");
    }
    assert!(before.0 == Files::of(&tale.machine, &ALL).0, "{story}: something was changed");
}

/// Put back, all is there.
fn is_whole_with(tale: &Tale, right: &Files, story: &str) {
    right.put(&tale.machine, false);
    let db = tale.try_open().unwrap_or_else(|why| panic!("{story}: {why}"));
    assert_eq!(db.content(), tale.tried(), "{story}");
    assert_eq!(db.value::<String>("PRAGMA integrity_check").unwrap(), "ok", "{story}");
    db.close();
}

/// A copy of `-wal` that was made some commits ago, or the first half of what it is now.
#[test]
pub(crate) fn where_wal_was_cut_or_is_an_older_one() {
    for (story, begin) in ACTS {
        for copies in [false, true] {
            for kind in ["older", "cut", "of a generation before"] {
                // The record that a checkpoint's barrier is has all of it.
                if copies && ["before a record", "behind a void generation"].contains(&story) {
                    continue;
                }
                let (tale, db) = begin();
                let mut put = Files::of(&tale.machine, &["-wal"]);
                if kind == "of a generation before" {
                    db.restart();
                    if story == "at rest" {
                        db.ok("PRAGMA rests");
                    }
                }
                goes_on(story, &db);
                if copies {
                    db.checkpoint("PASSIVE");
                }
                db.kill();
                let right = Files::of(&tale.machine, &["-wal"]);
                if kind == "cut" {
                    let bytes = right.0[0].1.clone().unwrap();
                    put = Files(vec![("-wal", Some(bytes[..bytes.len() - 900].to_vec()))]);
                }
                let story = format!("{story}, {kind}, copies {copies}");
                for new in [false, true] {
                    put.put(&tale.machine, new);
                    // The log has its own word on what was copied of it.
                    let is_logged = story == "behind a record, of a generation before, copies true";
                    let says =
                        if is_logged { "app.db or app.db-wal is" } else { "app.db-wal lacks" };
                    refused(&tale, says, &story);
                }
                is_whole_with(&tale, &right, &story);
            }
        }
    }
}

/// A copy of an earlier session's, whose salts don't tell that it is older.
#[test]
pub(crate) fn where_wal_is_of_a_session_before() {
    for level in ["FULL", "NORMAL"] {
        let (tale, db) = Tale::begun();
        let put = Files::of(&tale.machine, &["-wal"]);
        db.close();
        let db = tale.open();
        db.synchronous(level);
        db.put();
        db.kill();
        let right = Files::of(&tale.machine, &["-wal"]);
        for new in [false, true] {
            put.put(&tale.machine, new);
            refused(&tale, "app.db-wal lacks", level);
        }
        is_whole_with(&tale, &right, level);
    }
}

/// A backup beside the newer `-wal`, which SQLite would read into it.
#[test]
pub(crate) fn where_the_database_is_an_older_one() {
    for (story, begin) in [ACTS[0], ACTS[1]] {
        for stock in [false, true] {
            // A session has begun by then, and its fence keeps stock SQLite out.
            if stock && story == "before a record" {
                continue;
            }
            let (tale, db) = begin();
            let put = Files::of(&tale.machine, &[""]);
            db.scribble(8).unwrap();
            db.ok("COMMIT");
            db.restart();
            goes_on(story, &db);
            if story == "at rest" {
                db.ok("PRAGMA rests");
            }
            db.kill();
            if stock {
                // Its commits are in the same `-wal`.
                let other = tale.open_stock();
                tale.put_stock(&other).unwrap();
                tale.machine.kill(&other.process);
            }
            let right = Files::of(&tale.machine, &[""]);
            let story = format!("{story}, stock {stock}");
            for new in [false, true] {
                put.put(&tale.machine, new);
                refused(&tale, "holds commits that don't belong to app.db", &story);
            }
            is_whole_with(&tale, &right, &story);
        }
    }
}

/// One of before a generation that the log calls void.
#[test]
pub(crate) fn where_the_database_is_of_before() {
    let (tale, db) = Tale::begun();
    let put = Files::of(&tale.machine, &[""]);
    db.scribble(8).unwrap();
    db.ok("COMMIT");
    db.checkpoint("TRUNCATE");
    db.synchronous("NORMAL");
    db.put();
    db.kill();
    let right = Files::of(&tale.machine, &[""]);
    put.put(&tale.machine, false);
    refused(&tale, "holds commits that don't belong to app.db", "of before");
    is_whole_with(&tale, &right, "of before");
}

/// After a power loss the head of the log says what was left at rest.
#[test]
pub(crate) fn where_the_power_was_lost_at_rest() {
    for copies in [false, true] {
        let (tale, db) = at_rest();
        let put = Files::of(&tale.machine, &[""]);
        db.scribble(8).unwrap();
        db.ok("COMMIT");
        db.restart();
        goes_on("at rest", &db);
        if copies {
            db.checkpoint("PASSIVE");
        }
        db.kill();
        tale.survives_all();
        let tale = tale.after(tale.machine.power_loss(&mut Everything));
        let right = Files::of(&tale.machine, &[""]);
        for new in [false, true] {
            put.put(&tale.machine, new);
            refused(&tale, "app.db-wal holds commits that don't belong", "after a power loss");
        }
        is_whole_with(&tale, &right, "after a power loss");
    }
}

/// It was deleted, or emptied, and held what no checkpoint has copied.
#[test]
pub(crate) fn where_wal_is_gone() {
    for (story, begin) in [ACTS[0], ACTS[1], ACTS[2]] {
        for empties in [false, true] {
            let (tale, db) = begin();
            goes_on(story, &db);
            db.kill();
            let right = Files::of(&tale.machine, &["-wal"]);
            match empties {
                false => remove(&tale.machine, "-wal"),
                true => Files(vec![("-wal", Some(Vec::new()))]).put(&tale.machine, false),
            }
            let story = format!("{story}, empties {empties}");
            refused(&tale, "app.db-wal is missing or blank", &story);
            if empties {
                is_whole_with(&tale, &right, &story);
                continue;
            }
            // A person gives it up.
            recover(&tale.machine.process(), Path::new(DB), Choice::Discard).unwrap();
            assert!(tale.try_open().is_ok(), "{story}");
        }
    }
}

/// What stock SQLite makes of both, alone, is no other state: it goes on, copies, begins anew, cuts
/// `-wal` to nothing, deletes it; and is killed, or closes.
#[test]
pub(crate) fn but_not_where_stock_sqlite_has_gone_on() {
    for (story, begin) in [ACTS[0], ACTS[1]] {
        for mode in ["", "PASSIVE", "RESTART", "TRUNCATE", "deletes", "EXCLUSIVE"] {
            for closes in [false, true] {
                let (tale, db) = begin();
                goes_on(story, &db);
                db.kill();
                let stock = tale.open_stock();
                tale.put_stock(&stock).unwrap();
                match mode {
                    "" => {}
                    "deletes" => {
                        stock.db.execute_batch("PRAGMA journal_mode=DELETE").unwrap();
                        stock.db.execute_batch("PRAGMA journal_mode=WAL").unwrap();
                    }
                    "EXCLUSIVE" => {
                        stock.db.execute_batch("PRAGMA locking_mode=EXCLUSIVE").unwrap();
                    }
                    mode => {
                        let copies = format!("PRAGMA wal_checkpoint({mode})");
                        stock.db.execute_batch(&copies).unwrap();
                    }
                }
                tale.put_stock(&stock).unwrap();
                tale.put_stock(&stock).unwrap();
                match closes {
                    true => stock.db.close().unwrap(),
                    false => tale.machine.kill(&stock.process),
                }
                let story = format!("{story}, {mode}, closes {closes}");
                let db = tale.try_open().unwrap_or_else(|why| panic!("{story}: {why}"));
                assert_eq!(db.content(), tale.tried(), "{story}");
                db.put();
                tale.survives_all();
            }
        }
    }
}

/// Nor where nothing was put there, whenever the process was killed.
#[test]
pub(crate) fn nor_where_a_process_was_killed_in_the_middle() {
    for after in [false, true] {
        for at in 0..400 {
            let (tale, db) = Tale::begun();
            let lived = !db.dies_at(after, at, |db| {
                let work = || -> Result<(), String> {
                    db.try_put()?;
                    db.run("PRAGMA rests; PRAGMA wal_checkpoint(RESTART)")?;
                    db.try_put()?;
                    db.scribble(30)?;
                    db.run("COMMIT; PRAGMA rests; PRAGMA wal_checkpoint(TRUNCATE)")?;
                    db.try_put()
                };
                drop(work());
            });
            let next = tale.try_open().unwrap_or_else(|why| panic!("killed at {at}: {why}"));
            assert!(next.content() >= tale.acknowledged(), "killed at {at}");
            next.close();
            if lived {
                assert!(at > 50, "{at}");
                break;
            }
        }
    }
}

/// Nor where `-shm` is older than what those who were killed have done: in `locking_mode=EXCLUSIVE`
/// SQLite keeps another index, and whoever has read nothing has none.
#[test]
pub(crate) fn nor_where_shm_is_of_nobody_who_was_killed() {
    for (story, begin) in [ACTS[0], ACTS[1], ACTS[2]] {
        for then in ["", "PRAGMA wal_checkpoint(TRUNCATE)", "closes", "closes, and one reads"] {
            let (tale, db) = begin();
            goes_on(story, &db);
            db.kill();
            let alone = tale.open_exclusive();
            alone.put();
            match then {
                "" => alone.kill(),
                "closes" => alone.close(),
                "closes, and one reads" => {
                    alone.close();
                    tale.open_exclusive().kill();
                }
                then => {
                    alone.ok(then);
                    alone.kill();
                }
            }
            let story = format!("{story}, {then}");
            let db = tale.try_open().unwrap_or_else(|why| panic!("{story}: {why}"));
            assert_eq!(db.content(), tale.tried(), "{story}");
            db.close();
        }
    }
}

/// A refused opening leaves all as it is, where `-wal` was emptied and nothing of it was copied.
#[test]
pub(crate) fn and_a_refused_opening_changes_no_verdict() {
    let (tale, db) = Tale::begun();
    db.restart();
    db.put();
    db.ok("CREATE TABLE another(x)");
    db.kill();
    Files(vec![("-wal", Some(Vec::new()))]).put(&tale.machine, false);
    for _ in 0..3 {
        refused(&tale, "app.db-wal is missing or blank", "emptied");
    }
    recover(&tale.machine.process(), Path::new(DB), Choice::Keep).unwrap();
    assert_eq!(tale.open().content(), tale.tried());
}

/// Nor where all files were copied, or put back as they were copied before.
#[test]
pub(crate) fn nor_where_all_files_are_copied() {
    for (_, begin) in ACTS {
        let (tale, db) = begin();
        db.put();
        db.kill();
        Files::of(&tale.machine, &["", "-wal", "-dashlog", "-dash", "-shm"])
            .put(&tale.machine, true);
        tale.survives(&tale.machine).unwrap();
    }
}
