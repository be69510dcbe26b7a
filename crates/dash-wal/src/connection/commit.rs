//! A commit: what SQLite says of it, what makes it durable, and what the log asks for that
//! ([`Engine`]). How connections wait for each other's flush is in [`dash_log::session`].

use crate::bounds::FRAMES_MAX;
use crate::connection::state::Connection;
use crate::connection::transaction::CommitFrame;
use crate::connection::wal::Backfill;
use crate::frames::{frame_size, pack};
use crate::mutation::{Mutation, broken};
use crate::options::Durability;
use crate::process::{Frames, Leader};
use crate::shared::commits::{RecentCommit, Record};
use crate::shared::coordination::Word;
use crate::shared::locks::LOG;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_log::session::{Batch, Engine, Means, Session, commit};
use dash_storage::{File, LockKind, SharedMemory, Storage};
use std::sync::atomic::Ordering::SeqCst;

impl<S: Storage> Connection<S> {
    /// `SQLITE_FCNTL_COMMIT_PHASETWO`: SQLite has committed. Comes back when the commit is as
    /// durable as it has to be.
    ///
    /// # Errors
    ///
    /// `Poisoned` if neither the log nor `-wal` could be flushed: the commit is visible, and
    /// nobody knows whether it is durable.
    pub fn committed(&mut self) -> Result<()> {
        // Under locking_mode=EXCLUSIVE SQLite has not given WRITER up.
        if self.transaction.unsummed != 0 {
            self.tell_sums()?;
        }
        let transaction = &mut self.transaction;
        // Nor does it say where the next transaction begins.
        transaction.first = 0;
        let pending = transaction.pending.take();
        let own = transaction.frame.take().or(pending);
        let synced = std::mem::take(&mut transaction.synced);
        let flushed = transaction.flushed.take();
        let Some(own) = own else { return Ok(()) };
        // Nothing of it is taken back.
        transaction.saying.noted = None;
        self.wal.backfill = Backfill::Partial;
        self.wal.write_held(&self.files)?;
        self.counters.own.commits += 1;
        let begun = self.now();
        let durable = self.make_commit_durable(own, synced).or_else(|error| self.make_good(error));
        self.wal.own.end();
        let (durable, c) = (durable?, &self.files.shared);
        let is_flushed = flushed.is_some() || durable && c.is_flushed(own.number);
        self.counters.own.unflushed_commits += u64::from(!is_flushed);
        let at = self.now();
        let flush = flushed.or(durable.then_some(at - begun));
        let record = flush.and_then(|_| c.record_of(own.number));
        let (process, wait) = (c.process, self.index.waited());
        c.note_commit(&RecentCommit { at, process, frames: own.frames, wait, flush, record });
        self.tell_totals();
        Ok(())
    }

    /// A commit, as durable as was chosen; whether anything was to be done for that. `synced`:
    /// SQLite has asked for a flush of it.
    fn make_commit_durable(&mut self, own: CommitFrame, synced: bool) -> Result<bool> {
        // In memory a commit has to be in the log to survive a kill.
        let in_memory = self.wal.memory.is_some() && !broken(Mutation::MemoryOutlivesProcess);
        let means = match self.settings.durability {
            Durability::Host if !synced && !in_memory => return Ok(false),
            // What is written survives this process, which is what a file would have done.
            Durability::Host if !synced => Means::Write,
            Durability::Host | Durability::Full => Means::Flush,
            Durability::Device => Means::Device,
            // In memory there is a fence nevertheless (WAL-28).
            Durability::None => Means::Write,
        };
        let c = &self.files.shared;
        if c.get(Word::Salts) != pack(own.salts) {
            // Another generation began without this commit's read lock in the way: it can't.
            let what = "a new header came before a commit in the old ones was durable";
            return Err(self.files.strange(what));
        }
        c.set(Word::Promised, 1);
        let flushes = self.session.counts.records + self.wal.flushes;
        commit(self, own.number, means)?;
        if flushes == self.session.counts.records + self.wal.flushes {
            self.counters.own.helped += 1;
        }
        Ok(true)
    }

    /// Whether nobody outside this process has the database open.
    fn is_alone(&self) -> bool {
        self.wal.memory.is_some() && !broken(Mutation::OthersLetIn)
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
        let got = self.files.shared.file.try_lock(LOG, LockKind::Exclusive);
        got.during(Operation::Lock, self.files.names.shown_coordination())
    }

    fn unlock(&self) -> Result<()> {
        if self.is_alone() {
            return Ok(());
        }
        let released = self.files.shared.file.unlock(LOG);
        released.during(Operation::Lock, self.files.names.shown_coordination())
    }

    fn check_sound(&self) -> Result<()> {
        self.files.check_sound()
    }

    fn is_written(&self, upto: u32) -> bool {
        self.files.shared.is_durable(upto)
    }

    fn note_written(&self, last: u32) {
        self.files.shared.set_durable(last.max(self.files.shared.durable().frame));
    }

