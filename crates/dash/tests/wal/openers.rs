//! Who opens a database how: for reading only, by itself alone, or to leave its log; beside stock
//! SQLite's.

use std::os::unix::fs::FileExt;

use rusqlite::config::DbConfig;
use rusqlite::ffi;

use crate::beside_stock::{Side, checkpoint, control, error_of, same, say};
use crate::common::*;
use crate::{at_rest, create};

const INSERT: &str = "INSERT INTO t VALUES (zeroblob(6000))";
const COUNT: &str = "SELECT count(*) FROM t";

/// What an opener with parameters can do, in the end of which it is closed.
fn tried(side: &Side, parameters: &str) -> Vec<String> {
    let db = match side.try_open("app.db", parameters) {
        Ok(db) => db,
        Err(error) => return vec![error_of(&error)],
    };
    let statements = [
        COUNT,
        "PRAGMA journal_mode",
        INSERT,
        "BEGIN IMMEDIATE",
        "COMMIT",
        "BEGIN; SELECT count(*) FROM t; SELECT sum(length(x)) FROM t; COMMIT",
        "PRAGMA integrity_check",
        "PRAGMA journal_mode=WAL",
        "PRAGMA user_version=7",
    ];
    statements.iter().map(|sql| format!("{sql}: {}", say(&db, sql))).collect()
}

#[test]
fn who_only_reads_reads_at_rest_and_beside_a_writer() {
    for parameters in ["&mode=ro", "&immutable=1", "&mode=ro&immutable=1", "&mode=rw"] {
        let said = same(&[], |side| {
            let open = || side.open("app.db");
            let mut said = vec![tried(side, parameters)];
            let db = open();
            say(&db, INSERT);
            said.push(tried(side, parameters));
            say(&db, "PRAGMA journal_mode=WAL; PRAGMA wal_checkpoint");
            say(&db, "BEGIN; INSERT INTO t VALUES (1)");
            said.push(tried(side, parameters));
            say(&db, "COMMIT");
            let reader = side.try_open("app.db", parameters).expect("opens");
            for _ in 0..3 {
                said.push(vec![say(&db, INSERT), say(&reader, COUNT)]);
            }
            said.push(vec![say(&reader, "BEGIN; SELECT count(*) FROM t"), say(&db, INSERT)]);
            said.push(vec![say(&db, "PRAGMA wal_checkpoint(TRUNCATE)"), say(&reader, COUNT)]);
            drop(db);
            said.push(vec![say(&reader, "COMMIT"), say(&reader, COUNT)]);
            drop(reader);
            said.push(tried(side, parameters));
            said
        });
        let reads_only = parameters != "&mode=rw";
        assert_eq!(said[0].iter().any(|said| said.ends_with("error 8")), reads_only, "{said:?}");
    }
}

/// Programs say so on each connection.
#[test]
fn who_only_reads_may_ask_for_the_mode_that_the_file_is_in() {
    for parameters in ["&mode=ro", "&immutable=1"] {
        for first in ["", COUNT] {
            let said = same(&[], |side| {
                let db = side.try_open("app.db", parameters).expect("opens");
                let asked = "PRAGMA journal_mode=WAL; SELECT count(*) FROM t";
                [first, asked, INSERT].map(|sql| say(&db, sql))
            });
            assert_eq!(said[2], "error 8", "{parameters}: {said:?}");
        }
    }
}

/// Where stock SQLite says "disk I/O error", or "database is locked".
#[test]
fn who_only_reads_is_told_why_no_other_mode_can_be_had() {
    let folder = Folder::new();
    let writer = crate::create(&folder, "app.db");
    writer.execute_batch("CREATE TABLE t(x)").expect("commits");
    let told = |mode: &str| {
        let db = folder.try_open("app.db", "&mode=ro").expect("opens");
        assert_eq!(say(&db, COUNT), "0");
        let said = message(db.execute_batch(&format!("PRAGMA journal_mode={mode}")));
        assert!(said.contains("opened for reading only"), "{said}");
    };
    told("delete");
    told("shadow");
    writer.close().expect("closes");
    told("shadow");
}

/// Before its first access SQLite needs no wal-index in shared memory; later it keeps what it has.
#[test]
fn who_has_a_database_by_itself_keeps_others_out() {
    for (before, first) in [(true, ""), (false, COUNT), (false, INSERT)] {
        let said = same(&[], |side| {
            let db = side.open("app.db");
            let mut said = vec![say(&db, first)];
            let other = side.open("app.db");
            let mut next = |db: &Connection, sql: &str| {
                said.push(format!("{}: {:?}", say(db, sql), side.sizes("app.db")));
            };
            next(&db, "PRAGMA locking_mode=EXCLUSIVE");
            for sql in [COUNT, INSERT, "BEGIN; INSERT INTO t VALUES (1); ROLLBACK", INSERT] {
                next(&db, sql);
                next(&other, COUNT);
                next(&other, INSERT);
            }
            for kind in ["PASSIVE", "FULL", "RESTART", "TRUNCATE", "NOOP"] {
                next(&db, INSERT);
                next(&db, &format!("PRAGMA wal_checkpoint({kind})"));
                next(&other, &format!("PRAGMA wal_checkpoint({kind})"));
            }
            next(&db, "VACUUM");
            next(&db, "PRAGMA locking_mode=NORMAL");
            next(&other, COUNT);
            next(&db, COUNT);
            next(&other, COUNT);
            next(&other, INSERT);
            next(&db, INSERT);
            next(&db, "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=DELETE");
            next(&db, "PRAGMA locking_mode=EXCLUSIVE; SELECT count(*) FROM t");
            said
        });
        assert!(said.iter().any(|said| said.starts_with("error 5:")), "{before}: {said:?}");
    }
}

