//! Who does what with a database, for whoever looks from outside: it joins nobody, maps nothing,
//! takes no lock and makes no file.

use crate::connection::blockers::Holders;
use crate::names::Names;
use crate::shared::coordination::{ENTRIES, ENTRY, WORDS, Word};
use crate::shared::handover::LINE;
use crate::shared::layout::Layout;
use crate::shared::locks;
use crate::shared::readers::snapshot_of;
use dash_engine::coordination::read_coordination;
use dash_engine::copied::Copied;
use dash_engine::error::{Context, Operation, Result};
use dash_engine::handover::is_alive;
use dash_engine::open::open_if_there;
use dash_storage::{File, FileId, LockKind, OpenMode, SharedMemory, Storage};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

/// What a database's connections do at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watched {
    /// When it was looked, in nanoseconds of the storage's clock.
    pub now: u64,
    /// The coordination file: another one says that all was closed meanwhile.
    pub file: FileId,
    /// Commits since the first of the present connections opened the database.
    pub commits: u64,
    /// Sequence of the newest one.
    pub sequence: u64,
    /// Somebody has the write lock.
    pub writing: bool,
    /// Connections that have the database open for writing, as far as they have an entry.
    pub connections: Vec<Connected>,
    /// The processes that read with stock SQLite, once for each copy; `None`: of another pid
    /// namespace.
    pub stock_readers: Vec<Option<u32>>,
}

/// A connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connected {
    /// Its process, by the number that it knows itself by.
    pub process: u32,
    /// Its ticket, if it waits for the write lock; the lowest one is the first in line.
    pub ticket: Option<u64>,
    /// Sequence of the commit whose state it reads, if it reads.
    pub reads: Option<u64>,
}

/// Looks from outside. `None`: no connection of this engine, in any process, has the database at
/// `path` open for writing.
///
/// # Errors
///
/// Those of reading the coordination file, and of looking at its locks.
pub fn watch<S: Storage>(storage: &S, path: &Path) -> Result<Option<Watched>> {
    let (folder, names) = Names::split(path)?;
    let directory = storage.open_directory(folder).during(Operation::Open, folder.display())?;
    let name = names.shown_coordination();
    let file = read_coordination::<S>(&directory, names.coordination_file())?;
    let Some(file) = file else { return Ok(None) };
    let is_held = |range, kind| {
        let held = file.lock_conflict(range, kind).during(Operation::Lock, name)?;
        Ok(held.is_some())
    };
    if !is_held(locks::ALIVE, LockKind::Exclusive)? {
        return Ok(None);
    }
    let words = Copied::of(&file, WORDS).during(Operation::Read, name)?;
    let word = |index: usize| words.word(index).load(Relaxed);
    if Layout::of(word(Word::Magic as usize)) != Layout::Ours {
        return Ok(None);
    }
    let mut connections = Vec::new();
    for entry in LINE.used(word(Word::ReaderHigh as usize)) {
        if is_alive(&file, entry)? {
            let first = ENTRIES + entry * ENTRY;
            connections.push(Connected {
                process: u32::try_from(word(first + 1)).unwrap_or(0),
                ticket: Some(word(LINE.ticket(entry))).filter(|ticket| *ticket != 0),
                reads: snapshot_of(word(first)),
            });
        }
    }
    Ok(Some(Watched {
        now: storage.monotonic_nanos(),
        file: file.id(),
        commits: word(Word::Commits as usize),
        sequence: word(Word::Current as usize) >> 1,
        // A connection under locking_mode=EXCLUSIVE that only reads holds it shared.
        writing: is_held(locks::WRITER, LockKind::Shared)?,
        connections,
        stock_readers: stock_readers::<S>(&directory, &names)?,
    }))
}

/// Those of both copies.
fn stock_readers<S: Storage>(directory: &S::Directory, names: &Names) -> Result<Vec<Option<u32>>> {
    let mut readers = Vec::new();
    for (name, shown) in [(&names.db, names.shown()), (&names.shadow, names.shown_shadow())] {
        if let Some(file) = open_if_there::<S>(directory, name, OpenMode::Read)? {
            readers.extend(Holders::of(&file, shown)?.stock);
        }
    }
    Ok(readers)
}
