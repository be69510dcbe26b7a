//! The shadow's tail while it is written: long enough, and with an intent that covers what is
//! about to change (SHADOW-6).

use crate::connection::state::{Connection, KnownTail};
use crate::file::tail::{Tail, write_intent};
use crate::format::{BLOCK, IntentBlock, REGION_BYTES, TAIL_LEN, list_len};
use crate::mutation::{Mutation, broken};
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::io::extend;
use dash_engine::ranges::RangeSet;
use dash_storage::{File, FileId, Storage};
use std::sync::Arc;

/// Widenings (of both copies) whose square makes one more stride each.
const GUESS: u64 = 256;

impl<S: Storage> Connection<S> {
    /// An intent with no region.
    pub(crate) fn new_intent(&self, file: FileId, size: u64) -> IntentBlock {
        IntentBlock::new(self.pair.coordination.pair(), file, size, self.tuning.intent_region)
    }

    /// What an intent may shrink to right after a flush that left its file whole, so that mending
    /// after a crash looks at little; `None` if it is small. The places that most commits change
    /// stay, or each would begin with a flush.
    pub(crate) fn narrowed(&self, intent: &IntentBlock, len: u64) -> Option<IntentBlock> {
        let small = intent.bytes() <= self.tuning.intent_all;
        let edge = self.tuning.intent_stride;
        (!small).then(|| self.narrowed_to(intent, edge, &RangeSet::new(), len))
    }

    /// What the intent of the copy in `slot` may shrink to when the database is closed: to less, as
    /// the next session compares both copies there before its first commit. What the last commit
    /// changed stays: the next one has to carry it, and short-lived programs change the same places
    /// again and again. Not where this session has not seen the copy flushed: under synchronous=OFF
    /// it may differ from itself on the disk wherever the intent says.
    pub(crate) fn narrowed_to_rest(
        &mut self,
        slot: usize,
        intent: &IntentBlock,
        len: u64,
    ) -> Result<Option<IntentBlock>> {
        let durable =
            self.pair.coordination.is_flushed(slot) || broken(Mutation::NarrowedUnflushed);
        if intent.bytes() <= self.tuning.intent_rest || !durable {
            return Ok(None);
        }
        let (list, edge) = (self.current_page_list()?, self.tuning.intent_region);
        Ok(Some(self.narrowed_to(intent, edge, &list, len)))
    }

    /// Of an intent, both ends of the database and `places`. Never more than it had: the narrow one
    /// is not flushed, and what is written where only that is marked would be looked for nowhere.
    fn narrowed_to(
        &self,
        intent: &IntentBlock,
        edge: u64,
        places: &RangeSet,
        len: u64,
    ) -> IntentBlock {
        let mut narrow = IntentBlock { regions: Box::new([0; REGION_BYTES]), ..intent.clone() };
        narrow.mark(&(0..edge.min(len)));
        narrow.mark(&(self.view.snapshot.size.saturating_sub(edge)..len));
        for range in places.iter() {
            narrow.mark(&(range.start..range.end.min(len)));
        }
        if !broken(Mutation::NarrowedToMore) {
            narrow.keep_within(intent);
        }
        narrow
    }

    /// The shadow's tail: as this connection left it, or as the disk has it.
    pub(crate) fn shadow_tail(&mut self) -> Result<KnownTail> {
        self.tail_in(self.shadow_slot())
    }

    /// The tail of the copy in `slot`, likewise.
    pub(crate) fn tail_in(&mut self, slot: usize) -> Result<KnownTail> {
        let file = self.pair.file(slot)?;
        let epoch = self.pair.coordination.tail_epoch(slot);
        if let Some(known) = &self.target.known_tails[slot]
            && known.epoch == epoch
        {
            return Ok(known.clone());
        }
        let name = self.role(slot);
        let tail = Tail::read(&*file, &name)?;
        let intent = match tail.bound_intent(file.id()) {
            // SHADOW-6: another connection's intent is durable here, because the flush of its
            // commit, or of the repair that this session began with, covered it.
            Some(intent) => intent.clone(),
            None => self.new_intent(file.id(), self.view.snapshot.size),
        };
        Ok(self.know_tail(slot, epoch, tail.len, intent))
    }

    /// Remembers a tail as it is at an epoch, with its durable intent.
    pub(crate) fn know_tail(
        &mut self,
        slot: usize,
        epoch: u64,
        len: u64,
        intent: IntentBlock,
    ) -> KnownTail {
        let known = KnownTail { epoch, len, intent: Arc::new(intent) };
        self.target.known_tails[slot].insert(known).clone()
    }

