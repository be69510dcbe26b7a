//! Why a database is not opened, and what to do, as recovery and [`crate::inspect`] say it.

use super::look::{Chain, Look};
use super::rows::Action;
use dash_engine::error::Error;
use dash_engine::open::shell_word;
use dash_storage::Storage;

impl<S: Storage> Look<'_, S> {
    /// Why what a row of the table refuses is refused; `chain`: what the log's records are about.
    /// `None`: it refuses nothing.
    pub(crate) fn refusal(&self, action: Action, chain: Option<&Chain>) -> Option<Error> {
        Some(match action {
            Action::Leave | Action::Blank | Action::Replay | Action::Discard => return None,
            Action::RefuseLost => self.wiped_log(),
            Action::RefuseAbsent => self.missing_wal(chain),
            Action::RefuseAnother if chain.is_none() => self.another_state(),
            Action::RefuseAnother => self.another_database(),
            Action::RefuseGap => self.cut_wal(),
        })
    }

    /// The same error, which says in which file damage is, and what to do, if it did not.
    pub(crate) fn named(&self, error: Error) -> Error {
        match error {
            Error::Corrupt(what) if !what.contains(&**self.names.shown()) => {
                self.damaged_log(&what)
            }
            other => other,
        }
    }

    /// What no crash leaves in a log.
    pub(crate) fn damaged_log(&self, what: &str) -> Error {
        Error::Corrupt(format!(
            "{}: {what}; no crash leaves that. `sqlite-dash recover {}` tells what can be done",
            self.names.shown_log(),
            shell_word(&self.names.db)
        ))
    }

    /// Why a database isn't opened whose log was removed by hand.
    pub(crate) fn missing_log(&self) -> Error {
        let (wal, log) = (self.names.shown_wal(), self.names.shown_log());
        let db = shell_word(&self.names.db);
        Error::CantOpen(format!(
            "{log} is missing: {db} was in use when the power was lost, and its last commits may be there alone; put {log} \
             back, or let `sqlite-dash recover {db} --discard` take {db} and {wal} without them"
        ))
    }

    /// The same, where something else is in the log's place, or in that of the sign that says where
    /// it is.
    fn wiped_log(&self) -> Error {
        let (wal, log) = (self.names.shown_wal(), self.names.shown_log());
        let db = shell_word(&self.names.db);
        Error::CantOpen(format!(
            "{log} is neither a log nor says where that is, as if it had been emptied or written over: {db} was in use when the \
             power was lost, and its last commits may have been there alone; put {log} back, or let `sqlite-dash recover {db} --discard` \
             take {db} and {wal} without them"
        ))
    }

    /// Why a database isn't opened whose `-wal` was removed by hand. What the log carries by
    /// statements can't be kept without it.
    fn missing_wal(&self, chain: Option<&Chain>) -> Error {
        let (wal, log) = (self.names.shown_wal(), self.names.shown_log());
        let db = shell_word(&self.names.db);
        if chain.is_some_and(|chain| chain.carries) {
            return Error::CantOpen(format!(
                "{wal} is missing: {log} holds commits that were in it by their statements alone, which can be run again only \
                 on what was before them in {wal}; put {wal} back, or let `sqlite-dash recover {db} --discard` take the database as it \
                 is, which is right where {db} is a backup, or a program on stock SQLite went on after all of dash's had been killed"
            ));
        }
        if chain.is_none() {
            return Error::CantOpen(format!(
                "{wal} is missing or blank: it held commits that {db} lacks, as {db}-shm shows; put {wal} back, or let \
                 `sqlite-dash recover {db} --discard` take the database as it is, which is right where {db} is a backup, or a \
                 program on stock SQLite went on with it in locking_mode=EXCLUSIVE, or with the VFS unix-excl"
            ));
        }
        if chain.is_some_and(|chain| self.lacks_before(chain)) {
            return Error::CantOpen(format!(
                "{wal} is missing or blank: {log} holds commits that come behind others, which {wal} alone held; put {wal} back, or \
                 let `sqlite-dash recover {db} --discard` take the database as it is, which is right where {db} is a backup"
            ));
        }
        Error::CantOpen(format!(
            "{wal} is missing or blank: {log} holds commits that were in it and that {db} lacks; put {wal} back, or let `sqlite-dash recover {db}` \
             choose: --keep takes the commits from the log, --discard the database as it is, which is right where {db} \
             is a backup, or a program on stock SQLite went on after all of dash's had been killed"
        ))
    }

    /// Why a database isn't opened beside a log that is not of it.
    fn another_database(&self) -> Error {
        let (db, log, wal) = (self.names.shown(), self.names.shown_log(), self.names.shown_wal());
        Error::CantOpen(format!(
            "{log} holds commits that don't belong to {db}: {db} or {wal} is an older state of its own, as of a backup, or one of \
             the three is another database's; put back what belongs together, or let `sqlite-dash recover {db} --discard` take \
             {db} without them"
        ))
    }

    /// Why a database isn't opened whose `-wal` was cut, or replaced by an older one.
    pub(super) fn cut_wal(&self) -> Error {
        let (wal, db) = (self.names.shown_wal(), shell_word(&self.names.db));
        Error::CantOpen(format!(
            "{wal} lacks commits that were in it when {db} was last used: it was cut, or replaced by an older one; put the \
             right {wal} back, or let `sqlite-dash recover {db} --discard` take {db} as it is, without {wal} and a log: that may \
             mix two states. Where stock SQLite went on in locking_mode=EXCLUSIVE, open and close it there once"
        ))
    }

    /// Why a database isn't opened that `-wal` is not of.
    fn another_state(&self) -> Error {
        let (wal, db) = (self.names.shown_wal(), shell_word(&self.names.db));
        Error::CantOpen(format!(
            "{wal} holds commits that don't belong to {db}: {db} is an older state of its own, as of a backup, or another \
             database; put back what belongs together, or let `sqlite-dash recover {db} --discard` take {db} without {wal}"
        ))
    }
}
