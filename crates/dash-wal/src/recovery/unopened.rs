//! A log that makes room for another one, as nothing in it counts: it can't be opened for writing,
//! or used, since the database was given to somebody else, or its rights were changed.

use super::Recovery;
use super::look::Log;
use dash_engine::error::{Error, Operation, Result};
use dash_log::file::LogFile;
use dash_storage::Storage;
use std::io::ErrorKind;

impl<S: Storage> Recovery<'_, S> {
    /// Opens the log that recovery looks at. `fence`: a name fence stands.
    pub(super) fn open_log_found(&self, fence: bool) -> Result<Option<LogFile<S::File>>> {
        let opened = self.session.place.open();
        let is_denied = matches!(
            &opened,
            Err(Error::Io { operation: Operation::Open, source, .. })
                if source.kind() == ErrorKind::PermissionDenied
        );
        // What can't be known keeps it.
        if is_denied && !fence && self.remove_useless_log().unwrap_or(false) {
            return Ok(None);
        }
        opened?.map_err(|strayed| self.session.place.refusal(strayed))
    }

    /// Removes a log beside the database that has other rights, and in which nothing counts by now.
    /// Whether it was removed.
    pub(super) fn remove_misfit(&self, log: &Log<S::File>) -> Result<bool> {
        let is_misfit = self.session.is_misfit(&log.file)?;
        let is_beside = self.session.place.sign.is_none();
        Ok(is_misfit && is_beside && self.session.place.unlink().is_ok())
    }

    /// Removes a log beside the database that has no record that counts, and calls no `-wal` void.
    /// Whether it was removed.
    fn remove_useless_log(&self) -> Result<bool> {
        if self.session.place.sign.is_some() {
            return Ok(false);
        }
        let Ok(Some(file)) = self.session.place.open_to_read()? else { return Ok(false) };
        if self.look().log(file)?.says_anything() {
            return Ok(false);
        }
        self.session.place.unlink().map(|()| true)
    }
}