    fn batch(&mut self, upto: u32) -> Result<Batch> {
        let last = self.index.end_of_round(upto, &self.files);
        let Some(page) = self.wal.page_size(&self.files)? else {
            return Err(self.files.strange("it has no header"));
        };
        let (c, durable) = (&self.files.shared, self.files.shared.durable());
        let first = match durable.covers(c.get(Word::Generation), 0) {
            true => durable.frame.saturating_add(1),
            false => 1,
        };
        Ok(Batch { page, first, last })
    }

    fn goes_without_log(&mut self, batch: Batch) -> bool {
        let c = &self.files.shared;
        if !c.is(Word::Session) {
            self.files.forget_single_commits(self.settings.rest);
        }
        let frames = (u64::from(batch.last) + 1).saturating_sub(batch.first.into());
        let bytes = frames * frame_size(batch.page);
        let few = c.get(Word::StockCommits) < c.get(Word::StockFirst);
        let large = bytes > FRAMES_MAX.min(self.settings.tuning.record_max as u64);
        let unknown = c.is(Word::Session) && c.get(Word::FirstSalt) == 0;
        // Its header may be a stock writer's, which flushes none (WAL-51).
        let unsettled = self.files.lets_writers_in()
            && c.is(Word::Session)
            && c.get(Word::Settled) != c.get(Word::Salts)
            && !broken(Mutation::HeaderTrusted);
        // Frames never follow statements (WAL-32). Where any are recorded here, more may.
        let behind = frames > 0
            && c.is_carried()
            && !self.process.records.load(SeqCst)
            && !broken(Mutation::FramesBehindStatements);
        let stock = c.is(Word::WithoutLog) || !c.is(Word::Session) && few || large || unknown;
        stock || unsettled || behind || !self.guard_beginning().unwrap_or(false)
    }

    fn build(&mut self, leader: &mut Leader<S>, batch: Batch) -> Result<Option<u32>> {
        self.wal.read_back(batch, &mut leader.kept.read, &self.files)?;
        match self.process.records.load(SeqCst) {
            false => self.build_frames(leader, batch).map(Some),
            true => self.build_with_statements(leader, batch),
        }
    }

    fn seal(&mut self) -> Result<()> {
        // See WAL-45.
        let sealed = self.wal.open.as_ref().map_or(Ok(()), |wal| wal.seal());
        sealed.during(Operation::Write, self.files.names.shown_wal())
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
        self.files.shared.note_record((batch.first, batch.last), Record { commits, bytes });
    }

    fn flush_elsewhere(&mut self, leader: &mut Leader<S>, last: u32) -> Result<()> {
        self.flush_wal(leader, last)
    }

    fn flush_beside_leader(&mut self) -> Result<()> {
        // The log, whatever becomes of it, holds the frames of `-wal`, or a part of them (WAL-5).
        if broken(Mutation::StoppedBelieved) {
            return Ok(());
        }
        self.wal.flush(&self.files)?;
        if !self.files.shared.is(Word::WalNamed) {
            self.session.flush_home()?;
        }
        Ok(())
    }

    fn end_fence(&mut self) -> Result<()> {
        match self.files.shared.is(Word::Fence) {
            true => self.files.lower_fence(&mut self.session),
            false => Ok(()),
        }
    }

    fn guard(&mut self) -> Result<()> {
        // One flush makes both names durable: that of `-wal`, and the fence.
        self.files.raise_fence(&mut self.session)?;
        self.session.flush_home()?;
        if self.files.shared.get(Word::FirstSalt) == 0 {
            // What was written there before is of stock SQLite, or of a session without a log: no
            // header but the present one may be on the device when the log begins to speak of it.
            self.flush_wal_file()?;
        }
        let c = &self.files.shared;
        if self.files.may_be_copied_by_strangers() {
            c.set(Word::DatabaseDirty, 1);
        }
        let dirty = c.is(Word::DatabaseDirty) && c.get(Word::Stamp) != 0;
        if dirty && !broken(Mutation::StampNotFlushed) {
            // The log is about to say what the database was like when the generation began: no
            // older state of it may be on the device.
            self.sync()?;
        }
        self.files.shared.set(Word::WalNamed, 1);
        Ok(())
    }

    /// Poisons where the folder was not flushed, or the database: a second flush of them would
    /// prove nothing.
    fn check_begun(&self, error: &Error) -> Result<()> {
        let (names, beside) = (&self.files.names, self.session.place.sign.is_none());
        let is_of_folder = |name: &str| {
            let own = [names.shown(), names.shown_wal()];
            own.iter().any(|own| ***own == *name) || beside && **names.shown_log() == *name
        };
        let is_lost = match error {
            Error::Poisoned(_) => true,
            Error::Io { operation: Operation::FlushDirectory, name, .. } => is_of_folder(name),
            Error::Io { operation: Operation::Flush, name, .. } => {
                **self.files.names.shown() == *name
            }
            _ => false,
        };
        if is_lost { Err(self.files.poisoned_by(error)) } else { Ok(()) }
    }

    fn lost(&self) -> Error {
        Error::CantOpen(format!(
            "{} was removed while the database is open; the commits in it can't be told from {} alone: close all \
             connections, which makes everything durable without it",
            self.files.names.shown_log(),
            self.files.names.shown_wal()
        ))
    }
}
