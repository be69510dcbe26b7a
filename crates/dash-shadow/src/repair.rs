//! Bringing the shadow back to the current copy: after a rollback or a failed flush
//! ([`undo`](Connection::undo)), after a crash ([`repair`](Connection::repair)), or from nothing
//! ([`rebuild`](Connection::rebuild)). All three end with a flush before the shadow is used again
//! (SHADOW-8; F2, F3, F4, F5, F6) and leave a block that vouches for the current copy.

use crate::mutation::{Mutation, broken};
use dash_storage::{Directory, File, Storage};

use crate::connection::Connection;
use crate::coordination::ShadowCondition;
use crate::error::{Context, Operation, Result};
use crate::fence::HEAD;
use crate::format::{BLOCK, CommitBlock, Place, State, TAIL_LEN, first_page};
use crate::header::{mark_demoted, plain};
use crate::holes::data_in_either;
use crate::memory::zeros;
use crate::ranges::RangeSet;
use crate::return_name::open_elsewhere;
use crate::spare::{buffer_for, part_of};
use crate::tail::read_header;
use crate::tail::{Tail, copy, extend, read_padded, roomy_len, write_intent};
use crate::vouch::proof;
use crate::which_block::void_commit;

impl<S: Storage> Connection<S> {
    /// Makes the shadow the current copy's equal after a transaction dirtied `dirtied` in it. Where
    /// that fails (a full disk, a failing device) the shadow is given up: its block is voided and
    /// the next writer makes a new one. If not even that can be written (a full copy-on-write file
    /// system), what failed is remembered, and the next writer voids it; if it can't be remembered
    /// either, the connection is poisoned.
    /// `id`: of the commit, if it was prepared.
    pub(crate) fn undo(&mut self, dirtied: &RangeSet, id: u64) -> Result<()> {
        self.statistics.undone += 1;
        self.reserve.give_up();
        let undone = self.copy_back(dirtied);
        if let Err(error) = &undone {
            let remembered = self.remember_failed(id);
            match self.give_up() {
                // Should this flush fail too, the mark of being in flight stays, and the next
                // writer buries the transaction. A power loss before may bring it back: one that
                // was reported as failed, or rolled back on a failing device.
                Ok(()) => {
                    if self.flush_file(self.shadow_slot()).is_ok() {
                        self.coordination.set_in_flight(0);
                    }
                }
                Err(_) if remembered => {}
                Err(_) => self.poisoned = Some(error.to_string()),
            }
        }
        undone
    }

    pub(crate) fn copy_back(&mut self, dirtied: &RangeSet) -> Result<()> {
        let slot = self.shadow_slot();
        self.coordination.next_tail_epoch(slot); // what failed may have moved it
        if self.snapshot.size == 0 {
            // Nothing to copy from: the database is still empty.
            self.give_up()?;
            self.flush_file(slot)?;
            self.coordination.set_in_flight(0);
            return Ok(());
        }
        let mut ranges = dirtied.clone();
        if !broken(Mutation::UndoneInPart) {
            ranges.union(&self.current_page_list()?);
        }
        self.restore(&ranges)?;
        self.coordination.set_settled();
        self.coordination.set_in_flight(0);
        Ok(())
    }

    /// Gives the shadow up: takes its block away, to be flushed, and has it made anew.
    fn give_up(&mut self) -> Result<()> {
        self.coordination.set_condition(ShadowCondition::Rebuild);
        let slot = self.shadow_slot();
        let (file, name) = (self.file(slot)?, self.role(slot));
        let len = file.metadata().during(Operation::Stat, &name)?.len;
        // The intent stays: should the names on disk be behind, it tells that the file is ours.
        void_commit(&*file, len, &name)
    }

