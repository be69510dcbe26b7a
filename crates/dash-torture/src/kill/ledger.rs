//! The ledger of a worker, kept outside the database: what it began to commit, and what SQLite
//! acknowledged. A line is one `write(2)` at the end of a file: what a killed process wrote stays.
//!
//! | line | when |
//! |---|---|
//! | `b n` | before `COMMIT` of the worker's commit n |
//! | `a n` | as soon as `COMMIT` has returned |
//!
//! Only one process at a time writes a ledger; anybody may read it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The newest numbers of a ledger.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Entry {
    /// Commits up to this one may be found.
    pub begun: u64,
    /// Commits up to this one must be found.
    pub acknowledged: u64,
}

/// Where the ledger of a slot is.
fn path(database: &Path, slot: usize) -> PathBuf {
    database.with_file_name(format!("ledger-{slot}"))
}

/// A ledger that this process writes.
pub struct Ledger {
    file: File,
    acknowledged: u64,
}

impl Ledger {
    /// Goes on with the ledger of a slot.
    pub fn open(database: &Path, slot: usize) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).open(path(database, slot))?;
        Ok(Self { file, acknowledged: read(database, slot)?.acknowledged })
    }

    /// The newest that was.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// A commit is about to be asked for.
    pub fn begin(&mut self, number: u64) -> io::Result<()> {
        self.file.write_all(format!("b {number}\n").as_bytes())
    }

    /// It was acknowledged.
    pub fn acknowledge(&mut self, number: u64) -> io::Result<()> {
        self.acknowledged = self.acknowledged.max(number);
        self.file.write_all(format!("a {number}\n").as_bytes())
    }
}

/// Reads the ledger of a slot; one that is not there is empty.
pub fn read(database: &Path, slot: usize) -> io::Result<Entry> {
    let text = match fs::read_to_string(path(database, slot)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        other => other?,
    };
    let mut entry = Entry::default();
    // What is behind the last line end is being written, or was cut off.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    for line in whole.lines() {
        let number = line.get(2..).and_then(|number| number.parse().ok()).unwrap_or_default();
        match line.as_bytes().first() {
            Some(b'b') => entry.begun = entry.begun.max(number),
            Some(b'a') => entry.acknowledged = entry.acknowledged.max(number),
            _ => {}
        }
    }
    entry.begun = entry.begun.max(entry.acknowledged);
    Ok(entry)
}

/// All ledgers of a database.
pub fn read_all(database: &Path, slots: usize) -> io::Result<Vec<Entry>> {
    (0..slots).map(|slot| read(database, slot)).collect()
}

/// Makes a ledger short again, and says what was found. Nobody may be writing it.
pub fn settle(database: &Path, slot: usize, found: u64) -> io::Result<()> {
    let path = path(database, slot);
    let fresh = path.with_extension("new");
    fs::write(&fresh, format!("b {found}\na {found}\n"))?;
    fs::rename(fresh, path)
}
