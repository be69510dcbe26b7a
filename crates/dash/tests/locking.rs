//! Locks, and waiting for them.

mod common;
use common::*;

use std::sync::mpsc;
use std::time::{Duration, Instant};

#[test]
fn a_second_writer_gets_busy_and_waits_its_busy_timeout() {
    let folder = Folder::new();
    let (a, b) = (folder.open("app.db"), folder.open("app.db"));
    a.execute_batch("CREATE TABLE t(x); BEGIN IMMEDIATE").expect("locks");
    b.busy_timeout(Duration::ZERO).expect("sets");
    assert_eq!(code(b.execute_batch("BEGIN IMMEDIATE")), ErrorCode::DatabaseBusy);
    b.busy_timeout(Duration::from_millis(200)).expect("sets");
    let begun = Instant::now();
    assert_eq!(code(b.execute_batch("BEGIN IMMEDIATE")), ErrorCode::DatabaseBusy);
    assert!(begun.elapsed() >= Duration::from_millis(190), "{:?}", begun.elapsed());
    a.execute_batch("COMMIT").expect("unlocks");
    b.execute_batch("BEGIN IMMEDIATE; COMMIT").expect("free now");
}

/// Where no statement runs an interrupt means nothing, and SQLite keeps its mark: a step of a
/// backup that meets a lock would be its last.
#[test]
fn an_idle_interrupt_ends_no_later_wait() {
    for mode in ["shadow", "wal", "delete"] {
        let folder = Folder::new();
        let (holder, mut to) = (folder.open("app.db"), folder.open("app.db"));
        holder
            .execute_batch(&format!("PRAGMA journal_mode={mode}; CREATE TABLE t(x)"))
            .expect(mode);
        let from = folder.open("other.db");
        from.execute_batch("CREATE TABLE t(x)").expect(mode);
        holder.execute_batch("BEGIN IMMEDIATE").expect(mode);
        to.busy_timeout(Duration::ZERO).expect("sets");
        to.get_interrupt_handle().interrupt();
        let backup = rusqlite::backup::Backup::new(&from, &mut to).expect("begins");
        assert_ne!(
            backup.step(-1).map_err(|error| error.sqlite_error_code()),
            Err(Some(ErrorCode::OperationInterrupted)),
            "{mode}"
        );
        holder.execute_batch("COMMIT").expect(mode);
    }
}

/// In SQLite's busy handler an interrupt is not heard: it sleeps, and asks for the lock again.
#[test]
fn an_interrupt_ends_a_wait_for_a_lock() {
    for mode in ["shadow", "wal", "delete"] {
        let folder = Folder::new();
        let (holder, waiter) = (folder.open("app.db"), folder.open("app.db"));
        holder.execute_batch(&format!("PRAGMA journal_mode={mode}; BEGIN IMMEDIATE")).expect(mode);
        waiter.busy_timeout(Duration::from_secs(60)).expect("sets");
        let handle = waiter.get_interrupt_handle();
        let (ended, end) = mpsc::channel();
        let waits = std::thread::spawn(move || {
            let refused = waiter.execute_batch("BEGIN IMMEDIATE");
            ended.send(()).expect("listens");
            (code(refused), last_error(&waiter))
        });
        // It may not have begun to wait.
        while end.recv_timeout(Duration::from_millis(500)).is_err() {
            handle.interrupt();
        }
        let (refused, why) = waits.join().expect("no panic");
        assert_eq!(refused, ErrorCode::OperationInterrupted, "{mode}");
        assert!(why.contains("app.db is locked"), "{mode}: {why}");
    }
}

