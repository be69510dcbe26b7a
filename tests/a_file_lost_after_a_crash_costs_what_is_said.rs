//! What a file of mode wal costs that is lost after a crash, or is another database's: nothing,
//! commits, or a refusal that names the remedy. GUARANTEES.md has a line for each story here.
//!
//! A power loss is told by the files: the boot's own ones are gone, and `-wal` ends where it was
//! flushed last.

mod suite;

use std::fs;
use std::path::{Path, PathBuf};

use dash_testing::locks;
use dash_testing::names::{beside, exists};
use suite::peers::{Part, Session};
use tempfile::TempDir;

/// Rows that a checkpoint has copied into the database.
const CHECKPOINTED: i64 = 200;
/// Commits of a row each after that, in `-wal`, and but for the first in the log.
const COMMITS: i64 = 6;
const COUNT: &str = "SELECT count(*) FROM t";
const BYTES_OF_A_FRAME: u64 = 24 + 4096;

fn wal() -> Part<'static> {
    Part { parameters: "&journal_mode=wal&dash_rest=off", ..Part::default() }
}

/// The same, with `-wal` in the memory of the session.
fn in_memory() -> Part<'static> {
    Part { parameters: "&journal_mode=wal&dash_wal=memory", ..Part::default() }
}

/// A database whose only user was killed after its commits.
fn killed() -> (TempDir, PathBuf) {
    let (folder, path, db) = open(wal());
    db.kill();
    left(&path);
    (folder, path)
}

/// One that had `-wal` in memory.
fn killed_in_memory() -> (TempDir, PathBuf) {
    let (folder, path, db) = open(in_memory());
    db.kill();
    left(&path);
    (folder, path)
}

fn left(path: &Path) {
    for name in ["-wal", "-dashlog", "-journal"] {
        assert!(exists(&beside(path, name)), "a session left no {name}");
    }
}

/// A session that has made its commits.
fn open(part: Part<'_>) -> (TempDir, PathBuf, Session) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.db");
    let mut db = Session::dash(&path, wal()).expect("opens");
    db.must("CREATE TABLE t(id INTEGER PRIMARY KEY, body TEXT)");
    db.must("WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200) INSERT INTO t(body) SELECT i FROM n");
    // A session of more than a few commits, or the next one would begin its log later.
    (0..20).for_each(|turn| drop(db.must(&format!("UPDATE t SET body = {turn} WHERE id = 1"))));
    db.close();
    let mut db = Session::dash(&path, part).expect("opens");
    (0..COMMITS).for_each(|turn| drop(db.must(&format!("INSERT INTO t(body) VALUES ({turn})"))));
    (folder, path, db)
}

/// What a power loss leaves of it, with so many frames in `-wal`.
fn without_power(frames: u64) -> (TempDir, PathBuf) {
    let (folder, path) = killed();
    remove(&path, "-dash");
    remove(&path, "-shm");
    let wal = fs::OpenOptions::new().write(true).open(beside(&path, "-wal")).expect("is there");
    wal.set_len(32 + frames * BYTES_OF_A_FRAME).expect("is cut");
    (folder, path)
}

fn remove(path: &Path, name: &str) {
    fs::remove_file(beside(path, name)).expect("was there");
}

/// What dash finds.
fn rows(path: &Path) -> Result<i64, String> {
    let mut db = Session::dash(path, Part::default())?;
    assert_eq!(db.must("PRAGMA integrity_check"), "ok");
    let rows = db.must(COUNT).parse().expect("a number");
    db.close();
    Ok(rows)
}

#[test]
fn nothing_lost_costs_nothing() {
    assert_eq!(rows(&killed().1), Ok(CHECKPOINTED + COMMITS));
    for frames in [0, 1, 3] {
        let found = rows(&without_power(frames).1);
        match frames {
            // A session's first commit is flushed in `-wal`, which no power loss takes.
            0 => assert!(
                found.is_err_and(|why| why.contains("sqlite-dash recover")),
                "it was guessed"
            ),
            _ => assert_eq!(found, Ok(CHECKPOINTED + COMMITS), "{frames} frames in -wal"),
        }
    }
}

