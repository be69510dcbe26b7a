//! Whether `-shm` and `-wal` are the files that the other connections of dash use (WAL-55). A file
//! of either name that was removed or replaced would be another one to each who comes after that:
//! they would write over each other's commits.

use crate::connection::files::Files;
use crate::connection::state::Connection;
use crate::index::Index;
use crate::mutation::{Mutation, broken};
use crate::names::Names;
use crate::shared::coordination::{Copy, Word};
use crate::shared::entries::{Told, living, told};
use crate::shared::locks::ATTACHED;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_storage::{Directory, File, FileId, LockKind, SharedMemory, Storage};
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// What [`Word::WalFile`] says where somebody has found another `-wal` than that of all others.
const REPLACED: u64 = u64::MAX;

/// How often the lock is tried while the first connection to attach says which files it has: it
/// does so at once, as soon as its process has a processor.
const ATTEMPTS: usize = 5000;
const PAUSE: Duration = Duration::from_micros(200);

impl<S: Storage> Files<S> {
    /// This connection has attached the wal-index, and has `-wal` open: says so where no other one
    /// of dash has one attached, or compares, and holds [`ATTACHED`] from then on.
    ///
    /// # Errors
    ///
    /// `CantOpen` for other files than theirs; `Busy`; those of the locks. Then it holds nothing.
    pub(super) fn join_files(&self, index: &Index<S>, wal: Option<FileId>) -> Result<()> {
        let found = [(Word::IndexFile, index.id()), (Word::WalFile, wal)];
        if self.try_attached(LockKind::Exclusive)? {
            // They were killed, and this connection had only opened.
            if self.shared.is(Word::Session)
                && let Some(refused) = self.others_have_other_files(Some(index))?
            {
                self.leave_files()?;
                return Err(refused);
            }
            found.iter().for_each(|(word, id)| self.shared.set(*word, id.map_or(0, word_of)));
            return self.share_attached();
        }
        self.share_attached()?;
        let another = |(word, id): &(Word, Option<FileId>)| self.is_another(*word, *id);
        let refused = match found.iter().find(|found| another(found)) {
            Some((Word::WalFile, _)) => self.refuse_wal(),
            Some(_) if !broken(Mutation::ReplacedIndexJoined) => {
                replaced_index(&self.names, &self.others())
            }
            _ => return Ok(()),
        };
        self.leave_files()?;
        Err(refused)
    }

    /// Whether others of dash have a wal-index attached; if not, nobody has until
    /// [`Self::leave_files`].
    pub(super) fn are_files_used(&self) -> Result<bool> {
        Ok(!self.try_attached(LockKind::Exclusive)? && !broken(Mutation::ReplacedIndexJoined))
    }

    /// This connection gives its index up.
    pub(super) fn leave_files(&self) -> Result<()> {
        let name = self.names.shown_coordination();
        self.shared.file.unlock(ATTACHED).during(Operation::Lock, name)
    }

    /// Refuses a `-wal` that was opened, if it is not that of those who have an index attached;
    /// this connection has none. While it is theirs this makes no call; and it takes no lock, which
    /// would seem to be theirs.
    pub(super) fn check_joined_wal(&self, wal: FileId) -> Result<()> {
        let name = self.names.shown_coordination();
        let conflict = |kind| self.shared.file.lock_conflict(ATTACHED, kind);
        for _ in 0..ATTEMPTS {
            if !self.is_another(Word::WalFile, Some(wal)) || broken(Mutation::ReplacedWalJoined) {
                return Ok(());
            }
            if conflict(LockKind::Exclusive).during(Operation::Lock, name)?.is_none() {
                return Ok(());
            }
            // Else the first to attach is about to say which files it has.
            if conflict(LockKind::Shared).during(Operation::Lock, name)?.is_none() {
                let is_another = self.is_another(Word::WalFile, Some(wal));
                return if is_another { Err(self.refuse_wal()) } else { Ok(()) };
            }
            self.storage.sleep(PAUSE);
        }
        Err(Error::Busy)
    }

    /// Refuses to write a `-wal` of which somebody has found that its name is another file's. It
    /// makes no call.
    pub(super) fn check_written_wal(&self, wal: Option<FileId>) -> Result<()> {
        match self.is_another(Word::WalFile, wal) && !broken(Mutation::ReplacedWalWritten) {
            false => Ok(()),
            true => Err(Error::CantOpen(self.what_of_the_former_wal())),
        }
    }

    fn what_of_the_former_wal(&self) -> String {
        let (wal, db) = (self.names.shown_wal(), self.names.shown());
        format!(
            "{wal} was replaced, or removed, while this process had it open, and what is written to the former one a kill would \
             take: close all connections of {db}, not by a kill; the last one copies all into {db}"
        )
    }

    /// Whether somebody has found that the name `-wal` is another file's than the one in use.
    pub(super) fn is_wal_replaced(&self) -> bool {
        self.shared.get(Word::WalFile) == REPLACED
    }

