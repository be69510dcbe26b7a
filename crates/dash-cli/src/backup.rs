//! `sqlite-dash backup`: one committed state of a database as a plain file, while others go on.
//!
//! The work is done by `dash_backup()` of the extension. Whatever stops it, there is no DEST, or a
//! whole one; what kill -9 leaves has a name that says so, and the next backup to DEST removes it.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, ErrorCode, params};
use serde_json::json;

use crate::Outcome;
use crate::engines;
use crate::extension::Extension;
use crate::failure::{Explain, Failure, Result};
use crate::interrupt::Interrupt;
use crate::out::{Shown, say, say_aside};
use crate::progress::{Moving, follow};

/// Arguments of `sqlite-dash backup`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The database; it may be in use
    file: PathBuf,
    /// The file to make: a plain SQLite database with nothing beside it
    dest: PathBuf,
    /// Replaces DEST, an SQLite database or an empty file, once the new copy is whole
    #[arg(long)]
    force: bool,
    /// Prints the result as JSON
    #[arg(long)]
    json: bool,
}

/// How often the database's bytes are moved: read, written, read back, checked.
const TIMES_MOVED: u64 = 4;

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let (file, dest) = (&arguments.file, &arguments.dest);
    let shown = file.shown();
    if !file.is_file() && !engines::look(file)?.has_database() {
        return Err(Failure::new(format!(
            "{shown} is missing, but files of dash are beside it: run `sqlite-dash recover {shown}`"
        )));
    }
    let interrupt = Interrupt::catch()?;
    let extension = Extension::load()?;
    let db = extension.open_with(file, false, "&dash_backup=on")?;
    let (begun, time) = (Instant::now(), SystemTime::now().duration_since(UNIX_EPOCH));
    interrupt.watch(&db);
    let bytes = file.metadata().map_or(0, |found| found.len()) * TIMES_MOVED;
    let copied = follow("backing up", bytes, Moving::Both, || copy(&db, dest, arguments.force));
    interrupt.unwatch();
    let pages = match copied {
        Ok(pages) => pages,
        Err(_) if interrupt.pressed() => {
            match dest.symlink_metadata() {
                Ok(_) => say_aside!("dash: stopped; {} is as it was", dest.shown()),
                Err(_) => say_aside!("dash: stopped; there is no {}", dest.shown()),
            }
            return Ok(Outcome::Bad);
        }
        Err(error) if is_damage(&error) => {
            say_aside!("dash: {shown}: {error}");
            return Ok(Outcome::Bad);
        }
        Err(error) => return Err(Failure::new(format!("backing {shown} up: {error}"))),
    };
    let seconds = begun.elapsed().as_secs_f64();
    let mode: String = db
        .query_row("SELECT dash_engine()", [], |row| row.get(0))
        .explain("asking for the mode")?;
    db.close().map_err(|(_, error)| error).explain(format!("closing {shown}"))?;
    let bytes = dest.metadata().explain(format!("looking at {}", dest.shown()))?.len();
    // In mode wal it does not count commits.
    let counter = if mode == "wal" { None } else { change_counter(dest)? };
    if arguments.json {
        let began = time.map_or(0, |time| time.as_secs());
        say!(
            "{}",
            json!({
                "file": file.to_string_lossy(), "dest": dest.to_string_lossy(), "pages": pages, "bytes": bytes,
                "seconds": seconds, "began": began, "mode": mode, "change_counter": counter,
            })
        );
        return Ok(Outcome::Good);
    }
    let state = counter.map_or_else(String::new, |counter| format!(", change counter {counter}"));
    say!(
        "{}: {pages} pages, {bytes} bytes in {seconds:.1} s, read back and checked; it has every commit that returned before it began{state}",
        dest.shown()
    );
    Ok(Outcome::Good)
}

fn copy(db: &Connection, dest: &Path, force: bool) -> rusqlite::Result<i64> {
    let path = dest.as_os_str().as_bytes();
    let sql = if force {
        "SELECT dash_backup(?1, 'main', 'replace')"
    } else {
        "SELECT dash_backup(?1, 'main')"
    };
    db.query_row(sql, params![path], |row| row.get(0))
}

fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// SQLite's header has it at 24.
fn change_counter(dest: &Path) -> Result<Option<u32>> {
    use std::io::Read;
    let mut header = [0; 28];
    let mut file = std::fs::File::open(dest).explain(format!("reading {}", dest.shown()))?;
    file.read_exact(&mut header).explain(format!("reading {}", dest.shown()))?;
    Ok(header[24..].first_chunk().map(|bytes| u32::from_be_bytes(*bytes)))
}
