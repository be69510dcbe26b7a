//! Giving disk space back: what a database that has become smaller leaves behind its end, of both
//! copies, at the last close (SHADOW-25).
//!
//! A file is cut only while nobody else has it open, dash or stock: neither a reader of an older
//! and larger state nor a mapping may lose pages (T21). The shadow is made the current copy's equal
//! first, so that neither needs anything behind the smaller end. Of each file the tail is then
//! written anew where it is going to end, between the pages and the old tail, and flushed before
//! the file is cut: whichever length a power loss leaves, a whole tail is at the end of it.

use crate::connection::state::Connection;
use crate::file::page_list::read_units;
use crate::file::tail::{Tail, roomy_len, write_commit, write_intent};
use crate::format::{IntentBlock, Place, State, TAIL_LEN, list_len};
use crate::mutation::{Mutation, broken};
use crate::shared::locks::LockLevel;
use crate::shared::state::ShadowCondition;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_storage::{File, Storage};

impl<S: Storage> Connection<S> {
    /// For who closes last, when the names are durable.
    pub(crate) fn give_space_back(&mut self) -> Result<()> {
        let c = &self.pair.coordination;
        let clean = self.debts.poisoned.is_none()
            && self.view.level == LockLevel::None
            && self.view.snapshot.size > 0
            && c.condition() == ShadowCondition::Known
            && c.in_flight() == 0
            && c.commits() > 0;
        if !clean || !self.is_worth_cutting()? {
            return Ok(());
        }
        if self.pair.coordination.may_be_named_on_disk(self.shadow_slot()) {
            self.flush_directory()?;
            self.pair.coordination.set_name_on_disk(self.view.current.slot);
        }
        let cut = self.lock(LockLevel::Exclusive).and_then(|()| self.cut_both());
        let unlocked = self.unlock(LockLevel::None);
        match cut {
            // Somebody reads the shadow: another time.
            Err(Error::Busy | Error::BusySnapshot | Error::Held(_)) => unlocked,
            cut => cut.and(unlocked),
        }
    }

    /// Whether more than a quarter of a file lies behind what the database needs, and nobody else
    /// has either file open.
    fn is_worth_cutting(&self) -> Result<bool> {
        let mut worth = false;
        for slot in [0, 1] {
            let Some(file) = &self.pair.files[slot] else {
                return Ok(false);
            };
            let len = file.metadata().during(Operation::Stat, self.role(slot))?.len;
            worth |= self.is_long(len, 0);
        }
        Ok(worth && !self.is_held_elsewhere())
    }

    fn is_held_elsewhere(&self) -> bool {
        let files = self.pair.files.iter().flatten();
        !broken(Mutation::CutWhileOpen)
            && files.into_iter().any(|file| file.open_elsewhere().unwrap_or(true))
    }

    /// Whether a file of this length is to be cut to [`roomy_len`], and the old tail lies apart
    /// from the new one.
    fn is_long(&self, len: u64, list: u64) -> bool {
        let roomy = roomy_len(self.view.snapshot.size, list, &self.tuning);
        len.saturating_sub(roomy) > len / 4 && roomy + TAIL_LEN + list <= len
    }

    fn cut_both(&mut self) -> Result<()> {
        self.bring_shadow_up()?;
        // Whoever has come since keeps the files as they are.
        if self.is_held_elsewhere() {
            return Ok(());
        }
        self.cut_current()?;
        self.cut_shadow()
    }

    /// An intent for a file of `len` bytes, with the regions of an older one of a longer file.
    fn clipped(&self, slot: usize, old: &IntentBlock, len: u64) -> Result<Option<IntentBlock>> {
        let mut intent = self.new_intent(self.pair.file(slot)?.id(), len);
        let marked = old.ranges().below(len).iter().all(|range| intent.mark(&range));
        Ok(marked.then_some(intent))
    }

    /// The block that counts is written into the new tail, wherever it is now.
    fn cut_current(&mut self) -> Result<()> {
        let slot = self.view.current.slot;
        let (file, name) = (self.current_file()?, self.role(slot));
        let tail = Tail::read(&*file, &name)?;
        let block = tail.bound(file.id()).filter(|block| block.id == self.view.snapshot.id);
        let (Some(block), Some(intent)) = (block, tail.bound_intent(file.id())) else {
            return Ok(());
        };
        let Some(units) = read_units(&*file, tail.len, block, &name)? else {
            return Ok(());
        };
        let list = list_len(units.len());
        let len = roomy_len(self.view.snapshot.size, list, &self.tuning);
        let Some(intent) =
            self.clipped(slot, intent, len)?.filter(|_| self.is_long(tail.len, list))
        else {
            return Ok(());
        };
        let mut block = block.clone();
        block.place = Place::Tail;
        self.statistics.tail_bytes += write_commit(&*file, len, &mut block, units, &name)?;
        self.end_at(slot, len, &intent)
    }

    /// It is the current copy's equal, durably.
    fn cut_shadow(&mut self) -> Result<()> {
        let slot = self.shadow_slot();
        let known = self.shadow_tail()?;
        let len = roomy_len(self.view.snapshot.size, 0, &self.tuning);
        let Some(intent) =
            self.clipped(slot, &known.intent, len)?.filter(|_| self.is_long(known.len, 0))
        else {
            return Ok(());
        };
        let counter = self.view.snapshot.counter;
        let published = self.published();
        self.vouch_over(&published, None, State::Superseded, counter, &intent, len)?;
        self.end_at(slot, len, &intent)
    }

    /// The commit block is there: completes the tail, and cuts the file behind it.
    fn end_at(&mut self, slot: usize, len: u64, intent: &IntentBlock) -> Result<()> {
        let (file, name) = (self.pair.file(slot)?, self.role(slot));
        write_intent(&*file, len, intent, &name)?;
        if !broken(Mutation::CutBeforeFlush) {
            self.flush_file(slot)?;
        }
        file.set_len(len).during(Operation::Resize, &name)?;
        self.statistics.cuts += 1;
        self.pair.coordination.next_tail_epoch(slot);
        Ok(())
    }
}
