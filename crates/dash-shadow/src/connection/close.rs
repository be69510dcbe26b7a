//! Closing. The last connection leaves a plain SQLite file behind: no fence, no coordination
//! file, and a shadow whose block vouches for the current copy.

use crate::connection::state::Connection;
use crate::file::tail::{Tail, write_intent};
use crate::format::header::{Header, Marks};
use crate::format::{State, TAIL_LEN};
use crate::mutation::{Mutation, broken};
use crate::recovery::published::Published;
use crate::shared::durability::Durability;
use crate::shared::life::is_alone;
use crate::shared::locks::{self, LockLevel};
use crate::shared::state::ShadowCondition;
use dash_engine::coordination::take_open_to_close;
use dash_engine::error::{Context, Operation, Result};
use dash_engine::fence::raise_passing;
use dash_engine::note;
use dash_storage::{Directory, File, LockKind, Storage};
use std::io::ErrorKind;

impl<S: Storage> Connection<S> {
    /// Gives everything back. Errors are reported, but the connection is closed in any case.
    pub fn close(self) -> Result<()> {
        self.close_telling(&mut |_| {})
    }

    /// [`close`](Self::close); `tell` hears what the user should know of what is left behind.
    pub fn close_telling(mut self, tell: &mut dyn FnMut(&str)) -> Result<()> {
        let unlocked = self.unlock(LockLevel::None);
        let left = self.leave(tell);
        // Before OPEN goes with the coordination file: the next one to close asks who has them
        // open.
        self.pair.files = [None, None];
        unlocked.and(left)
    }

    fn leave(&mut self, tell: &mut dyn FnMut(&str)) -> Result<()> {
        self.tell_totals();
        let name = self.pair.names.shown_coordination().clone();
        self.pair.coordination.unregister();
        if !take_open_to_close(&self.pair.storage, self.pair.coordination.file(), &name)? {
            return Ok(());
        }
        let named = self
            .pair
            .directory
            .metadata(&self.pair.names.coordination)
            .during(Operation::Stat, &name)?;
        if named.is_none_or(|named| named.id != self.pair.coordination.file().id()) {
            return Ok(());
        }
        drop(self.reload_if_pair_changed());
        let [a, b] = &self.pair.files;
        let file = self.pair.coordination.file();
        // Both locks are converted; what stood in the way of that leaves them shared.
        let alone = is_alone(&[a.as_deref(), b.as_deref()], &name)?
            && file.try_lock(locks::ALIVE, LockKind::Exclusive).during(Operation::Lock, &name)?;
        if alone {
            let rested = self.rest(tell);
            // Only a clean state goes without its mark of being open: a stale coordination file is
            // harmless, the next first opener empties it.
            rested?;
        }
        // Before the name goes: an opener that makes a new coordination file must find itself
        // alone. Until then openers wait for OPEN; so does who closes next, and must be the last.
        for file in self.pair.files.iter().flatten() {
            file.unlock(locks::ALL).during(Operation::Lock, &name)?;
        }
        if alone {
            self.pair
                .directory
                .unlink(&self.pair.names.coordination)
                .during(Operation::Delete, &name)
        } else {
            self.pair.coordination.file().unlock(locks::ALIVE).during(Operation::Lock, &name)
        }
    }

    /// SHADOW-10: what a closed database looks like.
    fn rest(&mut self, tell: &mut dyn FnMut(&str)) -> Result<()> {
        if self.pair.coordination.in_flight() != 0 {
            self.finish_dead_writer()?;
        }
        self.view.current = self.pair.coordination.current();
        self.view.snapshot = self.pair.coordination.snapshot(self.view.current.slot);
        self.finish_settling();
        // The next session takes what it finds at rest for durable.
        let found = self.pair.coordination.durability();
        let unknown = ![Durability::Flushed, Durability::Unproven].contains(&found);
        if unknown {
            self.flush_current()?;
        }
        if unknown && !broken(Mutation::NarrowedUnflushed) {
            // SHADOW-8: the next session lists only what it writes itself. And where the name is
            // behind, stock SQLite must not be shown a copy that was never flushed.
            let slot = self.shadow_slot();
            if self.pair.files[slot].is_some() {
                self.flush_file(slot)?;
            }
        }
        self.cut_files()?;
        let kept = self.return_name();
        self.flush_names(unknown)?;
        if kept.as_ref().is_some_and(|kept| kept.fenced) {
            raise_passing(&*self.pair.directory, &self.pair.names, &*self.current_file()?)?;
        }
        self.forget_deleted(tell)?;
        self.leave_vouched(kept.is_some())?;
        if let Some(kept) = kept {
            tell(&kept.message);
        }
        Ok(())
    }

