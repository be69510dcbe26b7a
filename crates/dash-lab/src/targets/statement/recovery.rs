//! Recovery of commits that their statements carry (protocol `paper`): `-wal` is cut to what the
//! log does not have, as a power loss may leave it, and dash runs the statements again when it
//! opens the database.

use std::path::Path;
use std::time::Instant;

use dash_bench::durability::KEEPS;
use dash_bench::row::{Kind, Row};
use dash_bench::sqlite::Sqlite;
use dash_storage::real::Real;

use super::super::bench::Bench;
use super::super::wal::recovery::{copy_all, cut_wal};
use super::counter::counter;
use crate::failure::{Explain, Failure, Result};
use crate::numbers::{float, median};
use crate::report::{Section, Target};
use crate::sides::DURABLE;

const TRIALS: usize = 5;
/// Commits that are run again, of about as many inserts.
const COMMITS: usize = 10_000;
/// Milliseconds.
const LIMIT: f64 = 1000.0;

static PAPER: Row = Row {
    word: "dash-statement-paper",
    name: "dash statement, protocol paper",
    about: "",
    kind: Kind::Sqlite(Sqlite::dash(
        "statement",
        "vfs=dash&journal_mode=statement&dash_commit=paper",
        1,
    )),
    durability: KEEPS,
    usual: &[],
    note: "",
};

/// Makes the section.
pub fn measure(bench: &Bench) -> Result<Section> {
    let what = "open after a power loss that took from -wal all that statements carry; page cache warm, on V";
    let mut section = Section::new("statement-recovery", what, DURABLE);
    let folder = bench.volumes.v()?.folder("statement-recovery")?;
    let killed = folder.path().join("killed");
    std::fs::create_dir(&killed).explain("making a folder")?;
    let carried = leave_killed(bench, &folder.path().join("app.db"), &killed.join("app.db"))?;
    let home = folder.path().join("again");
    let mut times = Vec::new();
    for _ in 0..bench.many(TRIALS) {
        std::fs::create_dir(&home).explain("making a folder")?;
        let again = home.join("app.db");
        copy_all(&killed.join("app.db"), &again)?;
        let begun = Instant::now();
        let db = PAPER.open(&again)?;
        let sql = "SELECT count(*) FROM log";
        let rows: i64 = db.query_row(sql, [], |row| row.get(0)).explain(sql)?;
        times.push(begun.elapsed().as_secs_f64() * 1000.0);
        if rows < i64::try_from(carried).unwrap_or(i64::MAX) {
            return Err(Failure::new(format!("{rows} rows of {carried} are there")));
        }
        drop(db);
        std::fs::remove_dir_all(&home).explain("removing a folder")?;
    }
    let ms = median(&times) * float(COMMITS as u64) / float(carried.max(1));
    let label = "open and first read, for each 10,000 commits that are run again";
    section.target(label, ms, "ms", Target::AtMost(LIMIT));
    section.note(format!("{carried} commits were run again"));
    Ok(section)
}

/// Leaves what a power loss may leave of a session, under another name; how many commits there are
/// to be run again.
fn leave_killed(bench: &Bench, path: &Path, to: &Path) -> Result<u64> {
    let db = PAPER.open(path)?;
    db.execute_batch(
        "PRAGMA wal_autocheckpoint=0; CREATE TABLE log(id INTEGER PRIMARY KEY, body TEXT)",
    )
    .explain("making a table")?;
    let body = "x".repeat(100);
    let mut insert = db.prepare("INSERT INTO log(body) VALUES (?1)").explain("an insert")?;
    let carried = |db| counter(db, "carried");
    // One more than there may be would have -wal flushed.
    let wanted = bench.many(COMMITS) - 1;
    let mut made = 0;
    while made < 2 * COMMITS && carried(&db)? < i64::try_from(wanted).unwrap_or(i64::MAX) {
        insert.execute([&body]).explain("inserting")?;
        made += 1;
    }
    let report = dash_wal::inspect(&Real, path).explain("looking at the log")?;
    let chain = report.log.and_then(std::result::Result::ok).and_then(|log| log.chain);
    let chain = chain.ok_or_else(|| Failure::new("the log holds nothing"))?;
    copy_all(path, to)?;
    cut_wal(to, chain.first_frame)?;
    let carried = carried(&db)?;
    Ok(carried.unsigned_abs())
}
