//! Where the log lies: found by the first opener, who may move it; shared by all who come later.

use crate::connection::state::Connection;
use crate::connection::target::{Target, target};
use crate::mutation::{Mutation, broken};
use crate::place::{self, Place};
use crate::recovery::Choice;
use crate::shared::coordination::Word;
use crate::strayed::{Strayed, refusal, refusal_to_join};
use dash_engine::beside::ROOT;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_log::sign::Sign;
use dash_storage::{Directory, File, Storage};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a head is waited for that may be half-written.
const TORN_PAUSE: Duration = Duration::from_millis(1);

/// A log that only others may make is looked for after so many commits again.
const COMMITS_WITHOUT_LOOK: u32 = 64;

impl<S: Storage> Connection<S> {
    /// Whether there was no log a few commits ago, and nobody has made one since: whoever does says
    /// so in [`Word::LogId`], unless it is one that was there before.
    pub(super) fn waits_for_log(&mut self) -> bool {
        let Some((id, left)) = &mut self.unasked else { return false };
        let waits = *left > 0 && *id == self.coordination.get(Word::LogId);
        *left = left.saturating_sub(1);
        waits
    }

    /// Says once that commits become durable without the log, as others have to make it.
    pub(super) fn say_unasked(&mut self) {
        let known = self.coordination.get(Word::LogId);
        if self.unasked.replace((known, COMMITS_WITHOUT_LOOK)).is_some() {
            return;
        }
        let (db, log, wal) = (self.names.shown(), self.names.shown_log(), self.names.shown_wal());
        self.notice = Some(format!(
            "{log}, where the log of {db} is to lie, holds none yet, and only a connection with dash_log in its URI makes it; commits \
             become durable by a flush of {wal}, as in stock SQLite"
        ));
    }

    /// Finds the log, for the first opener: where a sign says, if there is one.
    ///
    /// # Errors
    ///
    /// [`Error::CantOpen`] where the log strayed and nobody has decided about it (WAL-26).
    pub(crate) fn find_log(&mut self, choice: Choice) -> Result<()> {
        let sign = match self.read_sign()? {
            Ok(None) => return Ok(()),
            Ok(Some(sign)) if place::is_void(&sign, self.database.file().id().inode) => {
                return self.forget_log();
            }
            Ok(Some(sign)) => sign,
            Err(_) if choice == Choice::Discard => return self.forget_log(),
            Err(strayed) => return Err(refusal(&self.names, strayed)),
        };
        self.takes_place(Some(sign))?;
        let owner = self.database.file().id().inode;
        match self.place.strayed(owner)? {
            None => Ok(()),
            Some(_) if choice == Choice::Discard => self.forget_log(),
            Some(Strayed::Copied) if choice == Choice::Keep => self.keep_copied(owner),
            Some(strayed) => Err(refusal(&self.names, strayed)),
        }
    }

    /// Says whose the log is that came with a copy of the database: a person has said so.
    fn keep_copied(&mut self, owner: u64) -> Result<()> {
        let sign = self.place.sign.take().map(|sign| Sign { owner, ..sign });
        self.takes_place(sign)?;
        match (self.place.strayed(owner)?, &self.place.sign) {
            (None, Some(sign)) => self.mark_sign(sign, sign.owner_word()),
            (strayed, _) => Err(refusal(&self.names, strayed.unwrap_or(Strayed::Lost))),
        }
    }

    /// Goes on as if there had never been a log elsewhere. That one is left alone.
    fn forget_log(&mut self) -> Result<()> {
        place::remove::<S>(&self.directory, &self.names)?;
        self.takes_place(None)
    }

    fn takes_place(&mut self, sign: Option<Sign>) -> Result<()> {
        match sign {
            Some(sign) => {
                self.names.log_is_at(&sign.path);
                self.place = Place::of(&self.storage, sign, self.database.file())?;
            }
            None => {
                self.names.log_is_beside();
                self.place = Place::beside(&self.directory, &self.names);
            }
        }
        Ok(())
    }

    fn read_sign(&self) -> Result<std::result::Result<Option<Sign>, Strayed>> {
        place::read::<S>(&self.directory, &self.names, self.database.file())
    }

    fn mark_sign(&self, sign: &Sign, word: (u64, Vec<u8>)) -> Result<()> {
        place::mark::<S>(&self.directory, &self.names, self.database.file(), sign, word)
    }

    /// Writes the sign, durably.
    fn write_sign(&mut self, sign: &Sign) -> Result<()> {
        place::write::<S>(&self.directory, &self.names, self.database.file(), sign)?;
        self.flush_directory()
    }

    /// The log is to lie there, if that is asked for: the first opener moves it, at rest, as no
    /// record counts once it has recovered.
    ///
    /// # Errors
    ///
    /// [`Error::CantOpen`] where it can't be there.
    pub(crate) fn place_log(&mut self, wanted: Option<&Path>) -> Result<()> {
        match wanted.map(|path| self.goes_to(path)).transpose()?.flatten() {
            Some(Target::At(path, _)) if !self.may_sign()? => self.go_without_sign(&path),
            Some(target) => self.move_log(target)?,
            None => {}
        }
        self.coordination.set(Word::Elsewhere, u64::from(self.place.sign.is_some()));
        Ok(())
    }

