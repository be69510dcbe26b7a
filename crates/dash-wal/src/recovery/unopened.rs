//! A log that makes room for another one, as nothing in it counts: it can't be opened for writing,
//! or used, since the database was given to somebody else, or its rights were changed.

use super::look::Log;
use crate::connection::state::Connection;
use crate::strayed::refusal;
use crate::whose::{Whose, is_misfit};
use dash_engine::error::{Context, Error, Operation, Result};
use dash_log::file::LogFile;
use dash_storage::Storage;
use std::io::ErrorKind;

impl<S: Storage> Connection<S> {
    /// Opens the log that recovery looks at. `fence`: a name fence stands.
    pub(super) fn open_log_found(&self, fence: bool) -> Result<Option<LogFile<S::File>>> {
        let opened = self.place.open();
        let is_denied = matches!(
            &opened,
            Err(Error::Io { operation: Operation::Open, source, .. })
                if source.kind() == ErrorKind::PermissionDenied
        );
        // What can't be known keeps it.
        if is_denied && !fence && self.remove_useless_log().unwrap_or(false) {
            return Ok(None);
        }
        opened?.map_err(|strayed| refusal(&self.names, strayed))
    }

    /// Removes a log beside the database that has other rights, and in which nothing counts by now.
    /// Whether it was removed.
    pub(super) fn remove_misfit(&self, log: &Log<S::File>) -> Result<bool> {
        let (file, database) = (log.file.file(), &**self.database.file());
        let is_misfit = is_misfit(file, database, self.storage.user())
            .during(Operation::Stat, log.file.name())?;
        let is_beside = self.place.sign.is_none();
        Ok(is_misfit && is_beside && self.place.unlink(&self.names).is_ok())
    }

    /// Removes a log beside the database that has no record that counts, and calls no `-wal` void.
    /// Whether it was removed.
    fn remove_useless_log(&self) -> Result<bool> {
        if self.place.sign.is_some() {
            return Ok(false);
        }
        let Ok(Some(file)) = self.place.open_to_read()? else { return Ok(false) };
        if self.look().log(file)?.says_anything() {
            return Ok(false);
        }
        self.place.unlink(&self.names).map(|()| true)
    }

    /// Why a log that no session is using can't be used, if that is so.
    pub(crate) fn unfit(
        &self,
        log: &S::File,
        whose: &Whose,
        is_its: bool,
    ) -> Result<Option<String>> {
        let (db, database) = (self.names.shown(), &**self.database.file());
        let is_misfit = || {
            is_misfit(log, database, self.storage.user())
                .during(Operation::Stat, self.names.shown_log())
        };
        Ok(match is_its {
            false => Some(format!("by its head it is not the log of {db}")),
            _ if !whose.counts && self.may_make_log() => {
                Some(format!("it belongs to user {}, who has no right to write {db}", whose.owner))
            }
            _ => is_misfit()?.then(|| format!("its rights are not those of {db}")),
        })
    }
}
