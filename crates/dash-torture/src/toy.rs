//! The smallest engine, to show what a new one takes: this file, and a line in [`crate::engines`].
//! A commit writes a whole new copy of the database beside the old one, flushes it, and renames it
//! over that. Readers keep the file that they have opened.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use dash_simulated::{Directory, File, Machine, Simulated};
use dash_storage::{Directory as _, File as _, LockKind, OpenMode, Storage as _};

use crate::engine::{Engine, Loaded};
use crate::faults::part::Part;
use crate::sim::commit::{CommitStep, Kept, SqliteCall};
use crate::sim::rollback::Rollback;
use crate::sim::subject::{Claims, Outcome, Session, Sessions, Setup};
use crate::sim::subject::{SqliteFiles, Subject, Trouble};
use crate::variant::Variant;

const NEW: OpenMode = OpenMode::CreateNew { permissions: 0o644 };
const ANY: OpenMode = OpenMode::Create { permissions: 0o644 };

/// The engine; one that does not flush the new copy loses commits.
pub struct Toy {
    is_flushed: bool,
}

impl Toy {
    /// As it should be.
    pub const SOUND: Self = Self { is_flushed: true };
}

impl Engine for Toy {
    fn subject(&self) -> &'static dyn Subject {
        &Self::SOUND
    }

    fn loaded(&self) -> Option<&'static dyn Loaded> {
        None
    }

    fn parts(&self) -> &'static [Part] {
        &[]
    }
}

/// Until the rename nobody finds anything of a new copy.
const fn before(name: &'static str, at: SqliteCall, is_flush: bool) -> CommitStep {
    let (after_kill, after_power_loss, can_be_undone) = (Kept::Never, Kept::Never, true);
    CommitStep { name, at, is_flush, after_kill, after_power_loss, can_be_undone }
}

const STEPS: &[CommitStep] = &[
    before("copy", SqliteCall::ControlSync, false),
    before("flush", SqliteCall::Sync, true),
    CommitStep {
        name: "rename",
        at: SqliteCall::CommitPhaseTwo,
        is_flush: false,
        after_kill: Kept::Always,
        after_power_loss: Kept::Always,
        can_be_undone: false,
    },
];

impl Subject for Toy {
    fn engine(&self) -> &'static str {
        "toy"
    }

    fn variants(&self) -> &'static [Variant] {
        &[Variant { name: "copy", what: "all of it", uri: None, every_flush_counts: true }]
    }

    fn claims(&self) -> Claims {
        Claims {
            wal_mode: None,
            several_databases: false,
            stock_neighbours: false,
            without_journal: false,
        }
    }

    fn sessions(&self) -> Option<&dyn Sessions> {
        Some(self)
    }

    fn sqlite_files(&self) -> &'static dyn SqliteFiles {
        &Rollback
    }

    fn prepare(&self, _: &Machine, _: &Setup) {}

    fn beside(&self) -> &'static [&'static str] {
        &[]
    }

    fn check_at_rest(&self, machine: &Machine, path: &str, _: &[u64]) -> Result<(), String> {
        let is_left = machine.exists(format!("{path}-new"));
        (!is_left).then_some(()).ok_or_else(|| format!("{path}-new is left behind"))
    }
}

impl Sessions for Toy {
    fn commit_steps(&self, _: &Setup) -> &'static [CommitStep] {
        STEPS
    }

    fn open(&self, process: &Simulated, path: &str, _: &Setup) -> Outcome<Box<dyn Session>> {
        let (folder, name) = split(process, path)?;
        let lock = folder.open(&named(&name, "-lock"), ANY).map_err(failed)?;
        Ok(Box::new(Open::new(folder, name, Some(lock), self.is_flushed)?))
    }

    fn open_for_reading(&self, process: &Simulated, path: &str) -> Outcome<Box<dyn Session>> {
        let (folder, name) = split(process, path)?;
        Ok(Box::new(Open::new(folder, name, None, self.is_flushed)?))
    }

    fn while_closed(&self, _: &Simulated, _: &str, act: &mut dyn FnMut()) -> Outcome<()> {
        act();
        Ok(())
    }

    fn check_committed(&self, machine: &Machine, path: &str) -> Result<(), String> {
        machine.exists(path).then_some(()).ok_or_else(|| format!("{path} is missing"))
    }
}

