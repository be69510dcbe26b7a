//! Who keeps the name when the database is closed (SHADOW-16).
//!
//! Stock SQLite finds a rollback journal by its name, and asks its own file whether somebody is
//! writing. A stock process that has the database open since before an odd number of commits has
//! the file that is called `app.db-shadow` by now. As long as a dash connection is alive it holds RESERVED of
//! both files. At rest nobody does: when another stock process writes `app.db` then, the first one takes its
//! journal for a hot one, rolls it back into the shadow and removes it (A17).
//!
//! So who closes last asks who else has the shadow open, and commits once more, without a change:
//! that exchanges the names, by the steps that are proved already.

use dash_storage::{File, Storage};

use crate::connection::Connection;
use crate::coordination::ShadowCondition;
use crate::error::{Error, Result};
use crate::locks::LockLevel;
use crate::mutation::{Mutation, broken};

impl<S: Storage> Connection<S> {
    /// SHADOW-16, for the last connection. `tell` hears of it where the name can't go to who has the
    /// shadow open. Nothing of it keeps the database from being closed.
    pub(crate) fn return_name(&mut self, tell: &mut dyn FnMut(&str)) {
        let idle = self.level == LockLevel::None && self.poisoned.is_none();
        if !idle || !self.open_elsewhere(self.shadow_slot()) || broken(Mutation::NameKeptFromStock)
        {
            return;
        }
        let returned = if self.open_elsewhere(self.current.slot) {
            Err("so does another one, with the file that is called so now".to_owned())
        } else {
            self.commit_unchanged().map_err(|error| error.to_string())
        };
        if let Err(why) = returned {
            tell(&format!(
                "another program has {} open as it was called before, and that name can't be given back ({why}): \
                 it should open the database again before any program writes it without dash",
                self.names.shown_shadow()
            ));
        }
    }

    /// Where it can't be known: no.
    fn open_elsewhere(&self, slot: usize) -> bool {
        let file = self.files[slot].as_ref();
        file.is_some_and(|file| file.open_elsewhere().unwrap_or(false))
    }

    /// A commit that changes nothing but SQLite's change counter.
    fn commit_unchanged(&mut self) -> Result<()> {
        let committed = self.commit_first_page();
        let ended = self.unlock(LockLevel::None);
        committed.and(ended)
    }

    fn commit_first_page(&mut self) -> Result<()> {
        self.lock(LockLevel::Reserved)?;
        if self.coordination.condition() == ShadowCondition::Rebuild || self.snapshot.size == 0 {
            // The commit would go to a new file, which nobody has open.
            return Err(Error::Refused("it is no copy any more".into()));
        }
        self.lock(LockLevel::Exclusive)?;
        let mut first = crate::memory::zeros(self.first_page_len()?)?;
        self.read(&mut first, 0)?;
        self.write(&first, 0)?;
        self.prepare(None)?;
        self.flush()?;
        self.publish()
    }
}