/// Where another one reads, or writes, meanwhile.
#[test]
fn who_is_not_alone_does_not_get_it_for_itself() {
    for held in ["BEGIN; SELECT count(*) FROM t", "BEGIN IMMEDIATE", "SELECT count(*) FROM t"] {
        for first in ["", COUNT, INSERT] {
            same(&[], |side| {
                let (db, other) = (side.open("app.db"), side.open("app.db"));
                let mut said = vec![say(&db, first), say(&other, held)];
                for sql in ["PRAGMA locking_mode=EXCLUSIVE", COUNT, INSERT, "BEGIN IMMEDIATE"] {
                    said.push(say(&db, sql));
                    said.push(say(&other, COUNT));
                }
                said.push(say(&other, INSERT));
                said.push(say(&other, "COMMIT"));
                said.push(say(&db, INSERT));
                said.push(say(&db, "COMMIT"));
                said.push(say(&other, INSERT));
                said.push(say(&db, COUNT));
                said
            });
        }
    }
}

/// Has the connection leave `-wal` when it is closed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Keeps {
    /// By `SQLITE_FCNTL_PERSIST_WAL`.
    Persisted,
    /// By `SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE`.
    Unchecked,
    Both,
}

impl Keeps {
    fn set(self, db: &Connection) {
        if self != Self::Unchecked {
            let on = control(db, ffi::SQLITE_FCNTL_PERSIST_WAL, 1);
            assert_eq!(on, (ffi::SQLITE_OK, 1));
            assert_eq!(control(db, ffi::SQLITE_FCNTL_PERSIST_WAL, 0xffff_ffff).1 & 1, 1);
        }
        if self != Self::Persisted {
            let set = db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
            assert!(set.expect("sets"));
        }
    }
}

#[test]
fn a_log_that_stays_is_as_long_as_in_stock_and_is_read_again() {
    for keeps in [Keeps::Persisted, Keeps::Unchecked, Keeps::Both] {
        for limit in [-1, 0, 20_000] {
            let said = same(&[], |side| {
                let mut said = Vec::new();
                for round in 0..5 {
                    let db = side.open("app.db");
                    said.push((say(&db, COUNT), side.sizes("app.db")));
                    keeps.set(&db);
                    say(&db, &format!("PRAGMA journal_size_limit={limit}"));
                    for _ in 0..round * 3 {
                        said.push((say(&db, INSERT), side.sizes("app.db")));
                    }
                    if round == 3 {
                        said.push((say(&db, "PRAGMA wal_checkpoint"), side.sizes("app.db")));
                        said.push((say(&db, INSERT), side.sizes("app.db")));
                    }
                    drop(db);
                    said.push(("closed".into(), side.sizes("app.db")));
                    let stock = side.folder.stock("app.db");
                    Keeps::Both.set(&stock);
                    said.push((say(&stock, COUNT), side.sizes("app.db")));
                    if round == 2 {
                        said.push((say(&stock, INSERT), side.sizes("app.db")));
                    }
                }
                said
            });
            let closed: Vec<_> = said.iter().filter(|(said, _)| said == "closed").collect();
            assert!(closed.iter().all(|(_, [_, log])| log.is_some()), "{keeps:?}: {closed:?}");
        }
    }
}

/// The frames that it has are in the file's size again when the database is closed.
#[test]
fn hints_about_sizes_change_none_that_stays() {
    same(&[], |side| {
        let (db, other) = (side.open("app.db"), side.open("app.db"));
        let mut said = Vec::new();
        let hint = control(&db, ffi::SQLITE_FCNTL_SIZE_HINT, 3_000_000);
        said.push((hint.0, say(&db, INSERT), checkpoint(&db, None, 0), side.sizes("app.db")));
        let hint = control(&db, ffi::SQLITE_FCNTL_SIZE_HINT, 100);
        for db in [&db, &other, &db] {
            said.push((hint.0, say(db, INSERT), checkpoint(db, None, 3), side.sizes("app.db")));
        }
        said
    });
}

const LARGER: &str = "INSERT INTO t VALUES (zeroblob(70000))";

