//! `dash convert`: puts a database under dash, or makes it an ordinary SQLite file again.
//!
//! Whatever stops it, Ctrl-C or kill -9, the database is whole: the work is done by commits of the
//! engine, and each of them happens or does not.

use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::unistd::{AccessFlags, access};
use rusqlite::Connection;

use crate::Outcome;
use crate::extension::Extension;
use crate::failure::{Explain, Failure, Result};
use crate::inspect;
use crate::integrity::{Verdict, check};
use crate::interrupt::Interrupt;
use crate::out::say;
use crate::progress::{Moving, follow};

/// How long to wait for somebody who is writing.
const PATIENCE: Duration = Duration::from_secs(10);

/// Arguments of `dash convert`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The database
    file: PathBuf,
    /// What it shall be
    #[arg(long)]
    to: Kind,
}

/// What a database can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    /// Two copies, one flush per commit
    Shadow,
    /// An ordinary SQLite file in journal mode DELETE, nothing beside it
    Plain,
}

/// What to tell when Ctrl-C was pressed.
const STOPPED: &str = "stopped; the database is whole, run the command again to finish";

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let file = &arguments.file;
    if !file.is_file() && inspect::look(file)?.database.is_none() {
        return Err(Failure::new(format!(
            "{0} is missing, but its shadow is there: run `dash recover {0}`",
            file.display()
        )));
    }
    check_writable(file)?;
    let interrupt = Interrupt::catch()?;
    let extension = Extension::load()?;
    match arguments.to {
        Kind::Shadow => to_shadow(file, &extension, &interrupt),
        Kind::Plain => to_plain(file, &extension, &interrupt),
    }
}

fn to_shadow(file: &Path, extension: &Extension, interrupt: &Interrupt) -> Result<Outcome> {
    if inspect::look(file)?.shadow.is_none() {
        // As it is now, by stock SQLite, which also finishes a journal or log it left behind.
        let before = open_stock(file)?;
        let Some(before) = verify(before, file, "checking the file", interrupt)? else {
            return Ok(Outcome::Bad);
        };
        close(before, file)?;
    }
    let db = extension.open(file, false)?;
    db.busy_timeout(PATIENCE).explain("setting the busy timeout")?;
    let version: i64 = db
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .explain("reading user_version")?;
    // A commit that changes nothing but the change counter: it makes the second copy.
    let commit = format!("BEGIN IMMEDIATE; PRAGMA user_version={version}; COMMIT");
    follow("making the second copy", size(file), Moving::Written, || db.execute_batch(&commit))
        .explain(format!("making the second copy of {} (the file is as it was)", file.display()))?;
    let mode: String = db
        .query_row("PRAGMA journal_mode", [], |row| row.get(0))
        .explain("reading journal_mode")?;
    let Some(db) = verify(db, file, "checking it under dash", interrupt)? else {
        return Ok(Outcome::Bad);
    };
    close(db, file)?;
    say!(
        "{} is under dash now (journal mode {mode}): open it as {}",
        file.display(),
        shown_uri(file)
    );
    say!(
        "the way back is `dash convert {} --to plain`, or PRAGMA journal_mode=delete",
        file.display()
    );
    Ok(Outcome::Good)
}

fn to_plain(file: &Path, extension: &Extension, interrupt: &Interrupt) -> Result<Outcome> {
    let db = extension.open(file, false)?;
    db.busy_timeout(PATIENCE).explain("setting the busy timeout")?;
    let Some(db) = verify(db, file, "checking it under dash", interrupt)? else {
        return Ok(Outcome::Bad);
    };
    let mode: String = follow("making it plain", size(file), Moving::Written, || {
        db.query_row("PRAGMA journal_mode=delete", [], |row| row.get(0))
    })
    .explain(format!("making {} plain (it is as it was)", file.display()))?;
    close(db, file)?;
    if mode != "delete" {
        say!(
            "{} stays in journal mode {mode}: another connection has it open; close that and try again",
            file.display()
        );
        return Ok(Outcome::Bad);
    }
    let left = inspect::look(file)?;
    if left.shadow.is_some() || left.beside.fence || left.beside.coordination {
        say!(
            "{} is plain, but another connection still has it open through dash: close that and try again",
            file.display()
        );
        return Ok(Outcome::Bad);
    }
    let after = open_stock(file)?;
    let Some(after) = verify(after, file, "checking the plain file", interrupt)? else {
        return Ok(Outcome::Bad);
    };
    close(after, file)?;
    say!("{} is an ordinary SQLite file now, with nothing beside it", file.display());
    Ok(Outcome::Good)
}

/// SQLite's own message names neither file nor folder.
fn check_writable(file: &Path) -> Result<()> {
    let path = file.canonicalize().explain(format!("looking up {}", file.display()))?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    let why_folder = ", and both modes make and rename files in it";
    let mut shadow = path.clone().into_os_string();
    shadow.push("-shadow");
    for (path, why) in [(folder, why_folder), (&path, ""), (Path::new(&shadow), "")] {
        match access(path, AccessFlags::W_OK) {
            Ok(()) | Err(Errno::ENOENT) => {}
            Err(error) => {
                return Err(Failure::new(format!(
                    "{} can't be written ({}){why}; nothing was done",
                    path.display(),
                    error.desc()
                )));
            }
        }
    }
    Ok(())
}

/// Gives the connection back if the database is whole and nobody pressed Ctrl-C.
fn verify(
    db: Connection,
    file: &Path,
    what: &str,
    interrupt: &Interrupt,
) -> Result<Option<Connection>> {
    match check(&db, what, size(file), interrupt)? {
        Verdict::Whole if !interrupt.pressed() => {
            say!("{what}: ok");
            return Ok(Some(db));
        }
        Verdict::Whole | Verdict::Interrupted => say!("{STOPPED}"),
        Verdict::Damaged(lines) => {
            say!("{what}: {} is DAMAGED, nothing more is done: {lines}", file.display())
        }
    }
    close(db, file)?;
    Ok(None)
}

fn open_stock(file: &Path) -> Result<Connection> {
    let db = Connection::open(file).explain(format!("opening {}", file.display()))?;
    db.busy_timeout(PATIENCE).explain("setting the busy timeout")?;
    Ok(db)
}

fn close(db: Connection, file: &Path) -> Result<()> {
    db.close().map_err(|(_, error)| error).explain(format!("closing {}", file.display()))
}

fn size(file: &Path) -> u64 {
    file.metadata().map_or(0, |found| found.len())
}

fn shown_uri(file: &Path) -> String {
    crate::extension::uri(file).to_string_lossy().into_owned()
}
