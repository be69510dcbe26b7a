//! Settling: after a large transaction its pages are copied into the shadow in the background, so
//! that the next small commit need not carry them (F7).
//!
//! It is housekeeping ([`crate::shared::housekeeping`]) and may take as long as it likes, so no
//! copying is done under WRITER, no flush but that of a name fence, which a writer who waits for it
//! would have to put up, too, and no flush while anybody is kept off the shadow:
//!
//! | step | holds | leaves behind |
//! |---|---|---|
//! | `take_shadow` | WRITER, then the shadow | what there is to do |
//! | `lengthen`, if it is too short | the shadow | *growing*: a tail that is not durable yet |
//! | a flush | nothing | |
//! | `copy_over`, a piece at a time | the shadow | *copying*; at last D's equal, *settled* |
//! | a flush | nothing | |
//! | `declare_settled` | WRITER | *superseded*: nothing need be carried |
//!
//! What is copied are pages of D's own page list only. The next commit carries all of them until
//! the shadow is declared settled, so who comes in between, or finds what a dead settler left,
//! overwrites every byte of it and lists it (SHADOW-8), and a crash finds them in D's list,
//! whatever the intent says. So the intent of the shadow is left as it is. A writer that wants the
//! shadow gets it between two pieces (`take_over_half_settled`), and settling ends there: that
//! commit carries the pages.

use crate::connection::state::Connection;
use crate::file::tail::{roomy_len, write_intent};
use crate::format::{State, TAIL_LEN};
use crate::mutation::{Mutation, broken};
use crate::shared::coordination::Coordination;
use crate::shared::half_settled::HalfSettled;
use crate::shared::locks::{self, LockLevel};
use crate::shared::state::ShadowCondition;
use dash_engine::copy::copy;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::io::write_zeros;
use dash_engine::ranges::RangeSet;
use dash_storage::{File, LockKind, Storage};

/// Bytes copied between two looks whether somebody wants the shadow.
const PIECE: u64 = 256 << 10;

/// What is told of settling while it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The shadow was made longer, and is about to be flushed. Nothing is held.
    Grown,
    /// A piece is about to be copied. The shadow is held.
    Copying,
    /// All is copied, and about to be flushed. Nothing is held.
    Copied,
    /// It is flushed, and about to be declared settled. Nothing is held.
    Flushed,
}

/// What there is to do.
enum Task {
    Nothing,
    /// To look again: the name fence has to be made first.
    Fence,
    /// The shadow is too short.
    Lengthen,
    /// These pages are to be copied.
    Copy(RangeSet),
}

impl<S: Storage> Connection<S> {
    /// Settles, on a connection that does nothing else meanwhile; whether it came to that. It does
    /// not where less than `worth` bytes would have to be carried, and not where somebody wants the
    /// shadow. `Busy` if somebody writes, or reads the shadow.
    pub fn settle(&mut self, worth: u64) -> Result<bool> {
        self.settle_telling(worth, &mut |_| {})
    }

    /// The same; `tell` hears what is about to come.
    pub fn settle_telling(&mut self, worth: u64, tell: &mut dyn FnMut(Moment)) -> Result<bool> {
        self.publish_at_last()?;
        if self.view.level != LockLevel::None {
            return Err(Error::Refused(
                "settling is for a connection that does nothing else".into(),
            ));
        }
        let (mut fenced, mut grown) = (false, None);
        let list = loop {
            match self.take_shadow(worth, grown)? {
                Task::Nothing => return Ok(false),
                Task::Copy(list) => break list,
                Task::Fence if std::mem::replace(&mut fenced, true) => return Ok(false),
                Task::Fence if !broken(Mutation::FencedBesideWriter) => {}
                Task::Fence => self.guard_names(self.shadow_slot())?,
                Task::Lengthen => {
                    let lengthened = self.lengthen();
                    self.give_shadow_back()?;
                    if !lengthened? {
                        return Ok(false);
                    }
                    tell(Moment::Grown);
                    self.flush_file(self.shadow_slot())?;
                    grown = Some((self.view.current, self.pair.generation));
                }
            }
        };
        let copied = self.copy_over(&list, tell);
        self.give_shadow_back()?;
        if !copied? {
            return Ok(false);
        }
        tell(Moment::Copied);
        if !broken(Mutation::SettledNotFlushed) {
            self.flush_file(self.shadow_slot())?;
        }
        tell(Moment::Flushed);
        self.declare_settled()
    }