    fn is_another(&self, word: Word, id: Option<FileId>) -> bool {
        is_another(self.shared.get(word), id)
    }

    fn try_attached(&self, kind: LockKind) -> Result<bool> {
        let name = self.names.shown_coordination();
        self.shared.file.try_lock(ATTACHED, kind).during(Operation::Lock, name)
    }

    fn share_attached(&self) -> Result<()> {
        for _ in 0..ATTEMPTS {
            if self.try_attached(LockKind::Shared)? {
                return Ok(());
            }
            self.storage.sleep(PAUSE);
        }
        Err(Error::Busy)
    }

    /// Connections that have the former one are told at their next attempt to write.
    fn refuse_wal(&self) -> Error {
        let said = self.shared.get(Word::WalFile);
        let word = self.shared.word(Word::WalFile);
        // Else others are there by now, with files of their own.
        _ = word.compare_exchange(said, REPLACED, SeqCst, SeqCst);
        replaced_wal(&self.names, &self.others())
    }

    /// The others that have the database open.
    pub(super) fn others(&self) -> String {
        let c = &self.shared;
        let living = c.living().unwrap_or_default().into_iter();
        let others: Vec<_> = living.filter(|entry| c.entry != Some(*entry)).collect();
        who(&*c.memory, &others, c.process)
    }
}

/// Why a connection does not join others who have another `-wal`; `who` they are.
pub(crate) fn replaced_wal(names: &Names, who: &str) -> Error {
    let (wal, db) = (names.shown_wal(), names.shown());
    Error::CantOpen(format!(
        "{wal} was replaced, or removed, while {who} had the former one open, which may hold commits that are nowhere else: close \
         all connections of {db} there, not by a kill, and open it again; the last one copies all into {db}"
    ))
}

/// Why it does not join others who have another `-shm`.
pub(crate) fn replaced_index(names: &Names, who: &str) -> Error {
    let (shm, db) = (names.shm.to_string_lossy(), names.shown());
    Error::CantOpen(format!(
        "{shm} was replaced, or removed, while {who} had the former one open, and with two of them commits would overwrite each \
         other: close all connections of {db} there, or end that process, and open it again; nothing is lost"
    ))
}

/// Why it does not join others whose database has lost its name.
pub(crate) fn replaced_database(names: &Names, who: &str) -> Error {
    let db = names.shown();
    Error::CantOpen(format!(
        "{db} was replaced, or removed, while {who} had the former one open: close it there first. What was committed there is in \
         that one alone; `VACUUM INTO` there makes a copy"
    ))
}

/// The processes that have a database open, as its coordination file says. `None`: it was filled
/// in another way.
pub(crate) fn who_is_in<F: File>(coordination: &F, name: &str) -> Result<Option<String>> {
    let copy = Copy::of(coordination).during(Operation::Read, name)?;
    let Some(copy) = copy else { return Ok(None) };
    let living = living(coordination, copy.get(Word::EntryHigh), None)?;
    Ok(Some(who(&copy.words, &living, std::process::id())))
}

/// The owners of these entries, by the numbers that they know themselves by; `own`: of this
/// process.
fn who<M: SharedMemory>(memory: &M, entries: &[usize], own: u32) -> String {
    let mut numbers: Vec<_> =
        entries.iter().map(|entry| told(memory, *entry, Told::Process)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    match *numbers {
        [] => "another process".to_owned(),
        [one] if one == u64::from(own) => format!("this process ({one})"),
        [one] => format!("process {one}"),
        _ => {
            let all: Vec<_> = numbers.iter().map(u64::to_string).collect();
            format!("one of the processes {}", all.join(", "))
        }
    }
}

impl<S: Storage> Connection<S> {
    /// Whether the name `-wal` is another file's than the one that those use who have the index, as
    /// this one does. It is asked for before a session ends: behind that `-wal` alone has what the
    /// log had. Nobody writes from then on.
    pub(super) fn has_wal_moved(&mut self) -> Result<bool> {
        let is_attached = self.index.open.is_some() && self.wal.memory.is_none();
        let Some(wal) = self.wal.id().filter(|_| is_attached) else { return Ok(false) };
        let (files, name) = (&self.files, self.files.names.shown_wal());
        let named = files.directory.metadata(&files.names.wal).during(Operation::Stat, name)?;
        let has_moved = named.is_none_or(|named| named.id != wal);
        if has_moved && !files.is_wal_replaced() {
            self.session.notice = Some(files.what_of_the_former_wal());
            files.shared.set(Word::WalFile, REPLACED);
        }
        Ok(has_moved)
    }
}

/// Whether a word says another file than this, as far as both are known.
pub(crate) fn is_another(said: u64, id: Option<FileId>) -> bool {
    id.is_some_and(|id| said != 0 && said != word_of(id))
}

/// A file, as a word has it: 0 is none.
fn word_of(id: FileId) -> u64 {
    (id.device.rotate_left(40) ^ id.inode).clamp(1, REPLACED - 1)
}
