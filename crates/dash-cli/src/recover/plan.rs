//! What can be done about a database after a crash: a list of steps that a person can read.

use std::ffi::OsString;
use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

use crate::failure::Result;
use crate::out::Shown;

/// One thing that is done.
#[derive(Debug, Clone)]
pub enum Step {
    /// Gives a file another, free name.
    Rename {
        /// Its name now.
        from: PathBuf,
        /// Its name then.
        to: PathBuf,
    },
    /// Copies a file under a free name.
    Copy {
        /// What is copied.
        from: PathBuf,
        /// The copy.
        to: PathBuf,
    },
    /// Writes what can be read of `from` into a new database and puts that in the place of `to`,
    /// of which a copy was made before.
    Rewrite {
        /// What is read.
        from: PathBuf,
        /// What is replaced.
        to: PathBuf,
    },
    /// Takes a file as it is, whatever its engine noted of others.
    Forget {
        /// The database.
        file: PathBuf,
        /// What does it.
        by: fn(&Path) -> Result<()>,
    },
    /// Does what a person has decided.
    Decide {
        /// In words.
        what: String,
        /// The database.
        file: PathBuf,
        /// What does it.
        by: fn(&Path) -> Result<()>,
    },
    /// Opens the database through dash, which recovers it, and checks it.
    Open {
        /// The database.
        file: PathBuf,
        /// What opening will do, as far as it is known.
        does: String,
    },
}

impl Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rename { from, to } => write!(f, "rename {} to {}", from.shown(), to.shown()),
            Self::Copy { from, to } => write!(f, "copy {} to {}", from.shown(), to.shown()),
            Self::Rewrite { from, to } => {
                write!(
                    f,
                    "write the content of {} into a new database and put it in the place of {}",
                    from.shown(),
                    to.shown()
                )
            }
            Self::Forget { file, .. } => {
                write!(f, "take {} as it is, whatever dash noted of a second copy", file.shown())
            }
            Self::Decide { what, .. } => f.write_str(what),
            Self::Open { file, does } => write!(
                f,
                "open {} through dash, which {does}; then run integrity_check",
                file.shown()
            ),
        }
    }
}

/// What was found, and what is to be done.
#[derive(Debug, Clone)]
pub struct Plan {
    /// For the reader.
    pub why: String,
    /// In this order.
    pub steps: Vec<Step>,
}

/// What the command answers.
#[derive(Debug, Clone)]
pub enum Reply {
    /// This can be done.
    Do(Plan),
    /// Nothing can be done, or a person must choose first.
    Tell(String),
    /// Nothing needs to be done.
    Nothing(String),
}

/// Why a database is opened.
pub fn left(file: &Path, is_locked: bool) -> String {
    let used = if is_locked { "is in use by another program, or " } else { "" };
    format!("{} {used}was left in the middle of something.", file.shown())
}

/// `FILE.before-recover-N`, with the first N that is free.
pub fn free_name(file: &Path) -> PathBuf {
    next_free(file, Path::new(""))
}

/// The same, but not `taken`, which a step before gives to another file.
pub fn next_free(file: &Path, taken: &Path) -> PathBuf {
    let mut number = 1_u32;
    loop {
        let mut name = OsString::from(file);
        name.push(format!(".before-recover-{number}"));
        let name = PathBuf::from(name);
        if name != taken && name.symlink_metadata().is_err() {
            return name;
        }
        number += 1;
    }
}
