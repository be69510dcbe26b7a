//! `dash inspect`: what a database's files are and what opening it through dash would do. Opens
//! everything for reading only, takes no lock, changes nothing.

mod json;
mod text;
mod words;

use std::path::{Path, PathBuf};

use dash_shadow::Report;
use dash_shadow::inspect::{LockedFile, Opening};
use dash_storage::real::Real;

use crate::Outcome;
use crate::failure::{Explain, Failure, Result};
use crate::holders::{self, Held};
use crate::out::say;

pub use words::opening;

/// Arguments of `dash inspect`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The database
    file: PathBuf,
    /// Prints JSON for programs
    #[arg(long)]
    json: bool,
}

/// Locks of one file, and who holds them.
pub struct Holders {
    file: LockedFile,
    held: Vec<Held>,
}

/// Runs the command: bad news (1) if opening would be refused.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let report = look(&arguments.file)?;
    let holders = holders_of(&arguments.file, &report);
    if arguments.json {
        say!("{:#}", json::report(&report, &holders));
    } else {
        text::print(&report, &holders);
    }
    let refused = matches!(
        report.opening,
        Opening::Refuse(..) | Opening::OtherFormat(_) | Opening::HardLinks(_)
    );
    Ok(if refused { Outcome::Bad } else { Outcome::Good })
}

/// Looks at a database; symbolic links are followed, as SQLite does.
pub fn look(file: &Path) -> Result<Report> {
    let path = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    if path.is_dir() {
        return Err(Failure::new(format!("{} is a folder, not a database", file.display())));
    }
    let report =
        dash_shadow::inspect(&Real, &path).explain(format!("looking at {}", file.display()))?;
    if report.database.is_none() && report.shadow.is_none() {
        return Err(Failure::new(format!(
            "{} does not exist, nor does a shadow of it",
            file.display()
        )));
    }
    Ok(report)
}

fn holders_of(file: &Path, report: &Report) -> Vec<Holders> {
    if report.locks.is_empty() {
        return Vec::new();
    }
    let copies = [(LockedFile::Database, &report.database), (LockedFile::Shadow, &report.shadow)];
    let mut holders: Vec<Holders> = copies
        .into_iter()
        .filter_map(|(file, copy)| Some(Holders { file, held: holders::of(copy.as_ref()?.id) }))
        .collect();
    let coordination = file.with_file_name(&report.names.coordination);
    if let Some(id) = identity(&coordination) {
        holders.push(Holders { file: LockedFile::Coordination, held: holders::of(id) });
    }
    holders
}

fn identity(path: &Path) -> Option<dash_storage::FileId> {
    use std::os::unix::fs::MetadataExt;
    let found = path.metadata().ok()?;
    Some(dash_storage::FileId { device: found.dev(), inode: found.ino() })
}
