//! WAL-54: a transaction that has read goes on to write though others have committed since, if they
//! wrote none of the pages that it has read.

use crate::common::{Db, PAGE, Tale};

/// Rows of a table, of which two fit into a page.
const ROWS: i64 = 40;

/// A table, besides those that the tale looks at, that two connections have open.
fn two() -> (Tale, Db, Db) {
    let (tale, db) = Tale::begun();
    db.ok(&format!(
        "CREATE TABLE own(x INTEGER PRIMARY KEY, v INTEGER, filler BLOB);
         WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i<{ROWS})
         INSERT INTO own SELECT i, 1000, zeroblob({}) FROM c",
        PAGE / 2 - 60
    ));
    let other = tale.open();
    other.content();
    (tale, db, other)
}

fn write(db: &Db, row: i64) -> Result<(), String> {
    db.run(&format!("UPDATE own SET v = v + 1 WHERE x = {row}"))
}

fn read(db: &Db, row: i64) -> i64 {
    db.value(&format!("SELECT v FROM own WHERE x = {row}")).unwrap()
}

/// A transaction that has read `row`, and nothing else since somebody else has committed.
fn begun(db: &Db, other: &Db, row: i64) {
    write(other, ROWS).unwrap();
    db.ok("BEGIN");
    read(db, row);
}

/// All who look see the same, and nothing of it is lost.
fn agree(tale: &Tale, db: &Db, other: &Db) {
    for row in 1..=ROWS {
        assert_eq!(read(db, row), read(other, row), "row {row}");
    }
    for db in [db, other] {
        assert_eq!(db.value::<String>("PRAGMA integrity_check").unwrap(), "ok");
    }
    tale.survives_all();
    tale.survives(&tale.machine.killed()).unwrap();
    // In NORMAL only `-wal` has it.
    let after = tale.after(tale.machine.killed());
    let found = after.open();
    for row in 1..=ROWS {
        assert_eq!(read(&found, row), read(db, row), "row {row} after a kill");
    }
}

#[test]
pub(crate) fn where_others_wrote_elsewhere() {
    for checkpoints in [false, true] {
        for cached in [1, 100] {
            let (tale, db, other) = two();
            db.ok(&format!("PRAGMA cache_size={cached}"));
            if checkpoints {
                // It reads the database alone then, and others begin -wal anew behind it.
                write(&other, ROWS).unwrap();
                other.checkpoint("PASSIVE");
                db.ok("BEGIN");
                read(&db, 1);
            } else {
                begun(&db, &other, 1);
            }
            let before = read(&other, 20);
            write(&other, 20).unwrap();
            write(&other, 30).unwrap();
            write(&db, 1).unwrap();
            assert_eq!(read(&db, 20), before + 1, "as it is now");
            write(&db, 20).unwrap();
            write(&db, 30).unwrap();
            db.put_in_it();
            agree(&tale, &db, &other);
            other.put();
            db.put();
            agree(&tale, &db, &other);
        }
    }
}

/// Frames that were written more than once, in a transaction larger than its cache.
#[test]
pub(crate) fn with_frames_that_are_written_again() {
    let (tale, db, other) = two();
    db.ok("PRAGMA cache_size=2");
    db.synchronous("NORMAL");
    begun(&db, &other, 1);
    write(&other, 20).unwrap();
    write(&db, 1).unwrap();
    db.ok("SAVEPOINT s; UPDATE own SET v = 7; UPDATE own SET v = v + 1; ROLLBACK TO s; RELEASE s");
    db.ok("UPDATE own SET v = v + 1; UPDATE own SET v = v + 1");
    db.put_in_it();
    agree(&tale, &db, &other);
    other.put();
    agree(&tale, &db, &other);
}

/// Frames of a savepoint that was rolled back are written over: from the first one, or from one in
/// between, also where they were written again.
#[test]
pub(crate) fn with_frames_that_are_written_over() {
    for spilt in ["", "UPDATE own SET v = 3 WHERE x < 20"] {
        for again in ["", "UPDATE own SET v = 8 WHERE x > 20"] {
            let (tale, db, other) = two();
            db.ok("PRAGMA cache_size=1");
            db.synchronous("NORMAL");
            begun(&db, &other, 1);
            write(&other, ROWS - 1).unwrap();
            db.ok("UPDATE own SET v = 1001 WHERE x = 1");
            db.ok(spilt);
            let before = tale.writes("-wal");
            db.ok(&format!(
                "SAVEPOINT s; UPDATE own SET v = 7 WHERE x % 2 = 0 AND x > 10; {again}"
            ));
            assert!(tale.writes("-wal") > before, "nothing was spilled");
            db.ok("ROLLBACK TO s; RELEASE s");
            write(&db, 4).unwrap();
            db.put_in_it();
            agree(&tale, &db, &other);
            other.put();
            agree(&tale, &db, &other);
        }
    }
}

