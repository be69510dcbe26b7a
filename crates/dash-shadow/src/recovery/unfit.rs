//! A shadow with other rights than `app.db`, or a stranger's (SHADOW-28).

use crate::names::access::{Whose, give_found, lets_others_in};
use crate::names::empty::put_empty;
use crate::recovery::action::Action;
use crate::recovery::examine::Found;
use crate::recovery::first_opener::First;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_storage::{Directory, File, Storage};

impl<S: Storage> First<'_, S> {
    /// Sees to the rights of what was found. Whether the shadow stays, and lets in somebody who has
    /// no right to `app.db`.
    pub(super) fn is_exposed(
        &self,
        [shadow, db]: [&Option<Found<S::File>>; 2],
        fence: bool,
        (action, whose): (Action, Whose),
    ) -> Result<bool> {
        let (Some(shadow), Some(db)) = (shadow, db) else { return Ok(false) };
        let pair = [&shadow.file, &db.file];
        let is_mended = match action {
            _ if whose == Whose::Theirs => true,
            Action::KeepRebuild => self.make_room(&db.file, fence)?,
            Action::UseShadow => give_found::<S>(self.directory, self.names, pair),
            _ => true,
        };
        Ok(!is_mended && lets_others_in(pair[0], pair[1]).unwrap_or(false))
    }

    /// Removes the shadow, also where somebody has it open: to him what is written there would be
    /// shown, and what he writes there would be the database's. Beside a name fence an empty one
    /// takes its place (SHADOW-21). Where this process lacks the right it stays, and is none of the
    /// two files: the first write puts another one in its place, or is refused.
    pub(super) fn make_room(&self, db: &S::File, fence: bool) -> Result<bool> {
        let (directory, names) = (self.directory, self.names);
        let flush = || directory.flush().during(Operation::FlushDirectory, names.shown());
        // What the shadow may have been alone to have, on the device (SHADOW-20, SHADOW-23).
        db.flush().during(Operation::Flush, names.shown())?;
        flush()?;
        let made = match fence {
            true => put_empty::<S>(directory, names, 0o600).map(drop),
            false => {
                directory.unlink(&names.shadow).during(Operation::Delete, names.shown_shadow())
            }
        };
        match made {
            Err(Error::Io { operation: Operation::Flush | Operation::FlushDirectory, .. }) => made?,
            Err(_) => return Ok(false),
            // What the table decided against does not come back.
            Ok(()) => flush()?,
        }
        Ok(true)
    }
}
