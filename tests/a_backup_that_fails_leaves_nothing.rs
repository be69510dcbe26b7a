//! What `dash_backup()` refuses, with a message that names the file and what to do, and what goes
//! wrong on the way: there is no copy then, and nothing that looks like one.

mod suite;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dash_storage::real::Real;
use dash_storage::{Directory, File, LockKind, OpenMode, Storage};
use dash_testing::mounts::Mount;
use dash_testing::names::names;
use dash_testing::roles::python;
use rusqlite::{Connection, ErrorCode};
use suite::one;
use suite::sql::{content, run};

const UNFINISHED: &str = "copy.db.dash-backup-unfinished";

fn back_up(db: &Connection, to: impl AsRef<Path>) -> rusqlite::Result<i64> {
    let to = to.as_ref().to_str().expect("text").to_owned();
    db.query_row("SELECT dash_backup(?1)", [to], |row| row.get(0))
}

fn fails(db: &Connection, to: impl AsRef<Path>, words: &str) -> Option<ErrorCode> {
    let error = back_up(db, &to).expect_err("it is no place for a copy");
    let (text, code) = (error.to_string(), error.sqlite_error_code());
    assert!(text.contains(words), "{words:?} is not in: {text}");
    let name = to.as_ref().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let folder = to.as_ref().parent().expect("a folder");
    if folder.is_dir() {
        let left: Vec<_> =
            names(folder).into_iter().filter(|left| left.contains("unfinished")).collect();
        assert_eq!(left, [""; 0], "{name}");
    }
    code
}

/// With about so many bytes in it, and with the program's leave to make files anywhere.
fn made(folder: &Path, mode: &str, bytes: i64) -> Connection {
    let path = folder.join("app.db");
    let db = suite::open_dash(path.as_os_str(), "&dash_backup=on").expect("opens");
    run(&db, &format!("PRAGMA journal_mode = {mode}; CREATE TABLE t(x)"));
    run(&db, &format!("INSERT INTO t VALUES (zeroblob({bytes}))"));
    db
}

#[test]
fn over_a_file_that_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let (db, to) = (made(folder.path(), "wal", 10_000), folder.path().join("copy.db"));
    fs::write(&to, "mine").unwrap();
    assert_eq!(fails(&db, &to, "copy.db exists; name another file"), Some(ErrorCode::CannotOpen));
    assert_eq!(fs::read(&to).unwrap(), b"mine");
    let sql = "SELECT dash_backup(?1, 'main', 'replace')";
    // The last one is a log of this database, or of another one, wherever it lies.
    for content in [&b"mine"[..], b"\xFF\xFF\xFF\xFFDSHG and so on"] {
        fs::write(&to, content).unwrap();
        let error = db.query_row(sql, [to.to_str()], |_| Ok(())).expect_err("refuses");
        assert!(error.to_string().contains("is neither an SQLite database nor empty"), "{error}");
        assert_eq!(fs::read(&to).unwrap(), content);
    }
    fs::write(&to, "").unwrap();
    for _ in 0..2 {
        db.query_row(sql, [to.to_str()], |_| Ok(())).expect("replaces");
        suite::check(&suite::stock(&to));
    }
    symlink("nowhere", folder.path().join("link.db")).unwrap();
    fails(&db, folder.path().join("link.db"), "is no regular file");
    fs::create_dir(folder.path().join("folder.db")).unwrap();
    fails(&db, folder.path().join("folder.db"), "is a folder");
    fails(&db, folder.path().join("missing/copy.db"), "can't be used");
    fails(&db, folder.path().join(".."), "no name of a file");
}

#[test]
fn over_the_database_itself_under_any_name() {
    for mode in ["wal", "shadow"] {
        let folder = tempfile::tempdir().unwrap();
        let db = made(folder.path(), mode, 10_000);
        run(&db, "INSERT INTO t VALUES (1)");
        let before = content(&db, "SELECT * FROM t");
        let inside = folder.path().join("inside");
        fs::create_dir(&inside).unwrap();
        symlink("../app.db", inside.join("link.db")).unwrap();
        symlink("..", inside.join("up")).unwrap();
        fs::write(folder.path().join("other.db"), "").unwrap();
        for own in [
            "app.db",
            "app.db-wal",
            "app.db-shm",
            "app.db-shadow",
            "app.db-dash",
            "app.db-journal",
            "app.db-dashlog",
        ] {
            for folder in [folder.path(), &inside.join("up"), &inside.join("..")] {
                fails(&db, folder.join(own), "itself; name another file");
            }
        }
        let sql = "SELECT dash_backup(?1, 'main', 'replace')";
        for name in ["up/app.db", "link.db"] {
            let error = db.query_row(sql, [inside.join(name).to_str()], |_| Ok(())).unwrap_err();
            assert!(error.to_string().contains("itself"), "{error}");
        }
        // Whether that database is there by now, or not.
        for name in ["other.db-wal", "new.db-journal", "new.db-shadow", "new.db-dashlog"] {
            fails(&db, folder.path().join(name), "would be taken for a file of");
        }
        assert_eq!(content(&db, "SELECT * FROM t"), before);
        drop(db);
        // A hard link to a plain file.
        let plain = folder.path().join("plain.db");
        run(&suite::stock(&plain), "CREATE TABLE t(x)");
        fs::hard_link(&plain, folder.path().join("hard.db")).unwrap();
        suite::load();
        fails(&suite::stock(&plain), folder.path().join("hard.db"), "another name (a hard link)");
    }
}

