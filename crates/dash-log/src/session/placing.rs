//! Where the log lies: found by the first opener, who may move it; shared by all who come later.

use super::place::name_in_folder;
use super::strayed::{Strayed, refusal_to_join};
use super::target::{Target, target};
use super::{Engine, Session, Word};
use crate::mutation::{Mutation, broken};
use crate::sign::Sign;
use dash_engine::beside::ROOT;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_storage::{Directory, File, Storage};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a head is waited for that may be half-written.
const TORN_PAUSE: Duration = Duration::from_millis(1);

/// A log that only others may make is looked for after so many commits again.
const COMMITS_WITHOUT_LOOK: u32 = 64;

/// The log is to lie there, if that is asked for: the first opener moves it, at rest, as no record
/// counts once it has recovered.
///
/// # Errors
///
/// [`Error::CantOpen`] where it can't be there.
pub fn place_log<E: Engine>(engine: &mut E, wanted: Option<&Path>) -> Result<()> {
    let session = engine.session();
    match wanted.map(|path| session.goes_to(path)).transpose()?.flatten() {
        Some(Target::At(path, _)) if !session.may_sign()? => session.go_without_sign(&path),
        Some(target) => {
            if !broken(Mutation::MovedBehindFence) {
                // A fence without a log says that one was lost (WAL-20).
                engine.end_fence()?;
            }
            engine.session().move_log(target)?;
        }
        None => {}
    }
    let session = engine.session();
    session.words.set(Word::Elsewhere, u64::from(session.place.sign.is_some()));
    Ok(())
}

impl<S: Storage, M: Default> Session<S, M> {
    /// Whether there was no log a few commits ago, and nobody has made one since: whoever does says
    /// so in [`Word::Id`], unless it is one that was there before.
    pub(super) fn waits_for_log(&mut self) -> bool {
        let Some((id, left)) = &mut self.unasked else { return false };
        let waits = *left > 0 && *id == self.words.get(Word::Id);
        *left = left.saturating_sub(1);
        waits
    }

    /// Says once that commits become durable without the log, as others have to make it.
    pub(super) fn say_unasked(&mut self) {
        let known = self.words.get(Word::Id);
        if self.unasked.replace((known, COMMITS_WITHOUT_LOOK)).is_some() {
            return;
        }
        let names = &self.place.names;
        let (db, log, otherwise) = (names.shown(), names.shown_log(), &self.otherwise);
        self.notice = Some(format!(
            "{log}, where the log of {db} is to lie, holds none yet, and only a connection with dash_log in its URI makes it; {otherwise}"
        ));
    }

    /// Makes what is in the database's folder durable.
    pub fn flush_home(&mut self) -> Result<()> {
        self.counts.folder_flushes += 1;
        if broken(Mutation::DirectoryNotFlushed) {
            return Ok(());
        }
        self.place.home.flush().during(Operation::FlushDirectory, self.place.names.shown())
    }

    /// Finds the log that the others use.
    ///
    /// # Errors
    ///
    /// [`Error::CantOpen`] where another place is asked for, or the log is not to be found from
    /// here.
    pub fn join_log(&mut self, wanted: Option<&Path>) -> Result<()> {
        self.look_at_sign()?;
        match wanted.map(|path| self.goes_to(path)).transpose()?.flatten() {
            None => self.look_for_log(),
            Some(_) => Err(Error::CantOpen(format!(
                "{} is open with its log at {}: leave dash_log out, or close all connections first; the next one to open it may \
                 move the log",
                self.place.names.shown(),
                self.log_path().display()
            ))),
        }
    }

