//! Making a new shadow from the current copy, where there is none or it can't be trusted.

use crate::connection::room::with_advice;
use crate::connection::state::Connection;
use crate::file::tail::{Tail, write_commit, write_intent};
use crate::format::header::Header;
use crate::format::{BLOCK, CommitBlock, Place, State, TAIL_LEN};
use crate::mutation::{Mutation, broken};
use crate::names::access::OWNERS_ALONE;
use crate::names::empty::{is_there, put_empty};
use crate::refusal::locks_out;
use crate::shared::life::hold_life;
use crate::shared::state::ShadowCondition;
use dash_engine::copy::copy_into_new;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::io::{STRIDE, extend, read_header, write_zeros};
use dash_engine::ranges::RangeSet;
use dash_storage::{Directory, File, OpenMode, Storage};
use std::sync::Arc;

impl<S: Storage> Connection<S> {
    /// Makes a new shadow. The current copy gets a block first if it has none, so that the first
    /// commit has a parent; both are durable, and so is the new name, before they are used.
    pub(crate) fn rebuild(&mut self) -> Result<()> {
        self.statistics.rebuilds += 1;
        let slot = self.shadow_slot();
        let name = self.pair.names.shown_shadow().clone();
        // What readers of the old file need can't be told from the new one.
        if self.pair.coordination.pins_of_others(slot)?.any {
            return Err(Error::Busy);
        }
        // Whoever comes after a kill in the middle finds that there is no second copy.
        self.pair.coordination.set_inode(slot, None);
        self.pair.coordination.set_condition(ShadowCondition::Rebuild);
        let current = self.current_file()?.metadata().during(Operation::Stat, &name)?;
        // It begins with this process's group, and whoever opens it keeps it: at first it is its
        // owner's alone.
        let permissions = current.permissions & OWNERS_ALONE;
        let beside_fence = self.view.snapshot.size > 0
            && (self.pair.coordination.fence() || self.pair.coordination.fence_found());
        let replaced = match beside_fence && !broken(Mutation::ShadowRemovedBesideFence) {
            true => {
                self.statistics.directory_flushes += 2;
                Some(put_empty::<S>(&self.pair.directory, &self.pair.names, permissions)?)
            }
            false => {
                self.remove_old_shadow()?;
                None
            }
        };
        if self.view.snapshot.size > 0 {
            self.give_block()?;
        }
        let keep = replaced.as_ref().map(File::id);
        let made = self.make_shadow(slot, &name, permissions, replaced);
        if made.is_err() {
            // A half-made one only takes space.
            let (directory, shadow) = (&self.pair.directory, &self.pair.names.shadow);
            drop(match keep {
                Some(id) => directory.open(shadow, OpenMode::ReadWrite).and_then(|half_made| {
                    match half_made.id() == id {
                        true => half_made.set_len(0),
                        // Somebody has put another one there.
                        false => Ok(()),
                    }
                }),
                None => directory.unlink(shadow),
            });
        }
        made.map_err(|error| with_advice(error, self.view.snapshot.size))
    }

