//! What this program asks of an engine of dash: to look at its files, and to plan a recovery.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::failure::Result;
use crate::interrupt::Interrupt;
use crate::recover::plan::Reply;
use crate::top::moment::Moment;

/// A journal mode with files of its own.
pub struct Engine {
    /// What `PRAGMA journal_mode` and `sqlite-dash convert --to` call it.
    pub name: &'static str,
    /// What is appended to a database's name for the files that tell this mode.
    pub files: &'static [&'static str],
    /// Whether the database itself says that it is opened in this mode, whatever lies beside it.
    pub claims: fn(&Path) -> bool,
    /// What the first commit under it does that takes long.
    pub first_commit: &'static str,
    /// What `sqlite-dash recover --keep` can be given, each with a line of help.
    pub keep: &'static [(&'static str, &'static str)],
    /// Looks at a database's files; reads only.
    pub look: fn(&Path) -> Result<Box<dyn Findings>>,
    /// What its connections do now, from outside; none where no connection of it has the database
    /// open for writing.
    pub watch: fn(&Path) -> Result<Option<Moment>>,
}

/// What was found.
pub trait Findings {
    /// Prints it for people.
    fn print(&self);

    /// The same for programs.
    fn json(&self) -> Value;

    /// What opening it would do, as a part of a sentence: "joins …", "is refused: …".
    fn opening(&self) -> String;

    /// Whether a connection of dash has it open.
    fn is_open(&self) -> bool;

    /// Whether it was left in the middle of something, so that opening it does more than open it.
    fn is_cut_off(&self) -> bool;

    /// Whether opening it would be refused.
    fn is_refused(&self) -> bool;

    /// Whether the database itself is there, whatever else is.
    fn has_database(&self) -> bool;

    /// Whether the engine has made anything for it yet.
    fn is_used(&self) -> bool;

    /// Whether anything of the engine lies beside it.
    fn has_left_anything(&self) -> bool;

    /// What to do about the database `file` after a crash; `keep` is one of [`Engine::keep`].
    ///
    /// # Errors
    ///
    /// If the files can't be read.
    fn recovery(&self, file: &Path, keep: Option<&str>, interrupt: &Interrupt) -> Result<Reply>;
}

/// What is appended to a database's name, by dash and by SQLite; longer ones before those that they
/// end with.
pub const SUFFIXES: [&str; 12] = [
    ".dash-backup-unfinished",
    "-shadow-tmp",
    "-shadow-old",
    "-dash-fence",
    "-dash-sign",
    "-dash-new",
    "-journal",
    "-dashlog",
    "-shadow",
    "-dash",
    "-wal",
    "-shm",
];

/// The file beside a database with this at the end of its name.
pub fn sidecar(file: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(file);
    name.push(suffix);
    PathBuf::from(name)
}
