//! What a session of the log asks of this engine; and how stock SQLite is kept out while there is
//! one, since a power loss may leave `-wal` behind what is in the database (WAL-1).

use crate::bounds::FRAMES_MAX;
use crate::connection::state::Connection;
use crate::context::HeadContext;
use crate::frames::frame_size;
use crate::mutation::{Mutation, broken};
use crate::names::Names;
use crate::process::{Frames, Leader};
use crate::shared::commits::Record;
use crate::shared::coordination::Word;
use crate::shared::locks::LOG;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::fence::{self, Found};
use dash_engine::open::open_if_there;
use dash_log::head::State;
use dash_log::session::{Batch, Engine, Session, open_log};
use dash_storage::{Directory, File, LockKind, OpenMode, SharedMemory, Storage};
use std::io::ErrorKind;
use std::sync::atomic::Ordering::SeqCst;

impl<S: Storage> Connection<S> {
    /// Whether nobody outside this process has the database open.
    fn is_alone(&self) -> bool {
        self.memory.is_some() && !broken(Mutation::OthersLetIn)
    }

    /// Says in the log's head that no record counts, and what that means for `-wal`. Not flushed.
    pub(crate) fn write_head(
        &mut self,
        leader: &mut Leader<S>,
        context: &HeadContext,
    ) -> Result<()> {
        open_log(self, leader)?;
        let next = match context {
            HeadContext::Closed { .. } => Some(self.coordination.get(Word::Position)),
            HeadContext::Nothing | HeadContext::Void(_) => None,
        };
        self.session.write_head(leader, State::Clean, next, context.encode())
    }

    /// Puts up the name fence, to be made durable by a flush of the folder.
    pub(crate) fn raise_fence(&mut self) -> Result<()> {
        if broken(Mutation::NoNameFence) {
            return Ok(());
        }
        self.coordination.set(Word::Fence, 1);
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
        self.statistics.directory_flushes += 1;
        let place = fence::Place {
            storage: &self.storage,
            directory,
            path: &self.session.path,
            fence: &names.fence,
            lowered: &names.lowered,
            like: self.database.file(),
        };
        place.raise(found == Found::Fence, true)
    }

    /// Takes it away. Where the file system has no journal a removed directory may be gone before
    /// its name is; a renamed one is not.
    pub(crate) fn lower_fence(&mut self) -> Result<()> {
        if broken(Mutation::FenceForgotten) {
            self.coordination.set(Word::Fence, 0);
        }
        let shown = self.names.fence.to_string_lossy();
        let lowered = self.directory.rename(&self.names.fence, &self.names.lowered);
        // An overlay renames no directory of its lower layer.
        match lowered.or_else(|_| self.directory.remove_directory(&self.names.fence)) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            other => other.during(Operation::Delete, shown)?,
        }
        self.session.flush_home()?;
        drop(self.directory.remove_directory(&self.names.lowered));
        self.coordination.set(Word::Fence, 0);
        Ok(())
    }
}

impl<S: Storage> Engine for Connection<S> {
    type Storage = S;
    type Kept = Frames;

    fn session(&mut self) -> &mut Session<S, Frames> {
        &mut self.session
    }

    fn lock(&self) -> Result<bool> {
        if self.is_alone() {
            return Ok(true);
        }
        let got = self.coordination.file.try_lock(LOG, LockKind::Exclusive);
        got.during(Operation::Lock, self.names.shown_coordination())
    }

    fn unlock(&self) -> Result<()> {
        if self.is_alone() {
            return Ok(());
        }
        let released = self.coordination.file.unlock(LOG);
        released.during(Operation::Lock, self.names.shown_coordination())
    }

    fn check_sound(&self) -> Result<()> {
        Self::check_sound(self)
    }

    fn is_written(&self, upto: u32) -> bool {
        self.coordination.is_durable(upto)
    }

    fn note_written(&self, last: u32) {
        self.coordination.set_durable(last.max(self.coordination.durable().frame));
    }

    fn batch(&mut self, upto: u32) -> Result<Batch> {
        let last = self.end_of_round(upto);
        let Some(page) = self.page_size()? else {
            return Err(self.strange("it has no header"));
        };
        let durable = self.coordination.durable();
        let first = if durable.covers(self.coordination.get(Word::Generation), 0) {
            durable.frame.saturating_add(1)
        } else {
            1
        };
        Ok(Batch { page, first, last })
    }

