//! `sqlite-dash inspect`: what a database's files are and what opening it through dash would do.
//! Opens everything for reading only, takes no lock, changes nothing.

use std::path::PathBuf;

use crate::Outcome;
use crate::engines;
use crate::failure::Result;
use crate::out::say;

/// Arguments of `sqlite-dash inspect`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The database
    file: PathBuf,
    /// Prints JSON for programs
    #[arg(long)]
    json: bool,
}

/// Runs the command: bad news (1) if opening would be refused.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let found = engines::look(&arguments.file)?;
    if arguments.json {
        say!("{}", dash_statement::shown_json(&format!("{:#}", found.json())));
    } else {
        found.print();
    }
    Ok(Outcome::of(!found.is_refused()))
}
