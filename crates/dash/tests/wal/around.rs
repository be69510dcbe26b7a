//! Checkpoints, hooks and the settings of `-wal`, beside stock SQLite's.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Mutex;

use rusqlite::ffi;

use crate::beside_stock::{KINDS, checkpoint, same, say};
use crate::common::*;

const INSERT: &str = "INSERT INTO t VALUES (zeroblob(6000))";

#[test]
fn each_kind_of_checkpoint_answers_beside_readers_and_writers() {
    for (name, kind) in KINDS {
        let said = same(&[], |side| {
            let (db, other) = (side.open("app.db"), side.open("app.db"));
            let mut said = Vec::new();
            let mut next = |before: &[(&Connection, &str)]| {
                let before: Vec<_> = before.iter().map(|(db, sql)| say(db, sql)).collect();
                let answer = checkpoint(&db, Some("main"), kind);
                let pragma = say(&db, &format!("PRAGMA wal_checkpoint({name})"));
                said.push((before, answer, pragma, side.sizes("app.db")));
            };
            next(&[]);
            next(&[(&db, INSERT), (&db, INSERT)]);
            // Behind a reader: an old snapshot, and then the newest one.
            next(&[(&other, "BEGIN; SELECT count(*) FROM t"), (&db, INSERT), (&db, INSERT)]);
            next(&[(&other, "COMMIT; BEGIN; SELECT count(*) FROM t")]);
            next(&[(&db, INSERT)]);
            next(&[(&other, "COMMIT")]);
            // Beside a writer, and in a transaction of its own.
            next(&[(&db, INSERT), (&other, "BEGIN IMMEDIATE"), (&other, INSERT)]);
            next(&[(&other, "COMMIT")]);
            next(&[(&db, "BEGIN"), (&db, INSERT)]);
            next(&[(&db, "COMMIT"), (&db, "BEGIN; SELECT count(*) FROM t")]);
            next(&[(&db, "COMMIT"), (&db, INSERT)]);
            // From where there is nothing left to copy.
            next(&[]);
            next(&[(&other, INSERT), (&db, "PRAGMA synchronous=OFF"), (&db, INSERT)]);
            said
        });
        assert_eq!(said.len(), 13);
        let is_busy = |step: usize| said[step].1[0] == ffi::SQLITE_BUSY;
        let waits = !["PASSIVE", "NOOP"].contains(&name);
        assert_eq!([2, 6].map(is_busy), [waits; 2], "{name}: {said:?}");
        assert_eq!(said[8].1[0], ffi::SQLITE_LOCKED, "{name}: {said:?}");
    }
}

#[test]
fn a_checkpoint_of_all_databases_or_of_none_answers_as_well() {
    same(&["side.db"], |side| {
        let db = side.open("app.db");
        let mut said = Vec::new();
        side.make("side.db", "");
        side.make("second.db", "");
        for (name, schema) in [("side.db", "side"), ("second.db", "second")] {
            let uri = side.uri(name, "");
            db.execute(&format!("ATTACH ? AS {schema}"), [uri]).expect("attaches");
        }
        for (_, kind) in KINDS.into_iter().chain([("misspelt", 4), ("misspelt", -2)]) {
            for schema in [Some("side"), None, Some("second"), Some("nobody"), Some("temp")] {
                let inserts = "INSERT INTO t VALUES (1); INSERT INTO side.t VALUES (1); \
                               INSERT INTO second.t VALUES (zeroblob(9000))";
                said.push((say(&db, inserts), checkpoint(&db, schema, kind)));
            }
        }
        // SQLite has left WAL mode: there is no log.
        let left = say(&db, "PRAGMA main.journal_mode=DELETE");
        said.push((left, checkpoint(&db, Some("main"), 0)));
        said.push((say(&db, "PRAGMA wal_checkpoint"), checkpoint(&db, None, 3)));
        said.push((say(&db, "PRAGMA main.journal_mode=WAL"), checkpoint(&db, None, 3)));
        said
    });
}

/// What a hook was told, and what it does.
#[derive(Default)]
struct Hook {
    calls: Mutex<Vec<String>>,
    /// Checkpoints so, from this number of frames on.
    kind: Option<(c_int, c_int)>,
    answer: c_int,
}

