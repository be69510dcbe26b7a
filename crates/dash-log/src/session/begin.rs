//! Beginning to use the log. From the first record on the log is part of the database. So before
//! it whoever does not know the log is kept out, durably, and all names are durable (WAL-1).

use super::{Engine, LeaderOf, Session, Strayed, Whose, Word};
use crate::file::LogFile;
use crate::head::{COUNT_MAX, Head, State};
use crate::mutation::{Mutation, broken};
use dash_engine::beside::OWNERS_ALONE;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::open::has_one_name;
use dash_storage::{Directory, File, Storage};
use std::io::ErrorKind;

/// Begins a session of the log, whose lock is held. `false`: the log can't be had, for whatever
/// reason, and commits become durable without it. They are visible by now, so that an error would
/// have a host make them once more (WAL-41).
///
/// # Errors
///
/// `Poisoned` where a flush has failed that nothing else makes good.
pub fn begin<E: Engine>(engine: &mut E, leader: &mut LeaderOf<E>) -> Result<bool> {
    if engine.session().waits_for_log() {
        return Ok(false);
    }
    let begun = match prepare(engine, leader) {
        Ok(true) => announce(engine, leader).map(|()| true),
        other => other,
    };
    match begun {
        Ok(false) => engine.session().say_unasked(),
        Ok(true) | Err(Error::OutOfMemory) => {}
        Err(_) if broken(Mutation::CommitFailsForLog) => {}
        Err(error) => {
            leader.log = None;
            engine.check_begun(&error)?;
            let session = engine.session();
            session.notice = Some(format!("{error}; {}", session.otherwise));
            session.words.set(Word::Without, 1);
            return Ok(false);
        }
    }
    begun
}

/// The log is there: what has to be durable before its first record is made so.
fn announce<E: Engine>(engine: &mut E, leader: &mut LeaderOf<E>) -> Result<()> {
    engine.session().words.set(Word::Id, leader.id);
    engine.guard()?;
    let session = engine.session();
    session.write_head(leader, State::InUse, None, Vec::new())?;
    let words = &session.words;
    words.set(Word::FirstSequence, words.get(Word::Sequence));
    words.set(Word::Window, 0);
    words.set(Word::Session, 1);
    Ok(())
}

/// Opens the log, or makes one. `false`: there is none, and it is to lie elsewhere, which nobody
/// has told this connection.
fn prepare<E: Engine>(engine: &mut E, leader: &mut LeaderOf<E>) -> Result<bool> {
    // It may have been removed at rest.
    leader.log = None;
    engine.session().look_at_sign()?;
    let is_new = !adopt(engine, leader)?;
    let session = engine.session();
    if is_new {
        if !session.may_make() {
            return Ok(false);
        }
        let log = session.make()?;
        leader.may_carry = session.whose(&log)?.counts;
        leader.log = Some(log);
        (leader.id, leader.void) = (session.storage.random(), 0);
        session.words.set(Word::Position, 0);
        session.words.set(Word::Sequence, 0);
    }
    if session.words.get(Word::Sequence) >= COUNT_MAX / 2 {
        // Nobody has counted so far, and behind COUNT_MAX no record counts: the log becomes another
        // one, in whose place none of its records is one. Nothing in it counts now.
        if session.place.sign.is_some() {
            return Err(
                session.cant_make("the records of the log there have numbers that none gets")
            );
        }
        (leader.id, leader.void) = (session.storage.random(), 0);
        session.words.set(Word::Sequence, 0);
    }
    // Also one that is there: whoever was making it may have been killed before it was so.
    if is_new || !broken(Mutation::HalfMadeTaken) {
        session.settle(leader)?;
    }
    let Some(log) = &leader.log else { return Ok(true) };
    session.words.set(Word::Ring, log.ring()?.len);
    if broken(Mutation::SessionBeginsElsewhere) {
        session.words.set(Word::Position, 12 << 10);
    }
    session.leading.set_medium(log);
    Ok(true)
}

/// Opens the log that is there. `false`: there is none, or one that was never used.
pub(super) fn adopt<E: Engine>(engine: &mut E, leader: &mut LeaderOf<E>) -> Result<bool> {
    let session = engine.session();
    let place = &session.place;
    let Some(log) = place.open()?.map_err(|strayed| place.refusal(strayed))? else {
        let is_made = place.sign.as_ref().is_some_and(|sign| sign.is_made);
        return match is_made && !broken(Mutation::LostPlaceEmpty) {
            true => Err(place.refusal(Strayed::Lost)),
            false => Ok(false),
        };
    };
    has_one_name(log.file(), place.names.shown_log())?;
    let head = log.read_head()?;
    if !place.is_it(&head) {
        return Err(place.refusal(Strayed::Foreign));
    }
    let Ok(head) = head else {
        // Recovery has looked at it: it holds nothing.
        if !session.may_make() {
            return Ok(false);
        }
        engine.end_fence()?;
        let session = engine.session();
        return match session.place.unlink_unmade(&log)? {
            true => Ok(false),
            false => Err(session.cant_make("a file is there that is no log")),
        };
    };
    let (whose, is_its) = (session.whose(&log)?, session.is_its(&head));
    leader.may_carry = whose.counts;
    if session.words.is(Word::Session) {
        if !is_its || head.id != session.words.get(Word::Id) {
            return Ok(false);
        }
    } else if let Some(why) = session.unfit(&log, &whose, is_its)? {
        // Others may keep it open. Recovery has looked at it: nothing in it counts. One elsewhere
        // stays as long as others may have it open.
        if session.place.sign.is_some() {
            let why = format!("{why}: give it these, by chmod and chgrp");
            return Err(session.cant_make(&why));
        }
        engine.end_fence()?;
        let session = engine.session();
        let cant = |_| session.cant_make(&format!("{why}, and this process can't remove it"));
        return session.place.unlink().map(|()| false).map_err(cant);
    }
    let words = &session.words;
    words.set(Word::Sequence, words.get(Word::Sequence).max(head.sequence));
    (leader.id, leader.void, leader.log) = (head.id, head.sequence, Some(log));
    Ok(true)
}