#[test]
fn a_waiting_writer_wakes_when_the_lock_is_given_up() {
    let folder = Folder::new();
    let a = folder.open("app.db");
    a.execute_batch("CREATE TABLE t(x)").expect("commits");
    for _ in 0..7 {
        let b = folder.open("app.db");
        let (ready, go) = mpsc::channel();
        a.execute_batch("BEGIN IMMEDIATE; INSERT INTO t VALUES (1)").expect("locks");
        let waiter = std::thread::spawn(move || {
            ready.send(()).expect("listens");
            b.execute_batch("INSERT INTO t VALUES (2)").expect("gets the lock");
            number(&b, "SELECT count FROM dash_latency WHERE op='lock_wait'")
        });
        go.recv().expect("starts");
        // By then stock's busy handler sleeps 100 ms at a time.
        std::thread::sleep(Duration::from_millis(350));
        a.execute_batch("COMMIT").expect("commits");
        assert_eq!(waiter.join().expect("no panic"), 1, "it waited once");
    }
    // Woken late, where the machine is busy, counts as missed.
    let woken = number(
        &a,
        "SELECT sum(value) FROM dash_stats WHERE name IN ('handovers', 'missed_handovers')",
    );
    assert!(woken >= 4, "{woken} of 7");
}

#[test]
fn many_writers_all_get_their_turn() {
    const THREADS: i64 = 6;
    const EACH: i64 = 60;
    let folder = Folder::new();
    let db = folder.open("app.db");
    db.execute_batch("CREATE TABLE t(x)").expect("commits");
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let folder = &folder;
            scope.spawn(move || {
                let db = folder.open("app.db");
                for i in 0..EACH {
                    db.execute("INSERT INTO t VALUES (?)", [thread * EACH + i])
                        .expect("waits for its turn");
                }
            });
        }
    });
    assert_eq!(number(&db, "SELECT count(DISTINCT x) FROM t"), THREADS * EACH);
    whole(&db);
}

#[test]
fn a_reader_keeps_its_snapshot_and_delays_no_commit() {
    let folder = Folder::new();
    let (writer, reader) = (folder.open("app.db"), folder.open("app.db"));
    writer.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").expect("commits");
    writer.busy_timeout(Duration::ZERO).expect("sets");
    reader.execute_batch("BEGIN").expect("begins");
    assert_eq!(number(&reader, "SELECT count(*) FROM t"), 1);
    for round in 2..10 {
        writer.execute("INSERT INTO t VALUES (?)", [round]).expect("the reader is not in the way");
        assert_eq!(number(&reader, "SELECT count(*) FROM t"), 1);
        whole(&reader);
    }
    // An old snapshot can't become a write transaction (T17).
    let failed = reader.execute_batch("INSERT INTO t VALUES (4)");
    assert_eq!(code(failed), ErrorCode::DatabaseBusy);
    reader.execute_batch("COMMIT").expect("ends");
    assert_eq!(number(&reader, "SELECT count(*) FROM t"), 9);
}

/// A reader whose snapshot is in mapped memory, which stands in the way of the second commit from
/// then.
fn mapping_reader(folder: &Folder) -> Connection {
    let reader = folder.open("app.db");
    reader.execute_batch("PRAGMA mmap_size=1000000").expect("sets");
    reader
}

#[test]
fn a_writer_that_waits_for_a_reader_wakes_when_the_reader_ends() {
    let folder = Folder::new();
    let (writer, reader) = (folder.open("app.db"), mapping_reader(&folder));
    writer.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").expect("commits");
    let woken = (0..5).filter(|_| {
        reader.execute_batch("BEGIN").expect("begins");
        number(&reader, "SELECT count(*) FROM t");
        writer.execute_batch("INSERT INTO t VALUES (2)").expect("commits");
        let other = folder.open("app.db");
        other.busy_timeout(Duration::ZERO).expect("sets");
        let failed = other.execute_batch("INSERT INTO t VALUES (3)");
        assert_eq!(code(failed), ErrorCode::DatabaseBusy);
        other.busy_timeout(Duration::from_secs(5)).expect("sets");
        let waiting = std::thread::spawn(move || {
            other.execute_batch("INSERT INTO t VALUES (3)").expect("gets through");
            number(&other, "SELECT value FROM dash_stats WHERE name = 'wakeups'") == 1
        });
        std::thread::sleep(Duration::from_millis(350));
        reader.execute_batch("COMMIT").expect("ends");
        waiting.join().expect("no panic")
    });
    // One may have looked again by itself just then.
    assert!(woken.count() >= 3);
}

