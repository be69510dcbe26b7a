//! Writing over regions of the shadow what the current copy has there.

use crate::connection::fence::HEAD;
use crate::connection::state::Connection;
use crate::file::tail::{Tail, write_intent};
use crate::format::header::{mark_demoted, plain};
use crate::format::{BLOCK, CommitBlock, State, TAIL_LEN, first_page};
use crate::mutation::{Mutation, broken};
use dash_engine::copy::copy;
use dash_engine::error::{Context, Operation, Result};
use dash_engine::io::{extend, read_header, read_padded};
use dash_engine::memory::zeros;
use dash_engine::ranges::RangeSet;
use dash_storage::{File, Storage};

impl<S: Storage> Connection<S> {
    /// Copies `ranges` from the current copy; intent first, page 1 last, the block that vouches
    /// with it, one flush (SHADOW-8).
    pub(crate) fn restore(&mut self, ranges: &RangeSet) -> Result<()> {
        self.check_size()?;
        let slot = self.shadow_slot();
        let (shadow, current, name) =
            (self.pair.file(slot)?, self.current_file()?, self.role(slot));
        let first = self.first_page_len()?;
        let mut overwritten = ranges.clone();
        overwritten.insert(0..first);
        self.put_aside(&overwritten)?;
        self.fence_header(slot)?;
        let ranges = ranges.below(self.view.snapshot.size);
        let tail = Tail::read(&*shadow, &name)?;
        let len = self.lengthen_to_restore(&tail)?;
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
        let mark = self.published().mark(shadow.id(), State::Settled, self.view.snapshot.counter);
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

    /// Sees to it that the shadow, with this tail, is long enough for the current copy. How long it
    /// is then.
    fn lengthen_to_restore(&self, tail: &Tail) -> Result<u64> {
        let (slot, size) = (self.shadow_slot(), self.view.snapshot.size);
        let (shadow, name) = (self.pair.file(slot)?, self.role(slot));
        self.pair.coordination.fill(slot, size);
        if tail.len < TAIL_LEN || tail.len < size + TAIL_LEN {
            let len = self.affordable_len(&shadow, tail.len, size, 1);
            self.pair.coordination.set_filled(slot, 0);
            extend(&*shadow, tail.len, len, &name)?;
            return Ok(len);
        }
        let block = tail.bound(shadow.id());
        let is_settled = block.is_some_and(|block| block.state == State::Settled);
        if is_settled && !broken(Mutation::CutNotRepeated) {
            // It may have been cut, and the flush of that have failed: then only another change of
            // the length makes it durable (F3, SHADOW-26).
            shadow.set_len(tail.len).during(Operation::Resize, &name)?;
        }
        Ok(tail.len)
    }

    /// Page 1 of the current copy, marked as in a shadow, with this block in place of the current
    /// copy's.
    pub(crate) fn copy_first_page(&self, block: Option<&CommitBlock>) -> Result<()> {
        let slot = self.shadow_slot();
        let (shadow, current, name) =
            (self.pair.file(slot)?, self.current_file()?, self.role(slot));
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
        let header = read_header(&*self.current_file()?, self.pair.names.shown())?;
        let page = header.and_then(|header| header.page_size()).unwrap_or(512);
        Ok(u64::from(page).min(self.view.snapshot.size))
    }

    pub(crate) fn restore_guarded(&mut self, tail: &Tail, ranges: &RangeSet) -> Result<()> {
        self.guard_names(self.shadow_slot())?;
        self.pair.coordination.set_in_flight(self.view.current.sequence + 1);
        self.bury(tail)?;
        self.restore(ranges)?;
        self.pair.coordination.set_in_flight(0);
        Ok(())
    }
}
