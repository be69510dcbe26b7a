//! Who waits for whom.

use std::os::unix::fs::FileExt;
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

use crate::common::*;
use crate::{at_rest, create};

#[test]
fn writers_in_many_threads_all_commit_everything() {
    const THREADS: u8 = 8;
    const EACH: u8 = 100;
    let folder = Folder::new();
    let db = create(&folder, "app.db");
    db.execute_batch("CREATE TABLE t(thread, x)").expect("commits");
    let begin = Barrier::new(usize::from(THREADS));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (folder, begin) = (&folder, &begin);
            scope.spawn(move || {
                let db = folder.open("app.db");
                db.busy_timeout(Duration::from_secs(20)).expect("sets");
                begin.wait();
                for x in 0..EACH {
                    let insert = "INSERT INTO t VALUES (?, ?)";
                    db.execute(insert, [thread, x]).unwrap_or_else(|error| panic!("{x}: {error}"));
                }
                db.close().expect("closes");
            });
        }
    });
    let all = i64::from(THREADS) * i64::from(EACH);
    assert_eq!(number(&db, "SELECT count(*) FROM t"), all);
    whole(&db);
    db.close().expect("closes");
    at_rest(&folder, "app.db");
}

#[test]
fn a_reader_keeps_its_snapshot_while_others_commit() {
    let folder = Folder::new();
    let db = create(&folder, "app.db");
    db.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").expect("commits");
    let reader = folder.open("app.db");
    reader.execute_batch("BEGIN").expect("begins");
    assert_eq!(number(&reader, "SELECT count(*) FROM t"), 1);
    for x in 0..50 {
        db.execute("INSERT INTO t VALUES (?)", [x]).expect("no reader is in the way");
    }
    assert_eq!(number(&reader, "SELECT count(*) FROM t"), 1);
    let stale = reader.execute_batch("INSERT INTO t VALUES (0)");
    assert_eq!(code(stale), ErrorCode::DatabaseBusy);
    reader.execute_batch("COMMIT").expect("ends");
    assert_eq!(number(&reader, "SELECT count(*) FROM t"), 51);
}

#[test]
fn a_waiting_writer_has_the_lock_soon_after_it_is_free() {
    let folder = Folder::new();
    let db = create(&folder, "app.db");
    db.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").expect("commits");
    let second = folder.open("app.db");
    second.busy_timeout(Duration::from_secs(20)).expect("sets");
    let second = Mutex::new(second);
    for _ in 0..5 {
        db.execute_batch("BEGIN IMMEDIATE").expect("begins");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let second = second.lock().expect("one at a time");
                second.execute_batch("BEGIN IMMEDIATE; COMMIT").expect("waits");
            });
            // By now the busy handler sleeps for 50 ms and more.
            std::thread::sleep(Duration::from_millis(150));
            db.execute_batch("COMMIT").expect("commits");
        });
    }
    // Each ended a sleep before its time.
    let wakeups = "SELECT value FROM dash_stats WHERE name = 'wakeups'";
    assert_eq!(number(&second.lock().expect("free"), wakeups), 5);
}

/// A sleep of a program's own, through dash as the default VFS.
#[expect(unsafe_code, reason = "calls SQLite's C interface")]
fn sleep(time: Duration) {
    // SAFETY: the VFS is registered, and stays; its method gets itself and a number.
    unsafe {
        let vfs = rusqlite::ffi::sqlite3_vfs_find(c"dash".as_ptr());
        let micros = i32::try_from(time.as_micros()).expect("short");
        (*vfs).xSleep.expect("there")(vfs, micros);
    }
}

/// A connection whose statements are run in threads of their own: each thread remembers what it has
/// waited for, and what it called last.
struct Elsewhere(Mutex<Connection>);

impl Elsewhere {
    fn new(folder: &Folder) -> Self {
        let db = create(folder, "app.db");
        db.execute_batch("CREATE TABLE t(x)").expect("commits");
        db.busy_timeout(Duration::ZERO).expect("sets");
        Self(Mutex::new(db))
    }

    fn run(&self, sql: &str) -> Result<()> {
        std::thread::scope(|scope| {
            let run = || self.0.lock().expect("free").execute_batch(sql);
            scope.spawn(run).join().expect("no panic")
        })
    }

    /// Keeps `other` from writing, and then does so no longer.
    fn keep_out(&self, other: &Connection) {
        self.run("BEGIN IMMEDIATE").expect("begins");
        assert_eq!(code(other.execute_batch("INSERT INTO t VALUES (1)")), ErrorCode::DatabaseBusy);
        self.run("COMMIT").expect("commits");
    }
}

