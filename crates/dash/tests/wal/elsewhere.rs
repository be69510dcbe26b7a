//! `dash_log`: the log in another folder, found by everybody and never begun empty. WAL-25, WAL-26.

use dash_testing::mounts::folder_in_memory;
use std::fs;

use std::time::Duration;

use crate::common::*;
use crate::processes::{kill_after, start};
use crate::{at_rest, create};

fn with_log(folder: &Folder, log: &std::path::Path) -> Result<Connection> {
    folder.try_open("app.db", &format!("&journal_mode=wal&dash_log={}", log.display()))
}

fn put(db: &Connection, rows: i64) {
    for _ in 0..rows {
        db.execute_batch("INSERT INTO t VALUES (1)").expect("commits");
    }
}

fn medium(db: &Connection) -> String {
    text(db, "SELECT ifnull(value, 'none') FROM dash_stats WHERE name='log_medium'")
}

fn statistic(db: &Connection, name: &str) -> i64 {
    number(db, &format!("SELECT value FROM dash_stats WHERE name='{name}'"))
}

/// The only file of a folder.
fn only(folder: &std::path::Path) -> std::path::PathBuf {
    let found: Vec<_> = fs::read_dir(folder).expect("a folder").collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].as_ref().expect("an entry").path()
}

#[test]
fn a_log_in_another_folder_is_found_by_whoever_comes() {
    let (folder, logs) = (Folder::new(), tempfile::tempdir().expect("a folder"));
    let db = with_log(&folder, logs.path()).expect("opens");
    assert_eq!(medium(&db), "none");
    db.execute_batch("CREATE TABLE t(x)").expect("commits");
    put(&db, 3);
    assert!(["direct", "buffered"].contains(&&*medium(&db)), "{}", medium(&db));
    let log = only(logs.path());
    assert!(log.file_name().is_some_and(|name| name.to_string_lossy().starts_with("app.db-")));
    // A second one needs no parameter; another place is refused while it is open.
    let second = create(&folder, "app.db");
    put(&second, 1);
    let other = tempfile::tempdir().expect("a folder");
    assert!(with_log(&folder, other.path()).is_err());
    assert!(last_error(&db).contains("close all connections"), "{}", last_error(&db));
    drop((db, second));
    let db = create(&folder, "app.db");
    put(&db, 3);
    assert_eq!(only(logs.path()), log);
    drop(db);
    at_rest(&folder, "app.db");
    // At rest it moves.
    let db = with_log(&folder, &other.path().join("the log")).expect("opens");
    put(&db, 12);
    assert!(!log.exists() && other.path().join("the log").exists());
    drop(db);
    let db = with_log(&folder, &folder.path(".")).expect("comes back");
    put(&db, 12);
    assert!(!other.path().join("the log").exists());
    assert_eq!(number(&db, "SELECT count(*) FROM t"), 31);
}

#[test]
fn one_that_is_lost_refuses_the_database_until_a_person_decides() {
    let (folder, logs) = (Folder::new(), tempfile::tempdir().expect("a folder"));
    let db = with_log(&folder, logs.path()).expect("opens");
    db.execute_batch("CREATE TABLE t(x)").expect("commits");
    put(&db, 3);
    drop(db);
    let log = only(logs.path());
    let kept = fs::read(&log).expect("reads");
    fs::remove_file(&log).expect("removes");
    let probe = create(&folder, "probe.db");
    for parameters in ["", "&journal_mode=wal", "&journal_mode=statement"] {
        assert!(folder.try_open("app.db", parameters).is_err());
        let said = last_error(&probe);
        assert!(said.contains("is missing") && said.contains("--discard"), "{said}");
    }
    assert!(with_log(&folder, logs.path()).is_err(), "nor begun empty");
    fs::write(&log, kept).expect("puts it back");
    put(&create(&folder, "app.db"), 1);
    fs::remove_file(&log).expect("removes");
    let choice = dash_wal::Choice::Discard;
    dash_wal::recover(&dash_storage::real::Real, &folder.path("app.db"), choice).expect("discards");
    assert_eq!(number(&create(&folder, "app.db"), "SELECT count(*) FROM t"), 4);
    assert!(!folder.exists("app.db-dashlog"));
}