    /// Finds the log that the others use.
    ///
    /// # Errors
    ///
    /// [`Error::CantOpen`] where another place is asked for, or the log is not to be found from
    /// here.
    pub(crate) fn join_log(&mut self, wanted: Option<&Path>) -> Result<()> {
        self.look_at_sign()?;
        match wanted.map(|path| self.goes_to(path)).transpose()?.flatten() {
            None => self.look_for_log(),
            Some(_) => Err(Error::CantOpen(format!(
                "{} is open with its log at {}: leave dash_log out, or close all connections first; the next one to open it may \
                 move the log",
                self.names.shown(),
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
        let strayed = match self.coordination.is(Word::Session) {
            false => self.place.strayed(self.database.file().id().inode)?,
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
                    let id = self.coordination.get(Word::LogId);
                    let is_it = head.is_ok_and(|head| head.id == id);
                    self.process.leading.set_medium(&log);
                    (!is_it).then_some(Strayed::Foreign)
                }
            },
        };
        strayed.map_or(Ok(()), |strayed| Err(refusal_to_join(&self.names, strayed)))
    }

    /// What the sign says now, if there is one.
    pub(crate) fn look_at_sign(&mut self) -> Result<()> {
        if !self.coordination.is(Word::Elsewhere) {
            return Ok(());
        }
        match self.read_sign()? {
            Ok(Some(sign)) if !place::is_void(&sign, self.database.file().id().inode) => {
                self.takes_place(Some(sign))
            }
            Ok(_) => Err(refusal(&self.names, Strayed::Unreadable)),
            Err(strayed) => Err(refusal(&self.names, strayed)),
        }
    }

    /// Where the log is, or would be.
    fn log_path(&self) -> PathBuf {
        match &self.place.sign {
            Some(sign) => sign.path.clone(),
            None => self.directory_path.join(&self.names.log),
        }
    }

    /// What a path that was asked for means; `None`: the log is there.
    fn goes_to(&self, path: &Path) -> Result<Option<Target>> {
        let now = self.log_path();
        // A name that dash has not given it may be that of another file.
        let is_named = self.place.sign.as_ref().is_none_or(|sign| {
            sign.is_made
                || self.place.name() == OsStr::new(&place::name_in_folder(&self.names, sign.id))
        });
        if path == now || now.parent() == Some(path) && is_named {
            return Ok(None);
        }
        target(&self.storage, &self.directory_path, &self.names, path).map(Some)
    }

    /// Whether a sign of this process is one that is followed.
    fn may_sign(&self) -> Result<bool> {
        let owner = self.database.metadata()?.owner;
        Ok([owner, ROOT].contains(&self.storage.user()))
    }

    /// Says that the log does not lie where this user wants it. Where there is none yet he does
    /// without.
    fn go_without_sign(&mut self, path: &Path) {
        let (db, wal) = (self.names.shown(), self.names.shown_wal());
        let path = path.display();
        self.notice = Some(format!(
            "dash_log={path}: only the owner of {db}, or root, has its log elsewhere; commits become durable by a flush of {wal}, as \
             in stock SQLite"
        ));
        self.coordination.set(Word::WithoutLog, u64::from(self.place.sign.is_none()));
    }

    /// Moves the log, in which nothing counts (WAL-27): what is under the old one's name says so
    /// before it goes, and the new one is made when a session begins.
    fn move_log(&mut self, target: Target) -> Result<()> {
        if self.coordination.is(Word::Fence) && !broken(Mutation::MovedBehindFence) {
            // A fence without a log says that one was lost (WAL-20).
            self.lower_fence()?;
        }
        if self.place.sign.is_some() {
            self.retire_log()?;
            self.forget_log()?;
        }
        match target {
            // It is made when a session begins.
            Target::Beside => Ok(()),
            Target::At(path, id) => {
                let owner = self.database.file().id().inode;
                let sign = Sign { id, owner, is_made: false, path };
                let place = Place::of(&self.storage, sign.clone(), self.database.file())?;
                // What was removed there must not come back in its place.
                let flushed = place.directory()?.flush();
                flushed.during(Operation::FlushDirectory, sign.path.display())?;
                self.write_sign(&sign)?;
                self.takes_place(Some(sign))
            }
        }
    }

    /// Removes the log, in which nothing counts. A sign stays, and says that there need be none.
    pub(crate) fn retire_log(&mut self) -> Result<()> {
        place::retire::<S>(&self.directory, &self.names, &mut self.place)
    }

    /// Says, before the first record, that there is a log elsewhere, and which (WAL-25). Its own
    /// head and name are durable by then.
    pub(crate) fn sign_log(&mut self) -> Result<()> {
        let Some(sign) = self.place.sign.clone() else { return Ok(()) };
        let sign = Sign { is_made: true, ..sign };
        if !broken(Mutation::SignNotMade) {
            self.mark_sign(&sign, sign.state_word())?;
        }
        self.place.sign = Some(sign);
        Ok(())
    }
}
