//! A transaction, run again by stock SQLite on a copy.

use std::collections::BTreeSet;

use dash_statement::{Event, Transaction};
use dash_storage::real::Real;
use dash_wal::history::pages_in_wal;

use crate::Result;
use crate::guarded::{Guarded, Undone};
use crate::image::Image;
use crate::limits::Limits;

/// What a connection was set to, and what that changes in what statements do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Settings {
    foreign_keys: bool,
    recursive_triggers: bool,
}

impl Settings {
    /// These, then the other ones.
    pub fn and_others(self) -> impl Iterator<Item = Self> {
        let all = [(false, false), (true, false), (false, true), (true, true)]
            .map(|(foreign_keys, recursive_triggers)| Self { foreign_keys, recursive_triggers });
        std::iter::once(self).chain(all.into_iter().filter(move |it| *it != self))
    }
}

/// What was done.
#[derive(Debug, Default)]
pub struct Done {
    /// The pages that it wrote.
    pub pages: BTreeSet<u32>,
    /// What the first statement that failed said. It may have failed before, too.
    pub failed: Option<String>,
    /// Why a step was not run, nor what comes after it: the copy is nothing to compare with.
    pub refused: Option<String>,
}

impl Done {
    /// Notes what came of a step; whether to go on.
    fn note(&mut self, done: core::result::Result<(), Undone>) -> bool {
        match done {
            Ok(()) => {}
            Err(Undone::Failed(error)) => drop(self.failed.get_or_insert(error)),
            Err(Undone::Refused(reason)) => drop(self.refused.get_or_insert(reason)),
        }
        self.refused.is_none()
    }
}