/// Whoever may make files in the database's folder, and not write the database, leads nobody out of
/// it; nor is anything done to a file that is somebody else's.
#[test]
fn what_another_user_has_put_there_is_left_alone() {
    use std::os::unix::fs::{MetadataExt, chown};
    let (folder, logs) = (Folder::new(), tempfile::tempdir().expect("a folder"));
    let db = with_log(&folder, logs.path()).expect("opens");
    db.execute_batch("CREATE TABLE t(x)").expect("commits");
    put(&db, 3);
    drop(db);
    let (sign, log) = (folder.path("app.db-dashlog"), only(logs.path()));
    let probe = create(&folder, "probe.db");
    let owner = fs::metadata(&sign).expect("is there").uid();
    let before = fs::read(&log).expect("reads");
    for (file, said) in [(&sign, "is not followed"), (&log, "is left alone")] {
        if chown(file, Some(owner + 1), Some(owner + 1)).is_err() {
            assert_ne!(owner, 0, "root gives files away");
            return;
        }
        assert!(folder.try_open("app.db", "").is_err(), "{said}");
        assert!(last_error(&probe).contains(said), "{}", last_error(&probe));
        assert_eq!(fs::read(&log).expect("is there"), before);
        assert_eq!(fs::metadata(file).expect("is there").uid(), owner + 1);
        chown(file, Some(owner), Some(owner)).expect("gives it back");
    }
    assert_eq!(number(&create(&folder, "app.db"), "SELECT count(*) FROM t"), 3);
}

/// What leaves WAL mode leaves no log, wherever that is.
#[test]
fn it_goes_when_the_mode_is_left() {
    for mode in ["delete", "shadow"] {
        let (folder, logs) = (Folder::new(), tempfile::tempdir().expect("a folder"));
        let db = with_log(&folder, logs.path()).expect("opens");
        db.execute_batch("CREATE TABLE t(x)").expect("commits");
        put(&db, 3);
        assert_eq!(text(&db, &format!("PRAGMA journal_mode={mode}")), mode);
        assert_eq!(fs::read_dir(logs.path()).expect("a folder").count(), 0, "{mode}");
        assert!(!folder.exists("app.db-dashlog"), "{mode}");
        assert_eq!(number(&db, "SELECT count(*) FROM t"), 3);
    }
}

#[test]
fn a_path_that_can_be_no_log_is_refused() {
    let (folder, logs) = (Folder::new(), tempfile::tempdir().expect("a folder"));
    let probe = create(&folder, "probe.db");
    let file = logs.path().join("notes");
    fs::write(&file, "not a log").expect("writes");
    for (path, why) in [
        (file.clone(), "a file is there"),
        (logs.path().join("missing/log"), "missing"),
        ("relative".into(), "absolute path"),
        (folder.path("app.db-wal"), "a file beside it"),
        ("/dev/null".into(), "neither a file nor a folder"),
    ] {
        assert!(with_log(&folder, &path).is_err());
        assert!(last_error(&probe).contains(why), "{}", last_error(&probe));
        let advice = last_error(&probe).contains("remove it");
        assert_eq!(advice, path == file, "{}", last_error(&probe));
        assert!(!folder.exists("app.db"), "nothing is made");
    }
    assert_eq!(fs::read(&file).expect("reads"), b"not a log");
    // Nor is anything changed: the mode is not.
    folder.stock("app.db").execute_batch("CREATE TABLE t(x)").expect("makes it");
    let before = fs::read(folder.path("app.db")).expect("reads");
    assert!(with_log(&folder, &file).is_err());
    assert_eq!(fs::read(folder.path("app.db")).expect("reads"), before);
    assert!(!folder.exists("app.db-dash") && !folder.exists("app.db-dashlog"));
}