fn failed(error: io::Error) -> Trouble {
    Trouble::Failed(error.to_string())
}

fn split(process: &Simulated, path: &str) -> Outcome<(Directory, OsString)> {
    let folder = process.open_directory(Path::new("/")).map_err(failed)?;
    Ok((folder, OsString::from(path.trim_start_matches('/'))))
}

fn forbidden<T>() -> Outcome<T> {
    Err(Trouble::Failed("it may not write".into()))
}

/// The size of a database as its header has it.
fn stated_size(database: &[u8]) -> usize {
    let number = |at: std::ops::Range<usize>| {
        let bytes = database.get(at).unwrap_or_default();
        bytes.iter().fold(0, |number, &byte| number << 8 | usize::from(byte))
    };
    // 65,536 is stored as 1.
    let page = match number(16..18) {
        1 => 65_536,
        page => page,
    };
    page * number(28..32)
}

fn named(name: &OsStr, ending: &str) -> OsString {
    let mut name = name.to_owned();
    name.push(ending);
    name
}

/// A connection.
struct Open {
    folder: Directory,
    name: OsString,
    /// Only the writer holds a lock on it. `None`: this connection may not write.
    lock: Option<File>,
    /// The file that has, or had, the name.
    current: File,
    /// What a transaction sees,
    content: Option<Vec<u8>>,
    /// and what it makes of that.
    next: Option<Vec<u8>>,
    is_flushed: bool,
    /// A commit has answered an error and may stand: whoever makes it once more opens it again.
    is_over: bool,
}

impl Open {
    fn new(
        folder: Directory,
        name: OsString,
        lock: Option<File>,
        is_flushed: bool,
    ) -> Outcome<Self> {
        let mode = if lock.is_some() { ANY } else { OpenMode::Read };
        let current = folder.open(&name, mode).map_err(failed)?;
        Ok(Self {
            folder,
            name,
            lock,
            current,
            content: None,
            next: None,
            is_flushed,
            is_over: false,
        })
    }

    fn seen(&self) -> &[u8] {
        self.next.as_deref().or(self.content.as_deref()).unwrap_or_default()
    }

    fn new_name(&self) -> OsString {
        named(&self.name, "-new")
    }

    fn is_named(&self) -> Outcome<bool> {
        let named = self.folder.metadata(&self.name).map_err(failed)?;
        Ok(named.is_some_and(|named| named.id == self.current.id()))
    }

    /// The copy of a writer that died goes.
    fn remove_copy(&self) -> Outcome<()> {
        match self.folder.unlink(&self.new_name()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
            _ => Ok(()),
        }
    }

    fn copy(&self) -> Outcome<()> {
        self.remove_copy()?;
        let copy = self.folder.open(&self.new_name(), NEW).map_err(failed)?;
        copy.write_at(self.seen(), 0).map_err(failed)
    }

    fn flush(&self) -> Outcome<()> {
        let copy = self.folder.open(&self.new_name(), OpenMode::ReadWrite).map_err(failed)?;
        if self.is_flushed {
            copy.flush().map_err(failed)?;
        }
        // What it was made on may have been published without a flush.
        self.current.flush().map_err(failed)
    }

    fn rename(&mut self) -> Outcome<()> {
        let copy = self.folder.open(&self.new_name(), OpenMode::ReadWrite).map_err(failed)?;
        self.folder.rename(&self.new_name(), &self.name).map_err(failed)?;
        self.current = copy;
        self.content = self.next.clone();
        let flushed = self.folder.flush();
        self.is_over = flushed.is_err();
        flushed.map_err(failed)
    }
}