    fn make_shadow(
        &mut self,
        slot: usize,
        name: &str,
        permissions: u32,
        replaced: Option<S::File>,
    ) -> Result<()> {
        let current = self.current_file()?;
        if self.view.snapshot.size == 0 && !broken(Mutation::EmptyFileNotFlushed) {
            // Where the file system has no journal, its check removes a name whose file never
            // reached the disk. A shadow alone would be refused for ever.
            current.flush().during(Operation::Flush, self.pair.names.shown())?;
            self.found_flushed();
        }
        let create = || {
            self.pair.directory.open(&self.pair.names.shadow, OpenMode::CreateNew { permissions })
        };
        let shadow = match replaced {
            Some(shadow) => shadow,
            None => create().during(Operation::Open, name)?,
        };
        hold_life(&shadow, name)?;
        if !shadow.copy_access(&current).during(Operation::Open, name)? {
            return Err(locks_out(self.pair.names.shown()));
        }
        let size = self.view.snapshot.size;
        let len = self.affordable_len(&shadow, 0, size, 1);
        shadow.set_len(size).during(Operation::Resize, name)?;
        write_zeros(&shadow, size, len, name)?;
        // Until the flush any page may be missing.
        let mut intent = self.new_intent(shadow.id(), len);
        intent.mark(&(0..len));
        write_intent(&shadow, len, &intent, name)?;
        let shadow = Arc::new(shadow);
        let shared = size - size % STRIDE;
        if shared > 0 && shadow.clone_range(&current, 0..shared).is_ok() {
            copy_into_new(&*current, &*shadow, shared..size, name)?;
        } else {
            copy_into_new(&*current, &*shadow, 0..size, name)?;
        }
        self.pair.files[slot] = Some(shadow);
        self.target.excluded[slot] = false;
        self.target.pending[slot] = false;
        if size > 0 {
            self.copy_first_page(None)?;
            self.vouch(State::Settled, &intent, len)?;
        }
        // First the names: on Btrfs the flush of a new file makes its own name durable, and with it
        // no older one. A shadow without its `app.db` would be refused for ever.
        if !broken(Mutation::NewShadowNameNotFlushed) {
            self.flush_directory()?;
        }
        self.pair.coordination.set_name_on_disk(self.view.current.slot);
        if !broken(Mutation::NewShadowNotFlushed) {
            self.flush_file(slot)?;
        }
        if let Some(narrow) = self.narrowed(&intent, len) {
            write_intent(&*self.pair.file(slot)?, len, &narrow, name)?;
            intent = narrow;
        }
        if size > 0 {
            self.vouch(State::Superseded, &intent, len)?;
        }
        self.remember_tail(len, intent);
        let id = self.pair.files[slot].as_ref().map(|file| file.id());
        self.pair.coordination.set_inode(slot, id);
        self.pair.generation = self.pair.coordination.generation();
        self.pair.coordination.set_condition(ShadowCondition::Known);
        Ok(())
    }

    pub(crate) fn remove_old_shadow(&mut self) -> Result<()> {
        if !is_there(&*self.pair.directory, &self.pair.names)? {
            return Ok(());
        }
        let slot = self.shadow_slot();
        if self.pair.coordination.may_be_named_on_disk(slot) && !broken(Mutation::NamedFileRemoved)
        {
            // SHADOW-20: where the file system has no journal, the file may be gone from the disk
            // before the name `app.db` there is another one's.
            self.flush_directory()?;
            self.pair.coordination.set_name_on_disk(self.view.current.slot);
        }
        let name = self.pair.names.shown_shadow();
        self.pair.directory.unlink(&self.pair.names.shadow).during(Operation::Delete, name)
    }

    /// The block of a current copy that has none of ours yet.
    pub(crate) fn give_block(&mut self) -> Result<()> {
        let slot = self.view.current.slot;
        let (file, name) = (self.current_file()?, self.role(slot));
        let tail = Tail::read(&*file, &name)?;
        if tail.bound(file.id()).is_some_and(|block| block.id == self.view.snapshot.id) {
            // It may be one that was put back by hand, and not yet on the disk.
            return self.flush_current();
        }
        // The old shadow is gone for good before a torn block here could make it look like the
        // winner.
        self.flush_directory()?;
        let header = read_header(&*file, &name)?.filter(Header::is_sqlite);
        let Some(header) = header else {
            return Err(Error::NotADatabase(format!("{name} is not an SQLite database")));
        };
        let size = self.view.snapshot.size;
        let len = if tail.len >= size + TAIL_LEN && tail.len.is_multiple_of(BLOCK as u64) {
            tail.len
        } else {
            self.affordable_len(&file, tail.len, size.max(tail.len), 2)
        };
        extend(&*file, tail.len, len, &name)?;
        let intent = self.new_intent(file.id(), len);
        write_intent(&*file, len, &intent, &name)?;
        let mut block = CommitBlock {
            place: Place::Tail,
            pair: self.pair.coordination.pair(),
            inode: file.id().inode,
            slot: u8::from(slot == 1),
            state: State::Whole,
            protocol: self.protocol,
            sequence: self.view.current.sequence,
            id: self.view.snapshot.id,
            parent: u64::MAX,
            counter: self.view.snapshot.counter,
            page_size: header.page_size().unwrap_or(0),
            size,
            vouched: None,
            super_journal: Vec::new(),
            unit_count: 0,
            list_checksum: 0,
            units: Vec::new(),
        };
        write_commit(&*file, len, &mut block, Vec::new(), &name)?;
        self.pair.coordination.next_tail_epoch(slot);
        self.flush_file(slot)?;
        self.found_flushed();
        self.memo.page_list = Some((self.view.current.sequence, RangeSet::new()));
        Ok(())
    }
}
