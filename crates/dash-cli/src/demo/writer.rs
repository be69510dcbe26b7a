//! The hidden command that the demo kills: commits one row after the other and says each number
//! once SQLite has said that it is durable.

use std::io::Write;
use std::path::PathBuf;

use rusqlite::params;

use super::failed;
use super::side::Side;
use super::workload::Random;
use crate::Outcome;
use crate::extension::Extension;
use crate::failure::{Explain, Result};

/// Arguments of `dash demo-writer`.
#[derive(clap::Args)]
pub struct Arguments {
    side: Side,
    file: PathBuf,
}

/// Writes until it is killed.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let extension = Extension::load()?;
    let side = arguments.side;
    let fail = |error: rusqlite::Error| failed(side, "writing", &error);
    let db = side.open(&extension, &arguments.file)?;
    db.execute_batch(
        "CREATE TABLE IF NOT EXISTS dash_demo_commits (number INTEGER PRIMARY KEY, body TEXT)",
    )
    .map_err(fail)?;
    let mut insert = db.prepare("INSERT INTO dash_demo_commits VALUES (?, ?)").map_err(fail)?;
    let mut random = Random::new(u64::from(std::process::id()));
    let mut number: i64 = db
        .query_row("SELECT coalesce(max(number), 0) FROM dash_demo_commits", [], |row| row.get(0))
        .map_err(fail)?;
    let mut pipe = std::io::stdout().lock();
    loop {
        number += 1;
        insert.execute(params![number, random.text()]).map_err(fail)?;
        writeln!(pipe, "{number}").and_then(|()| pipe.flush()).explain("telling of a commit")?;
    }
}