    /// Copies `ranges` from the current copy; intent first, page 1 last, the block that vouches
    /// with it, one flush (SHADOW-8).
    pub(crate) fn restore(&mut self, ranges: &RangeSet) -> Result<()> {
        self.check_size()?;
        let slot = self.shadow_slot();
        let (shadow, current, name) = (self.file(slot)?, self.current_file()?, self.role(slot));
        let first = self.first_page_len()?;
        let mut overwritten = ranges.clone();
        overwritten.insert(0..first);
        self.put_aside(&overwritten)?;
        self.fence_header(slot)?;
        let ranges = ranges.below(self.snapshot.size);
        let tail = Tail::read(&*shadow, &name)?;
        let mut len = tail.len;
        if len < TAIL_LEN || len < self.snapshot.size + TAIL_LEN {
            len = roomy_len(self.snapshot.size, 0, &self.tuning);
            extend(&*shadow, tail.len, len, &name)?;
        }
        let mut intent = self.new_intent(shadow.id(), len);
        intent.mark(&(0..first));
        match tail.bound_intent(shadow.id()) {
            Some(old) => {
                for range in old.ranges().iter().chain(ranges.iter()) {
                    intent.mark(&(range.start..range.end.min(len).max(range.start + 1)));
                }
            }
            None => {
                intent.mark(&(0..len));
            }
        }
        if !broken(Mutation::IntentNotRewritten) {
            write_intent(&*shadow, len, &intent, &name)?;
        }
        let mut block = [0; BLOCK];
        let place = len - BLOCK as u64;
        read_padded(&*shadow, &mut block, place).during(Operation::Read, &name)?;
        // One in page 1 says nothing of the tail.
        let absent = CommitBlock::decode(&block).is_err();
        let moved = absent && !broken(Mutation::MoveNotFlushed);
        if len > tail.len || moved {
            // As whenever a tail moves (F13): the new one is durable before the old place is used.
            // Where it has no block yet, the flush that moved it may have been the one that failed.
            self.flush_file(slot)?;
        }
        for range in ranges.iter().filter(|range| range.end > first) {
            copy(&*current, &*shadow, range.start.max(first)..range.end, &name)?;
        }
        let state = if broken(Mutation::SupersededBeforeFlush) {
            State::Superseded
        } else {
            State::Settled
        };
        self.vouch(state, &intent, len)?;
        let mark = self.published().mark(shadow.id(), State::Settled, self.snapshot.counter);
        self.copy_first_page(Some(&mark).filter(|_| state == State::Settled))?;
        if !broken(Mutation::RestoreNotFlushed) {
            self.flush_file(slot)?;
        }
        if let Some(narrow) = self.narrowed(&intent, len) {
            write_intent(&*shadow, len, &narrow, &name)?;
            intent = narrow;
        }
        self.vouch(State::Superseded, &intent, len)?;
        self.remember_tail(len, intent);
        Ok(())
    }

    /// Page 1 of the current copy, marked as in a shadow, with this block in place of the current
    /// copy's.
    pub(crate) fn copy_first_page(&self, block: Option<&CommitBlock>) -> Result<()> {
        let slot = self.shadow_slot();
        let (shadow, current, name) = (self.file(slot)?, self.current_file()?, self.role(slot));
        let mut page = zeros(self.first_page_len()?)?;
        read_padded(&*current, &mut page, 0).during(Operation::Read, &name)?;
        plain(&mut page);
        if let Some(block) = block
            && first_page::room(&page).is_some()
        {
            first_page::insert(block, &mut page);
        }
        mark_demoted(&mut page);
        if let Some(rest) = page.get(HEAD..).filter(|rest| !rest.is_empty()) {
            shadow.write_at(rest, HEAD as u64).during(Operation::Write, &name)?;
            page.truncate(HEAD);
        }
        shadow.write_at(&page, 0).during(Operation::Write, &name)
    }

    /// Bytes of page 1 of the current copy.
    pub(crate) fn first_page_len(&self) -> Result<u64> {
        let header = read_header(&*self.current_file()?, self.names.shown())?;
        let page = header.and_then(|header| header.page_size()).unwrap_or(512);
        Ok(u64::from(page).min(self.snapshot.size))
    }

    /// Compares the shadow with the current copy where its intent says they may differ, and mends
    /// it. Takes no flush when nothing differs and the intent is known to be durable.
    pub(crate) fn repair(&mut self) -> Result<()> {
        self.check_size()?;
        let slot = self.shadow_slot();
        let (shadow, name) = (self.file(slot)?, self.role(slot));
        let tail = match self.take_found_shadow() {
            Some(tail) => tail,
            None => Tail::read(&*shadow, &name)?,
        };
        let mut ranges = match tail.bound_intent(shadow.id()) {
            Some(_) if broken(Mutation::RepairIgnoresIntent) => RangeSet::new(),
            Some(intent) => intent.ranges(),
            None => std::iter::once(0..self.snapshot.size).collect(),
        };
        ranges.union(&self.current_page_list()?);
        let ranges = ranges.below(self.snapshot.size);
        let block = tail.bound(shadow.id());
        // A restore that was not flushed, or whose flush failed: equal in the cache says nothing of
        // the disk (F3), so all of it is written again. Nor where a commit was buried: its undo may
        // have put pages back before it was cut off, and the first flush that buried it have
        // failed.
        let buried = tail.intent.as_ref().map_or(0, |intent| !proof(intent));
        let unproven = block.is_none_or(|block| match block.state {
            State::Settled => !broken(Mutation::SettledBelieved),
            State::Superseded => {
                let mark = block.place == Place::FirstPage || block.list_checksum == buried;
                mark && !broken(Mutation::BuriedBelieved)
            }
            State::Whole | State::Prepared => false,
        });
        let different = if unproven { ranges } else { self.differences(&ranges)? };
        let vouched = block.is_some_and(|block| {
            block.state == State::Superseded
                && block.vouched.is_some_and(|vouched| vouched.id == self.snapshot.id)
                && tail.intent.as_ref().is_ok_and(|intent| {
                    broken(Mutation::StaleIntentTrusted) || proof(intent) == block.list_checksum
                })
        });
        let epoch = self.coordination.next_tail_epoch(slot);
        let page_list = self.current_page_list()?;
        let beyond_the_list = different.without(&page_list);
        if !(vouched && beyond_the_list.is_empty()) {
            self.statistics.repairs += 1;
            self.restore_guarded(&tail, &different)?;
        } else if let Some(intent) = tail.bound_intent(shadow.id()) {
            // Durable, by its proof.
            self.know_tail(slot, epoch, tail.len, intent.clone());
        }
        self.coordination.set_condition(ShadowCondition::Known);
        Ok(())
    }

