//! What the first opener makes of what it finds. What is looked at is in [`look`], the decision is
//! a table ([`rows`]); here is what is done.
//!
//! Nothing is taken for durable because it is there: the page cache of a killed process looks like
//! the disk. What is acted upon is written again and flushed first (WAL-11).

mod again;
pub(crate) mod anew;
mod belongs;
mod execute;
mod left;
pub(crate) mod look;
pub(crate) mod orphaned;
pub(crate) mod others_files;
mod recovered;
mod refusals;
mod replay;
pub(crate) mod rows;
mod target;
mod unopened;
mod unseal;

use crate::connection::files::Files;
use crate::connection::state::{Connection, Settings};
use crate::connection::wal::Wal;
use crate::context::HeadContext;
use crate::frames::{Prefix, WalHeader, pack, valid_prefix};
use crate::index::{FoundIndex, Index, IndexHeader};
use crate::mutation::{Mutation, broken};
use crate::options::Tuning;
use crate::process::Frames;
use crate::rights::clear_wal;
use crate::shared::coordination::Word;
use crate::stamp::Stamp;
use dash_engine::beside::open_made;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::fence::{self, Found};
use dash_engine::locks::LockLevel;
use dash_engine::note;
use dash_engine::open::has_one_name;
use dash_log::head::{Head, State};
use dash_log::session::Session;
use dash_storage::{Directory, File, Storage};
use look::{Chain, Log, Look};
use recovered::Recovered;
use rows::{Action, Boot, LogSays, decide};
use std::sync::Arc;

/// What a person has decided, where a database is refused because its `-wal` was removed, or
/// because the log is not of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Choice {
    /// Nothing: it is refused.
    #[default]
    Ask,
    /// The commits of the log: `-wal` is made anew from it. Not where the log is of another
    /// database.
    Keep,
    /// The database as it is: the log is void.
    Discard,
}

/// What recovers a database. Nobody else has it open through dash.
pub(crate) struct Recovery<'a, S: Storage> {
    files: &'a mut Files<S>,
    wal: &'a Wal<S>,
    session: &'a mut Session<S, Frames>,
    settings: &'a Settings,
    /// See [`Look::index`].
    pub(crate) index: Option<FoundIndex>,
}

impl<S: Storage> Files<S> {
    /// What `-shm` says. One that may not be read says nothing, and is made anew where it holds
    /// nothing.
    pub(crate) fn index_found(&self) -> Option<FoundIndex> {
        let of = self.shared.get(Word::IndexFile);
        FoundIndex::of_users::<S>(&self.directory, &self.names, of)
    }
}

impl<S: Storage> Connection<S> {
    /// What recovers by what this connection has.
    pub(crate) fn recovery(&mut self) -> Recovery<'_, S> {
        let Self { files, wal, session, settings, .. } = self;
        Recovery { files, wal, session, settings, index: None }
    }
}

