//! Beginning to use the log. From the first record on the log is part of the database: a power loss
//! may leave `-wal` behind what is in the database. So before it stock SQLite is kept out, durably,
//! and all names are durable (WAL-1).

use crate::connection::state::Connection;
use crate::context::HeadContext;
use crate::mutation::{Mutation, broken};
use crate::names::Names;
use crate::process::Leader;
use crate::shared::coordination::Word;
use crate::strayed::{Strayed, refusal};
use crate::whose::Whose;
use dash_engine::beside::OWNERS_ALONE;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::fence::{self, Found};
use dash_engine::open::{has_one_name, open_if_there};
use dash_log::file::LogFile;
use dash_log::head::{COUNT_MAX, Head, State};
use dash_storage::{Directory, File, OpenMode, Storage};
use std::io::ErrorKind;

impl<S: Storage> Connection<S> {
    /// Begins a session of the log; the lock LOG is held. `false`: the log can't be had, for
    /// whatever reason, and commits become durable in stock fashion. They are visible by now, so
    /// that an error would have a host make them once more (WAL-41).
    ///
    /// # Errors
    ///
    /// `Poisoned` where a flush has failed that a flush of `-wal` does not make good.
    pub(crate) fn begin_session(&mut self, leader: &mut Leader<S>) -> Result<bool> {
        if self.waits_for_log() {
            return Ok(false);
        }
        let begun = match self.prepare_log(leader) {
            Ok(true) => self.announce_session(leader).map(|()| true),
            other => other,
        };
        match begun {
            Ok(begun) => {
                if !begun {
                    self.say_unasked();
                }
                Ok(begun)
            }
            Err(error) if broken(Mutation::CommitFailsForLog) => Err(error),
            Err(Error::OutOfMemory) => Err(Error::OutOfMemory),
            Err(error) => {
                leader.log = None;
                self.check_flushed(&error)?;
                self.notice = Some(format!(
                    "{error}; commits become durable by a flush of {}, as in stock SQLite",
                    self.names.shown_wal()
                ));
                self.coordination.set(Word::WithoutLog, 1);
                Ok(false)
            }
        }
    }

