//! The journal modes of dash that have files of their own: a new one is a line here.

use std::path::Path;

use nix::unistd::AccessFlags;

use crate::access;
use crate::engine::{Engine, Findings, sidecar};
use crate::failure::{Failure, Result};
use crate::out::Shown;
use crate::{shadow, wal};

/// All of them; the first is what a database is opened in where nobody asks for one.
pub const ENGINES: &[Engine] = &[shadow::ENGINE, wal::ENGINE];

/// The one that is taken where nobody asks for one.
pub const DEFAULT: &Engine = &ENGINES[0];

/// The engine of this name.
pub fn named(name: &str) -> Option<&'static Engine> {
    ENGINES.iter().find(|engine| engine.name.eq_ignore_ascii_case(name))
}

/// The engine that a database says is its own, or else the one whose files lie beside it.
pub fn beside(file: &Path) -> Option<&'static Engine> {
    let there = |suffix: &&str| sidecar(file, suffix).symlink_metadata().is_ok();
    let claimed = ENGINES.iter().find(|engine| (engine.claims)(file));
    claimed.or_else(|| ENGINES.iter().find(|engine| engine.files.iter().any(there)))
}

/// Looks at a database; symbolic links are followed, as SQLite does.
pub fn look(file: &Path) -> Result<Box<dyn Findings>> {
    let path = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    only_file(&path)?;
    if let Some(why) = access::hindrance(&path, AccessFlags::R_OK).filter(|_| path.exists()) {
        return Err(Failure::new(why));
    }
    (beside(&path).unwrap_or(DEFAULT).look)(&path)
}

/// Refuses what is there and no file. Opening a named pipe waits until somebody else does.
pub fn only_file(file: &Path) -> Result<()> {
    match file.metadata() {
        Ok(found) if found.is_dir() => {
            Err(Failure::new(format!("{} is a folder, not a database", file.shown())))
        }
        Ok(found) if !found.is_file() => {
            Err(Failure::new(format!("{} is not a regular file", file.shown())))
        }
        _ => Ok(()),
    }
}
