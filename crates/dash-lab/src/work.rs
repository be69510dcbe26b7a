//! `dash-lab work`, which this program starts of itself: operations to be counted by strace, and a
//! writer to be killed.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

use dash_bench::rows;

use crate::extension::Extension;
use crate::failure::{Explain, Result};
use crate::row::Row;
use crate::targets::data;

/// Arguments of the hidden command.
#[derive(clap::Args)]
pub struct Arguments {
    job: Job,
    #[arg(value_parser = rows::parser())]
    row: &'static Row,
    path: PathBuf,
    #[arg(long)]
    count: u64,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Job {
    /// Autocommit point reads, everything in SQLite's cache.
    Read,
    /// Autocommit point reads with SQLite's default cache, smaller than the database.
    ReadSmallCache,
    /// Autocommit inserts.
    Insert,
    /// Autocommit inserts that no checkpoint follows.
    LongLog,
    /// Transactions of scattered updates; says `ready` after the first, and goes on.
    Scatter,
}

impl Job {
    /// The name that clap knows it by.
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::ReadSmallCache => "read-small-cache",
            Self::Insert => "insert",
            Self::LongLog => "long-log",
            Self::Scatter => "scatter",
        }
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<()> {
    let _extension = Extension::load()?;
    let db = arguments.row.open(&arguments.path)?;
    match arguments.job {
        Job::Read => reads(&db, arguments.count, data::LARGE_CACHE),
        Job::ReadSmallCache => reads(&db, arguments.count, data::SMALL_CACHE),
        Job::Insert => {
            let mut insert = data::Inserter::new(&db)?;
            (0..arguments.count).try_for_each(|_| insert.step())
        }
        Job::LongLog => {
            let off = db.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(()));
            off.explain("wal_autocheckpoint")?;
            let mut insert = data::Inserter::into(&db, "log")?;
            (0..arguments.count).try_for_each(|done| {
                // Whoever watches the log must see it before it is full.
                if done % 200 == 0 {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                }
                insert.step()
            })
        }
        Job::Scatter => scatter(&db, arguments.count, &arguments.path),
    }
}

fn reads(db: &rusqlite::Connection, count: u64, cache: &str) -> Result<()> {
    db.execute_batch(cache).explain("setting the cache")?;
    // The same number of reads fills the cache in both runs that are compared.
    let mut read = data::PointReader::new(db)?;
    for _ in 0..data::ROWS {
        read.step_in_order()?;
    }
    (0..count).try_for_each(|_| read.step())
}

fn scatter(db: &rusqlite::Connection, count: u64, path: &Path) -> Result<()> {
    let mut writer = data::Scatter::new(db)?;
    for done in 0..count {
        writer.step()?;
        if done == 0 {
            std::fs::write(path.with_extension("ready"), b"ready").explain("saying ready")?;
        }
    }
    Ok(())
}