    /// Poisons where the folder was not flushed, or the database: a second flush of them would
    /// prove nothing.
    fn check_flushed(&self, error: &Error) -> Result<()> {
        let beside = self.place.sign.is_none();
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

    /// The log is there: what has to be durable before its first record is made so.
    fn announce_session(&mut self, leader: &mut Leader<S>) -> Result<()> {
        self.coordination.set(Word::LogId, leader.id);
        // One flush makes both names durable: that of `-wal`, and the fence.
        self.raise_fence()?;
        self.flush_directory()?;
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
        self.write_head(leader, State::InUse, &HeadContext::Nothing)?;
        self.coordination.set(Word::FirstSequence, self.coordination.get(Word::Sequence));
        self.coordination.set(Word::WalNamed, 1);
        self.coordination.set(Word::Window, 0);
        self.coordination.set(Word::Session, 1);
        Ok(())
    }

    /// Opens the log, or makes one. `false`: there is none, and it is to lie elsewhere, which
    /// nobody has told this connection.
    fn prepare_log(&mut self, leader: &mut Leader<S>) -> Result<bool> {
        // It may have been removed at rest.
        leader.log = None;
        self.look_at_sign()?;
        let is_new = !self.adopt_log(leader)?;
        if is_new {
            if !self.may_make_log() {
                return Ok(false);
            }
            let log = self.make_log()?;
            leader.may_carry = self.whose(&log)?.counts;
            leader.log = Some(log);
            (leader.id, leader.void) = (self.storage.random(), 0);
            self.coordination.set(Word::Position, 0);
            self.coordination.set(Word::Sequence, 0);
        }
        if self.coordination.get(Word::Sequence) >= COUNT_MAX / 2 {
            self.count_anew(leader)?;
        }
        // Also one that is there: whoever was making it may have been killed before it was so.
        if is_new || !broken(Mutation::HalfMadeTaken) {
            self.settle_log(leader)?;
        }
        let Some(log) = &leader.log else { return Ok(true) };
        self.coordination.set(Word::Ring, log.ring()?.len);
        if broken(Mutation::SessionBeginsElsewhere) {
            self.coordination.set(Word::Position, 12 << 10);
        }
        self.process.leading.set_medium(log);
        Ok(true)
    }

    /// Makes the log's head and its name durable, unless they are known to be: a fence without a
    /// log, or with none in its place, says that one was lost (WAL-20).
    fn settle_log(&mut self, leader: &mut Leader<S>) -> Result<()> {
        let sign = self.place.sign.as_ref().map(|sign| (sign.id, sign.is_made));
        let is_signed = sign.is_none_or(|(_, is_made)| is_made);
        if is_signed && self.coordination.get(Word::LogId) == leader.id {
            return Ok(());
        }
        if let Some((id, _)) = sign {
            leader.id = id;
        }
        if !broken(Mutation::HeadNotDurable) {
            self.write_head(leader, State::Clean, &HeadContext::Nothing)?;
            leader.log.as_ref().map_or(Ok(()), LogFile::flush)?;
        }
        if !broken(Mutation::LogNotNamed) {
            self.statistics.directory_flushes += 1;
            let flushed = self.place.directory()?.flush();
            flushed.during(Operation::FlushDirectory, self.names.shown_log())?;
        }
        if is_signed { Ok(()) } else { self.sign_log() }
    }

    /// Nobody has counted so far, and behind [`COUNT_MAX`] no record counts: the log becomes
    /// another one, in whose place none of its records is one. Nothing in it counts now.
    fn count_anew(&self, leader: &mut Leader<S>) -> Result<()> {
        if self.place.sign.is_some() {
            return Err(self.cant_make("the records of the log there have numbers that none gets"));
        }
        (leader.id, leader.void) = (self.storage.random(), 0);
        self.coordination.set(Word::Sequence, 0);
        Ok(())
    }

    /// Whether this connection makes a log: elsewhere only where its own options say that there is
    /// to be one (WAL-25).
    pub(crate) fn may_make_log(&self) -> bool {
        let beside = self.place.sign.is_none();
        beside || self.settings.makes_log_elsewhere || broken(Mutation::MadeUnasked)
    }

    fn make_log(&self) -> Result<LogFile<S::File>> {
        // Its maker's alone until it has the group that the bits are meant for.
        let permissions = self.database.metadata()?.permissions & OWNERS_ALONE;
        let ring = self.settings.tuning.ring_min;
        let (folder, name) = (self.place.directory()?, self.place.name());
        let log = LogFile::create_fitting(folder, self.place.log_name(), permissions, ring)?;
        // Whoever may use the database may use its log; as far as that can be.
        drop(log.file().copy_access(self.database.file()));
        let own = log.file().metadata().during(Operation::Stat, log.name())?;
        if self.place.is_ours(&own)? {
            return Ok(log);
        }
        folder.unlink(name).during(Operation::Delete, log.name())?;
        Err(self.cant_make("only the database's owner, or root, makes a log elsewhere"))
    }

    fn whose(&self, log: &LogFile<S::File>) -> Result<Whose> {
        let whose = Whose::of(log.file(), self.database.file());
        whose.during(Operation::Stat, log.name())
    }

    fn cant_make(&self, why: &str) -> Error {
        let (operation, name) = (Operation::Open, self.names.shown_log().to_string());
        Error::Io { operation, name, source: std::io::Error::new(ErrorKind::PermissionDenied, why) }
    }

    /// Whether by its head, or by the sign, a log is this database's (WAL-48).
    fn is_its(&self, head: &Head) -> bool {
        self.place.sign.is_some() || head.owner == self.database.file().id().inode
    }

    /// Opens the log that is there. `false`: there is none, or one that was never used.
    fn adopt_log(&mut self, leader: &mut Leader<S>) -> Result<bool> {
        let is_made = self.place.sign.as_ref().is_some_and(|sign| sign.is_made);
        let strayed = |strayed| refusal(&self.names, strayed);
        let Some(log) = self.place.open()?.map_err(strayed)? else {
            return match is_made && !broken(Mutation::LostPlaceEmpty) {
                true => Err(strayed(Strayed::Lost)),
                false => Ok(false),
            };
        };
        has_one_name(log.file(), self.names.shown_log())?;
        let head = log.read_head()?;
        if !self.place.is_it(&head) {
            return Err(strayed(Strayed::Foreign));
        }
        let Ok(head) = head else {
            // Recovery has looked at it: it holds nothing.
            if !self.may_make_log() {
                return Ok(false);
            }
            if self.coordination.is(Word::Fence) {
                self.lower_fence()?;
            }
            return match self.place.unlink_unmade(&log, &self.names)? {
                true => Ok(false),
                false => Err(self.cant_make("a file is there that is no log")),
            };
        };
        let (whose, is_its) = (self.whose(&log)?, self.is_its(&head));
        leader.may_carry = whose.counts;
        if self.coordination.is(Word::Session) {
            if !is_its || head.id != self.coordination.get(Word::LogId) {
                return Ok(false);
            }
        } else if let Some(why) = self.unfit(log.file(), &whose, is_its)? {
            // Others may keep it open. Recovery has looked at it: nothing in it counts.
            return self.replace_log(why).map(|()| false);
        }
        let c = &self.coordination;
        c.set(Word::Sequence, c.get(Word::Sequence).max(head.sequence));
        (leader.id, leader.void, leader.log) = (head.id, head.sequence, Some(log));
        Ok(true)
    }

    /// Removes a log that is not used. One elsewhere stays as long as others may have it open.
    fn replace_log(&mut self, why: String) -> Result<()> {
        if self.place.sign.is_some() {
            return Err(self.cant_make(&format!("{why}: give it these, by chmod and chgrp")));
        }
        if self.coordination.is(Word::Fence) {
            self.lower_fence()?;
        }
        let removed = self.place.unlink(&self.names);
        removed.map_err(|_| self.cant_make(&format!("{why}, and this process can't remove it")))
    }

    /// Opens the log that a session is using, if this process has not.
    pub(crate) fn open_log(&mut self, leader: &mut Leader<S>) -> Result<()> {
        if leader.log.is_some() && leader.id == self.coordination.get(Word::LogId) {
            return Ok(());
        }
        let adopted = self.adopt_log(leader)?;
        if let Some(log) = &leader.log {
            self.process.leading.set_medium(log);
        }
        match adopted {
            true => Ok(()),
            false => Err(Error::CantOpen(format!(
                "{} was removed while the database is open; the commits in it can't be told from {} alone: close all \
                 connections, which makes everything durable without it",
                self.names.shown_log(),
                self.names.shown_wal()
            ))),
        }
    }

    /// Says in the log's head what its records are worth. Not flushed.
    pub(crate) fn write_head(
        &self,
        leader: &mut Leader<S>,
        state: State,
        context: &HeadContext,
    ) -> Result<()> {
        let log = leader.log.as_ref().ok_or(Error::OutOfMemory)?;
        let c = &self.coordination;
        let sequence = match state {
            // Whoever was writing one more has died; it may be whole.
            State::Clean => c.get(Word::Sequence).max(c.get(Word::Writes)),
            // Records of a session before this one count no more, and those of this one do.
            State::InUse => leader.void,
        };
        let next = match context {
            HeadContext::Closed { .. } => Some(self.coordination.get(Word::Position)),
            HeadContext::Nothing | HeadContext::Void(_) => None,
        };
        let head = Head {
            id: leader.id,
            state,
            block: log.block(),
            sequence,
            ring: log.ring()?.len,
            owner: self.database.file().id().inode,
            next,
            context: context.encode(),
        };
        log.write_head(&head)
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
            path: &self.directory_path,
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
        self.flush_directory()?;
        drop(self.directory.remove_directory(&self.names.lowered));
        self.coordination.set(Word::Fence, 0);
        Ok(())
    }

    /// Makes names durable.
    pub(crate) fn flush_directory(&mut self) -> Result<()> {
        self.statistics.directory_flushes += 1;
        if broken(Mutation::DirectoryNotFlushed) {
            return Ok(());
        }
        self.directory.flush().during(Operation::FlushDirectory, self.names.shown())
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