    fn goes_without_log(&mut self, batch: Batch) -> bool {
        if !self.coordination.is(Word::Session) {
            self.forget_single_commits();
        }
        let c = &self.coordination;
        let frames = (u64::from(batch.last) + 1).saturating_sub(batch.first.into());
        let bytes = frames * frame_size(batch.page);
        let few = c.get(Word::StockCommits) < c.get(Word::StockFirst);
        let large = bytes > FRAMES_MAX.min(self.settings.tuning.record_max as u64);
        let unknown = c.is(Word::Session) && c.get(Word::FirstSalt) == 0;
        c.is(Word::WithoutLog) || !c.is(Word::Session) && few || large || unknown
    }

    fn build(&mut self, leader: &mut Leader<S>, batch: Batch) -> Result<Option<u32>> {
        self.read_back(leader, batch)?;
        if let Some(carrying) = self.carrying(leader, batch)? {
            return self.build_carrying(leader, batch, &carrying).map(Some);
        }
        if self.is_carried() && !broken(Mutation::FramesBehindStatements) {
            return Ok(None);
        }
        let commits = self.build_frames(leader, batch)?;
        // A commit does not wait or fail for what is said of it.
        drop(self.annotate(leader, batch.page, batch.first));
        Ok(Some(commits))
    }

    fn seal(&mut self) -> Result<()> {
        // See WAL-45.
        match &self.wal {
            Some(wal) => wal.seal().during(Operation::Write, self.names.shown_wal()),
            None => Ok(()),
        }
    }

    fn publish(memory: &<S::File as File>::Memory, kept: &Frames) {
        let word = |word: Word| memory.word(word as usize);
        let starts = word(Word::Window).load(SeqCst) == 0;
        let before = if starts { 0 } else { word(Word::Carried).load(SeqCst) };
        word(Word::Carried).store(before + u64::from(kept.carried), SeqCst);
        if starts {
            word(Word::WindowFrame).store(kept.window.first.into(), SeqCst);
        }
        word(Word::HeadVoid).store(0, SeqCst);
    }

    fn note_record(&mut self, batch: Batch, commits: u32, bytes: u64) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.coordination.note_record((batch.first, batch.last), Record { commits, bytes });
    }

    fn flush_elsewhere(&mut self, leader: &mut Leader<S>, last: u32) -> Result<()> {
        self.flush_wal(leader, last)
    }

    fn flush_beside_leader(&mut self) -> Result<()> {
        // The log, whatever becomes of it, holds the frames of `-wal`, or a part of them (WAL-5).
        if broken(Mutation::StoppedBelieved) {
            return Ok(());
        }
        self.statistics.wal_flushes += 1;
        self.flush_or_poison()?;
        if !self.coordination.is(Word::WalNamed) {
            self.session.flush_home()?;
        }
        Ok(())
    }

    fn end_fence(&mut self) -> Result<()> {
        if self.coordination.is(Word::Fence) { self.lower_fence() } else { Ok(()) }
    }

    fn guard(&mut self) -> Result<()> {
        // One flush makes both names durable: that of `-wal`, and the fence.
        self.raise_fence()?;
        self.session.flush_home()?;
        if self.coordination.get(Word::FirstSalt) == 0 {
            // What was written there before is of stock SQLite, or of a session without a log: no
            // header but the present one may be on the device when the log begins to speak of it.
            self.flush_wal_file()?;
        }
        let dirty =
            self.coordination.is(Word::DatabaseDirty) && self.coordination.get(Word::Stamp) != 0;
        if dirty && !broken(Mutation::StampNotFlushed) {
            // The log is about to say what the database was like when the generation began: no
            // older state of it may be on the device.
            self.sync()?;
        }
        self.coordination.set(Word::WalNamed, 1);
        Ok(())
    }

    /// Poisons where the folder was not flushed, or the database: a second flush of them would
    /// prove nothing.
    fn check_begun(&self, error: &Error) -> Result<()> {
        let beside = self.session.place.sign.is_none();
        let is_of_folder = |name: &str| {
            let own = [self.names.shown(), self.names.shown_wal()];
            own.iter().any(|own| ***own == *name) || beside && **self.names.shown_log() == *name
        };
        let is_lost = match error {
            Error::Poisoned(_) => true,
            Error::Io { operation: Operation::FlushDirectory, name, .. } => is_of_folder(name),
            Error::Io { operation: Operation::Flush, name, .. } => **self.names.shown() == *name,
            _ => false,
        };
        if is_lost { Err(self.poisoned_by(error)) } else { Ok(()) }
    }

    fn lost(&self) -> Error {
        Error::CantOpen(format!(
            "{} was removed while the database is open; the commits in it can't be told from {} alone: close all \
             connections, which makes everything durable without it",
            self.names.shown_log(),
            self.names.shown_wal()
        ))
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