/// The page cache outlives the process, so `-wal` has it all.
#[test]
fn the_log_costs_nothing_after_a_kill() {
    let (_folder, path) = killed();
    remove(&path, "-dashlog");
    assert_eq!(rows(&path), Ok(CHECKPOINTED + COMMITS));
}

/// It was where those commits were durable.
#[test]
fn the_log_is_missed_after_a_power_loss() {
    for frames in [1, 3] {
        let (_folder, path) = without_power(frames);
        misses_its_log(&path);
    }
}

fn misses_its_log(path: &Path) {
    remove(path, "-dashlog");
    let refused = rows(path).expect_err("it is opened");
    assert!(refused.contains("app.db-dashlog is missing"), "{refused}");
    assert!(refused.contains("--discard"), "{refused}");
}

/// As with stock SQLite; where the log can tell it is refused, which the tests of `sqlite-dash
/// recover` show.
#[test]
fn wal_costs_what_was_not_checkpointed() {
    for power in [false, true] {
        let (_folder, path) = if power { without_power(3) } else { killed() };
        remove(&path, "-wal");
        match rows(&path) {
            Ok(found) => assert_eq!(found, CHECKPOINTED),
            Err(why) => assert!(why.contains("sqlite-dash recover"), "{why}"),
        }
    }
}

/// While a mere reader holds a lock on what processes share a killed session seems to live: each
/// opening is refused, and none leaves a `-wal` that the next one takes for the session's.
#[test]
fn wal_is_missed_where_a_session_only_seems_to_live() {
    for is_there in [false, true] {
        let (folder, path) = killed();
        let wal = beside(&path, "-wal");
        match is_there {
            true => fs::write(&wal, vec![0; 65_536]).expect("writes"),
            false => remove(&path, "-wal"),
        }
        remove(&path, "-shm");
        let lock = fs::File::open(beside(&path, "-dash")).expect("is there");
        locks::lock(&lock, libc::F_RDLCK, 2, 1);
        let count = || {
            let mut db = Session::dash(&folder.path().join("other.db"), Part::default())?;
            let opened = db.sql(&format!("ATTACH '{}' AS app", suite::uri(&path, "")));
            let found = opened.and_then(|_| db.sql("SELECT count(*) FROM app.t"));
            found.map_err(|_| db.must("SELECT dash_last_error()"))
        };
        for _ in 0..3 {
            let why = count().expect_err("commits are dropped without a word");
            assert!(why.contains("app.db-wal is missing"), "{why}");
        }
        drop(lock);
        let why = rows(&path).expect_err("commits are dropped without a word");
        assert!(
            why.contains("app.db-wal is missing") && why.contains("sqlite-dash recover"),
            "{why}"
        );
    }
}

#[test]
fn what_processes_share_costs_nothing() {
    let (_folder, path) = killed();
    remove(&path, "-shm");
    remove(&path, "-dash");
    assert_eq!(rows(&path), Ok(CHECKPOINTED + COMMITS));
}

/// The folder keeps stock SQLite from an older state. Without it stock takes that for all there is,
/// and dash tells by the log.
#[test]
fn the_fence_lets_stock_sqlite_in_on_what_wal_has() {
    let (_folder, path) = killed();
    suite::fence::remove(&path);
    let all = (CHECKPOINTED + COMMITS).to_string();
    assert_eq!(Session::stock(&path).must(COUNT), all, "after a kill -wal has it all");
    assert_eq!(rows(&path), Ok(CHECKPOINTED + COMMITS));

    let (_folder, path) = without_power(3);
    suite::fence::remove(&path);
    let mut stock = Session::stock(&path);
    assert_eq!(stock.must(COUNT), (CHECKPOINTED + 3).to_string());
    stock.close();
    let why = rows(&path).expect_err("commits are dropped without a word");
    assert!(why.contains("app.db-wal is missing") && why.contains("sqlite-dash recover"), "{why}");
}

