//! `sqlite-dash shell`: an SQL prompt with dash loaded. A VFS can't be named on sqlite3's own
//! command line before it is loaded; this is the order that works.
//!
//! `sqlite3` goes on in a database in memory when `.open` fails: a script would run to its end, and
//! what it wrote would be gone. So the database is opened here first, which also tells why it can't
//! be, and sqlite3 stops before any other SQL if its own opening came to nothing after all.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::extension::{self, Extension};
use crate::failure::{Explain, Failure, Result};
use crate::out::{Shown, say_aside};
use crate::{Outcome, prompt};

/// Arguments of `sqlite-dash shell`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The database; made if there is none
    file: PathBuf,
    /// Passed on to sqlite3
    #[arg(last = true, value_name = "SQLITE3 ARGUMENTS")]
    rest: Vec<OsString>,
}

/// Fails where the database is not open through dash, and says nothing where it is.
const GUARD: &str = "SELECT 1 WHERE dash_engine() = 'none' AND abs(-9223372036854775808)";

/// Fails where the file is no database, which SQLite only finds out by reading it.
const READS: &str = "SELECT 1 FROM sqlite_master WHERE 0";

/// Where dash says what SQLite has no words for.
const ERRORS: &str = "DASH_ERRORS";

/// Becomes `sqlite3`, or a small prompt of our own where that is not installed.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let library = std::path::absolute(extension::find()?)
        .map_err(|error| Failure::new(format!("finding the library: {error}")))?;
    if arguments.file.as_os_str().as_bytes().starts_with(b"file:") && !arguments.file.exists() {
        return Err(Failure::new(format!(
            "{} is a URI, and sqlite-dash shell takes the name of a file; to choose parameters load {} in sqlite3, and .open the URI there",
            arguments.file.shown(),
            library.shown()
        )));
    }
    let asks_for = |options: [&str; 2]| {
        arguments.rest.iter().any(|word| options.iter().any(|option| word == option))
    };
    // Whoever wants to read only must not find the database made or recovered by this look.
    if !asks_for(["-readonly", "--readonly"]) {
        let db = Extension::load()?.open(&arguments.file, true)?;
        db.close()
            .map_err(|(_, error)| error)
            .explain("closing what was opened to see whether it can be")?;
    }
    let mut sqlite3 = Command::new("sqlite3");
    sqlite3.arg("-bail").args([
        "-cmd",
        &load(&library)?,
        "-cmd",
        &open(&arguments.file),
        "-cmd",
        GUARD,
        "-cmd",
        READS,
    ]);
    if std::env::var_os(ERRORS).is_none() {
        // "database is locked" is all that sqlite3 says.
        sqlite3.env(ERRORS, "stderr");
    }
    if !asks_for(["-bail", "--bail"]) {
        sqlite3.args(["-cmd", ".bail off"]);
    }
    let error = sqlite3.arg(":memory:").args(&arguments.rest).exec();
    if error.kind() != ErrorKind::NotFound {
        return Err(Failure::new(format!("starting sqlite3: {error}")));
    }
    say_aside!("sqlite3 is not installed; this is a small prompt of dash's own");
    prompt::run(&Extension::load()?, &arguments.file, &arguments.rest)
}

fn load(library: &Path) -> Result<String> {
    let path = library.to_str().filter(|path| !path.contains('\n')).ok_or_else(|| {
        Failure::new(format!(
            "sqlite3 can't be told to load {}: put the library at a path of plain text",
            library.shown()
        ))
    })?;
    let escaped = path.replace('\\', "\\\\").replace('"', "\\\"");
    Ok(format!(".load \"{escaped}\" sqlite3_dash_init"))
}

fn open(file: &Path) -> String {
    format!(".open \"{}\"", extension::uri(file).to_string_lossy())
}