/// Runs it. The file has everything in it afterwards.
pub fn run(copy: &Image, ran: &Transaction, settings: Settings, limits: &Limits) -> Result<Done> {
    let pragmas = format!(
        "PRAGMA synchronous=OFF; PRAGMA wal_autocheckpoint=0; PRAGMA foreign_keys={}; PRAGMA recursive_triggers={}",
        u8::from(settings.foreign_keys),
        u8::from(settings.recursive_triggers)
    );
    let db = Guarded::open(copy, &pragmas, limits)?;
    let mut done = Done::default();
    let mut goes_on = ran.events.len() <= 1 || done.note(db.own("BEGIN"));
    for event in &ran.events {
        goes_on = goes_on
            && done.note(match event {
                Event::Statement(statement) => db.statement(statement),
                Event::Control(control, sql) => db.control(*control, sql),
            });
    }
    if goes_on && !db.is_autocommit() {
        done.note(db.own("COMMIT"));
    }
    if !db.is_autocommit() {
        done.note(db.own("ROLLBACK"));
    }
    done.pages = pages_in_wal(&Real, &copy.path, copy.page)?;
    db.close()?;
    Ok(done)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use dash_statement::{Control, Sql, Statement};
    use rusqlite::Connection;

    fn ran(sql: &[String]) -> Transaction {
        let step = |sql: &String| {
            let sql = Sql::from(sql.as_bytes());
            Event::Statement(Statement { sql, values: None, clock: None, nested: 0 })
        };
        Transaction { events: sql.iter().map(step).collect(), ..Transaction::default() }
    }

    /// A copy with a row in it, in a folder of its own.
    fn copy() -> (tempfile::TempDir, Image) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("copy.db");
        let db = Connection::open(&path).unwrap();
        db.execute_batch(
            "PRAGMA journal_mode=WAL; CREATE TABLE t(id INTEGER PRIMARY KEY, v); INSERT INTO t(v) VALUES (1)",
        )
        .unwrap();
        db.close().unwrap();
        let image = Image::open(&path, 4096).unwrap();
        (folder, image)
    }

    fn limits() -> Limits {
        Limits::of(100, 4096)
    }

    fn ran_alone(copy: &Image, sql: &str) -> Done {
        run(copy, &ran(&[sql.to_owned()]), Settings::default(), &limits()).unwrap()
    }

    fn count(copy: &Image) -> i64 {
        let db = Connection::open(&copy.path).unwrap();
        db.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap()
    }

    /// Whatever the name is, and however it is said: SQLite tells an authorizer none of some. SEC
    /// S2-3
    #[test]
    fn nothing_is_written_outside() {
        let (folder, copy) = copy();
        let other = folder.path().join("other.db");
        for (sql, asks) in [
            ("ATTACH '{}' AS o", "ATTACH"),
            ("ATTACH ('{}'||'') AS o", "ATTACH"),
            ("ATTACH (SELECT '{}') AS o", "ATTACH"),
            ("ATTACH ? AS o", "ATTACH"),
            ("ATTACH '' AS o", "ATTACH"),
            ("ATTACH ':memory:' AS vacuum_db", "ATTACH"),
            ("DETACH main", "DETACH"),
            ("DETACH (SELECT 'main')", "DETACH"),
            ("VACUUM INTO '{}'", "ATTACH"),
            ("VACUUM main INTO '{}'||''", "ATTACH"),
            ("COMMIT", "BEGIN, COMMIT or ROLLBACK"),
            ("PRAGMA writable_schema=1", "PRAGMA writable_schema"),
            ("PRAGMA journal_mode=OFF", "PRAGMA journal_mode"),
            ("PRAGMA temp_store_directory='{}'", "PRAGMA temp_store_directory"),
            ("SELECT load_extension('{}')", "the function load_extension()"),
            ("INSERT INTO t(v) SELECT fts3_tokenizer('simple')", "the function fts3_tokenizer()"),
            ("CREATE VIRTUAL TABLE temp.v USING dbstat", "a virtual table of dbstat"),
            ("SELECT * FROM pragma_database_list", "PRAGMA database_list"),
        ] {
            let sql = sql.replace("{}", &other.to_string_lossy());
            let done = ran_alone(&copy, &sql);
            let refused = done.refused.unwrap_or_else(|| panic!("{sql}: {:?}", done.failed));
            assert!(refused.contains(&format!("asks for {asks}, ")), "{sql}: {refused}");
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "{sql}");
        }
    }

    /// SEC S2-3
    #[test]
    fn a_step_is_one_statement() {
        let (_folder, copy) = copy();
        for sql in [
            "INSERT INTO t(v) VALUES (2); DELETE FROM t",
            ".shell true",
            "INSERT INTO t(v) VALUES (2)\0; DELETE FROM t",
            "",
        ] {
            let done = ran_alone(&copy, sql);
            assert_eq!(done.refused.unwrap(), "a text of it is not one whole statement", "{sql}");
        }
        let event = Event::Control(Control::Savepoint, Sql::from(&b"DELETE FROM t"[..]));
        let ran = Transaction { events: vec![event], ..Transaction::default() };
        let done = run(&copy, &ran, Settings::default(), &limits()).unwrap();
        assert!(done.refused.unwrap().contains("not the savepoint's"));
        assert_eq!(count(&copy), 1);
    }

    /// What honest logs hold is run. SEC S2-3
    #[test]
    fn what_a_log_may_hold_is_done() {
        let (_folder, copy) = copy();
        for sql in [
            "VACUUM",
            "vacuum main;",
            "INSERT INTO t(v) SELECT 2 WHERE abs(-1) = 1 AND 'a' LIKE 'A' AND json('1') = '1'",
            "CREATE TABLE u(id INTEGER PRIMARY KEY, x CHECK (length(x) > 0), y AS (upper(x)))",
            "CREATE INDEX i ON u(lower(x)) WHERE x IS NOT NULL",
            "CREATE VIEW w AS SELECT count(*) AS n FROM u",
            "CREATE TRIGGER g AFTER INSERT ON t BEGIN INSERT INTO u(x) VALUES (hex(new.v)); END",
            "INSERT INTO t(v) VALUES (3)",
            "ALTER TABLE u RENAME TO w2",
            "ALTER TABLE w2 RENAME COLUMN x TO z",
            "ALTER TABLE w2 ADD COLUMN a DEFAULT 5",
            "ALTER TABLE w2 DROP COLUMN a",
            "ANALYZE",
            "REINDEX",
            "CREATE VIRTUAL TABLE f5 USING fts5(a, content='')",
            "CREATE VIRTUAL TABLE f4 USING fts4(a)",
            "INSERT INTO f4(a) VALUES ('some words')",
            "INSERT INTO f4(f4) VALUES ('optimize')",
            "CREATE VIRTUAL TABLE f USING fts5(a)",
            "CREATE TRIGGER h AFTER INSERT ON t BEGIN INSERT INTO f(a) VALUES (new.v); END",
            "INSERT INTO t(v) VALUES ('words of it')",
            "INSERT INTO f(f) VALUES ('rebuild')",
            "DELETE FROM f WHERE f MATCH 'words'",
            "CREATE VIRTUAL TABLE r USING rtree(id, a, b)",
            "INSERT INTO r VALUES (1, 2, 3)",
            "CREATE TEMP TABLE s AS SELECT * FROM t",
            "PRAGMA user_version=7",
            "PRAGMA application_id=7",
            "PRAGMA incremental_vacuum(3)",
            "PRAGMA journal_mode",
            "DROP TRIGGER h",
            "DROP TABLE f",
            "DROP TABLE f4",
            "DROP TABLE r",
            "DROP VIEW w",
            "WITH n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 9) INSERT INTO t(v) SELECT i FROM n",
            "DELETE FROM t",
        ] {
            let done = ran_alone(&copy, sql);
            assert_eq!((done.failed, done.refused), (None, None), "{sql}");
        }
        assert_eq!(count(&copy), 0);
    }

    /// A statement that does not end is stopped, and so is everything when that adds up. SEC S2-3
    #[test]
    fn it_ends() {
        let (_folder, copy) = copy();
        let endless = "INSERT INTO t(v) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
        let mut limits = limits();
        limits.steps = 1_000_000;
        let mut reasons = BTreeSet::new();
        for _ in 0..30 {
            let ran = ran(&["DELETE FROM t".into(), endless.into()]);
            let done = run(&copy, &ran, Settings::default(), &limits).unwrap();
            reasons.insert(done.refused.unwrap());
        }
        let reasons: Vec<_> = reasons.into_iter().collect();
        assert_eq!(reasons[0], "a statement was stopped after 1000100 steps of SQLite's");
        assert!(reasons[1].starts_with("the statements before it took as long"), "{reasons:?}");
        assert_eq!(count(&copy), 1);
    }

    /// SEC S2-3
    #[test]
    fn no_copy_and_no_value_is_larger_than_the_database_may_be() {
        let (_folder, copy) = copy();
        let n = "WITH n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 100)";
        let done =
            ran_alone(&copy, &format!("{n} INSERT INTO t(v) SELECT zeroblob(1000000) FROM n"));
        assert_eq!(done.failed.as_deref(), Some("database or disk is full"));
        let done = ran_alone(&copy, "INSERT INTO t(v) SELECT zeroblob(100000000)");
        assert!(done.refused.unwrap().contains("more memory than one on such a database may"));
        let heap = "SELECT hard_heap_limit FROM pragma_hard_heap_limit";
        let heap: i64 = rusqlite::Connection::open_in_memory()
            .and_then(|db| db.query_row(heap, [], |row| row.get(0)))
            .unwrap();
        assert!((1..=limits().memory()).contains(&heap), "{heap}"); // SEC A10-4
        assert_eq!(count(&copy), 1);
        assert!(copy.pages().unwrap() < limits().pages());
    }
}