#[test]
fn a_sleep_of_a_programs_own_is_not_shortened() {
    let folder = Folder::new();
    let db = Elsewhere::new(&folder);
    let second = folder.open("app.db");
    second.busy_timeout(Duration::ZERO).expect("sets");
    for time in [3, 10, 20].map(Duration::from_millis) {
        db.keep_out(&second);
        let begun = Instant::now();
        sleep(time);
        assert!(begun.elapsed() >= time, "{time:?}: {:?}", begun.elapsed());
        db.run("INSERT INTO t VALUES (1)").expect("nobody has the lock");
    }
    // Nor one of the handler's length, if something else came before.
    for other in ["app.db", "other.db"] {
        let other = folder.open(other);
        db.keep_out(&second);
        assert_eq!(number(&other, "SELECT count(*) >= 0 FROM sqlite_schema"), 1);
        sleep(Duration::from_millis(1));
        db.run("INSERT INTO t VALUES (1)").expect("nobody has the lock");
    }
}

/// As long as the first sleep of SQLite's busy handler it is taken for one.
#[test]
fn a_lock_that_nobody_comes_for_is_given_up() {
    let folder = Folder::new();
    let db = Elsewhere::new(&folder);
    let second = folder.open("app.db");
    second.busy_timeout(Duration::ZERO).expect("sets");
    let take = || {
        db.keep_out(&second);
        sleep(Duration::from_millis(1));
        let tried = db.run("INSERT INTO t VALUES (1)");
        assert_eq!(code(tried), ErrorCode::DatabaseBusy, "the sleep has it");
    };
    take();
    let begun = Instant::now();
    while db.run("INSERT INTO t VALUES (1)").is_err() {
        assert!(begun.elapsed() < Duration::from_secs(5), "never");
        std::thread::sleep(Duration::from_millis(10));
    }
    take();
    assert_eq!(number(&second, "SELECT count(*) FROM t"), 1);
    db.run("INSERT INTO t VALUES (1)").expect("at once: it did something else");
    take();
    second.execute_batch("INSERT INTO t VALUES (1)").expect("or it comes for it");
    take();
    drop(second);
    db.run("INSERT INTO t VALUES (1)").expect("or it is closed");
}

#[test]
fn a_busy_timeout_lasts_as_long_as_it_says() {
    let folder = Folder::new();
    let db = create(&folder, "app.db");
    db.execute_batch("CREATE TABLE t(x); BEGIN IMMEDIATE").expect("begins");
    let second = folder.open("app.db");
    second.busy_timeout(Duration::from_millis(300)).expect("sets");
    let begun = Instant::now();
    assert_eq!(code(second.execute_batch("INSERT INTO t VALUES (1)")), ErrorCode::DatabaseBusy);
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(290) && took < Duration::from_secs(3), "{took:?}");
    db.execute_batch("COMMIT").expect("commits");
    second.execute_batch("INSERT INTO t VALUES (1)").expect("commits");
}

#[test]
fn an_exclusive_session_keeps_others_out_and_loses_nothing() {
    for before in [true, false] {
        let folder = Folder::new();
        create(&folder, "app.db").execute_batch("CREATE TABLE t(x)").expect("commits");
        let db = folder.open("app.db");
        if !before {
            db.execute_batch("INSERT INTO t VALUES (0)").expect("commits");
        }
        // Before the first access SQLite keeps the wal-index in its own memory.
        db.execute_batch("PRAGMA locking_mode=EXCLUSIVE").expect("sets");
        for x in 1..100 {
            db.execute("INSERT INTO t VALUES (?)", [x]).expect("commits");
        }
        let other = folder.open("app.db");
        other.busy_timeout(Duration::ZERO).expect("sets");
        assert_eq!(code(other.execute_batch("INSERT INTO t VALUES (0)")), ErrorCode::DatabaseBusy);
        db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE); INSERT INTO t VALUES (100)")
            .expect("commits");
        db.execute_batch("PRAGMA locking_mode=NORMAL; SELECT count(*) FROM t").expect("sets");
        if !before {
            other.execute_batch("INSERT INTO t VALUES (0)").expect("commits");
        }
        assert_eq!(number(&db, "SELECT sum(x) FROM t"), 5050);
        whole(&db);
        drop((db, other));
        at_rest(&folder, "app.db");
        assert_eq!(number(&folder.stock("app.db"), "SELECT sum(x) FROM t"), 5050);
    }
}

/// SQLite makes the index anew within the checkpoint, as after a kill amid a change of its header.
#[test]
fn a_checkpoint_that_finds_no_index_copies_all_the_same() {
    let folder = Folder::new();
    let db = create(&folder, "app.db");
    db.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").expect("commits");
    let index = std::fs::OpenOptions::new().write(true).open(folder.path("app.db-shm"));
    index.and_then(|index| index.write_all_at(&[0; 32], 0)).expect("writes");
    let counts = |row: &rusqlite::Row<'_>| Ok([row.get(0)?, row.get(1)?, row.get(2)?]);
    let [busy, all, copied]: [i64; 3] =
        db.query_row("PRAGMA wal_checkpoint", [], counts).expect("runs");
    assert_eq!((busy, copied), (0, all), "{copied} of {all} frames");
}