#[test]
fn beside_what_would_be_taken_for_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let (db, to) = (made(folder.path(), "wal", 10_000), folder.path().join("copy.db"));
    for beside in
        ["copy.db-wal", "copy.db-journal", "copy.db-shm", "copy.db-shadow", "copy.db-dashlog"]
    {
        let beside = folder.path().join(beside);
        fs::write(&beside, "old").unwrap();
        fails(&db, &to, "lies beside the place of the copy");
        assert_eq!(fs::read(&beside).unwrap(), b"old");
        fs::remove_file(&beside).unwrap();
    }
    back_up(&db, &to).expect("nothing is in the way");
}

#[test]
fn where_there_is_no_room() {
    let folder = tempfile::tempdir().unwrap();
    let Some(small) = Mount::tmpfs("1m") else { return };
    let to = small.path().join("copy.db");
    for mode in ["wal", "shadow"] {
        let inside = folder.path().join(mode);
        fs::create_dir(&inside).unwrap();
        let db = made(&inside, mode, 3_000_000);
        assert_eq!(fails(&db, &to, "make room"), Some(ErrorCode::DiskFull), "{mode}");
        assert_eq!(names(small.path()), [""; 0]);
        // Nothing holds the database afterwards.
        run(&db, "DELETE FROM t; VACUUM; INSERT INTO t VALUES (1)");
        back_up(&db, &to).expect("there is room for that");
        fs::remove_file(&to).unwrap();
    }
}

#[test]
fn where_nothing_may_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let db = made(folder.path(), "wal", 10_000);
    let Some(forbidden) = Mount::read_only(folder.path()) else { return };
    let code = fails(&db, forbidden.path().join("copy.db"), "get the right to write its folder");
    assert_eq!(code, Some(ErrorCode::ReadOnly));
}

#[test]
fn in_a_transaction_that_writes_or_in_a_view() {
    let folder = tempfile::tempdir().unwrap();
    let (db, to) = (made(folder.path(), "wal", 10_000), folder.path().join("copy.db"));
    run(&db, "BEGIN; INSERT INTO t VALUES (1)");
    fails(&db, &to, "COMMIT or ROLLBACK first");
    run(&db, "COMMIT");
    run(&db, &format!("CREATE VIEW v AS SELECT dash_backup('{}')", to.display()));
    let error = db.query_row("SELECT * FROM v", [], |_| Ok(())).unwrap_err();
    assert!(error.to_string().contains("unsafe use of dash_backup"), "{error}");
    assert!(!to.exists());
}

/// A byte that changes in the copy after it was written is found, though SQLite has no means to:
/// it is one of a blob.
/// SQLite 3.40, among others, lets a CHECK constraint call what only SQL of the program may state.
#[test]
fn that_a_schema_asks_for() {
    let folder = tempfile::tempdir().unwrap();
    let (path, to) = (folder.path().join("gift.db"), folder.path().join("copy.db"));
    let script = "
gift = sqlite3.connect(sys.argv[2])
gift.create_function('dash_backup', 1, lambda given: 1)
gift.execute(f\"CREATE TABLE t(x, CHECK(dash_backup('{sys.argv[3]}')))\")
gift.execute('INSERT INTO t VALUES (1)')
gift.commit()
gift.close()
for leave in '', '&dash_backup=on':
    db = open(sys.argv[2], leave)
    for sql in 'PRAGMA integrity_check', 'INSERT INTO t VALUES (2)':
        try:
            print(db.execute(sql).fetchall())
        except sqlite3.Error as error:
            print(error)
    db.close()
";
    let Some(mut command) = python(script, &[&path, &to]) else { return };
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!to.exists(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn with_a_page_that_changed_on_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let (db, to) = (made(folder.path(), "wal", 30_000_000), folder.path().join("copy.db"));
    let (unfinished, stop) = (folder.path().join(UNFINISHED), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                if let Ok(file) = fs::OpenOptions::new().write(true).open(&unfinished) {
                    drop(file.write_all_at(b"!", 4096 * 5000 + 2000));
                }
            }
        });
        let copied = back_up(&db, &to);
        stop.store(true, Ordering::SeqCst);
        let error = copied.expect_err("a page is another one");
        assert!(error.to_string().contains("page 5001 of"), "{error}");
        assert_eq!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt));
    });
    assert!(!to.exists() && !unfinished.exists());
    back_up(&db, &to).expect("nobody writes there any more");
}

