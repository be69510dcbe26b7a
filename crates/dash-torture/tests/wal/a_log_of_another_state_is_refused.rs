//! WAL-18: a log whose records count is applied to the database that it is of, in a state that it
//! knows. Beside another one the database is refused, with what to do, and nothing is changed. The
//! inode number says little by itself: a copy of all files is the same database.

use std::path::Path;

use dash_simulated::{Everything, Machine, OperationKind};
use dash_storage::{Directory, File, OpenMode, Storage};

use crate::common::{Db, Fate, Tale, remove};

const ALL: [&str; 3] = ["", "-wal", "-dashlog"];

/// The files of a database, where they are there.
pub(crate) struct Files(pub(crate) Vec<(&'static str, Option<Vec<u8>>)>);

impl Files {
    pub(crate) fn of(machine: &Machine, endings: &[&'static str]) -> Self {
        let folder = machine.process().open_directory(Path::new("/")).unwrap();
        let read = |ending: &&'static str| {
            let name = format!("app.db{ending}");
            let file = folder.open(name.as_ref(), OpenMode::Read).ok()?;
            let len = usize::try_from(file.metadata().unwrap().len).unwrap();
            let mut bytes = vec![0; len];
            assert_eq!(file.read_at(&mut bytes, 0).unwrap(), len, "{name}");
            Some(bytes)
        };
        Self(endings.iter().map(|ending| (*ending, read(ending))).collect())
    }

    /// Puts them in the place of those that are there: new files, or the content of the old ones.
    pub(crate) fn put(&self, machine: &Machine, new: bool) {
        let folder = machine.process().open_directory(Path::new("/")).unwrap();
        for (ending, bytes) in &self.0 {
            let name = format!("app.db{ending}");
            let there = machine.exists(format!("/{name}"));
            if there && (new || bytes.is_none()) {
                remove(machine, ending);
            }
            let Some(bytes) = bytes else { continue };
            let file = folder.open(name.as_ref(), OpenMode::Create { permissions: 0o644 }).unwrap();
            file.set_len(0).unwrap();
            file.write_at(bytes, 0).unwrap();
            file.flush().unwrap();
        }
        folder.flush().unwrap();
    }
}

/// It is refused with the remedy, and all stays as it is.
pub(crate) fn refused(tale: &Tale, story: &str) {
    let before = Files::of(&tale.machine, &ALL).0;
    let told = tale.try_open().err().unwrap_or_else(|| panic!("{story}: it is opened"));
    assert!(
        told.contains("don't belong") && told.contains("sqlite-dash recover"),
        "{story}: {told}"
    );
    assert!(before == Files::of(&tale.machine, &ALL).0, "{story}: something was changed");
}

/// A backup of some commits ago, and a database that lost power since with its log in use.
pub(crate) fn backup_and_crash(commits: usize, grows: bool) -> (Files, Tale, Db) {
    let (tale, db) = Tale::begun();
    db.restart();
    let backup = Files::of(&tale.machine, &["", "-wal"]);
    for _ in 0..commits {
        db.put();
        if grows {
            db.scribble(8).unwrap();
            db.ok("COMMIT");
        }
    }
    (backup, tale, db)
}

fn without_wal(backup: &Files) -> Files {
    Files(vec![("", backup.0[0].1.clone()), ("-wal", None)])
}

/// The power is lost, and then a backup comes into the place of the database.
#[test]
pub(crate) fn where_an_older_database_is_put_back() {
    for (grows, new) in [(true, false), (true, true), (false, true)] {
        for restarts in 0..3 {
            let (backup, tale, db) = backup_and_crash(3, grows);
            for _ in 0..restarts {
                db.restart();
                db.put();
            }
            db.checkpoint("PASSIVE");
            db.kill();
            let tale = tale.after(tale.machine.power_loss(&mut Everything));
            let story = format!("grows {grows}, new file {new}, {restarts} restarts");
            let only = without_wal(&backup);
            only.put(&tale.machine, new);
            refused(&tale, &format!("{story}, without -wal"));
            if restarts > 0 {
                backup.put(&tale.machine, new);
                refused(&tale, &format!("{story}, with its -wal"));
            }
        }
    }
}

/// One connection raises the change counter once, however often it commits.
#[test]
pub(crate) fn where_an_older_database_has_the_same_counter() {
    let (tale, db) = Tale::begun();
    db.scribble(8).unwrap();
    db.ok("COMMIT");
    db.restart();
    let backup = Files::of(&tale.machine, &["", "-wal"]);
    db.restart();
    // Few enough for a record.
    for _ in 0..3 {
        db.scribble(5).unwrap();
        db.ok("COMMIT");
    }
    db.kill();
    let tale = tale.after(tale.machine.power_loss(&mut Everything));
    let counter = |file: &[u8]| file[24..28].to_vec();
    let [then, now] = [&backup, &Files::of(&tale.machine, &["", "-wal"])]
        .map(|files| counter(files.0[0].1.as_ref().unwrap()));
    assert_eq!(then, now);
    without_wal(&backup).put(&tale.machine, false);
    refused(&tale, "the same counter");
}

/// A backup of the database and its `-wal`, which are a whole, from a generation before.
#[test]
pub(crate) fn where_an_older_pair_is_put_back() {
    for grows in [true, false] {
        for (restarts, commits) in [(1, 0), (1, 1), (1, 3), (2, 1), (4, 0)] {
            let (tale, db) = Tale::begun();
            db.restart();
            let backup = Files::of(&tale.machine, &["", "-wal"]);
            for _ in 0..restarts {
                for _ in 0..2 {
                    db.scribble(if grows { 20 } else { 1 }).unwrap();
                    db.ok("COMMIT");
                }
                db.restart();
            }
            for _ in 0..commits {
                db.put();
            }
            db.kill();
            let tale = tale.after(tale.machine.power_loss(&mut Everything));
            for new in [false, true] {
                backup.put(&tale.machine, new);
                let story = format!("grows {grows}, new {new}, {restarts} and {commits}");
                refused(&tale, &story);
            }
        }
    }
}

/// A commit that makes the database shorter cuts pages off, without a frame of theirs.
#[test]
pub(crate) fn but_not_where_a_page_was_cut_off() {
    let (tale, db) = Tale::begun();
    db.ok("BEGIN; CREATE TABLE gone(v)");
    db.ok("INSERT INTO gone VALUES (randomblob(3000)); COMMIT");
    // The last page of the generation is one of those.
    db.ok("UPDATE gone SET v = randomblob(3000)");
    db.checkpoint("RESTART");
    db.put();
    tale.watch();
    db.ok("DROP TABLE gone");
    db.ok("VACUUM");
    db.put();
    db.checkpoint("PASSIVE");
    tale.done();
    tale.survives_all();
    db.close();
}

/// The same where the generation's header is durable and none of its frames is in the log.
#[test]
pub(crate) fn where_an_older_pair_is_put_beside_a_generation_without_frames() {
    let (tale, db) = Tale::begun();
    db.restart();
    let backup = Files::of(&tale.machine, &["", "-wal"]);
    db.scribble(1).unwrap();
    db.ok("COMMIT");
    db.checkpoint("RESTART");
    let wal = tale.inode("-wal");
    let died = db.dies(
        false,
        move |operation| operation.kind == OperationKind::WriteDurable && operation.inode == wal,
        |db| drop(db.scribble(1).and_then(|()| db.run("COMMIT"))),
    );
    assert!(died);
    let tale = tale.after(tale.machine.power_loss(&mut Everything));
    tale.survives_all();
    backup.put(&tale.machine, false);
    refused(&tale, "a generation");
}

/// The backup is put beside the newer `-wal`, which stock SQLite would read into it.
#[test]
pub(crate) fn where_an_older_database_is_put_under_a_newer_wal() {
    for new in [false, true] {
        let (backup, tale, db) = backup_and_crash(2, true);
        db.restart();
        db.put();
        db.kill();
        let tale = tale.after(tale.machine.power_loss(&mut Everything));
        Files(vec![("", backup.0[0].1.clone())]).put(&tale.machine, new);
        refused(&tale, &format!("new file {new}"));
    }
}

/// The whole of another database's files, but for the log; or only its log.
#[test]
pub(crate) fn where_the_log_is_another_databases() {
    let other = |commits: usize| {
        let tale = Tale::on(Machine::new(7));
        let db = tale.open();
        db.scribble(20).unwrap();
        db.ok("COMMIT");
        for _ in 0..commits {
            db.put();
        }
        db.restart();
        db.put();
        db.kill();
        tale.after(tale.machine.power_loss(&mut Everything))
    };
    for commits in [2, 5] {
        let (tale, db) = Tale::begun();
        db.put();
        db.kill();
        let tale = tale.after(tale.machine.power_loss(&mut Everything));
        Files::of(&other(commits).machine, &["-dashlog"]).put(&tale.machine, false);
        refused(&tale, &format!("after a crash, {commits} commits"));
        let (tale, db) = Tale::begun();
        db.close();
        Files::of(&other(commits).machine, &["-dashlog"]).put(&tale.machine, false);
        refused(&tale, &format!("at rest, {commits} commits"));
        let theirs = other(commits);
        let mine = Files::of(&tale.machine, &["", "-wal"]);
        mine.put(&theirs.machine, true);
        refused(&theirs, &format!("a database of its own, {commits} commits"));
    }
}

/// All files together are the database, wherever they are copied.
#[test]
pub(crate) fn but_not_where_all_files_were_copied() {
    let acts: [fn(&Db); 4] = [
        |_| {},
        |db| db.checkpoint("PASSIVE"),
        Db::restart,
        |db| {
            db.scribble(9).unwrap();
            db.ok("COMMIT");
            db.checkpoint("PASSIVE");
            db.put();
        },
    ];
    for act in acts {
        for loses in [false, true] {
            let (tale, db) = Tale::begun();
            act(&db);
            db.put();
            db.kill();
            let tale = match loses {
                true => tale.after(tale.machine.power_loss(&mut Fate::nothing())),
                false => tale.after(tale.machine.power_loss(&mut Everything)),
            };
            Files::of(&tale.machine, &ALL).put(&tale.machine, true);
            tale.survives(&tale.machine).unwrap();
        }
    }
}

/// Nor where a stock connection had gone on before, and deleted `-wal`: most pages are others then.
#[test]
pub(crate) fn but_not_where_a_stock_survivor_has_gone_on() {
    let (tale, db) = Tale::begun();
    db.scribble(3).unwrap();
    db.ok("COMMIT");
    let stock = tale.open_stock();
    db.kill();
    tale.put_stock(&stock).unwrap();
    stock.db.close().unwrap();
    assert!(!tale.machine.exists("/app.db-wal"), "stock SQLite has deleted it");
    Files::of(&tale.machine, &ALL).put(&tale.machine, true);
    tale.survives(&tale.machine).unwrap();
}

/// Nor where that one has changed all pages that the log speaks of: nothing in them tells whose it
/// is, and the coordination file does.
#[test]
pub(crate) fn but_not_where_a_stock_survivor_has_changed_every_page() {
    let (tale, db) = Tale::begun();
    db.restart();
    let stock = tale.open_stock();
    db.kill();
    tale.put_stock(&stock).unwrap();
    stock.db.execute_batch("CREATE TABLE first(v); INSERT INTO first SELECT v FROM big").unwrap();
    stock.db.execute_batch("VACUUM").unwrap();
    stock.db.close().unwrap();
    assert!(!tale.machine.exists("/app.db-wal"), "stock SQLite has deleted it");
    let all = ["", "-wal", "-dashlog", "-dash"];
    Files::of(&tale.machine, &all).put(&tale.machine, true);
    tale.survives(&tale.machine).unwrap();
}

/// Nor where its last record is older than the word that none counts any more: its writer died
/// before it could tell the others that it was there.
#[test]
pub(crate) fn but_not_where_nobody_was_told_of_the_last_record() {
    let (tale, db) = Tale::begun();
    db.ok("PRAGMA dash_barrier=wal");
    // The next record begins a window, so it needs none before it; and no generation begins.
    let reader = tale.open();
    reader.ok("BEGIN; SELECT * FROM t");
    db.put();
    db.checkpoint("PASSIVE");
    db.synchronous("NORMAL");
    let (log, other) = (tale.inode("-dashlog"), tale.open());
    let died = other.dies(
        true,
        move |operation| operation.kind == OperationKind::Write && operation.inode == log,
        |other| drop(other.scribble(1).and_then(|()| other.run("COMMIT"))),
    );
    assert!(died);
    reader.close();
    db.checkpoint("TRUNCATE");
    db.ok("UPDATE big SET v = randomblob(400)");
    db.checkpoint("PASSIVE");
    db.kill();
    Files::of(&tale.machine, &ALL).put(&tale.machine, true);
    tale.survives(&tale.machine).unwrap();
}

/// Nor where the log says nothing: whatever lies beside it is not its business.
#[test]
pub(crate) fn but_not_where_it_says_nothing() {
    let (backup, tale, db) = backup_and_crash(3, true);
    db.close();
    for wal in [true, false] {
        let files = if wal { Files(backup.0.clone()) } else { without_wal(&backup) };
        files.put(&tale.machine, true);
        let db = tale.try_open().unwrap();
        db.content();
        db.close();
    }
}

/// A killed process may have left pages of a checkpoint in the cache alone: what the next session
/// says of the database is true of the device.
#[test]
pub(crate) fn but_not_where_a_killed_process_had_copied_into_it() {
    // Before the log was begun, in the commit that begins it, and after.
    for logged in 0..3 {
        let (tale, db) = match logged {
            2 => Tale::begun(),
            _ => {
                let tale = Tale::new();
                let db = tale.open();
                (tale, db)
            }
        };
        if logged == 0 {
            db.synchronous("NORMAL");
        }
        db.scribble(9).unwrap();
        db.ok("COMMIT");
        if logged > 0 {
            db.put();
        }
        db.synchronous("OFF");
        db.checkpoint("PASSIVE");
        db.kill();
        tale.watch();
        let next = tale.open();
        for _ in 0..3 {
            next.put();
        }
        tale.done();
        tale.survives_all();
    }
}