#[expect(unsafe_code, reason = "calls SQLite's C interface, and is called by it")]
impl Hook {
    /// Sets a hook on a connection, and for good.
    fn set(self, db: &Connection) -> &'static Self {
        let hook: &'static Self = Box::leak(Box::new(self));
        let place = std::ptr::from_ref(hook).cast_mut().cast();
        // SAFETY: an open connection; the hook lives for ever, and is only read.
        unsafe { ffi::sqlite3_wal_hook(db.handle(), Some(Self::called), place) };
        hook
    }

    unsafe extern "C" fn called(
        hook: *mut c_void,
        db: *mut ffi::sqlite3,
        schema: *const c_char,
        frames: c_int,
    ) -> c_int {
        // SAFETY: what `set` gave, and SQLite's own connection and name.
        let (hook, name) = unsafe { (&*hook.cast::<Self>(), CStr::from_ptr(schema)) };
        let mut call = format!("{} {frames}", name.to_string_lossy());
        if let Some((kind, from)) = hook.kind
            && frames >= from
        {
            let (mut log, mut copied) = (-7, -7);
            // SAFETY: as above, and two places for numbers.
            let code = unsafe {
                ffi::sqlite3_wal_checkpoint_v2(db, schema, kind, &raw mut log, &raw mut copied)
            };
            call += &format!(": {code} {log} {copied}");
        }
        hook.calls.lock().expect("free").push(call);
        hook.answer
    }

    fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.calls.lock().expect("free"))
    }
}

/// Transactions, and how many commits they are.
const TRANSACTIONS: [(&str, usize); 8] = [
    (INSERT, 1),
    ("BEGIN; INSERT INTO t VALUES (1); INSERT INTO t VALUES (zeroblob(20000)); COMMIT", 1),
    ("BEGIN; INSERT INTO t VALUES (1); ROLLBACK", 0),
    ("SELECT count(*) FROM t", 0),
    ("BEGIN IMMEDIATE; COMMIT", 0),
    ("INSERT INTO t VALUES (1); DELETE FROM t WHERE x = 1; UPDATE t SET x = 5 WHERE x = 4", 2),
    (
        "SAVEPOINT a; INSERT INTO t VALUES (2); SAVEPOINT b; DELETE FROM t; ROLLBACK TO b; \
         RELEASE a",
        1,
    ),
    ("VACUUM", 1),
];

#[test]
fn the_hook_is_called_once_a_commit_with_the_frames_of_the_log() {
    for synchronous in ["OFF", "NORMAL", "FULL"] {
        same(&[], |side| {
            let (db, other) = (side.open("app.db"), side.open("app.db"));
            say(&db, &format!("PRAGMA synchronous={synchronous}"));
            let [hook, others] = [&db, &other].map(|db| Hook::default().set(db));
            let mut said = Vec::new();
            for (sql, commits) in TRANSACTIONS {
                let answer = say(&db, sql);
                let calls = hook.calls();
                assert_eq!(calls.len(), commits, "{sql}: {calls:?}");
                assert_eq!(others.calls(), [""; 0], "no commit of its own");
                said.push((answer, calls));
                said.push((say(&other, INSERT), others.calls()));
            }
            said
        });
    }
}

#[test]
fn a_hook_may_checkpoint_and_may_fail() {
    for (name, kind) in KINDS {
        let answer = if name == "FULL" { ffi::SQLITE_FULL } else { ffi::SQLITE_OK };
        same(&[], |side| {
            let (db, reader) = (side.open("app.db"), side.open("app.db"));
            let hook = Hook { kind: Some((kind, 10)), answer, ..Hook::default() }.set(&db);
            let mut said = Vec::new();
            for round in 0..20 {
                if round % 10 == 5 {
                    said.push((say(&reader, "BEGIN; SELECT count(*) FROM t"), Vec::new()));
                }
                said.push((say(&db, INSERT), hook.calls()));
                if round % 10 == 8 {
                    said.push((say(&reader, "COMMIT"), Vec::new()));
                }
            }
            // What it answers is an error of a statement whose commit stays.
            assert_eq!(number(&reader, "SELECT count(*) FROM t"), 20);
            said
        });
    }
}

