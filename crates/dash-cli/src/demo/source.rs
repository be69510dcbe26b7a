//! A copy of the user's database to experiment on. The original is only read: its sidecars are
//! copied too, and whatever recovery it needs happens in the copy.

use std::path::Path;

use rusqlite::Connection;

use crate::engine::sidecar;
use crate::engines::{self, ENGINES};
use crate::extension::Extension;
use crate::failure::{Explain, Failure, Result};
use crate::out::Shown;

/// Copies `file` and what lies beside it, and leaves one plain SQLite file at `base`.
pub fn copy(extension: &Extension, file: &Path, base: &Path) -> Result<()> {
    if !file.is_file() {
        return Err(Failure::new(format!("{} is not a file", file.shown())));
    }
    duplicate(file, base)?;
    let engines = ENGINES.iter().flat_map(|engine| engine.files);
    for suffix in ["-wal", "-journal"].iter().chain(engines) {
        let beside = sidecar(file, suffix);
        if beside.is_dir() {
            // dash's name fence: an empty folder.
            std::fs::create_dir(sidecar(base, suffix)).explain("copying the name fence")?;
        } else if beside.exists() {
            duplicate(&beside, &sidecar(base, suffix))?;
        }
    }
    let db = if engines::beside(base).is_some() {
        extension.open(base, false)?
    } else {
        Connection::open(base).explain("opening the copy")?
    };
    let what = format!("reading the copy of {}", file.shown());
    let mode: String =
        db.query_row("PRAGMA journal_mode=DELETE", [], |row| row.get(0)).explain(&what)?;
    let check: String =
        db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).explain(&what)?;
    db.close().map_err(|(_, error)| error).explain(&what)?;
    match (check.as_str(), mode.as_str()) {
        ("ok", "delete") => Ok(()),
        ("ok", mode) => Err(Failure::new(format!("{what}: it stays in journal mode {mode}"))),
        (problem, _) => Err(Failure::new(format!(
            "{what}: {problem}. If a program is writing to it right now, close that and try again"
        ))),
    }
}

fn duplicate(from: &Path, to: &Path) -> Result<()> {
    std::fs::copy(from, to).map(drop).explain(format!("copying {}", from.shown()))
}