#[test]
fn a_file_grows_in_chunks() {
    let said = same(&[], |side| {
        let (db, other) = (side.open("app.db"), side.open("app.db"));
        let mut said = Vec::new();
        for chunk in [65_536, 100_000, 0, -1] {
            let set = control(&db, ffi::SQLITE_FCNTL_CHUNK_SIZE, chunk).0;
            for db in [&db, &other, &db] {
                for sql in [INSERT, COUNT, LARGER, "DELETE FROM t; VACUUM", INSERT] {
                    let done = say(db, sql);
                    said.push((set, done, checkpoint(db, None, 0), side.sizes("app.db")));
                }
                // Behind a reader the file is as long as it is to be, and not yet cut.
                say(&other, "BEGIN; SELECT count(*) FROM t");
                let done = say(db, LARGER);
                said.push((set, done, checkpoint(db, None, 0), side.sizes("app.db")));
                say(&other, "COMMIT");
            }
        }
        said
    });
    assert_eq!(said[0].3[0], Some(65_536));
}

#[test]
fn chunks_last_as_long_as_the_connection() {
    for (from, to) in [("shadow", "wal"), ("delete", "wal"), ("wal", "delete"), ("wal", "wal")] {
        let folder = Folder::new();
        let db = folder.open("app.db");
        db.execute_batch(&format!("PRAGMA journal_mode={from}; CREATE TABLE t(x)")).expect(from);
        let set = control(&db, ffi::SQLITE_FCNTL_CHUNK_SIZE, 200_000);
        assert_eq!(set.0, ffi::SQLITE_OK);
        let sql = format!("PRAGMA journal_mode={to}; {LARGER}; PRAGMA wal_checkpoint");
        assert!(say(&db, &sql).starts_with(to), "{from} to {to}");
        let size = || folder.path("app.db").metadata().expect("there").len();
        assert_eq!(size(), 200_000, "{from} to {to}");
        db.close().expect("closes");
        assert_eq!(size(), 200_000, "{from} to {to}, at rest");
        // What is behind the last page is nobody's, in any mode.
        for mode in ["wal", "shadow", "delete"] {
            let db = folder.try_open("app.db", &format!("&journal_mode={mode}")).expect("opens");
            db.execute_batch(INSERT).expect("commits");
            whole(&db);
        }
        let stock = folder.stock("app.db");
        assert_eq!(number(&stock, COUNT), 4, "{from} to {to}");
        whole(&stock);
    }
}

#[test]
fn a_chunk_may_be_set_before_the_mode_is() {
    let folder = Folder::new();
    let [ours, stocks] = [("ours.db", folder.open("ours.db")), ("its.db", folder.stock("its.db"))]
        .map(|(name, db)| {
            assert_eq!(control(&db, ffi::SQLITE_FCNTL_CHUNK_SIZE, 200_000).0, ffi::SQLITE_OK);
            let sql = "PRAGMA journal_mode=wal; CREATE TABLE t(x)";
            assert!(
                say(&db, &format!("{sql}; {LARGER}; PRAGMA wal_checkpoint")).starts_with("wal")
            );
            folder.path(name).metadata().expect("there").len()
        });
    assert_eq!(ours, stocks);
    assert_eq!(ours % 200_000, 0);
}

#[test]
fn what_is_wrong_with_a_path_is_said() {
    let folder = Folder::new();
    std::fs::write(folder.path("file"), "").expect("writes");
    std::os::unix::fs::symlink("loop", folder.path("loop")).expect("links");
    let cases = [
        ("file/app.db", "", "Not a directory"),
        ("none/app.db", "", "none: No such file"),
        ("none/app.db", "&journal_mode=wal", "none: No such file"),
        ("loop", "", "loop: Too many levels of symbolic links"),
        ("none.db", "&mode=ro&journal_mode=wal", "none.db: No such file"),
    ];
    let memory = Connection::open_in_memory().expect("opens");
    for (name, parameters, expected) in cases {
        folder.try_open(name, parameters).expect_err("there is no such file");
        let said = last_error(&memory);
        assert!(said.contains(expected), "{name}{parameters}: {said}");
    }
}

#[test]
fn a_version_that_shares_memory_otherwise_is_told() {
    let folder = Folder::new();
    let db = create(&folder, "app.db");
    db.execute_batch("CREATE TABLE t(x)").expect("commits");
    // The first word says which version's it is; dash opens this file by none of POSIX's locks.
    let shared =
        std::fs::OpenOptions::new().read(true).write(true).open(folder.path("app.db-dash"));
    let shared = shared.expect("while it is open");
    let mut first = [0; 8];
    shared.read_exact_at(&mut first, 0).expect("a word");
    let other = u64::from_le_bytes(first) + 1;
    shared.write_all_at(&other.to_le_bytes(), 0).expect("writes");
    folder.try_open("app.db", "").expect_err("another layout");
    let said = last_error(&Connection::open_in_memory().expect("opens"));
    assert!(said.contains("app.db is open in another version of dash"), "{said}");
    shared.write_all_at(&first, 0).expect("writes");
    assert_eq!(number(&folder.open("app.db"), "SELECT count(*) FROM t"), 0);
    db.close().expect("closes");
    at_rest(&folder, "app.db");
}
