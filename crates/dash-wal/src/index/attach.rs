//! Attaching to the file of a wal-index: who finds nobody there makes it anew, with the rights of
//! the database, or looks at it as it was left.

use super::{DEAD_MAN_SWITCH, Index};
use dash_engine::error::{Context, Operation, Result};
use dash_engine::locks::share;
use dash_storage::{Directory, File, FileId, LockKind, Storage};
use std::ffi::OsStr;

/// Whether the name stands for the file. Whoever removes it holds the switch exclusively: a file
/// that was opened before that nobody else will find.
pub(super) fn is_named<S: Storage>(
    directory: &S::Directory,
    name: &OsStr,
    file: &S::File,
    shown: &str,
) -> Result<bool> {
    let named = directory.metadata(name).during(Operation::Stat, shown)?;
    Ok(named.is_some_and(|named| named.id == file.id()))
}

/// Takes the dead-man switch, shared, and empties the file if nobody has it; without `empties` the
/// switch is exclusive then, so that nobody comes who would. Which it is; `None`: somebody has the
/// switch exclusively, or the file had other rights than the database and made room.
///
/// As `unixLockSharedMemory` does: whoever finds it so begins anew, because its holder may die
/// before it has emptied the file.
pub(super) fn attach<S: Storage>(
    directory: &S::Directory,
    (name, shown): (&OsStr, &str),
    (file, is_made, database): (&S::File, bool, &S::File),
    empties: bool,
) -> Result<Option<LockKind>> {
    let conflict = |kind| file.lock_conflict(DEAD_MAN_SWITCH, kind).during(Operation::Lock, shown);
    let take = |kind| file.try_lock(DEAD_MAN_SWITCH, kind).during(Operation::Lock, shown);
    if conflict(LockKind::Shared)?.is_some() {
        return Ok(None);
    }
    if conflict(LockKind::Exclusive)?.is_none() {
        if !take(LockKind::Exclusive)? {
            return Ok(None);
        }
        if !empties {
            return Ok(Some(LockKind::Exclusive));
        }
        // It holds nothing, and others may have it open: the next one is the database's. The maker
        // may not be able to give it all rights.
        let is_its = is_made || file.has_access_of(database).during(Operation::Stat, shown)?;
        if !is_its && directory.unlink(name).is_ok() {
            return Ok(None);
        }
        // First: nobody sees what it held.
        if file.metadata().during(Operation::Stat, shown)?.len > 0 {
            file.set_len(0).during(Operation::Resize, shown)?;
        }
    }
    Ok(take(LockKind::Shared)?.then_some(LockKind::Shared))
}

impl<S: Storage> Index<S> {
    /// Which file it is in; `None`: it is in memory.
    pub(crate) fn id(&self) -> Option<FileId> {
        self.file().map(File::id)
    }

    /// Whether nobody else has it: see [`Self::open`].
    pub(crate) fn is_as_left(&self) -> bool {
        self.is_as_left
    }

    /// Empties it if it is as it was left, and lets others have it.
    ///
    /// # Errors
    ///
    /// Those of the calls.
    pub(crate) fn settle(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.is_as_left) {
            return Ok(());
        }
        let Some(file) = self.file() else { return Ok(()) };
        file.set_len(0).during(Operation::Resize, &self.shown)?;
        share(file, DEAD_MAN_SWITCH, &self.shown)
    }
}