#[test]
fn a_hook_is_told_of_each_database_that_was_written() {
    for stock in [&["side.db"][..], &["app.db"], &[]] {
        let said = same(stock, |side| {
            side.make("side.db", "");
            let db = side.open("app.db");
            db.execute("ATTACH ? AS side", [side.uri("side.db", "")]).expect("attaches");
            let hook = Hook::default().set(&db);
            ["BEGIN; INSERT INTO t VALUES (1); INSERT INTO side.t VALUES (zeroblob(9000)); COMMIT",
             "INSERT INTO side.t VALUES (1)", "INSERT INTO t VALUES (1)",
             "BEGIN; INSERT INTO side.t SELECT * FROM main.t; SELECT 1 FROM t; COMMIT"]
            .map(|sql| (say(&db, sql), hook.calls()))
        });
        assert_eq!(said[0].1.len(), 2);
    }
}

#[test]
fn checkpoints_come_by_themselves_as_often_as_is_asked_for() {
    for frames in [0, -1, 2, 7] {
        same(&[], |side| {
            let (db, reader) = (side.open("app.db"), side.open("app.db"));
            let mut said =
                vec![(say(&db, &format!("PRAGMA wal_autocheckpoint={frames}")), [None; 2])];
            for round in 0..20 {
                if round % 10 == 4 {
                    say(&reader, "BEGIN; SELECT count(*) FROM t");
                }
                said.push((say(&db, INSERT), side.sizes("app.db")));
                if round % 10 == 8 {
                    say(&reader, "COMMIT");
                }
                said.push((say(&db, "PRAGMA wal_checkpoint(NOOP)"), [None; 2]));
            }
            said
        });
    }
}

/// Each reader at a snapshot of its own, while others commit, copy and begin the log anew.
#[test]
fn snapshots_last_as_long_as_they_are_read() {
    let said = same(&[], |side| {
        let db = side.open("app.db");
        let readers: [_; 4] = std::array::from_fn(|_| side.open("app.db"));
        let mut said = Vec::new();
        for round in 0..40 {
            let reader = &readers[round % 4];
            said.push((say(reader, "COMMIT"), [0; 3]));
            said.push((say(reader, "BEGIN; SELECT count(*) FROM t"), [0; 3]));
            say(&db, if round % 9 == 8 { "DELETE FROM t WHERE rowid % 2" } else { INSERT });
            let answer = checkpoint(&db, None, KINDS[round % 5].1);
            for reader in &readers {
                said.push((say(reader, "SELECT count(*), max(rowid) FROM t"), answer));
            }
            if round % 13 == 12 {
                said.extend(readers.each_ref().map(|reader| (say(reader, "COMMIT"), answer)));
            }
        }
        said
    });
    assert!(said.iter().any(|(_, answer)| answer[0] == ffi::SQLITE_BUSY), "{said:?}");
}

#[test]
fn the_log_is_cut_to_its_limit() {
    for limit in [-1, 0, 40_000] {
        let sizes = same(&[], |side| {
            let db = side.open("app.db");
            let mut said =
                vec![(say(&db, &format!("PRAGMA journal_size_limit={limit}")), [None; 2])];
            say(&db, "PRAGMA wal_autocheckpoint=0");
            for (_, kind) in KINDS {
                for size in [100_000, 6_000, 6_000] {
                    let insert = format!("INSERT INTO t VALUES (zeroblob({size}))");
                    said.push((say(&db, &insert), side.sizes("app.db")));
                }
                let answer = checkpoint(&db, None, kind);
                said.push((format!("{answer:?}"), side.sizes("app.db")));
                said.push((say(&db, INSERT), side.sizes("app.db")));
            }
            said
        });
        let shortest = sizes.iter().filter_map(|(_, [_, log])| *log).min().expect("a log");
        assert_eq!(shortest, 0, "TRUNCATE");
        let cut = sizes.iter().any(|(_, [_, log])| *log == Some(40_000));
        assert_eq!(cut, limit == 40_000, "{limit}: {sizes:?}");
    }
}
