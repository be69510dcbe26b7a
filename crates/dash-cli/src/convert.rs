//! `sqlite-dash convert`: puts a database under dash, or makes it an ordinary SQLite file again.
//!
//! Whatever stops it, Ctrl-C or kill -9, the database is whole: the work is done by commits of the
//! engine, and each of them happens or does not.

use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::unistd::{AccessFlags, access};
use rusqlite::{Connection, ErrorCode};

use crate::Outcome;
use crate::engine::{Engine, sidecar};
use crate::engines::{self, ENGINES};
use crate::extension::Extension;
use crate::failure::{Explain, Failure, Result};
use crate::integrity::{Verdict, check};
use crate::interrupt::Interrupt;
use crate::out::{Shown, say};
use crate::progress::{Moving, follow};

/// How long to wait for somebody who is writing.
const PATIENCE: Duration = Duration::from_secs(10);

/// Arguments of `sqlite-dash convert`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The database
    file: PathBuf,
    /// What it shall be: `plain`, an ordinary SQLite file with nothing beside it, or a journal mode
    /// as `PRAGMA journal_mode` takes it, such as `shadow`
    #[arg(long, value_name = "MODE", value_parser = mode)]
    to: String,
}

/// What is put behind `PRAGMA journal_mode=`.
fn mode(word: &str) -> std::result::Result<String, String> {
    let word = word.to_ascii_lowercase();
    match &*word {
        "plain" => Ok("delete".to_owned()),
        "statement" => Err("a file does not keep that mode, and is in WAL mode at rest: \
             convert it to wal, and open it with journal_mode=statement in the URI"
            .to_owned()),
        "delete" | "truncate" | "persist" | "memory" | "off" => Ok(word),
        name if engines::named(name).is_some() => Ok(word),
        _ => Err("no such mode: it is plain, shadow or wal".to_owned()),
    }
}

/// What to tell when Ctrl-C was pressed.
const STOPPED: &str = "stopped; the database is whole, run the command again to finish";

/// Why the mode stays as it is, where nothing else was said.
const IN_USE: &str = "another connection has it open; close that and try again";

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let file = &arguments.file;
    if !file.is_file() && !engines::look(file)?.has_database() {
        return Err(Failure::new(format!(
            "{0} is missing, but files of dash are beside it: run `sqlite-dash recover {0}`",
            file.shown()
        )));
    }
    check_writable(file)?;
    let interrupt = Interrupt::catch()?;
    let extension = Extension::load()?;
    match engines::named(&arguments.to) {
        Some(engine) => to_engine(file, engine, &extension, &interrupt),
        None => to_plain(file, &arguments.to, &extension, &interrupt),
    }
}

fn to_engine(
    file: &Path,
    engine: &Engine,
    extension: &Extension,
    interrupt: &Interrupt,
) -> Result<Outcome> {
    if !engines::look(file)?.is_used() {
        // As it is now, by stock SQLite, which also finishes a journal or log it left behind.
        let before = open_stock(file)?;
        let Some(before) = verify(before, file, "checking the file", interrupt)? else {
            return Ok(Outcome::Bad);
        };
        close(before, file)?;
    }
    let db = extension.open(file, false)?;
    db.busy_timeout(PATIENCE).explain("setting the busy timeout")?;
    let mode = set_mode(&db, engine.name).explain("PRAGMA journal_mode")?;
    if mode != engine.name {
        close(db, file)?;
        return Ok(stays(file, &mode, extension));
    }
    let version: i64 = db
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .explain("reading user_version")?;
    // A commit that changes nothing but the change counter: what it makes beside that is the point.
    let commit = format!("BEGIN IMMEDIATE; PRAGMA user_version={version}; COMMIT");
    let what = engine.first_commit;
    follow(what, size(file), Moving::Written, || db.execute_batch(&commit))
        .explain(format!("{what} of {} (the file is as it was)", file.shown()))?;
    let Some(db) = verify(db, file, "checking it under dash", interrupt)? else {
        return Ok(Outcome::Bad);
    };
    close(db, file)?;
    say!(
        "{} is under dash now (journal mode {mode}): open it as {}",
        file.shown(),
        shown_uri(file)
    );
    say!(
        "the way back is `sqlite-dash convert {} --to plain`, or PRAGMA journal_mode=delete",
        file.shown()
    );
    Ok(Outcome::Good)
}

