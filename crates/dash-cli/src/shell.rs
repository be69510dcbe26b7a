//! `dash shell`: an SQL prompt with dash loaded. A VFS can't be named on sqlite3's own command
//! line before it is loaded; this is the order that works.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::extension::{self, Extension};
use crate::failure::{Failure, Result};
use crate::{Outcome, prompt};

/// Arguments of `dash shell`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The database; made if there is none
    file: PathBuf,
    /// Passed on to sqlite3
    #[arg(last = true, value_name = "SQLITE3 ARGUMENTS")]
    rest: Vec<OsString>,
}

/// Becomes `sqlite3`, or a small prompt of our own where that is not installed.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let library = std::path::absolute(extension::find()?)
        .map_err(|error| Failure::new(format!("finding the library: {error}")))?;
    let error = Command::new("sqlite3")
        .args(["-cmd", &load(&library)?, "-cmd", &open(&arguments.file), ":memory:"])
        .args(&arguments.rest)
        .exec();
    if error.kind() != ErrorKind::NotFound {
        return Err(Failure::new(format!("starting sqlite3: {error}")));
    }
    eprintln!("sqlite3 is not installed; this is a small prompt of dash's own");
    prompt::run(&Extension::load()?, &arguments.file, &arguments.rest)
}

fn load(library: &Path) -> Result<String> {
    let path = library.to_str().filter(|path| !path.contains('\n')).ok_or_else(|| {
        Failure::new(format!(
            "sqlite3 can't be told to load {}: put the library at a path of plain text",
            library.display()
        ))
    })?;
    let escaped = path.replace('\\', "\\\\").replace('"', "\\\"");
    Ok(format!(".load \"{escaped}\" sqlite3_dash_init"))
}

fn open(file: &Path) -> String {
    format!(".open \"{}\"", extension::uri(file).to_string_lossy())
}