/// A damaged database is not what a backup should hold.
#[test]
fn of_a_database_that_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let (path, to) = (folder.path().join("plain.db"), folder.path().join("copy.db"));
    run(
        &suite::stock(&path),
        "CREATE TABLE t(x); CREATE INDEX i ON t(x); INSERT INTO t VALUES (1), (2)",
    );
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(&[0; 4096], 4096 * 2).unwrap();
    suite::load();
    let code = fails(&suite::stock(&path), &to, "both are damaged");
    assert_eq!(code, Some(ErrorCode::DatabaseCorrupt));
    assert!(!to.exists());
}

#[test]
fn that_is_interrupted() {
    for mode in ["wal", "shadow"] {
        let folder = tempfile::tempdir().unwrap();
        let (db, to) = (made(folder.path(), mode, 60_000_000), folder.path().join("copy.db"));
        let (handle, unfinished) = (db.get_interrupt_handle(), folder.path().join(UNFINISHED));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !unfinished.exists() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                handle.interrupt();
            });
            let code = fails(&db, &to, "interrupt");
            assert_eq!(code, Some(ErrorCode::OperationInterrupted), "{mode}");
        });
        assert!(!to.exists());
        run(&db, "INSERT INTO t VALUES (1)");
        assert_eq!(one::<i64>(&db, "SELECT count(*) FROM t"), 2);
    }
}

/// Two backups to one name: the second one is told, and does not take the first one's file away.
#[test]
fn while_another_one_is_at_it() {
    let folder = tempfile::tempdir().unwrap();
    let (db, to) = (made(folder.path(), "wal", 100_000), folder.path().join("copy.db"));
    let unfinished = folder.path().join(UNFINISHED);
    fs::write(&unfinished, "left by a killed one").unwrap();
    let directory = Real.open_directory(folder.path()).unwrap();
    let file = directory.open(OsStr::new(UNFINISHED), OpenMode::ReadWrite).unwrap();
    assert!(file.try_lock(0..1, LockKind::Exclusive).unwrap(), "as the other one does");
    let error = back_up(&db, &to).unwrap_err();
    assert!(error.to_string().contains("is under way"), "{error}");
    assert!(unfinished.exists() && !to.exists());
    drop(file);
    back_up(&db, &to).expect("what a killed one left is no matter");
    assert!(!unfinished.exists());
    assert_eq!(to.metadata().unwrap().permissions().mode() & 0o077, 0o044);
    // Between the copy's own name and the end of the other one, which is left to the living.
    fs::hard_link(&to, &unfinished).unwrap();
    let file = directory.open(OsStr::new(UNFINISHED), OpenMode::ReadWrite).unwrap();
    assert!(file.try_lock(0..1, LockKind::Exclusive).unwrap(), "as the other one does");
    let error = back_up(&db, &to).unwrap_err();
    assert!(error.to_string().contains("exists") && unfinished.exists(), "{error}");
    drop(file);
    fails(&db, &to, "exists");
    assert!(!unfinished.exists() && to.exists());
}

/// One that began just then was told "File exists".
#[test]
fn while_another_one_begins() {
    let folder = tempfile::tempdir().unwrap();
    let (path, to) = (folder.path().join("app.db"), folder.path().join("copy.db"));
    drop(made(folder.path(), "wal", 1000));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let db = suite::open_dash(path.as_os_str(), "&dash_backup=on").unwrap();
                for _ in 0..100 {
                    let sql = "SELECT dash_backup(?1, 'main', 'replace')";
                    let made: rusqlite::Result<i64> =
                        db.query_row(sql, [to.to_str().unwrap()], |row| row.get(0));
                    if let Err(error) = made {
                        assert!(error.to_string().contains("is under way"), "{error}");
                    }
                }
            });
        }
    });
}

/// The message named a folder, or a connection that may only read, where there was nothing to copy.
#[test]
fn of_what_is_no_file() {
    let folder = tempfile::tempdir().unwrap();
    drop(made(folder.path(), "wal", 1000));
    let db = suite::stock(&folder.path().join("app.db"));
    suite::sql::run(&db, "ATTACH ':memory:' AS here");
    let memory = Connection::open_in_memory().unwrap();
    for (db, schema) in [(&db, "nope"), (&db, "temp"), (&db, "here"), (&memory, "main")] {
        let to = folder.path().join("copy.db");
        let sql = "SELECT dash_backup(?1, ?2)";
        let asked = db.query_row(sql, (to.to_str(), schema), |row| row.get::<_, i64>(0));
        let said = asked.unwrap_err().to_string();
        assert!(said.contains(&format!("{schema} is no file of this connection")), "{said}");
        assert!(!to.exists());
    }
}