impl<S: Storage> Recovery<'_, S> {
    /// Recovers; nobody else has the database open through dash. `same_cache`: its last users were
    /// killed, and the page cache is still theirs.
    pub(crate) fn recover(&mut self, same_cache: bool, choice: Choice) -> Result<Recovered> {
        // Under locking_mode=EXCLUSIVE stock SQLite writes and checkpoints without any lock of the
        // wal-index; and whoever closes last deletes `-wal`.
        if !broken(Mutation::RecoversBesideExclusive) {
            self.files.database.lock(LockLevel::Shared)?;
        }
        let recovered = self.recover_locked(same_cache && !broken(Mutation::NoLife), choice);
        let unlocked = self.files.database.unlock(LockLevel::None);
        let recovered = recovered?;
        unlocked?;
        Ok(recovered)
    }

    fn recover_locked(&mut self, same_cache: bool, choice: Choice) -> Result<Recovered> {
        clear_wal::<S>(&self.files.directory, &self.files.names, &mut self.files.database)?;
        self.index = if same_cache { self.files.index_found() } else { None };
        let stock = self.keep_stock_out(same_cache)?;
        let visible = stock.as_ref().and_then(Index::header);
        let recovered = self.recover_alone(same_cache, choice, visible);
        let recovered = recovered.and_then(|recovered| match recovered.is_sealed {
            true => self.unseal().map(|()| recovered),
            false => Ok(recovered),
        });
        if let Some(mut index) = stock {
            // As long as `-wal` lacks anything it is not for stock SQLite to read (WAL-36).
            match &recovered {
                Ok(_) if index.is_as_left() => {}
                Ok(recovered) if recovered.is_index_behind => index.void()?,
                Ok(_) => index.allow()?,
                Err(_) => {}
            }
            index.readmit()?;
            index.unmap(&*self.files.directory, &self.files.shared.file, false)?;
        }
        recovered
    }

    /// `visible`: the header of a wal-index that stock SQLite keeps.
    pub(crate) fn recover_alone(
        &mut self,
        same_cache: bool,
        choice: Choice,
        visible: Option<IndexHeader>,
    ) -> Result<Recovered> {
        let found = fence::find(&*self.files.directory, &self.files.names.fence)?;
        // A fence that was being put up or taken away keeps nobody out.
        drop(note::remove_folder(&*self.files.directory, &self.files.names.lowered));
        let (wal_name, database) = (self.files.names.shown_wal(), &**self.files.database.file());
        let (directory, named) = (&*self.files.directory, (&*self.files.names.wal, &**wal_name));
        let mut wal = open_made(&self.files.storage, directory, named, database)?;
        let stock_first = self.settings.tuning.stock_commits;
        let fence = found == Found::Fence;
        let mut recovered = Recovered { fence, stock_first, ..Recovered::default() };
        let log = self.open_log_found(fence)?;
        if let Some(log) = &log {
            has_one_name(log.file(), self.files.names.shown_log())?;
        }
        let log = log.map(|file| self.look().log(file)).transpose()?;
        recovered.dirty = same_cache;
        // What was in a process's memory alone is gone as if the power had been.
        let lost_memory =
            self.files.shared.is(Word::InMemory) && !broken(Mutation::MemoryOutlivesProcess);
        let boot = Boot::of(same_cache, lost_memory);
        if same_cache {
            self.write_again(log.as_ref(), wal.as_ref())?;
        }
        if let Some(log) = &log {
            recovered.sequence = log.scan.greatest;
            if broken(Mutation::SequenceReused) {
                recovered.sequence = log.scan.chain.last().map_or(0, |last| last.sequence);
            }
            recovered.position = log.scan.end_position;
            recovered.generation = log.number();
            recovered.stock_first = log.stock_first(&self.settings.tuning);
            let done = self.act(log, wal, fence, boot, choice);
            wal = done.map_err(|error| self.look().named(error))?;
            recovered.fence = fence && !log.is_wiped();
        } else if fence || boot == Boot::Same {
            self.go_without_log(wal.as_ref(), fence, boot, choice)?;
            recovered.fence = false;
        }
        let flushed = same_cache || log.is_some() || fence;
        let chain = log.as_ref().and_then(|log| log.chain);
        self.describe(wal.as_ref(), flushed, chain, visible, &mut recovered)?;
        if fence && !recovered.fence {
            // One that stands means that there is a log, from here on too.
            self.files.lower_fence(self.session)?;
        }
        // Its name and its head are durable: written again, or others relied on them.
        let is_durable = |log: &&Log<S::File>| match same_cache {
            true => recovered.named,
            false => log.was_used() || broken(Mutation::UnusedTrusted),
        };
        recovered.log_id = log.as_ref().filter(is_durable).map_or(0, Log::id);
        if let Some(log) = &log {
            if log.says_anything() {
                self.close_log(log, wal.is_none())?;
            }
            if !fence && self.remove_misfit(log)? {
                recovered.log_id = 0;
            }
        }
        Ok(recovered)
    }

    /// Says that no record counts any more: all of it is in `-wal` now, durably, and others may go
    /// on from there. Or that was deleted.
    fn close_log(&self, log: &Log<S::File>, is_wal_gone: bool) -> Result<()> {
        // What is not in `-wal` any more was copied into the database: by stock SQLite, which
        // flushes nothing of that under synchronous=OFF.
        if !broken(Mutation::CheckpointTaken) {
            self.files.database.sync()?;
        }
        // It is in nobody's way, and a folder need not be writable for a recovery.
        drop(self.remove_unfinished());
        // The deletion must not be undone when the log says nothing of it any more.
        if is_wal_gone && !broken(Mutation::DeletionUndone) {
            let name = self.files.names.shown_wal();
            self.files.directory.flush().during(Operation::FlushDirectory, name)?;
        }
        if !broken(Mutation::HeadUnclaimed) {
            // Whoever comes after a death finds the head in the cache, and it is on no device.
            self.files.shared.claim_cache(self.files.shared.file.cache_life());
        }
        log.close()?;
        self.files.shared.set(Word::LogWritten, 0);
        Ok(())
    }

    /// What is known of a `-wal` that no log speaks of.
    pub(crate) fn describe_as_found(&self) -> Result<Recovered> {
        let c = &self.files.shared;
        let wal = self.wal.find(self.files)?;
        let mut recovered = Recovered {
            generation: c.get(Word::Generation),
            sequence: c.get(Word::Sequence),
            position: c.get(Word::Position),
            fence: c.is(Word::Fence),
            stock_first: c.get(Word::StockFirst),
            log_id: c.get(Word::LogId),
            ..Recovered::default()
        };
        self.describe(wal.as_deref(), false, None, None, &mut recovered)?;
        Ok(recovered)
    }

    fn look(&self) -> Look<'_, S> {
        let beside = self.files.shared.beside();
        let Files { names, database, .. } = &*self.files;
        Look { names, database: database.file(), beside, index: self.index }
    }

    /// What `-wal` holds now.
    fn describe(
        &self,
        wal: Option<&S::File>,
        flushed: bool,
        chain: Option<Chain>,
        visible: Option<IndexHeader>,
        recovered: &mut Recovered,
    ) -> Result<()> {
        let name = Arc::clone(self.files.names.shown_wal());
        let Some(wal) = wal else { return Ok(()) };
        let Some(header) = WalHeader::read(wal, &name)? else { return Ok(()) };
        recovered.generation = recovered.generation.wrapping_add(1);
        recovered.is_sealed = header.is_sealed;
        recovered.salts = pack(header.salts);
        recovered.promised = true;
        // What was copied of it is not flushed, for all that is known; the log will say what the
        // database was like when it began.
        recovered.dirty = true;
        recovered.stamp = Stamp::read(&**self.files.database.file(), self.files.names.shown())?;
        if flushed {
            // Whatever was found, it is durable now; without a log nobody has flushed it.
            if !broken(Mutation::RecoveredNotFlushed) {
                wal.flush().during(Operation::Flush, &name)?;
            }
            let prefix = valid_prefix(wal, &header, Prefix::before_all(&header), &name)?;
            // And so must its name be: whoever made it may have died before that was flushed.
            self.files.directory.flush().during(Operation::FlushDirectory, &name)?;
            recovered.named = true;
            let chain = chain.filter(|chain| chain.generation.salts() == header.salts);
            let last = chain.map_or(0, |chain| chain.last_frame);
            recovered.durable = prefix.committed;
            match visible {
                Some(index) if index.salts == header.salts && index.mx_frame >= last => {
                    // What nobody could see of it the next writer writes over (WAL-44).
                    if !broken(Mutation::UnseenTaken) {
                        recovered.durable = recovered.durable.min(index.mx_frame);
                    }
                }
                other => recovered.is_index_behind = other.is_some(),
            }
            recovered.first_salt = header.salts[0];
        }
        Ok(())
    }

    /// There is no log; `fence`: but a name fence.
    fn go_without_log(
        &self,
        wal: Option<&S::File>,
        fence: bool,
        boot: Boot,
        choice: Choice,
    ) -> Result<()> {
        let look = self.look();
        match decide(look.without_log(fence, wal, boot)?) {
            Action::RefuseLost | Action::RefuseAbsent if choice == Choice::Discard => Ok(()),
            Action::RefuseLost => Err(look.missing_log()),
            other => look.refusal(other, None).map_or(Ok(()), Err),
        }
    }

    /// Looks the situation up, and does what the table says; gives `-wal` back, which may be a new
    /// one.
    fn act(
        &self,
        log: &Log<S::File>,
        wal: Option<S::File>,
        fence: bool,
        boot: Boot,
        choice: Choice,
    ) -> Result<Option<S::File>> {
        let situation = self.look().situation(log, fence, wal.as_ref(), boot)?;
        if situation.log == LogSays::Generation && broken(Mutation::HeaderLeftOld) {
            return Ok(wal);
        }
        let name = self.files.names.shown_wal();
        let action = decide(situation);
        if log.chain.is_some()
            && (wal.is_none() || action == Action::RefuseAbsent && choice != Choice::Ask)
        {
            self.refuse_survivor()?;
        }
        match (action, &log.chain, &wal) {
            (Action::Leave | Action::Discard, ..) => {}
            (Action::Blank, _, Some(wal)) => {
                wal.set_len(0).during(Operation::Resize, name)?;
                wal.flush().during(Operation::Flush, name)?;
            }
            (Action::Replay, Some(chain), Some(wal)) => {
                self.replay(log, chain, wal)?;
                match self.execute(log, chain, wal) {
                    Err(Error::CantOpen(_)) if choice == Choice::Discard => {}
                    executed => executed?,
                }
            }
            (Action::RefuseAbsent, Some(chain), _)
                if choice == Choice::Keep && !chain.carries && !self.look().lacks_before(chain) =>
            {
                return self.make_wal_anew(log, chain).map(Some);
            }
            (Action::RefuseLost | Action::RefuseAbsent, ..) if choice == Choice::Discard => {}
            (Action::RefuseAnother, Some(_), _) if choice == Choice::Discard => {}
            (other, chain, _) => {
                let refusal = self.look().refusal(other, chain.as_ref());
                return Err(refusal.unwrap_or_else(|| self.look().cut_wal()));
            }
        }
        Ok(wal)
    }
}

impl<F: File> Log<F> {
    /// How many commits of the next session become durable in stock fashion: more where the one
    /// before was short, as a program that opens the database for each request makes them.
    fn stock_first(&self, tuning: &Tuning) -> u64 {
        match self.head {
            HeadContext::Closed { flushes, .. } if u64::from(flushes) < tuning.short_session => {
                tuning.short_session.max(tuning.stock_commits)
            }
            _ => tuning.stock_commits,
        }
    }

    /// Says, durably, that no record counts any more.
    fn close(&self) -> Result<()> {
        let (state, sequence) = (State::Clean, self.scan.greatest);
        let next = Some(self.scan.end_position);
        let context = HeadContext::Nothing.encode();
        let head = Head { state, sequence, next, context, ..self.scan.head.clone() };
        self.file.write_head(&head)?;
        self.file.flush()
    }
}