    /// Looks whether the log that the others use is there for this process, too: a commit would be
    /// visible before it is found that it can't be made durable (WAL-29).
    fn look_for_log(&self) -> Result<()> {
        if broken(Mutation::JoinsWithoutLog) {
            return Ok(());
        }
        let strayed = match self.words.is(Word::Session) {
            false => self.place.strayed()?,
            true => match self.place.open()? {
                Err(strayed) => Some(strayed),
                Ok(None) => Some(Strayed::Lost),
                Ok(Some(log)) => {
                    let mut head = log.read_head()?;
                    if head.is_err() {
                        // Somebody may have been writing it.
                        self.storage.sleep(TORN_PAUSE);
                        head = log.read_head()?;
                    }
                    let id = self.words.get(Word::Id);
                    let is_it = head.is_ok_and(|head| head.id == id);
                    self.leading.set_medium(&log);
                    (!is_it).then_some(Strayed::Foreign)
                }
            },
        };
        strayed.map_or(Ok(()), |strayed| Err(refusal_to_join(&self.place.names, strayed)))
    }

    /// What the sign says now, if there is one.
    pub(super) fn look_at_sign(&mut self) -> Result<()> {
        if !self.words.is(Word::Elsewhere) {
            return Ok(());
        }
        match self.place.read_sign()? {
            Ok(Some(sign)) if !self.place.calls_void(&sign) => {
                self.place.go(&self.storage, Some(sign))
            }
            Ok(_) => Err(self.place.refusal(Strayed::Unreadable)),
            Err(strayed) => Err(self.place.refusal(strayed)),
        }
    }

    /// Where the log is, or would be.
    fn log_path(&self) -> PathBuf {
        match &self.place.sign {
            Some(sign) => sign.path.clone(),
            None => self.path.join(&self.place.names.log),
        }
    }

    /// What a path that was asked for means; `None`: the log is there.
    fn goes_to(&self, path: &Path) -> Result<Option<Target>> {
        let now = self.log_path();
        // A name that dash has not given it may be that of another file.
        let is_named = self.place.sign.as_ref().is_none_or(|sign| {
            sign.is_made
                || self.place.name() == OsStr::new(&name_in_folder(&self.place.names, sign.id))
        });
        if path == now || now.parent() == Some(path) && is_named {
            return Ok(None);
        }
        target(&self.storage, &self.path, &self.place.names, path).map(Some)
    }

    /// Whether a sign of this process is one that is followed.
    fn may_sign(&self) -> Result<bool> {
        let owner = self
            .place
            .database()?
            .metadata()
            .during(Operation::Stat, self.place.names.shown())?
            .owner;
        Ok([owner, ROOT].contains(&self.storage.user()))
    }

    /// Says that the log does not lie where this user wants it. Where there is none yet he does
    /// without.
    fn go_without_sign(&mut self, path: &Path) {
        let (db, otherwise, path) = (self.place.names.shown(), &self.otherwise, path.display());
        self.notice = Some(format!(
            "dash_log={path}: only the owner of {db}, or root, has its log elsewhere; {otherwise}"
        ));
        self.words.set(Word::Without, u64::from(self.place.sign.is_none()));
    }

    /// Moves the log, in which nothing counts (WAL-27): what is under the old one's name says so
    /// before it goes, and the new one is made when a session begins.
    fn move_log(&mut self, target: Target) -> Result<()> {
        if self.place.sign.is_some() {
            self.place.retire()?;
            self.place.forget(&self.storage)?;
        }
        let Target::At(path, id) = target else { return Ok(()) };
        let sign = Sign { id, owner: self.place.owner(), is_made: false, path };
        self.place.go(&self.storage, Some(sign.clone()))?;
        // What was removed there must not come back in its place.
        let flushed = self.place.directory()?.flush();
        flushed.during(Operation::FlushDirectory, sign.path.display())?;
        self.place.write_sign(&sign)?;
        self.flush_home()
    }

    /// Says, before the first record, that there is a log elsewhere, and which (WAL-25). Its own
    /// head and name are durable by then.
    pub(super) fn sign_log(&mut self) -> Result<()> {
        let Some(sign) = self.place.sign.clone() else { return Ok(()) };
        let sign = Sign { is_made: true, ..sign };
        if !broken(Mutation::SignNotMade) {
            self.place.mark(&sign, sign.state_word())?;
        }
        self.place.sign = Some(sign);
        Ok(())
    }
}