    /// Under WRITER for a moment: looks what there is to do, and takes the shadow for it. `grown`:
    /// what it was made long enough for, durably.
    fn take_shadow(
        &mut self,
        worth: u64,
        grown: Option<(crate::shared::state::Current, u64)>,
    ) -> Result<Task> {
        if !self.pair.coordination.keep_writer()? {
            return Err(Error::Busy);
        }
        let (task, slot) = (self.look_what_to_do(worth, grown), self.shadow_slot());
        let taken = match &task {
            // A writer may be about to do it as well: two at once take each other's folder.
            Ok(Task::Fence) if !broken(Mutation::FencedBesideWriter) => self.guard_names(slot),
            Ok(Task::Lengthen) => self.hold_shadow(HalfSettled::Growing),
            Ok(Task::Copy(_)) => self.hold_shadow(HalfSettled::Copying),
            _ => Ok(()),
        };
        self.pair.coordination.give_writer_back()?;
        taken.and(task)
    }

    fn look_what_to_do(
        &mut self,
        worth: u64,
        grown: Option<(crate::shared::state::Current, u64)>,
    ) -> Result<Task> {
        self.reload_if_pair_changed()?;
        self.view.current = self.pair.coordination.current();
        self.view.snapshot = self.pair.coordination.snapshot(self.view.current.slot);
        let known = |c: &Coordination<S::File>| {
            c.in_flight() == 0 && c.condition() == ShadowCondition::Known && c.commits() > 0
        };
        let slot = self.shadow_slot();
        if !known(&self.pair.coordination)
            || self.pair.coordination.is_settled()
            || self.view.snapshot.size == 0
            || self.pair.files[slot].is_none()
        {
            return Ok(Task::Nothing);
        }
        let list = self.current_page_list()?;
        if list.bytes() < worth {
            return Ok(Task::Nothing);
        }
        self.check_names()?;
        if !known(&self.pair.coordination) {
            return Ok(Task::Nothing);
        }
        // Putting aside for readers what is overwritten here would fill the version store.
        if self.pair.coordination.pins_of_others(slot)?.any {
            return Err(Error::Busy);
        }
        if !self.is_guarded(slot)? {
            return Ok(Task::Fence);
        }
        let durable = self.pair.coordination.half_settled() != Some(HalfSettled::Growing)
            || grown == Some((self.view.current, self.pair.generation));
        let long = self.shadow_tail()?.len >= self.view.snapshot.size + TAIL_LEN;
        Ok(if long && durable { Task::Copy(list) } else { Task::Lengthen })
    }

    /// Takes the shadow, under WRITER, and marks what is about to become of it.
    fn hold_shadow(&mut self, how: HalfSettled) -> Result<()> {
        let slot = self.shadow_slot();
        if !self.pair.coordination.keep(&locks::KEEPS_SHADOW)? {
            return Err(Error::Busy);
        }
        self.pair.coordination.want_shadow(false);
        let (file, name) = (self.pair.file(slot)?, self.role(slot));
        let free = broken(Mutation::SettlerKeepsNobodyOff)
            || file.try_lock(locks::SHARED, LockKind::Exclusive).during(Operation::Lock, &name)?;
        if !free {
            self.pair.coordination.keep_no_longer(&locks::KEEPS_SHADOW)?;
            return Err(Error::Busy);
        }
        self.target.excluded[slot] = true;
        self.pair.coordination.set_half_settled(how);
        Ok(())
    }

    fn give_shadow_back(&mut self) -> Result<()> {
        let released = self.release_exclusion();
        let told = self.pair.coordination.keep_no_longer(&locks::KEEPS_SHADOW);
        released.and(told)
    }

    /// Makes the shadow long enough for D, with an intent at its new end. Its commit block comes
    /// when all is copied. `false`: somebody wants the shadow.
    fn lengthen(&mut self) -> Result<bool> {
        let slot = self.shadow_slot();
        let (file, name, size) = (self.pair.file(slot)?, self.role(slot), self.view.snapshot.size);
        let known = self.shadow_tail()?;
        let len = roomy_len(size, 0, &self.tuning).max(known.len);
        let mut intent = self.new_intent(file.id(), len);
        for range in known.intent.ranges().iter() {
            intent.mark(&(range.start..range.end.min(len)));
        }
        intent.mark(&(known.len.saturating_sub(TAIL_LEN)..len));
        self.statistics.growths += 1;
        self.pair.coordination.set_filled(slot, 0);
        self.pair.coordination.next_tail_epoch(slot);
        file.allocate(len).during(Operation::Resize, &name)?;
        // The tail first: whoever takes over finds the old regions in it.
        let tail = len - TAIL_LEN;
        write_zeros(&*file, tail, len, &name)?;
        write_intent(&*file, len, &intent, &name)?;
        let mut at = known.len.max(size);
        while at < tail {
            if self.pair.coordination.is_shadow_wanted() {
                return Ok(false);
            }
            let end = (at + PIECE).min(tail);
            write_zeros(&*file, at, end, &name)?;
            at = end;
        }
        self.remember_tail(len, intent);
        Ok(true)
    }