#[test]
fn an_exclusive_session_commits_again_and_again() {
    let folder = Folder::new();
    for protocol in ["single", "paper", "exclusive"] {
        let name = format!("{protocol}.db");
        let db = folder.try_open(&name, &format!("&dash_commit={protocol}")).expect("opens");
        db.execute_batch("CREATE TABLE t(x); PRAGMA locking_mode=exclusive").expect("sets");
        for round in 0..10 {
            db.execute("INSERT INTO t VALUES (?)", [round]).expect("commits");
        }
        db.execute_batch("BEGIN; INSERT INTO t VALUES (77); ROLLBACK").expect("rolls back");
        let other = folder.open(&name);
        other.busy_timeout(Duration::ZERO).expect("sets");
        assert_eq!(code(other.execute_batch("INSERT INTO t VALUES (99)")), ErrorCode::DatabaseBusy);
        assert_eq!(number(&other, "SELECT count(*) FROM t"), 10);
        db.execute_batch("PRAGMA locking_mode=normal; SELECT count(*) FROM t")
            .expect("gives up the lock");
        other.execute_batch("INSERT INTO t VALUES (99)").expect("commits");
        assert_eq!(number(&db, "SELECT count(*) FROM t"), 11);
        whole(&db);
    }
}

#[test]
fn a_reader_in_the_way_of_an_exclusive_session_is_waited_for_or_ends_the_transaction() {
    let folder = Folder::new();
    let (db, reader) = (folder.open("app.db"), mapping_reader(&folder));
    db.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (0); PRAGMA locking_mode=exclusive")
        .expect("sets");
    db.busy_timeout(Duration::from_millis(50)).expect("sets");
    db.execute_batch("INSERT INTO t VALUES (1)").expect("commits");
    reader.execute_batch("BEGIN").expect("begins");
    assert_eq!(number(&reader, "SELECT count(*) FROM t"), 2);
    db.execute_batch("INSERT INTO t VALUES (2)").expect("commits");
    // T5: an error, and nothing that looks like a commit without one. SQLite then wants to roll its
    // journal back before anything else, and that needs the same copy.
    let failed = db.execute_batch("INSERT INTO t VALUES (3)");
    assert_eq!(code(failed), ErrorCode::SystemIoFailure);
    assert!(last_error(&reader).contains("a reader keeps the copy"), "{}", last_error(&reader));
    assert_eq!(number(&reader, "SELECT count(*) FROM t"), 2);
    reader.execute_batch("COMMIT").expect("ends");
    assert_eq!(number(&db, "SELECT count(*) FROM t"), 3);
    db.execute_batch("INSERT INTO t VALUES (4)").expect("commits");
    assert_eq!(text(&db, "SELECT group_concat(x) FROM t"), "0,1,2,4");
    assert_eq!(text(&reader, "SELECT group_concat(x) FROM t"), "0,1,2,4");
}

#[test]
fn stock_reads_and_is_told_that_the_database_is_locked() {
    let folder = Folder::new();
    let db = folder.open("app.db");
    db.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").expect("commits");
    for round in 0..4 {
        let stock = folder.stock("app.db");
        assert_eq!(number(&stock, "SELECT count(*) FROM t"), round + 1);
        whole(&stock);
        assert_eq!(code(stock.execute_batch("INSERT INTO t VALUES (0)")), ErrorCode::DatabaseBusy);
        drop(stock);
        db.execute_batch("INSERT INTO t VALUES (2)").expect("commits");
    }
    drop(db);
    let stock = folder.stock("app.db");
    stock.execute_batch("INSERT INTO t VALUES (3)").expect("at rest anybody may write");
    drop(stock);
    let db = folder.open("app.db");
    assert_eq!(number(&db, "SELECT count(*) FROM t"), 6);
    db.execute_batch("INSERT INTO t VALUES (4)").expect("commits");
    whole(&db);
}