/// Whose commits it has is told by the pages of both.
#[test]
fn a_log_of_another_database_is_refused_unless_it_says_nothing() {
    let (_other_folder, other) = killed();
    let mut db = Session::dash(&other, Part::default()).expect("opens");
    db.must("INSERT INTO t(body) VALUES ('of the other')");
    db.must("DELETE FROM t WHERE id % 3 = 0");
    db.must("INSERT INTO t(body) VALUES ('of the other')");
    db.kill();
    for at_rest in [false, true] {
        let (_folder, path) = killed();
        if at_rest {
            assert_eq!(rows(&path), Ok(CHECKPOINTED + COMMITS));
        }
        fs::copy(beside(&other, "-dashlog"), beside(&path, "-dashlog")).expect("copied");
        let why = rows(&path).expect_err("another database's log was taken");
        assert!(why.contains("don't belong to app.db") && why.contains("--discard"), "{why}");
    }
    // One that was closed holds no commit.
    rows(&other).expect("recovers");
    let (_folder, path) = killed();
    assert_eq!(rows(&path), Ok(CHECKPOINTED + COMMITS));
    fs::copy(beside(&other, "-dashlog"), beside(&path, "-dashlog")).expect("copied");
    assert_eq!(rows(&path), Ok(CHECKPOINTED + COMMITS));
}

/// Neither needs the log, so there is no fence, and stock SQLite recovers `-wal` by itself.
#[test]
fn a_session_of_one_commit_or_of_normal_ones_is_stocks_to_recover() {
    for (level, commits) in [("FULL", 1), ("NORMAL", COMMITS)] {
        let (_folder, path) = killed();
        rows(&path).expect("recovers");
        let mut db = Session::dash(&path, wal()).expect("opens");
        db.must(&format!("PRAGMA synchronous={level}"));
        (0..commits).for_each(|turn| {
            db.must(&format!("INSERT INTO t(body) VALUES ({turn})"));
        });
        db.kill();
        assert!(!exists(&beside(&path, "-journal")), "{level}: a fence");
        let all = CHECKPOINTED + COMMITS + commits;
        assert_eq!(Session::stock(&path).must(COUNT), all.to_string(), "{level}");
        assert_eq!(rows(&path), Ok(all), "{level}");
    }
}

/// Nor does dash need it to tell what a hand has put in the place of a file, cut or removed since.
#[test]
fn nor_is_a_log_needed_to_tell_what_was_put_there() {
    for (level, commits) in [("FULL", 1), ("NORMAL", COMMITS)] {
        for (name, says) in [("", "don't belong to app.db"), ("-wal", "app.db-wal back")] {
            let (folder, path) = killed();
            rows(&path).expect("recovers");
            let older = folder.path().join("older");
            fs::copy(&path, &older).expect("copied");
            let mut db = Session::dash(&path, wal()).expect("opens");
            db.must("UPDATE t SET body = zeroblob(1000)");
            db.close();
            let mut db = Session::dash(&path, wal()).expect("opens");
            db.must(&format!("PRAGMA synchronous={level}"));
            for turn in 0..commits {
                if name == "-wal" {
                    fs::copy(beside(&path, name), &older).expect("copied");
                }
                db.must(&format!("INSERT INTO t(body) VALUES ({turn})"));
            }
            db.kill();
            let all = Ok(CHECKPOINTED + COMMITS + commits);
            let replaced = beside(&path, name);
            let right = fs::read(&replaced).expect("is there");
            fs::copy(&older, &replaced).expect("copied");
            for _ in 0..2 {
                let why = rows(&path).expect_err("it is taken");
                assert!(why.contains(says) && why.contains("--discard"), "{level}: {why}");
            }
            fs::write(&replaced, &right).expect("is put back");
            if name == "-wal" {
                let aside = folder.path().join("aside");
                fs::rename(&replaced, &aside).expect("is moved");
                let why = rows(&path).expect_err("commits are dropped without a word");
                assert!(why.contains("app.db-wal is missing"), "{level}: {why}");
                fs::rename(&aside, &replaced).expect("is moved back");
            }
            assert_eq!(rows(&path), all, "{level}: put back");
        }
    }
}