impl Session for Open {
    fn begin_read(&mut self) -> Outcome<()> {
        if self.is_over {
            return Err(Trouble::Failed("a commit failed halfway: open the database again".into()));
        }
        if !self.is_named()? {
            let mode = if self.lock.is_some() { ANY } else { OpenMode::Read };
            self.current = self.folder.open(&self.name, mode).map_err(failed)?;
        }
        let len = self.current.metadata().map_err(failed)?.len;
        let mut content = vec![0; usize::try_from(len).unwrap_or_default()];
        self.current.read_at(&mut content, 0).map_err(failed)?;
        self.content = Some(content);
        Ok(())
    }

    fn size(&self) -> u64 {
        self.seen().len() as u64
    }

    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Outcome<usize> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = self.seen().get(from..).unwrap_or_default();
        let len = bytes.len().min(buffer.len());
        buffer[..len].copy_from_slice(&bytes[..len]);
        Ok(len)
    }

    fn reserve(&mut self) -> Outcome<()> {
        let Some(lock) = &self.lock else { return forbidden() };
        if !lock.try_lock(0..1, LockKind::Exclusive).map_err(failed)? {
            return Err(Trouble::Busy);
        }
        self.next.clone_from(&self.content);
        if !self.is_named()? {
            self.end_write()?;
            return Err(Trouble::Busy);
        }
        // What is written now stands on this: also on the rename of a writer that died.
        self.folder.flush().map_err(failed)
    }

    fn exclude(&mut self) -> Outcome<()> {
        Ok(())
    }

    fn write(&mut self, page: &[u8], offset: u64) -> Outcome<()> {
        let Some(next) = &mut self.next else { return forbidden() };
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        next.resize(next.len().max(from + page.len()), 0);
        next[from..from + page.len()].copy_from_slice(page);
        Ok(())
    }

    fn truncate(&mut self, size: u64) -> Outcome<()> {
        if let Some(next) = &mut self.next {
            next.truncate(usize::try_from(size).unwrap_or(usize::MAX));
        }
        Ok(())
    }

    fn commit_steps(&self) -> &'static [CommitStep] {
        STEPS
    }

    fn commit_step(&mut self, step: usize, super_journal: Option<&str>) -> Outcome<()> {
        if super_journal.is_some() {
            return Err(Trouble::Failed("no transactions over several databases".into()));
        }
        let Some(next) = &mut self.next else { return Ok(()) };
        match step {
            0 => {
                // SQLite need not say where the end is: its header does.
                next.resize(stated_size(next), 0);
                self.copy()
            }
            1 => self.flush(),
            _ => self.rename(),
        }
    }

    fn end_write(&mut self) -> Outcome<()> {
        if self.next.take().is_none() {
            return Ok(());
        }
        let removed = self.remove_copy();
        let unlocked = self.lock.as_ref().map_or(Ok(()), |lock| lock.unlock(0..1));
        let ended = removed.and(unlocked.map_err(failed));
        self.is_over |= ended.is_err();
        ended
    }

    fn end(&mut self) -> Outcome<()> {
        self.content = None;
        self.end_write()
    }

    fn idle(&mut self) -> Outcome<()> {
        Ok(())
    }

    /// What was published without a flush is flushed; what a dead writer left goes.
    fn close(mut self: Box<Self>) -> Outcome<()> {
        self.end()?;
        if self.lock.is_none() {
            return Ok(());
        }
        if self.begin_read().and_then(|()| self.reserve()).is_ok() {
            self.end_write()?;
        }
        let current = self.folder.open(&self.name, OpenMode::ReadWrite).map_err(failed)?;
        current.flush().and_then(|()| self.folder.flush()).map_err(failed)
    }
}

#[cfg(test)]
mod tests;