    /// Copies the pages, then page 1 and the blocks that say so. `false`: somebody wants the
    /// shadow.
    fn copy_over(&mut self, list: &RangeSet, tell: &mut dyn FnMut(Moment)) -> Result<bool> {
        let slot = self.shadow_slot();
        let (shadow, current, name) =
            (self.pair.file(slot)?, self.current_file()?, self.role(slot));
        self.fence_header(slot)?;
        self.pair.coordination.fill(slot, self.view.snapshot.size);
        let first = self.first_page_len()?;
        let rest =
            list.without(&std::iter::once(0..first).collect()).below(self.view.snapshot.size);
        for range in rest.iter().filter(|_| !broken(Mutation::SettledWithoutCopying)) {
            let mut at = range.start;
            while at < range.end {
                tell(Moment::Copying);
                if self.pair.coordination.is_shadow_wanted() {
                    return Ok(false);
                }
                let end = (at + PIECE).min(range.end);
                copy(&*current, &*shadow, at..end, &name)?;
                at = end;
            }
        }
        let known = self.shadow_tail()?;
        self.vouch(State::Settled, &known.intent, known.len)?;
        let mark = self.published().mark(shadow.id(), State::Settled, self.view.snapshot.counter);
        self.copy_first_page(Some(&mark))?;
        self.pair.coordination.next_tail_epoch(slot);
        self.pair.coordination.clear_half_settled();
        Ok(true)
    }

    /// Nothing need be carried any more, if nobody has committed or begun to since.
    fn declare_settled(&mut self) -> Result<bool> {
        if !self.pair.coordination.keep_writer()? {
            // The next writer carries the pages.
            return Ok(false);
        }
        let declared = self.declare();
        self.pair.coordination.give_writer_back()?;
        declared
    }

    fn declare(&mut self) -> Result<bool> {
        let c = &self.pair.coordination;
        let same = (c.current() == self.view.current || broken(Mutation::SettledForAnother))
            && c.generation() == self.pair.generation
            && c.half_settled().is_none()
            && c.in_flight() == 0
            && c.condition() == ShadowCondition::Known;
        if !same {
            return Ok(false);
        }
        if !self.pair.coordination.is_settled()
            && self.pair.coordination.current() == self.view.current
        {
            let slot = self.shadow_slot();
            let known = self.tail_in(slot)?;
            let mut intent = known.intent.as_ref().clone();
            if let Some(narrow) = self.narrowed(&intent, known.len) {
                write_intent(&*self.pair.file(slot)?, known.len, &narrow, &self.role(slot))?;
                intent = narrow;
            }
            self.vouch(State::Superseded, &intent, known.len)?;
            self.remember_tail(known.len, intent);
        }
        self.pair.coordination.set_settled();
        if broken(Mutation::NaiveListReset) {
            self.reset_list()?;
        }
        self.statistics.settled += 1;
        Ok(true)
    }

    /// A writer has the shadow that somebody was settling. What was being made longer is flushed
    /// first, as whenever a tail moves (F13). What was being copied belongs to its transaction now:
    /// carried by the commit, mended if that is rolled back.
    pub(crate) fn take_over_half_settled(&mut self) -> Result<()> {
        match self.pair.coordination.half_settled() {
            None => return Ok(()),
            Some(HalfSettled::Growing) => {
                // Written again: the flush of who left it so may have failed.
                let known = self.shadow_tail()?;
                let intent = known.intent.as_ref().clone();
                let slot = self.shadow_slot();
                if !broken(Mutation::GrowthTakenOver) {
                    write_intent(&*self.pair.file(slot)?, known.len, &intent, &self.role(slot))?;
                    self.flush_file(slot)?;
                }
                self.remember_tail(known.len, intent);
                self.pair.coordination.clear_half_settled();
            }
            Some(HalfSettled::Copying) => self.begin_writing_shadow()?,
        }
        self.pair.coordination.want_shadow(false);
        Ok(())
    }

    /// At a clean close, alone: nothing is left half-way. What fails is for the next session to
    /// mend.
    pub(crate) fn finish_settling(&mut self) {
        if self.pair.coordination.half_settled().is_none() {
            return;
        }
        let finished = self
            .exclude_from(self.shadow_slot())
            .and_then(|()| self.guard_names(self.shadow_slot()))
            .and_then(|()| self.copy_back(&RangeSet::new()));
        if finished.is_err() {
            self.pair.coordination.set_condition(ShadowCondition::Repair);
        }
        self.pair.coordination.clear_half_settled();
    }
}
