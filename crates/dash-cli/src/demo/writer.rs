//! The hidden command that the demo kills: commits one row after the other and says each number
//! once SQLite has said that it is durable.

use std::io::Write;
use std::path::PathBuf;

use dash_bench::row::Row;
use dash_bench::rows;
use rusqlite::params;

use super::modes;
use crate::Outcome;
use crate::extension::Extension;
use crate::failure::{Explain, Result};

/// Arguments of `dash demo-writer`.
#[derive(clap::Args)]
pub struct Arguments {
    #[arg(value_parser = rows::parser())]
    row: &'static Row,
    file: PathBuf,
}

/// Writes until it is killed.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let extension = Extension::load()?;
    let db = modes::open(arguments.row, &extension, &arguments.file)?;
    db.execute_batch(
        "CREATE TABLE IF NOT EXISTS dash_demo_commits (number INTEGER PRIMARY KEY, body TEXT)",
    )
    .explain("making a table")?;
    let mut insert =
        db.prepare("INSERT INTO dash_demo_commits VALUES (?, ?)").explain("preparing")?;
    let mut number: i64 = db
        .query_row("SELECT coalesce(max(number), 0) FROM dash_demo_commits", [], |row| row.get(0))
        .explain("counting commits")?;
    let mut pipe = std::io::stdout().lock();
    loop {
        number += 1;
        insert.execute(params![number, format!("{number:0100}")]).explain("committing")?;
        writeln!(pipe, "{number}").and_then(|()| pipe.flush()).explain("telling of a commit")?;
    }
}
