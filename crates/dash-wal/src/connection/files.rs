//! The database and what lies beside it: what every other part of a connection works on.

use crate::frames::unpack;
use crate::mutation::{Mutation, broken};
use crate::names::Names;
use crate::process::Frames;
use crate::rights::explained;
use crate::shared::coordination::{Coordination, Word};
use crate::shared::locks::START;
use dash_engine::database::DatabaseFile;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::fence::{self, Found};
use dash_engine::note;
use dash_engine::open::open_if_there;
use dash_log::session::Session;
use dash_storage::{Directory, File, LockKind, OpenMode, Storage};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The files of a database, and what the connections of all processes share of it.
pub(crate) struct Files<S: Storage> {
    pub storage: S,
    pub directory: Arc<S::Directory>,
    /// Its path.
    pub path: PathBuf,
    pub names: Names,
    pub database: DatabaseFile<S::File>,
    /// Nobody has seen a byte in the database yet.
    pub may_be_empty: bool,
    /// It was said that the database's name stands for another file now.
    pub said_moved: bool,
    pub shared: Coordination<S::File>,
}

impl<S: Storage> Files<S> {
    /// Fails if a flush failed that nothing could make good.
    pub fn check_sound(&self) -> Result<()> {
        match self.shared.is(Word::Poisoned) && !broken(Mutation::GoesOnPoisoned) {
            false => Ok(()),
            true => Err(Error::Poisoned(format!(
                "a flush of {} or {} failed, and none has made it good; the last commits are visible, and whether they are durable is not known",
                self.names.shown_log(),
                self.names.shown_wal()
            ))),
        }
    }

    /// Nothing is written any more: after `error` nobody knows what is durable.
    pub fn poisoned_by(&self, error: &Error) -> Error {
        self.shared.set(Word::Poisoned, 1);
        Error::Poisoned(match error {
            Error::Poisoned(why) => why.clone(),
            error => format!(
                "{error}; the last commits are visible, and whether they are durable is not known"
            ),
        })
    }

    /// What can't be, and must not be guessed about.
    pub fn strange(&self, what: &str) -> Error {
        let [salt1, salt2] = unpack(self.shared.get(Word::Salts));
        Error::Corrupt(format!(
            "{}: {what} (salts {salt1:08x} {salt2:08x}): another program has written it; close all connections and open the \
             database again",
            self.names.shown_wal()
        ))
    }

    /// `-wal` was removed while there is a session of the log, in which it never is.
    pub fn lost_wal(&self) -> Error {
        let (wal, log) = (self.names.shown_wal(), self.names.shown_log());
        Error::CantOpen(format!(
            "{wal} is missing, and {log} may hold commits that were in it: put {wal} back; or end all processes that have the \
             database open, or a lock on {} (lslocks names them), and open it again",
            self.names.shown_coordination()
        ))
    }

    /// Says whose a file is, if that is why it can't be opened.
    pub fn explained(&self, error: Error) -> Error {
        explained(error, &self.storage, &self.path, &self.names)
    }

    /// `-wal`, which SQLite has closed; `None`: there is none.
    pub fn open_wal_again(&self) -> Result<Option<S::File>> {
        open_if_there::<S>(&self.directory, &self.names.wal, OpenMode::ReadWrite)
    }

    /// SQLite puts an empty database into WAL mode in a transaction that begins by reading, and
    /// asks no busy handler when it goes on to write: of two that do so at once, one would fail at
    /// once. So as long as it is empty they come one after the other.
    pub fn take_start(&mut self) -> Result<bool> {
        let name = Arc::clone(self.names.shown_coordination());
        let file = &self.shared.file;
        if self.database.size()? == 0 {
            if !file.try_lock(START, LockKind::Exclusive).during(Operation::Lock, &name)? {
                return Ok(false);
            }
            if self.database.size()? == 0 {
                return Ok(true);
            }
            self.give_up_start()?;
        }
        self.may_be_empty = false;
        Ok(true)
    }

    /// See [`Self::take_start`].
    pub fn give_up_start(&self) -> Result<()> {
        let name = self.names.shown_coordination();
        self.shared.file.unlock(START).during(Operation::Lock, name)
    }

    /// Commits that come one by one are no beginning of more: forgets those before, if the last one
    /// was `rest` ago. The lock LOG is held, and the next one is about to be made durable.
    pub fn forget_single_commits(&self, rest: Option<Duration>) {
        let Some(rest) = rest else { return };
        let (last, now) = (self.shared.get(Word::StockAt), self.storage.monotonic_nanos());
        let rest = u64::try_from(rest.as_nanos()).unwrap_or(u64::MAX);
        if now.saturating_sub(last) >= rest {
            self.shared.set(Word::StockCommits, 0);
        }
    }

    /// Puts up the name fence, to be made durable by a flush of the folder. It keeps stock SQLite
    /// out while there is a session of the log: a power loss may leave `-wal` behind what is in the
    /// database (WAL-1).
    pub fn raise_fence(&self, session: &mut Session<S, Frames>) -> Result<()> {
        if broken(Mutation::NoNameFence) {
            return Ok(());
        }
        self.shared.set(Word::Fence, 1);
        let (directory, names) = (&*self.directory, &self.names);
        let found = fence::find(directory, &names.fence)?;
        match found {
            Found::Journal if !is_left_over::<S>(directory, names)? => {
                let shown = names.fence.to_string_lossy();
                return Err(Error::CantOpen(format!(
                    "{shown} is a rollback journal, which no database in WAL mode has: open the database once with stock \
                     SQLite, which rolls it back or removes it"
                )));
            }
            _ => {}
        }
        session.counts.folder_flushes += 1;
        let place = fence::Place { directory, names, like: self.database.file() };
        place.raise(found == Found::Fence, true)
    }

    /// Takes it away. Where the file system has no journal a removed directory may be gone before
    /// its name is; a renamed one is not.
    pub fn lower_fence(&self, session: &mut Session<S, Frames>) -> Result<()> {
        if broken(Mutation::FenceForgotten) {
            self.shared.set(Word::Fence, 0);
        }
        let shown = self.names.fence.to_string_lossy();
        let lowered = self.directory.rename(&self.names.fence, &self.names.lowered);
        // An overlay renames no directory of its lower layer.
        match lowered.or_else(|_| note::remove_folder(&*self.directory, &self.names.fence)) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            other => other.during(Operation::Delete, shown)?,
        }
        session.flush_home()?;
        drop(note::remove_folder(&*self.directory, &self.names.lowered));
        self.shared.set(Word::Fence, 0);
        Ok(())
    }
}

/// Whether a rollback journal is none that anybody would roll back: one that `journal_mode=PERSIST`
/// or `TRUNCATE` has left. Then it is removed.
fn is_left_over<S: Storage>(directory: &S::Directory, names: &Names) -> Result<bool> {
    let shown = names.fence.to_string_lossy();
    let Some(journal) = open_if_there::<S>(directory, &names.fence, OpenMode::Read)? else {
        return Ok(true);
    };
    let mut first = [0];
    journal.read_at(&mut first, 0).during(Operation::Read, &shown)?;
    if first != [0] {
        return Ok(false);
    }
    directory.unlink(&names.fence).during(Operation::Delete, &shown)?;
    Ok(true)
}
