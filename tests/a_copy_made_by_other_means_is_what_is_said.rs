//! What `cp`, `tar`, Python's `backup()`, the backup API and a restore give, as BACKUPS.md says.

mod suite;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use dash_testing::names::{beside, names};
use dash_testing::roles::python;
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use suite::one;
use suite::sql::run;

const COUNT: &str = "SELECT count(*) FROM t";

fn made(path: &Path, mode: &str) -> Connection {
    // However slow the machine is, it is not at rest.
    let db = suite::open_dash(path.as_os_str(), "&dash_rest=off").expect("opens");
    run(&db, &format!("PRAGMA journal_mode = {mode}; CREATE TABLE t(x)"));
    run(
        &db,
        "WITH n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 100) INSERT INTO t SELECT randomblob(500) FROM n",
    );
    db
}

#[test]
fn cp_of_an_open_database_in_mode_wal_lacks_what_was_not_checkpointed() {
    let folder = tempfile::tempdir().unwrap();
    let (path, to) = (folder.path().join("app.db"), folder.path().join("copy.db"));
    let db = made(&path, "wal");
    run(&db, "PRAGMA wal_checkpoint(TRUNCATE); INSERT INTO t VALUES (1)");
    fs::copy(&path, &to).unwrap();
    assert_eq!(one::<i64>(&db, COUNT), 101);
    assert_eq!(one::<i64>(&suite::stock(&to), COUNT), 100, "the newest commit is in -wal alone");
}

/// The name fence is copied along: stock SQLite can't open it, dash recovers it as after a crash.
#[test]
fn tar_of_the_folder_of_an_open_database_is_for_dash_alone() {
    for mode in ["wal", "shadow"] {
        let folder = tempfile::tempdir().unwrap();
        let (inside, to) = (folder.path().join("inside"), folder.path().join("to"));
        fs::create_dir(&inside).unwrap();
        fs::create_dir(&to).unwrap();
        let db = made(&inside.join("app.db"), mode);
        for _ in 0..12 {
            run(&db, "INSERT INTO t VALUES (1)");
        }
        let cp = Command::new("cp").arg("-a").arg(inside.join(".")).arg(&to).status().unwrap();
        assert!(cp.success());
        let copy = to.join("app.db");
        assert!(beside(&copy, "-journal").is_dir(), "{mode}: {:?}", names(&to));
        let read = Connection::open(&copy)
            .and_then(|db| db.query_row(COUNT, [], |row| row.get::<_, i64>(0)));
        assert!(read.is_err(), "{mode}: {read:?}");
        // Nobody wrote while it was copied, which no tar can know.
        assert_eq!(one::<i64>(&suite::open(&copy), COUNT), 112, "{mode}");
        suite::check(&suite::stock(&copy));
    }
}

/// Step by step, a commit of another connection makes it begin again: under writers it may have no
/// end.
#[test]
fn the_backup_api_in_steps_begins_again_with_each_commit() {
    for mode in ["wal", "shadow"] {
        let folder = tempfile::tempdir().unwrap();
        let (path, to) = (folder.path().join("app.db"), folder.path().join("copy.db"));
        let db = made(&path, mode);
        let writer = suite::open(&path);
        let mut target = suite::stock(&to);
        let backup = Backup::new(&db, &mut target).unwrap();
        for _ in 0..100 {
            assert_eq!(backup.step(2).unwrap(), StepResult::More, "{mode}");
            run(&writer, "UPDATE t SET x = randomblob(500) WHERE rowid = 50");
        }
        // In one step, or when nobody commits, it ends.
        assert_eq!(backup.step(-1).unwrap(), StepResult::Done);
        drop(backup);
        assert_eq!(one::<i64>(&target, COUNT), 100);
    }
}

#[test]
fn pythons_backup_on_a_connection_of_dash_is_one() {
    let folder = tempfile::tempdir().unwrap();
    for mode in ["wal", "shadow"] {
        let (path, to) = (
            folder.path().join(format!("{mode}.db")),
            folder.path().join(format!("{mode}-copy.db")),
        );
        let db = made(&path, mode);
        let script = "
target = sqlite3.connect(sys.argv[3])
open(sys.argv[2]).backup(target)
target.close()
";
        let Some(mut command) = python(script, &[&path, &to]) else { return };
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let copy = suite::stock(&to);
        suite::check(&copy);
        assert_eq!(one::<i64>(&copy, COUNT), one::<i64>(&db, COUNT), "{mode}");
        // It keeps the mode: a copy of a file in WAL mode is one.
        let expected = if mode == "wal" { "wal" } else { "delete" };
        assert_eq!(one::<String>(&copy, "PRAGMA journal_mode"), expected);
    }
}

/// A plain file in a rollback mode keeps a writer waiting for the reader that a backup is.
#[test]
fn a_backup_holds_writers_of_a_plain_file_as_any_reader_does() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let (db, writer) = (
        made(&path, "delete"),
        suite::open_dash(path.as_os_str(), "&journal_mode=delete").unwrap(),
    );
    writer.busy_timeout(Duration::ZERO).unwrap();
    run(&db, "BEGIN; SELECT count(*) FROM t");
    let error = writer.execute_batch("INSERT INTO t VALUES (1)").unwrap_err();
    assert_eq!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::DatabaseBusy));
}

/// A copy in the place of the database, with the files beside that taken away.
#[test]
fn a_backup_is_restored_by_its_name_alone() {
    for mode in ["wal", "shadow"] {
        let folder = tempfile::tempdir().unwrap();
        let (path, to) = (folder.path().join("app.db"), folder.path().join("copy.db"));
        let db = made(&path, mode);
        db.query_row("SELECT dash_backup(?1)", [to.to_str()], |_| Ok(())).unwrap();
        run(&db, "DELETE FROM t");
        drop(db);
        for name in names(folder.path()).into_iter().filter(|name| name.starts_with("app.db")) {
            fs::remove_file(folder.path().join(name)).unwrap();
        }
        fs::copy(&to, &path).unwrap();
        let db = suite::open(&path);
        run(&db, &format!("PRAGMA journal_mode = {mode}"));
        assert_eq!(one::<i64>(&db, COUNT), 100);
        assert_eq!(one::<String>(&db, "PRAGMA journal_mode"), mode);
        suite::check(&db);
    }
}