/// What the URI asks of mode wal means nothing in another one, which is said.
#[test]
fn in_another_mode_it_is_said_that_it_means_nothing() {
    let logs = tempfile::tempdir().expect("a folder");
    let log = format!("dash_log={}", logs.path().display());
    for (mode, parameters, ignored) in [
        ("shadow", format!("&{log}&dash_statements=on"), "dash_log, dash_statements"),
        ("shadow", format!("&journal_mode=shadow&{log}"), "dash_log"),
        ("delete", "&journal_mode=delete&dash_durability=full".to_owned(), "dash_durability"),
        ("wal", "&journal_mode=wal&dash_commit=paper".to_owned(), "dash_commit"),
        ("statement", "&journal_mode=statement&dash_kept_limit=auto".to_owned(), "dash_kept_limit"),
    ] {
        let folder = Folder::new();
        let db = folder.try_open("app.db", &parameters).expect("opens");
        db.execute_batch("CREATE TABLE t(x)").expect("commits");
        assert_eq!(text(&db, "PRAGMA journal_mode"), mode);
        let said = last_error(&db);
        let these = format!("mean nothing: {ignored}; they are of mode");
        assert!(said.contains("app.db is ") && said.contains(&these), "{said}");
    }
    // Not where the mode is chosen that they are of.
    let folder = Folder::new();
    let db = folder.try_open("app.db", &format!("&{log}&dash_statements=on")).expect("opens");
    let probe = create(&folder, "probe.db");
    assert!(folder.try_open("app.db", "&dash_log=nowhere").is_err());
    assert!(last_error(&probe).contains("absolute path"), "{}", last_error(&probe));
    assert_eq!(text(&db, "PRAGMA journal_mode=wal"), "wal");
    assert!(!last_error(&probe).contains("mean nothing: dash_log"), "{}", last_error(&probe));
}

/// On a tmpfs, which stands for persistent memory and is told from it.
#[test]
fn in_memory_a_commit_flushes_no_file() {
    let Some(memory) = folder_in_memory() else { return };
    let folder = Folder::new();
    // Coming to rest flushes, however long this takes.
    let more = format!("&journal_mode=wal&dash_rest=off&dash_log={}", memory.path().display());
    let db = folder.try_open("app.db", &more).expect("opens");
    db.execute_batch("CREATE TABLE t(x)").expect("commits");
    put(&db, 2);
    assert_eq!(medium(&db), "tmpfs: not durable");
    let durability = "SELECT value FROM dash_stats WHERE name='durability'";
    let other = folder.try_open("app.db", &more).expect("opens");
    for (set, said) in [
        ("synchronous=FULL", "volatile"),
        ("synchronous=NORMAL", "volatile"),
        ("dash_durability=full", "volatile"),
        ("dash_durability=device", "volatile"),
        ("dash_durability=host", "volatile"),
        ("synchronous=OFF", "off"),
        ("synchronous=FULL", "volatile"),
    ] {
        db.execute_batch(&format!("PRAGMA {set}")).expect("sets");
        assert_eq!(text(&db, durability), said, "{set}");
    }
    assert_eq!(text(&other, durability), "volatile");
    drop(other);
    let counters =
        ["log_flushes", "wal_flushes", "database_flushes", "directory_flushes", "log_bytes"];
    let before = counters.map(|name| statistic(&db, name));
    put(&db, 10);
    let after = counters.map(|name| statistic(&db, name));
    let [fences, wal, database, folders, bytes] = std::array::from_fn(|at| after[at] - before[at]);
    assert_eq!([fences, wal, database, folders], [10, 0, 0, 0]);
    assert_eq!(bytes % 64, 0, "lines");
    // Two processes' worth of connections, a checkpoint, and the end.
    let second = create(&folder, "app.db");
    put(&second, 2);
    db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").expect("checkpoints");
    put(&db, 2);
    assert_eq!(number(&second, "SELECT count(*) FROM t"), 16);
    drop((db, second));
    at_rest(&folder, "app.db");
    // After a restart of the machine nothing is there.
    fs::remove_file(only(memory.path())).expect("removes");
    let probe = create(&folder, "probe.db");
    assert!(folder.try_open("app.db", "").is_err());
    assert!(last_error(&probe).contains("tmpfs"), "{}", last_error(&probe));
}

/// Processes that are not told where the log is store to it together; each is killed.
#[test]
fn in_memory_killed_processes_lose_nothing() {
    let Some(memory) = folder_in_memory() else { return };
    let folder = Folder::new();
    let db = with_log(&folder, memory.path()).expect("opens");
    db.execute_batch("CREATE TABLE t(x)").expect("commits");
    // Only who is told where it is to lie makes it.
    put(&db, 2);
    assert_eq!(medium(&db), "tmpfs: not durable");
    drop(db);
    for round in 0..4 {
        let other = start(&folder, "commits");
        let last = kill_after(start(&folder, "commits"), 30, Duration::from_millis(round));
        let others = kill_after(other, 30, Duration::ZERO);
        let db = create(&folder, "app.db");
        let found = number(&db, "SELECT max(x) FROM t");
        assert!(found >= last.max(others), "{found} of {last} and {others}");
        whole(&db);
        put(&db, 12);
        assert_eq!(medium(&db), "tmpfs: not durable");
    }
}