/// The frame before its first one is gone: others have begun `-wal` anew, and it is shorter.
#[test]
pub(crate) fn also_behind_frames_that_are_no_more() {
    let (tale, db, other) = two();
    db.ok("PRAGMA cache_size=2");
    write(&other, ROWS).unwrap();
    other.checkpoint("PASSIVE");
    db.ok("BEGIN");
    read(&db, 1);
    write(&other, 20).unwrap();
    db.ok("UPDATE own SET v = v + 1; UPDATE own SET v = v + 1");
    db.put_in_it();
    agree(&tale, &db, &other);
}

/// What is rolled back leaves nothing, and the connection goes on.
#[test]
pub(crate) fn and_may_be_rolled_back() {
    let (tale, db, other) = two();
    for cached in [2, 100] {
        db.ok(&format!("PRAGMA cache_size={cached}"));
        begun(&db, &other, 1);
        let before = read(&other, 2);
        write(&other, 20).unwrap();
        db.ok("UPDATE own SET v = 7");
        db.ok("ROLLBACK");
        assert_eq!(read(&db, 2), before);
        db.put();
        other.put();
        agree(&tale, &db, &other);
    }
}

/// More than once while a statement reads.
#[test]
pub(crate) fn also_again_while_a_statement_reads() {
    let (tale, db, other) = two();
    write(&other, ROWS).unwrap();
    let mut statement = db.db.prepare("SELECT v FROM own WHERE x <= 2").unwrap();
    let mut rows = statement.query([]).unwrap();
    rows.next().unwrap();
    // Its own commits are no others'.
    for _ in 0..3 {
        write(&db, 10).unwrap();
    }
    for _ in 0..3 {
        write(&other, 20).unwrap();
        write(&db, 10).unwrap();
    }
    write(&other, 10).unwrap();
    let refused = write(&db, 10).unwrap_err();
    assert!(refused.contains("locked"), "{refused}");
    drop(rows);
    drop(statement);
    db.put();
    agree(&tale, &db, &other);
}

/// A cursor that outlives its transaction has a view, in which the next write begins: SQLite before
/// 3.34 does not tell that it reads, nor does another connection of a shared cache.
#[test]
pub(crate) fn also_where_sqlite_does_not_tell_that_it_reads() {
    for row in [11, 21] {
        let (tale, db, other) = two();
        write(&other, ROWS).unwrap();
        db.ok("BEGIN");
        let mut statement = db.db.prepare("SELECT v FROM own WHERE x <= 2").unwrap();
        let mut rows = statement.query([]).unwrap();
        rows.next().unwrap();
        write(&other, 30).unwrap();
        db.ok("UPDATE own SET v = v + 1 WHERE x = 10; COMMIT; PRAGMA hides=1");
        for _ in 0..3 {
            write(&other, 21).unwrap();
        }
        let reader = tale.open();
        reader.ok("BEGIN");
        let before = read(&reader, 21);
        write(&db, row).unwrap();
        assert_eq!(read(&reader, 21), before, "a snapshot changes");
        // Its own growth is nobody else's.
        for _ in 0..2 {
            db.ok("INSERT INTO own(v, filler) VALUES (1, randomblob(3000))");
        }
        drop(rows);
        drop(statement);
        reader.close();
        db.ok("PRAGMA hides=0");
        db.put();
        assert_eq!(read(&db, 21), 1003 + i64::from(row == 21));
        agree(&tale, &db, &other);
    }
}

/// With `psow=0` SQLite counts frames behind a commit that pad a sector; in a view there are none.
#[test]
pub(crate) fn also_where_it_counts_frames_that_pad_a_sector() {
    let (tale, db, other) = two();
    db.close();
    let db = tale.open_padding();
    db.ok("PRAGMA cache_size=1");
    let mut statement = db.db.prepare("SELECT v FROM own WHERE x <= 2").unwrap();
    let mut rows = statement.query([]).unwrap();
    rows.next().unwrap();
    write(&other, 30).unwrap();
    for (row, others) in [(10, 20), (12, 21), (10, 30)] {
        write(&db, row).unwrap();
        write(&other, others).unwrap();
        db.ok("PRAGMA shrink_memory");
        read(&db, 10);
        read(&db, 12);
    }
    write(&db, 10).unwrap();
    drop(rows);
    drop(statement);
    assert_eq!((read(&db, 10), read(&db, 12), read(&db, 30)), (1003, 1001, 1002));
    agree(&tale, &db, &other);
}