impl<S: Storage, M: Default> Session<S, M> {
    /// Makes the log's head and its name durable, unless they are known to be: a fence without a
    /// log, or with none in its place, says that one was lost (WAL-20).
    fn settle(&mut self, leader: &mut super::Leader<S::File, M>) -> Result<()> {
        let sign = self.place.sign.as_ref().map(|sign| (sign.id, sign.is_made));
        let is_signed = sign.is_none_or(|(_, is_made)| is_made);
        if is_signed && self.words.get(Word::Id) == leader.id {
            return Ok(());
        }
        if let Some((id, _)) = sign {
            leader.id = id;
        }
        if !broken(Mutation::HeadNotDurable) {
            self.write_head(leader, State::Clean, None, Vec::new())?;
            leader.log.as_ref().map_or(Ok(()), LogFile::flush)?;
        }
        if !broken(Mutation::LogNotNamed) {
            self.counts.folder_flushes += 1;
            let flushed = self.place.directory()?.flush();
            flushed.during(Operation::FlushDirectory, self.place.names.shown_log())?;
        }
        if is_signed { Ok(()) } else { self.sign_log() }
    }

    /// Whether this connection makes a log: elsewhere only where its own options say that there is
    /// to be one (WAL-25).
    fn may_make(&self) -> bool {
        self.place.sign.is_none() || self.makes_elsewhere || broken(Mutation::MadeUnasked)
    }

    fn make(&self) -> Result<LogFile<S::File>> {
        let (place, database) = (&self.place, self.place.database()?);
        // Its maker's alone until it has the group that the bits are meant for.
        let found = database.metadata().during(Operation::Stat, place.names.shown())?;
        let permissions = found.permissions & OWNERS_ALONE;
        let folder = place.directory()?;
        let log = LogFile::create(folder, place.log_name(), permissions, *self.ring.start(), None)?;
        // Whoever may use the database may use its log; as far as that can be.
        drop(log.file().copy_access(database));
        let own = log.file().metadata().during(Operation::Stat, log.name())?;
        if place.is_ours(&own)? {
            return Ok(log);
        }
        folder.unlink(place.name()).during(Operation::Delete, log.name())?;
        Err(self.cant_make("only the database's owner, or root, makes a log elsewhere"))
    }

    fn whose(&self, log: &LogFile<S::File>) -> Result<Whose> {
        Whose::of(log.file(), self.place.database()?).during(Operation::Stat, log.name())
    }

    fn cant_make(&self, why: &str) -> Error {
        let (operation, name) = (Operation::Open, self.place.names.shown_log().to_string());
        Error::Io { operation, name, source: std::io::Error::new(ErrorKind::PermissionDenied, why) }
    }

    /// Whether by its head, or by the sign, a log is this database's (WAL-48).
    fn is_its(&self, head: &Head) -> bool {
        self.place.sign.is_some() || head.owner == self.place.owner()
    }

    /// Why a log that no session is using can't be used, if that is so.
    fn unfit(&self, log: &LogFile<S::File>, whose: &Whose, is_its: bool) -> Result<Option<String>> {
        let db = self.place.names.shown();
        Ok(match is_its {
            false => Some(format!("by its head it is not the log of {db}")),
            _ if !whose.counts && self.may_make() => {
                Some(format!("it belongs to user {}, who has no right to write {db}", whose.owner))
            }
            _ => self.is_misfit(log)?.then(|| format!("its rights are not those of {db}")),
        })
    }

    /// Whether it has other rights than one that is made now.
    pub fn is_misfit(&self, log: &LogFile<S::File>) -> Result<bool> {
        let user = self.storage.user();
        let is_misfit = super::whose::is_misfit(log.file(), self.place.database()?, user);
        is_misfit.during(Operation::Stat, log.name())
    }

    /// Says in the log's head what its records are worth, and where the next one goes if none
    /// counts. Not flushed.
    pub fn write_head(
        &self,
        leader: &mut super::Leader<S::File, M>,
        state: State,
        next: Option<u64>,
        context: Vec<u8>,
    ) -> Result<()> {
        let log = leader.log.as_ref().ok_or(Error::OutOfMemory)?;
        let sequence = match state {
            // Whoever was writing one more has died; it may be whole.
            State::Clean => self.words.get(Word::Sequence).max(self.words.get(Word::Writes)),
            // Records of a session before this one count no more, and those of this one do.
            State::InUse => leader.void,
        };
        let (id, block, ring) = (leader.id, log.block(), log.ring()?.len);
        let owner = self.place.owner();
        log.write_head(&Head { id, state, block, sequence, ring, owner, next, context })
    }
}