fn to_plain(
    file: &Path,
    wanted: &str,
    extension: &Extension,
    interrupt: &Interrupt,
) -> Result<Outcome> {
    let is_plain = engines::beside(file).is_none();
    let db = extension.open(file, false)?;
    db.busy_timeout(PATIENCE).explain("setting the busy timeout")?;
    let Some(db) = verify(db, file, "checking it under dash", interrupt)? else {
        return Ok(Outcome::Bad);
    };
    let mode = follow("making it plain", size(file), Moving::Written, || set_mode(&db, wanted))
        .map_err(|error| match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                let said = extension.last_error().map(|said| format!(" ({said})"));
                format!("{IN_USE}{}", said.unwrap_or_default())
            }
            _ => error.to_string(),
        })
        .explain(format!("making {} plain (it is as it was)", file.shown()))?;
    close(db, file)?;
    if mode != wanted {
        let stays_in = if is_plain { "plain" } else { &mode };
        return Ok(stays(file, stays_in, extension));
    }
    if engines::look(file)?.has_left_anything() {
        say!(
            "{} is plain, but another connection still has it open through dash: close that and try again",
            file.shown()
        );
        return Ok(Outcome::Bad);
    }
    let after = open_stock(file)?;
    let Some(after) = verify(after, file, "checking the plain file", interrupt)? else {
        return Ok(Outcome::Bad);
    };
    close(after, file)?;
    say!("{} is an ordinary SQLite file now, with nothing beside it", file.shown());
    Ok(Outcome::Good)
}

/// The mode that it is in then.
fn set_mode(db: &Connection, wanted: &str) -> rusqlite::Result<String> {
    db.query_row(&format!("PRAGMA journal_mode={wanted}"), [], |row| row.get(0))
}

fn stays(file: &Path, mode: &str, extension: &Extension) -> Outcome {
    let why = extension.last_error().unwrap_or_else(|| IN_USE.to_owned());
    match mode {
        "plain" => say!("{} stays a plain file: {why}", file.shown()),
        _ => say!("{} stays in journal mode {mode}: {why}", file.shown()),
    }
    Outcome::Bad
}

/// SQLite's own message names neither file nor folder.
fn check_writable(file: &Path) -> Result<()> {
    let path = file.canonicalize().explain(format!("looking up {}", file.shown()))?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    let why_folder = ", and both modes make and rename files in it";
    let beside = ENGINES.iter().flat_map(|engine| engine.files).map(|end| sidecar(&path, end));
    let all = [(folder.to_owned(), why_folder), (path.clone(), "")].into_iter();
    for (path, why) in all.chain(beside.map(|path| (path, ""))) {
        match access(&path, AccessFlags::W_OK) {
            Ok(()) | Err(Errno::ENOENT) => {}
            Err(error) => {
                return Err(Failure::new(format!(
                    "{} can't be written ({}){why}; nothing was done",
                    path.shown(),
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
            say!("{what}: {} is DAMAGED, nothing more is done: {lines}", file.shown())
        }
    }
    close(db, file)?;
    Ok(None)
}

fn open_stock(file: &Path) -> Result<Connection> {
    let db = Connection::open(file).explain(format!("opening {}", file.shown()))?;
    db.busy_timeout(PATIENCE).explain("setting the busy timeout")?;
    Ok(db)
}

fn close(db: Connection, file: &Path) -> Result<()> {
    db.close().map_err(|(_, error)| error).explain(format!("closing {}", file.shown()))
}

fn size(file: &Path) -> u64 {
    file.metadata().map_or(0, |found| found.len())
}

fn shown_uri(file: &Path) -> String {
    crate::extension::uri(file).to_string_lossy().into_owned()
}