/// So does a copy of that file alone: what no checkpoint has brought there is missing.
#[test]
fn immutable_reads_the_database_alone() {
    let (folder, path) = killed();
    let alone = folder.path().join("alone.db");
    fs::copy(&path, &alone).expect("copied");
    let uri = format!("file:{}?immutable=1", path.display());
    let immutable = rusqlite::Connection::open(uri).expect("opens");
    for db in [immutable, suite::stock(&alone)] {
        assert_eq!(suite::one::<i64>(&db, COUNT), CHECKPOINTED);
    }
    assert_eq!(rows(&alone), Ok(CHECKPOINTED), "it is not told from a database at rest");

    let path = folder.path().join("shadow.db");
    let mut db = Session::dash(&path, Part::default()).expect("opens");
    db.must("CREATE TABLE t(x)");
    let row = |turn| format!("INSERT INTO t VALUES ({turn})");
    (0..3).for_each(|turn| drop(db.must(&row(turn))));
    db.kill();
    let uri = format!("file:{}?immutable=1", path.display());
    let immutable = rusqlite::Connection::open(uri).expect("opens");
    assert!(suite::one::<i64>(&immutable, COUNT) >= 2, "older than by one commit");
}

/// What the file of `-wal` holds is not for stock SQLite to read (WAL-45).
fn is_not_let_in(path: &Path) {
    let refused = Session::stock(path).sql(COUNT).expect_err("stock SQLite reads");
    assert!(refused.contains("unable to open database file"), "{refused}");
}

/// What was in memory is in no other file (WAL-38).
#[test]
fn with_wal_in_memory_the_log_is_missed_after_a_kill() {
    assert_eq!(rows(&killed_in_memory().1), Ok(CHECKPOINTED + COMMITS), "nothing was lost");
    let (_folder, path) = killed_in_memory();
    misses_its_log(&path);
}

/// The fence keeps stock SQLite out, and the log has everything.
#[test]
fn with_wal_in_memory_what_processes_share_costs_nothing() {
    for names in [&["-shm"][..], &["-dash"], &["-shm", "-dash"]] {
        let (_folder, path) = killed_in_memory();
        names.iter().for_each(|name| remove(&path, name));
        let refused = Session::stock(&path).sql(COUNT).expect_err("stock SQLite reads");
        assert!(refused.contains("disk I/O error"), "{names:?}: {refused}");
        assert_eq!(rows(&path), Ok(CHECKPOINTED + COMMITS), "{names:?}");
    }
}

/// Without the fence, and with an index of its own, stock SQLite finds a `-wal` that it can't read.
#[test]
fn with_wal_in_memory_the_fence_costs_nothing() {
    for names in [&[][..], &["-shm"]] {
        let (_folder, path) = killed_in_memory();
        suite::fence::remove(&path);
        names.iter().for_each(|name| remove(&path, name));
        is_not_let_in(&path);
        assert_eq!(rows(&path), Ok(CHECKPOINTED + COMMITS), "{names:?}");
    }
}

/// Nor while it is open.
#[test]
fn with_wal_in_memory_shm_costs_nothing_while_it_is_open() {
    let (_folder, path, mut db) = open(in_memory());
    is_not_let_in(&path);
    remove(&path, "-shm");
    is_not_let_in(&path);
    db.must("INSERT INTO t(body) VALUES ('after it')");
    is_not_let_in(&path);
    db.close();
    assert_eq!(rows(&path), Ok(CHECKPOINTED + COMMITS + 1));
}