    /// Remembers a changed tail; every other connection will read it again.
    pub(crate) fn remember_tail(&mut self, len: u64, intent: IntentBlock) {
        let slot = self.shadow_slot();
        let epoch = self.pair.coordination.next_tail_epoch(slot);
        self.know_tail(slot, epoch, len, intent);
    }

    /// Makes the shadow long enough for a database of `size` bytes and a list of `units`.
    pub(crate) fn make_room(&mut self, size: u64, units: usize) -> Result<()> {
        let slot = self.shadow_slot();
        let known = self.shadow_tail()?;
        let list = list_len(units);
        // Not onto pages of the larger state that a shrinking commit replaces: undoing it needs
        // them.
        let size = size.max(self.view.snapshot.size);
        if known.len >= TAIL_LEN && size.saturating_add(list + TAIL_LEN) <= known.len {
            return Ok(());
        }
        self.check_size()?;
        let (file, name) = (self.pair.file(slot)?, self.role(slot));
        let len = self.room_for_both(known.len, size, list)?;
        let mut intent = self.new_intent(file.id(), len);
        for range in known.intent.ranges().iter() {
            intent.mark(&(range.start..range.end.min(len)));
        }
        // What the file grows by is new to it: it belongs to the regions that may differ.
        intent.mark(&(known.len.saturating_sub(TAIL_LEN)..len));
        self.pair.coordination.set_filled(slot, 0);
        self.statistics.growths += 1;
        self.statistics.tail_bytes += BLOCK as u64;
        extend(&*file, known.len.max(size), len, &name)?;
        write_intent(&*file, len, &intent, &name)?;
        if !broken(Mutation::GrowthNotFlushed) {
            self.flush_file(slot)?;
        }
        if known.len >= TAIL_LEN {
            let wipe = usize::try_from(TAIL_LEN.min(len - known.len)).unwrap_or(BLOCK);
            let zeros = &[0; 2 * BLOCK][..wipe];
            file.write_at(zeros, known.len - TAIL_LEN).during(Operation::Write, &name)?;
        }
        self.remember_tail(len, intent);
        Ok(())
    }

    /// How far to widen an intent around each of `places`. A connection that keeps meeting new
    /// regions, as random updates of a large database do, is going to meet most of them: the more
    /// often it happened, the more is guessed, so that the flushes it costs end long before every
    /// region was met. A transaction of many places teaches as much as many transactions of one.
    fn stride_of(&self, places: usize) -> u64 {
        let widenings = self.statistics.intent_widenings.min(1 << 16);
        let strides = widenings.pow(2) / GUESS / (places.max(1) as u64);
        self.tuning.intent_stride * strides.max(1).next_power_of_two()
    }

    /// SHADOW-6: no place is dirtied before a durable intent covers it.
    pub(crate) fn cover(&mut self, ranges: &RangeSet) -> Result<()> {
        let known = self.shadow_tail()?;
        let end = ranges.iter().last().map_or(0, |range| range.end);
        self.pair.coordination.fill(self.shadow_slot(), end);
        let covered = ranges.iter().all(|range| known.intent.covers(&range));
        if covered || broken(Mutation::NoIntent) {
            return Ok(());
        }
        let slot = self.shadow_slot();
        let (file, name) = (self.pair.file(slot)?, self.role(slot));
        let mut intent = IntentBlock::clone(&known.intent);
        let mut coarser = self.new_intent(file.id(), known.len);
        if intent.region_shift < coarser.region_shift {
            for range in intent.ranges().iter() {
                coarser.mark(&(range.start..range.end.min(known.len)));
            }
            intent = coarser;
        }
        if known.len <= self.tuning.intent_all {
            intent.mark(&(0..known.len));
        }
        let stride = self.stride_of(ranges.iter().count());
        for range in ranges.iter() {
            let wide = range.start - range.start % stride
                ..range.end.next_multiple_of(stride).min(known.len);
            if !intent.mark(&wide) {
                return Err(Error::Refused(
                    "the database is too large for its intent block".into(),
                ));
            }
        }
        self.statistics.intent_widenings += 1;
        self.statistics.tail_bytes += BLOCK as u64;
        write_intent(&*file, known.len, &intent, &name)?;
        if !broken(Mutation::IntentNotFlushed) {
            self.flush_file(slot)?;
        }
        self.remember_tail(known.len, intent);
        Ok(())
    }
}