    /// SHADOW-20: from here on anybody may write `app.db`, in any way, and a power loss must not
    /// find that file under the other name. The first commit of the next session need not flush the
    /// names then.
    ///
    /// `unflushed`: the copies were not flushed, so more than the names is behind.
    fn flush_names(&mut self, unflushed: bool) -> Result<()> {
        let c = &self.pair.coordination;
        let unflushed = unflushed && !broken(Mutation::NarrowedUnflushed);
        let behind = c.names_changed() && c.may_be_named_on_disk(self.shadow_slot());
        let fence = c.fence() || c.fence_found();
        if fence {
            self.lower_fence()?;
        }
        if fence || unflushed || behind && !broken(Mutation::NamesLeftBehind) {
            self.flush_directory()?;
            self.pair.coordination.set_name_on_disk(self.view.current.slot);
        }
        if fence {
            // Under this name it keeps nobody out: whoever finds it later removes it.
            drop(note::remove_folder(&*self.pair.directory, &self.pair.names.lowered));
        }
        self.pair.coordination.set_fence(false);
        Ok(())
    }

    /// Takes the name fence away, before the flush that makes the names durable: it must not be
    /// back after a power loss, since stock SQLite may have written by then, nor gone from the disk
    /// before the names are right there. Where the file system has no journal a removed directory
    /// may be gone before its name is; a renamed one is not.
    fn lower_fence(&self) -> Result<()> {
        let fence = self.pair.names.fence.to_string_lossy();
        let lowered = self.pair.directory.rename(&self.pair.names.fence, &self.pair.names.lowered);
        // An overlay renames no directory of its lower layer.
        match lowered
            .or_else(|_| note::remove_folder(&*self.pair.directory, &self.pair.names.fence))
        {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            other => other.during(Operation::Delete, fence),
        }
    }

    /// A block that vouches for the current copy, and intents no wider than the next session needs.
    /// `held`: another program has the shadow open, and may write there: the block tells then how
    /// dash would.
    fn leave_vouched(&mut self, held: bool) -> Result<()> {
        let clean = self.debts.poisoned.is_none()
            && self.pair.coordination.condition() == ShadowCondition::Known;
        let slot = self.shadow_slot();
        if !clean || self.pair.coordination.commits() == 0 || self.pair.files[slot].is_none() {
            return Ok(());
        }
        self.narrow_current()?;
        let known = self.shadow_tail()?;
        let (len, file, name) = (known.len, self.pair.file(slot)?, self.role(slot));
        let tail = match self.take_current_at_open() {
            Some(tail) => tail,
            None => Tail::at_end(&*file, len, &name)?,
        };
        if let (Some(older), true) = (Header::of(&tail.sector), len >= TAIL_LEN) {
            let narrow = self.narrowed_to_rest(slot, &known.intent, len)?;
            if let Some(narrow) = &narrow {
                write_intent(&*file, len, narrow, &name)?;
            }
            let intent = narrow.as_ref().unwrap_or(&known.intent);
            let names_durable = !self.pair.coordination.may_be_named_on_disk(slot);
            // What is written into it at rest, by whomever, and what is done to its name, changes
            // that.
            let current = self.current_file()?.metadata().during(Operation::Stat, &name)?;
            let changed = current.changed;
            let published = Published { names_durable, held, changed, ..self.published() };
            let counter = older.counter();
            self.vouch_over(&published, tail.list, State::Superseded, counter, intent, len)?;
        }
        Ok(())
    }

    /// The current copy's intent counts once it is the shadow again: it is whole now.
    fn narrow_current(&mut self) -> Result<()> {
        let slot = self.view.current.slot;
        let known = self.tail_in(slot)?;
        match self.narrowed_to_rest(slot, &known.intent, known.len)? {
            Some(narrow) => {
                write_intent(&*self.pair.file(slot)?, known.len, &narrow, &self.role(slot))
            }
            None => Ok(()),
        }
    }
}
