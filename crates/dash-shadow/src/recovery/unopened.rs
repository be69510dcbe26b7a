//! A shadow that can't be opened for writing, as `app.db` was given to somebody else while all was
//! closed; or beside a database that is not opened in this mode. Where nothing in it counts it
//! makes room for another one.

use crate::names::access::{Whose, give_found, whose};
use crate::options::OpenOptions;
use crate::recovery::action::Action;
use crate::recovery::examine::Found;
use crate::recovery::first_opener::First;
use crate::recovery::left::Left;
use crate::shared::locks;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::locks::keep_stock_writers_out;
use dash_engine::open::{Opened, open_if_there};
use dash_storage::{Directory, File, LockKind, OpenMode, Storage};
use std::io::ErrorKind;

impl<S: Storage> First<'_, S> {
    /// What was opened; once more, if the shadow was in the way and is no longer.
    pub(crate) fn past_the_shadow<T>(
        &self,
        opened: Result<T>,
        options: &OpenOptions,
        again: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let is_denied = matches!(
            &opened,
            Err(Error::Io { operation: Operation::Open, name, source })
                if **name == **self.names.shown_shadow()
                    && source.kind() == ErrorKind::PermissionDenied
        );
        // What can't be known keeps it.
        let is_mended = || {
            let given = |[shadow, db]: [S::File; 2]| {
                give_found::<S>(self.directory, self.names, [&shadow, &db])
            };
            self.remove_useless(options).unwrap_or(false) || self.former().is_some_and(given)
        };
        match is_denied && is_mended() {
            true => again(),
            false => opened,
        }
    }

    /// Removes the shadow if `app.db` is current by the recovery table, with it and without it; no
    /// name fence stands (SHADOW-21), nobody has the database open, and no other program the
    /// shadow. Whether it was removed.
    fn remove_useless(&self, options: &OpenOptions) -> Result<bool> {
        let (c, names) = (self.coordination, self.names);
        let shown = names.shown();
        let alive = c.file().lock_conflict(locks::ALIVE, LockKind::Exclusive);
        if alive.during(Operation::Lock, names.shown_coordination())?.is_some()
            || self.directory.metadata(&names.renaming).during(Operation::Stat, shown)?.is_some()
        {
            return Ok(false);
        }
        let open = |name| -> Result<Option<Opened<S::File>>> {
            let Some(file) = open_if_there::<S>(self.directory, name, OpenMode::Read)? else {
                return Ok(None);
            };
            let len = file.metadata().during(Operation::Stat, shown)?.len;
            Ok(Some((file, len)))
        };
        let (Some(db), Some(shadow)) = (open(&names.db)?, open(&names.shadow)?) else {
            return Ok(false);
        };
        keep_stock_writers_out(&db.0, shown)?;
        let (db, shadow, fence) = self.look(Some(db), Some(shadow), options)?;
        let left = Left { fence, ..c.left()? };
        let is_held = shadow
            .as_ref()
            .and_then(|shadow| shadow.block(false))
            .is_some_and(|block| block.vouched.is_some_and(|vouched| vouched.held));
        if fence || is_held {
            return Ok(false);
        }
        for shadow in [shadow.as_ref(), None] {
            let (_, action, _) = self.decide(db.as_ref(), shadow, left, options)?;
            if !matches!(action, Action::KeepRepair | Action::KeepRebuild) {
                return Ok(false);
            }
        }
        match db {
            Some(db) => self.make_room(&db.file, false),
            None => Ok(false),
        }
    }

    /// The shadow and `app.db`, if it is the second copy with rights of before.
    fn former(&self) -> Option<[S::File; 2]> {
        let found = |name, shown| {
            let file = self.directory.open(name, OpenMode::Read).ok()?;
            let len = file.metadata().ok()?.len;
            Found::examine_quickly(file, len, 0, shown).ok()
        };
        let (names, shown) = (self.names, self.names.shown_shadow());
        let (db, shadow) = (found(&names.db, names.shown())?, found(&names.shadow, shown)?);
        let is_former = whose(Some(&shadow), Some(&db), shown).ok()? == Whose::Former;
        is_former.then_some([shadow.file, db.file])
    }

    /// Removes one if nothing in it counts. Whether it was removed.
    pub(crate) fn remove_former(&self) -> Result<bool> {
        Ok(self.former().is_some() && self.remove_useless(&OpenOptions::default())?)
    }
}