    fn restore_guarded(&mut self, tail: &Tail, ranges: &RangeSet) -> Result<()> {
        self.guard(self.shadow_slot())?;
        self.coordination.set_in_flight(self.current.sequence + 1);
        self.bury(tail)?;
        self.restore(ranges)?;
        self.coordination.set_in_flight(0);
        Ok(())
    }

    /// Whether a shadow that would be made anew has to stay the file that it is: others have it
    /// open, and once it has no name nobody could tell (SHADOW-16).
    pub(crate) fn must_keep_shadow(&self) -> Result<bool> {
        let [Some(shadow), Some(current)] =
            [self.shadow_slot(), self.current.slot].map(|slot| self.files[slot].as_deref())
        else {
            return Ok(false);
        };
        let held = open_elsewhere(Some(shadow)) && !broken(Mutation::HeldShadowReplaced);
        if self.snapshot.size == 0 || !held {
            return Ok(false);
        }
        let name = self.names.shown();
        let access = shadow.metadata().during(Operation::Stat, name)?;
        let wanted = current.metadata().during(Operation::Stat, name)?;
        let named = self.directory.metadata(&self.names.shadow).during(Operation::Stat, name)?;
        let here = named.is_some_and(|named| named.id == shadow.id() && named.links == 1);
        Ok(here && wanted.has_access_of(&access))
    }

    /// Makes the shadow the current copy's equal, whatever it holds.
    pub(crate) fn rebuild_in_place(&mut self) -> Result<()> {
        self.check_size()?;
        self.statistics.rebuilds += 1;
        let slot = self.shadow_slot();
        let (file, name) = (self.file(slot)?, self.role(slot));
        self.coordination.next_tail_epoch(slot);
        let mut tail = Tail::read(&*file, &name)?;
        let current = self.current_file()?;
        let block = Tail::read(&*current, self.names.shown())?;
        if block.bound(current.id()).is_none_or(|block| block.id != self.snapshot.id) {
            // The current copy is about to get a block. Torn, it could make the shadow look like
            // the winner: so that one is no commit any more, durably.
            self.guard(slot)?;
            void_commit(&*file, tail.len, &name)?;
            self.flush_file(slot)?;
            self.give_block()?;
            tail = Tail::read(&*file, &name)?;
        }
        self.restore_guarded(&tail, &std::iter::once(0..self.snapshot.size).collect())?;
        self.coordination.set_condition(ShadowCondition::Known);
        Ok(())
    }

    /// Where the two copies differ in `ranges`, in strides.
    fn differences(&self, ranges: &RangeSet) -> Result<RangeSet> {
        let slot = self.shadow_slot();
        let (shadow, current, name) = (self.file(slot)?, self.current_file()?, self.role(slot));
        let mut different = RangeSet::new();
        let ranges = &ranges.within(&data_in_either([&*shadow, &*current], ranges, &name)?);
        let longest = ranges.iter().map(|range| range.end - range.start).max().unwrap_or(0);
        let mut buffers = [buffer_for(longest)?, buffer_for(longest)?];
        for range in ranges.iter() {
            let mut at = range.start;
            while at < range.end {
                let part = part_of(range.end - at);
                let [a, b] = &mut buffers;
                read_padded(&*shadow, &mut a[..part], at).during(Operation::Read, &name)?;
                read_padded(&*current, &mut b[..part], at).during(Operation::Read, &name)?;
                if at == 0 {
                    plain(&mut a[..part]);
                    plain(&mut b[..part]);
                }
                for (i, (x, y)) in a[..part].chunks(BLOCK).zip(b[..part].chunks(BLOCK)).enumerate()
                {
                    if x != y {
                        let start = at + (i * BLOCK) as u64;
                        different.insert(start..start + x.len() as u64);
                    }
                }
                at += part as u64;
            }
        }
        Ok(different)
    }
}
