//! The two files, by slot and by name.

use crate::connection::state::{Connection, Pair};
use crate::names::exchange::look_up_db;
use crate::shared::locks::LockLevel;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_storage::{Directory, File, FileId, Metadata, OpenMode, Storage};
use std::ffi::OsStr;
use std::sync::Arc;

/// How often a file is looked for under two names that are exchanged meanwhile.
const OPEN_ATTEMPTS: usize = 200;

impl<S: Storage> Pair<S> {
    /// The file in `slot`.
    pub(crate) fn file(&self, slot: usize) -> Result<Arc<S::File>> {
        self.file_ref(slot).cloned()
    }

    /// The same, borrowed.
    pub(crate) fn file_ref(&self, slot: usize) -> Result<&Arc<S::File>> {
        self.files[slot]
            .as_ref()
            .ok_or_else(|| Error::Corrupt(format!("{} has no second copy yet", self.names.shown())))
    }

    /// Opens a file of the pair, whichever of the names it has.
    pub(crate) fn open_by_id(&self, id: FileId) -> Option<S::File> {
        // All names again and again: they may be exchanged between two looks, or somebody was
        // killed between two renames.
        let names = [&self.names.shadow, &self.names.db, &self.names.renaming];
        names.into_iter().cycle().take(OPEN_ATTEMPTS).find_map(|name| {
            let open = self.directory.open(name, OpenMode::ReadWrite);
            open.ok().filter(|file| file.id() == id)
        })
    }

    /// What the names stand for.
    pub(crate) fn named(&self) -> Result<[Option<Metadata>; 2]> {
        let look = |name: &OsStr| {
            self.directory.metadata(name).during(Operation::Stat, name.to_string_lossy())
        };
        Ok([look(&self.names.db)?, look(&self.names.shadow)?])
    }

    fn has(&self, id: FileId) -> bool {
        self.files.iter().flatten().any(|file| file.id() == id)
    }

    /// Whether `app.db` is neither of the two files any more.
    fn has_moved(&self) -> Result<bool> {
        let db = look_up_db::<S>(&self.directory, &self.names)?;
        Ok(!db.is_some_and(|(_, db)| self.has(db.id)))
    }
}

impl<S: Storage> Connection<S> {
    /// Slot of the copy that is not current.
    pub(crate) fn shadow_slot(&self) -> usize {
        1 - self.view.current.slot
    }

    /// The file of the current copy.
    pub(crate) fn current_file(&self) -> Result<Arc<S::File>> {
        self.pair.file(self.view.current.slot)
    }

    /// Name of the file in `slot`, for messages.
    pub(crate) fn role(&self, slot: usize) -> Arc<str> {
        let names = &self.pair.names;
        let current = slot == self.view.current.slot;
        Arc::clone(if current { names.shown() } else { names.shown_shadow() })
    }

    /// Whether it is one of the two files, whatever their names are.
    pub fn is_of(&self, file: FileId) -> bool {
        self.pair.has(file)
    }

    /// Whether `app.db` is neither of the two files any more (`SQLITE_FCNTL_HAS_MOVED`).
    pub fn has_moved(&self) -> Result<bool> {
        if self.view.level >= LockLevel::Reserved {
            return Ok(false); // begin_write has just looked
        }
        self.pair.has_moved()
    }
}
