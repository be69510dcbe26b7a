//! A log that can't be opened for writing: the database was given to somebody else while all was
//! closed. Where nothing in it counts it makes room for another one.

use crate::connection::state::Connection;
use crate::strayed::refusal;
use dash_engine::error::{Error, Operation, Result};
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
}
