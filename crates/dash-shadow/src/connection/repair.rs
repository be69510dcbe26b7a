//! Bringing the shadow back to the current copy after a crash, or after somebody else's write
//! ([`repair`](Connection::repair)).

use crate::connection::state::Connection;
use crate::file::tail::Tail;
use crate::file::void_commit::void_commit;
use crate::format::header::plain;
use crate::format::{BLOCK, Place, State};
use crate::mutation::{Mutation, broken};
use crate::recovery::published::proof;
use crate::shared::life::open_elsewhere;
use crate::shared::state::ShadowCondition;
use dash_engine::buffer_pool::{buffer_for, part_of};
use dash_engine::error::{Context, Operation, Result};
use dash_engine::holes::data_in_either;
use dash_engine::io::read_padded;
use dash_engine::ranges::RangeSet;
use dash_storage::{Directory, File, Storage};

impl<S: Storage> Connection<S> {
    /// Compares the shadow with the current copy where its intent says they may differ, and mends
    /// it. Takes no flush when nothing differs and the intent is known to be durable.
    pub(crate) fn repair(&mut self) -> Result<()> {
        self.check_size()?;
        let slot = self.shadow_slot();
        let (shadow, name) = (self.pair.file(slot)?, self.role(slot));
        let tail = match self.take_shadow_at_open() {
            Some(tail) => tail,
            None => Tail::read(&*shadow, &name)?,
        };
        let mut ranges = match tail.bound_intent(shadow.id()) {
            Some(_) if broken(Mutation::RepairIgnoresIntent) => RangeSet::new(),
            Some(intent) => intent.ranges(),
            None => std::iter::once(0..self.view.snapshot.size).collect(),
        };
        ranges.union(&self.current_page_list()?);
        let ranges = ranges.below(self.view.snapshot.size);
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
                && block.vouched.is_some_and(|vouched| vouched.id == self.view.snapshot.id)
                && tail.intent.as_ref().is_ok_and(|intent| {
                    broken(Mutation::StaleIntentTrusted) || proof(intent) == block.list_checksum
                })
        });
        let epoch = self.pair.coordination.next_tail_epoch(slot);
        let page_list = self.current_page_list()?;
        let beyond_the_list = different.without(&page_list);
        if !(vouched && beyond_the_list.is_empty()) {
            self.statistics.repairs += 1;
            self.restore_guarded(&tail, &different)?;
        } else if let Some(intent) = tail.bound_intent(shadow.id()) {
            // Durable, by its proof.
            self.know_tail(slot, epoch, tail.len, intent.clone());
        }
        self.pair.coordination.set_condition(ShadowCondition::Known);
        Ok(())
    }

    /// Whether a shadow that would be made anew has to stay the file that it is: others have it
    /// open, and once it has no name nobody could tell (SHADOW-16).
    pub(crate) fn must_keep_shadow(&self) -> Result<bool> {
        let [Some(shadow), Some(current)] = [self.shadow_slot(), self.view.current.slot]
            .map(|slot| self.pair.files[slot].as_deref())
        else {
            return Ok(false);
        };
        let held = open_elsewhere(Some(shadow)) && !broken(Mutation::HeldShadowReplaced);
        if self.view.snapshot.size == 0 || !held {
            return Ok(false);
        }
        let name = self.pair.names.shown();
        let named =
            self.pair.directory.metadata(&self.pair.names.shadow).during(Operation::Stat, name)?;
        let here = named.is_some_and(|named| named.id == shadow.id() && named.links == 1);
        Ok(here && current.has_access_of(shadow).during(Operation::Stat, name)?)
    }

    /// Makes the shadow the current copy's equal, whatever it holds.
    pub(crate) fn rebuild_in_place(&mut self) -> Result<()> {
        self.check_size()?;
        self.statistics.rebuilds += 1;
        let slot = self.shadow_slot();
        let (file, name) = (self.pair.file(slot)?, self.role(slot));
        self.pair.coordination.next_tail_epoch(slot);
        let mut tail = Tail::read(&*file, &name)?;
        let current = self.current_file()?;
        let block = Tail::read(&*current, self.pair.names.shown())?;
        if block.bound(current.id()).is_none_or(|block| block.id != self.view.snapshot.id) {
            // The current copy is about to get a block. Torn, it could make the shadow look like
            // the winner: so that one is no commit any more, durably.
            self.guard_names(slot)?;
            void_commit(&*file, tail.len, &name)?;
            self.flush_file(slot)?;
            self.give_block()?;
            tail = Tail::read(&*file, &name)?;
        }
        self.restore_guarded(&tail, &std::iter::once(0..self.view.snapshot.size).collect())?;
        self.pair.coordination.set_condition(ShadowCondition::Known);
        Ok(())
    }

    /// Where the two copies differ in `ranges`, in strides.
    fn differences(&self, ranges: &RangeSet) -> Result<RangeSet> {
        let slot = self.shadow_slot();
        let (shadow, current, name) =
            (self.pair.file(slot)?, self.current_file()?, self.role(slot));
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