/// Under `locking_mode=EXCLUSIVE` SQLite changes the header without a call that tells, and keeps
/// its cache.
#[test]
pub(crate) fn nor_what_it_has_read_as_the_only_one() {
    for mode in ["PASSIVE", "FULL", "RESTART", "TRUNCATE"] {
        let (tale, db, other) = two();
        other.close();
        db.ok("PRAGMA cache_size=100; PRAGMA locking_mode=EXCLUSIVE; BEGIN IMMEDIATE; COMMIT");
        read(&db, 1);
        db.checkpoint(mode);
        db.ok("PRAGMA locking_mode=NORMAL");
        read(&db, 30);
        let other = tale.open();
        db.ok("BEGIN");
        read(&db, 1);
        write(&other, 1).unwrap();
        is_refused(&db, 10);
        agree(&tale, &db, &other);
    }
}

fn is_refused(db: &Db, row: i64) {
    let refused = write(db, row).unwrap_err();
    assert!(refused.contains("locked"), "{refused}");
    db.ok("ROLLBACK");
}

#[test]
pub(crate) fn but_not_where_they_wrote_what_it_has_read() {
    let (tale, db, other) = two();
    begun(&db, &other, 1);
    write(&other, 1).unwrap();
    is_refused(&db, 10);
    agree(&tale, &db, &other);
}

/// SQLite reads them no more, and no call tells that it uses them.
#[test]
pub(crate) fn nor_what_it_has_of_earlier_transactions() {
    let (tale, db, other) = two();
    write(&other, ROWS).unwrap();
    read(&db, 1);
    db.ok("BEGIN");
    read(&db, 10);
    write(&other, 1).unwrap();
    read(&db, 1);
    is_refused(&db, 20);
    agree(&tale, &db, &other);
}

#[test]
pub(crate) fn nor_what_it_had_before_it_began_wal_anew() {
    let (tale, db, other) = two();
    other.checkpoint("PASSIVE");
    read(&db, 1);
    write(&db, 10).unwrap();
    db.ok("BEGIN");
    read(&db, 10);
    write(&other, 1).unwrap();
    read(&db, 1);
    is_refused(&db, 20);
    agree(&tale, &db, &other);
}

/// A large value goes on in pages of which only a part is read.
#[test]
pub(crate) fn nor_a_part_of_a_page_that_it_has_read() {
    let (tale, db, other) = two();
    db.ok(&format!(
        "CREATE TABLE large(x BLOB); INSERT INTO large VALUES (zeroblob({}))",
        40 * PAGE
    ));
    write(&other, ROWS).unwrap();
    other.checkpoint("PASSIVE");
    for len in [512, 700, 1000] {
        write(&other, ROWS).unwrap();
        other.checkpoint("PASSIVE");
        db.ok("BEGIN");
        let at = 30 * PAGE;
        db.value::<Vec<u8>>(&format!("SELECT substr(x, 1, {at} + {len}) FROM large")).unwrap();
        let blob = other.db.blob_open("main", "large", "x", 1, false).unwrap();
        let (mut blob, place) = (blob, at + len - 1);
        std::io::Seek::seek(&mut blob, std::io::SeekFrom::Start(place as u64)).unwrap();
        std::io::Write::write_all(&mut blob, &[1]).unwrap();
        drop(blob);
        is_refused(&db, 10);
    }
    agree(&tale, &db, &other);
}

#[test]
pub(crate) fn what_it_has_dropped_since_is_no_reason() {
    let (tale, db, other) = two();
    write(&other, ROWS).unwrap();
    read(&db, 1);
    begun(&db, &other, 10);
    write(&other, 1).unwrap();
    write(&db, 10).unwrap();
    db.put_in_it();
    agree(&tale, &db, &other);
}

#[test]
pub(crate) fn nor_where_the_database_has_another_size() {
    let (tale, db, other) = two();
    begun(&db, &other, 1);
    other.ok("INSERT INTO own SELECT x + 100, v, filler FROM own");
    is_refused(&db, 1);
    agree(&tale, &db, &other);
}
