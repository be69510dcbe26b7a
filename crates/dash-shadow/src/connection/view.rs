//! The read transaction: pinning the current copy, noticing that it is not what it was, and
//! following the pair of files when somebody makes a new shadow.

use crate::connection::state::Connection;
use crate::format::header::Marks;
use crate::shared::life::hold_life;
use crate::shared::locks;
use crate::shared::state::{Current, ShadowCondition, Snapshot};
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::io::read_header;
use dash_storage::{File, FileId, LockKind, Storage};
use std::sync::Arc;

/// Nanoseconds for which a reader trusts that nobody has overwritten the file without locks
/// (`cp backup app.db`): it looks at the header at the first read after that.
pub(crate) const FOREIGN_CHECK_NANOS: u64 = 1_000_000;

/// How often a reader looks again at what changes under its eyes. Commits don't come so fast.
pub(crate) const LOOKS: usize = 10_000;

impl<S: Storage> Connection<S> {
    /// SHADOW-9: pin, then look again.
    pub(crate) fn begin_read(&mut self) -> Result<()> {
        let now = self.pair.storage.monotonic_nanos();
        for looks in 0.. {
            if looks == LOOKS {
                return Err(Error::Busy);
            }
            self.reload_if_pair_changed()?;
            if self.pair.coordination.is_of_several() {
                self.finish_decided()?;
            }
            let current = self.pair.coordination.current();
            if self.pair.coordination.generation() != self.pair.generation {
                continue;
            }
            // Before the pin: what is put aside for this snapshot comes behind this place.
            self.begin_versions(now)?;
            self.pin(current)?;
            // Between the pin and the second look: later, its words may be those of a later state.
            let snapshot = self.pair.coordination.snapshot(current.slot);
            if self.pair.coordination.current() == current
                && self.pair.coordination.generation() == self.pair.generation
            {
                (self.view.current, self.view.snapshot) = (current, snapshot);
                break;
            }
        }
        if now.wrapping_sub(self.view.checked_at) > FOREIGN_CHECK_NANOS {
            self.view.checked_at = now;
            self.notice_foreign_write()?;
        }
        Ok(())
    }

    /// Reads this state from now on.
    pub(crate) fn pin(&mut self, current: Current) -> Result<()> {
        if self.pair.coordination.is_registered() {
            self.pair.coordination.pin(current);
            return Ok(());
        }
        let slot = current.slot;
        if let Some(old) = self.view.shared_lock.take() {
            self.pair.file(old)?.unlock(locks::SHARED).during(Operation::Lock, self.role(old))?;
        }
        let free = self
            .pair
            .file(slot)?
            .try_lock(locks::SHARED, LockKind::Shared)
            .during(Operation::Lock, self.role(slot))?;
        if !free {
            return Err(Error::Busy);
        }
        self.view.shared_lock = Some(slot);
        Ok(())
    }

    /// Reads what this connection has committed from now on.
    pub(crate) fn move_pin(&mut self) -> Result<()> {
        if self.pair.coordination.is_registered() {
            self.pair.coordination.move_pin(self.view.current);
            return Ok(());
        }
        self.pin(self.view.current)
    }

    /// Somebody may have copied another database over the file without asking for locks: then
    /// `app.db` is what counts, as it is at rest.
    pub(crate) fn notice_foreign_write(&mut self) -> Result<()> {
        let file = self.current_file()?;
        let seen = read_header(&*file, self.pair.names.shown())?;
        let same = match &seen {
            None => self.view.snapshot.size == 0,
            Some(header) => header.version() == self.view.snapshot.version,
        };
        if same || self.pair.coordination.current() != self.view.current {
            return Ok(());
        }
        let unlock = |connection: &Self| {
            connection.pair.coordination.unpin();
            Err(Error::Busy)
        };
        if seen.is_none_or(|header| !header.is_sqlite()) || self.pair.coordination.in_flight() != 0
        {
            // In the middle of being copied: the busy handler comes back.
            self.view.checked_at = 0;
            return unlock(self);
        }
        if !self.pair.coordination.try_writer()? {
            return unlock(self);
        }
        if self.pair.coordination.current() == self.view.current {
            self.adopt(self.view.current.slot)?;
        }
        self.pair.coordination.release_writer()?;
        self.begin_read()
    }

    /// Takes the file in `slot`, as it is, for the newest state; the shadow will be made anew.
    pub(crate) fn adopt(&mut self, slot: usize) -> Result<()> {
        let file = self.pair.file(slot)?;
        let header = read_header(&*file, self.pair.names.shown())?;
        let len = file.metadata().during(Operation::Stat, self.pair.names.shown())?.len;
        let snapshot = Snapshot::foreign(header.as_ref(), len, self.pair.storage.random());
        self.pair.coordination.set_condition(ShadowCondition::Rebuild);
        self.pair.coordination.set_snapshot(slot, &snapshot);
        // Whoever wrote it may have made it longer.
        self.pair.coordination.next_tail_epoch(slot);
        let sequence = self.pair.coordination.current().sequence + 1;
        self.pair.coordination.set_current(Current { sequence, slot });
        Ok(())
    }

    /// Opens the files again after somebody made a new shadow.
    pub(crate) fn reload_if_pair_changed(&mut self) -> Result<()> {
        for looks in 0.. {
            if self.pair.coordination.generation() == self.pair.generation {
                break;
            }
            if looks == LOOKS {
                return Err(Error::Busy);
            }
            let generation = self.pair.coordination.generation();
            let inodes = self.pair.coordination.inodes();
            if self.reload(generation, inodes)? || self.pair.coordination.generation() == generation
            {
                self.pair.generation = generation;
            }
        }
        Ok(())
    }

    /// `false`: the file of the shadow has no name. Then somebody is making a new one, or its name
    /// was removed beside a connection that holds it: reading needs none, and the next writer makes
    /// one.
    fn reload(&mut self, generation: u64, inodes: [Option<FileId>; 2]) -> Result<bool> {
        let mut complete = true;
        for (slot, wanted) in inodes.into_iter().enumerate() {
            let have = self.pair.files[slot].as_ref().map(|file| file.id());
            if have == wanted {
                continue;
            }
            let found = wanted.and_then(|id| self.pair.open_by_id(id));
            if found.is_none() && wanted.is_some() {
                if self.pair.coordination.generation() != generation {
                    return Ok(false);
                }
                if slot == self.pair.coordination.current().slot {
                    return Err(Error::Moved(format!(
                        "{} was exchanged for another file while it was open; close all connections and open it again",
                        self.pair.names.shown()
                    )));
                }
                complete = false;
            }
            if let Some(file) = &found {
                hold_life(file, self.pair.names.shown())?;
                self.view.checked_at = 0; // until now somebody may have written
            }
            self.pair.files[slot] = found.map(Arc::new);
            self.target.known_tails[slot] = None;
        }
        Ok(complete)
    }
}
