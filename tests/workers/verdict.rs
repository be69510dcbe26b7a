//! What must hold when all workers are gone.

use std::collections::BTreeSet;
use std::path::Path;

use dash_testing::extension::load;
use dash_testing::names::uri;
use rusqlite::Connection;

use super::heard::{Heard, Row};

/// What the settings of a driver come to, in the words of `dash_stats`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durable {
    /// Commits return without a flush.
    Normal,
    /// With one.
    Full,
}

/// What is known of the run.
pub struct Verdict {
    pub driver: &'static str,
    pub settings: &'static str,
    pub workers: String,
    pub kills: u32,
    /// Rows at most that were committed and whose workers could not say so any more.
    pub unheard: usize,
    pub durable: Durable,
}

impl Verdict {
    /// Panics unless nothing was lost, nobody heard an error, and the file is whole.
    pub fn give(&self, path: &Path, heard: &Heard) {
        let driver = self.driver;
        assert!(heard.errors.is_empty(), "{driver}: {:#?}", heard.errors);
        assert_eq!(heard.told("journal_mode"), "wal", "{driver}");
        let (unflushed, commits) = heard.unflushed();
        let (word, is_so) = match self.durable {
            Durable::Normal => ("normal", unflushed > 0),
            Durable::Full => ("full", unflushed == 0),
        };
        assert_eq!(heard.told("durability"), word, "{driver}");
        assert!(is_so && commits > 0, "{driver}: {unflushed} of {commits} without a flush");

        load();
        let dash = Connection::open(uri(path, "")).expect("opens");
        assert_eq!(one::<String>(&dash, "PRAGMA journal_mode"), "wal", "{driver}");
        let rows = self.rows(&dash, heard);
        dash.close().expect("closes");
        let stock = Connection::open(path).expect("opens");
        assert_eq!(one::<String>(&stock, "PRAGMA journal_mode"), "wal", "{driver}");
        assert_eq!(self.rows(&stock, heard), rows, "{driver}: stock SQLite sees others");
        stock.close().expect("closes");
        println!(
            "| {driver} {} | {} | {} | {} | {} | 0 | 0 | {} | {word} | {unflushed} of {commits} |",
            heard.told("version"),
            self.settings,
            self.workers,
            self.kills,
            heard.acknowledged.len(),
            heard.told("synchronous"),
        );
    }

    fn rows(&self, db: &Connection, heard: &Heard) -> BTreeSet<Row> {
        let driver = self.driver;
        assert_eq!(one::<String>(db, "PRAGMA integrity_check"), "ok", "{driver}");
        let mut statement = db.prepare("SELECT worker, n FROM acknowledged").expect("prepares");
        let found = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("reads");
        let found: Vec<Row> = found.collect::<Result<_, _>>().expect("reads");
        let rows: BTreeSet<_> = found.iter().copied().collect();
        assert_eq!(rows.len(), found.len(), "{driver}: a row is there twice");
        let lost: Vec<_> = heard.acknowledged.difference(&rows).collect();
        assert!(lost.is_empty(), "{driver}: {} acknowledged rows are lost: {lost:?}", lost.len());
        let unheard = rows.len() - heard.acknowledged.len();
        assert!(unheard <= self.unheard, "{driver}: {unheard} rows that nobody acknowledged");
        rows
    }
}

fn one<T: rusqlite::types::FromSql>(db: &Connection, sql: &str) -> T {
    db.query_row(sql, [], |row| row.get(0)).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// It finds what it is there for.
mod finds {
    use super::*;

    const FACTS: &str = "version: 1\njournal_mode: wal\nsynchronous: 1\nunflushed: 2 of 2\n";

    /// A database with the rows 1 and 2 of worker 1, and what was said of it.
    fn verdict_on(said: &str) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("app.db");
        load();
        let db = Connection::open(uri(&path, "&journal_mode=wal")).expect("opens");
        db.execute_batch(
            "CREATE TABLE acknowledged(worker, n); INSERT INTO acknowledged VALUES (1, 1), (1, 2)",
        )
        .expect("commits");
        db.close().expect("closes");
        let mut heard = Heard::default();
        format!("{FACTS}{said}").split_inclusive('\n').for_each(|line| heard.line(line));
        let verdict = Verdict {
            driver: "none",
            settings: "",
            workers: String::new(),
            kills: 1,
            unheard: 1,
            durable: Durable::Normal,
        };
        verdict.give(&path, &heard);
    }

    #[test]
    fn nothing_where_all_is_well() {
        verdict_on("durability: normal\nacknowledged: 1 1\nacknowledged: 1");
    }

    #[test]
    #[should_panic(expected = "1 acknowledged rows are lost")]
    fn a_lost_row() {
        verdict_on("durability: normal\nacknowledged: 1 2\nacknowledged: 1 3\n");
    }

    #[test]
    #[should_panic(expected = "2 rows that nobody acknowledged")]
    fn rows_from_nowhere() {
        verdict_on("durability: normal\n");
    }

    #[test]
    #[should_panic(expected = "database is locked")]
    fn an_error() {
        verdict_on("durability: normal\nacknowledged: 1 1\nerror: database is locked\n");
    }

    #[test]
    #[should_panic(expected = "durability")]
    fn workers_that_are_not_alike() {
        verdict_on("durability: normal\ndurability: full\nacknowledged: 1 1\n");
    }
}
