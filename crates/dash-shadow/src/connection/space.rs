//! Giving disk space back: what a database that has become smaller leaves behind its end
//! (SHADOW-26, SHADOW-27).
//!
//! The last connection to close cuts both files ([`cut_files`](Connection::cut_files)). Only the
//! shadow is ever cut: nothing in it is needed, as the current copy is whole and durable, and
//! nobody who opens `app.db` from then on gets it. So the other file becomes the shadow first, by a
//! commit that changes nothing. Neither is cut while anybody else has it open, dash or stock, who
//! may read an older and larger state there, or have it mapped (T21).
//!
//! Of the shadow, which is the current copy's equal by then, a tail is written where the file is
//! going to end, and flushed; then it is cut, and that is flushed. A power loss in between leaves
//! either length, or the old one without a tail: never a shadow that is taken for more than a copy
//! to be mended.
//!
//! While the database is open no file is cut: readers of older states may have pages there. Of the
//! copy that a commit has just written, what lies behind its end is made a hole
//! ([`punch_behind_the_end`](Connection::punch_behind_the_end)), if nobody reads an older state in
//! it. Its length stays, so no mapping loses its ground.

use crate::connection::state::Connection;
use crate::file::tail::{Tail, roomy_len, write_intent};
use crate::format::{BLOCK_LEN, IntentBlock, State, TAIL_LEN, list_len};
use crate::mutation::{Mutation, broken};
use crate::shared::locks::LockLevel;
use crate::shared::state::ShadowCondition;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::io::read_header;
use dash_storage::{File, Storage};

impl<S: Storage> Connection<S> {
    /// For who closes last, while the name fence still stands, and before it is asked who has which
    /// file open: the names may be exchanged by it.
    pub(crate) fn cut_files(&mut self) -> Result<()> {
        let c = &self.pair.coordination;
        let clean = self.debts.poisoned.is_none()
            && self.view.level == LockLevel::None
            && self.view.snapshot.size > 0
            && c.condition() == ShadowCondition::Known
            && c.commits() > 0;
        if !clean {
            return Ok(());
        }
        match self.cut_one_by_one() {
            // Somebody reads the shadow: another time.
            Err(Error::Busy | Error::BusySnapshot | Error::Held(_)) => Ok(()),
            cut => cut,
        }
    }

    fn cut_one_by_one(&mut self) -> Result<()> {
        for _ in 0..2 {
            if self.may_be_cut(self.shadow_slot())? {
                let cut = self.lock(LockLevel::Exclusive).and_then(|()| self.cut_shadow());
                let unlocked = self.unlock(LockLevel::None);
                cut.and(unlocked)?;
            }
            if !self.may_be_cut(self.view.current.slot)? {
                break;
            }
            // It is the shadow then.
            self.commit_unchanged()?;
        }
        Ok(())
    }

    /// Whether so much of a file lies behind what the database needs that it is worth cutting, and
    /// nobody else has it open.
    fn may_be_cut(&self, slot: usize) -> Result<bool> {
        let Some(file) = &self.pair.files[slot] else {
            return Ok(false);
        };
        let len = match &self.target.known_tails[slot] {
            Some(known) if known.epoch == self.pair.coordination.tail_epoch(slot) => known.len,
            _ => file.metadata().during(Operation::Stat, self.role(slot))?.len,
        };
        let roomy = roomy_len(self.view.snapshot.size, 0, &self.tuning);
        // The old tail stays until it is cut.
        let held = || file.open_elsewhere().unwrap_or(true) && !broken(Mutation::CutWhileOpen);
        Ok(self.is_much(len.saturating_sub(roomy), len) && roomy + TAIL_LEN <= len && !held())
    }

    /// Whether so many bytes behind the end of the database are worth giving back, of a file that
    /// is `len` bytes long.
    fn is_much(&self, bytes: u64, len: u64) -> bool {
        bytes > len / 4 && bytes > self.tuning.space_least
    }

    /// Under EXCLUSIVE, beside a current copy that is durable.
    fn cut_shadow(&mut self) -> Result<()> {
        let (slot, name) = (self.shadow_slot(), self.pair.names.shown());
        // The size comes from shared memory: nonsense there cuts nothing.
        let header = read_header(&*self.current_file()?, name)?;
        if header.and_then(|header| header.size()) != Some(self.view.snapshot.size) {
            return Ok(());
        }
        // Nothing has been written yet: where the disk is full the database is closed as ever.
        if self.guard_names(slot).is_err() {
            return Ok(());
        }
        self.bring_shadow_up()?;
        let (known, size) = (self.shadow_tail()?, self.view.snapshot.size);
        let len = roomy_len(size, 0, &self.tuning);
        // Whoever has opened it meanwhile keeps it as it is.
        if !self.may_be_cut(slot)? {
            return Ok(());
        }
        let intent = self.clipped(slot, &known.intent, len)?;
        let (file, name) = (self.pair.file(slot)?, self.role(slot));
        // Settled, not superseded, until the cut is durable: should its flush fail, all of it is
        // mended, and cut again.
        let counter = self.view.snapshot.counter;
        self.vouch_over(&self.published(), None, State::Settled, counter, &intent, len)?;
        write_intent(&*file, len, &intent, &name)?;
        if !broken(Mutation::CutBeforeTail) {
            self.flush_file(slot)?;
        }
        file.set_len(len).during(Operation::Resize, &name)?;
        if !broken(Mutation::CutNotFlushed) {
            self.flush_file(slot)?;
        }
        self.vouch(State::Superseded, &intent, len)?;
        self.statistics.given_back_bytes += known.len - len;
        self.remember_tail(len, intent);
        Ok(())
    }

    /// An intent for a file of `len` bytes, with the regions of one of a longer file.
    fn clipped(&self, slot: usize, old: &IntentBlock, len: u64) -> Result<IntentBlock> {
        let mut intent = self.new_intent(self.pair.file(slot)?.id(), len);
        for range in old.ranges().below(len).iter() {
            intent.mark(&range);
        }
        Ok(intent)
    }

    /// After a commit was published: gives back what its copy has behind the end of the database.
    /// What fails here fails for nobody; the last connection to close cuts the file.
    pub(crate) fn punch_behind_the_end(&mut self) {
        let (slot, size) = (self.view.current.slot, self.view.snapshot.size);
        let c = &self.pair.coordination;
        let Some(known) = &self.target.known_tails[slot] else {
            return;
        };
        let len = known.len;
        let filled = Some(c.filled(slot)).filter(|&filled| filled > 0).unwrap_or(len).min(len);
        if known.epoch != c.tail_epoch(slot) || !self.is_much(filled.saturating_sub(size), len) {
            return;
        }
        // An older state of this copy may have pages there.
        let read = c.pins_of_others(slot).map_or(true, |pins| pins.any && pins.stale);
        if read && !broken(Mutation::PunchedUnderReader) {
            return;
        }
        if let Ok(bytes) = self.punch(slot, len) {
            self.statistics.given_back_bytes += bytes;
        }
        // Where it can't be it is not tried again.
        self.pair.coordination.set_filled(slot, size);
    }

    /// Makes a hole between the database and the tail with its list. How many bytes that is.
    fn punch(&self, slot: usize, len: u64) -> Result<u64> {
        let (file, name) = (self.pair.file(slot)?, self.role(slot));
        let tail = Tail::at_end(&*file, len, &name)?;
        let list = tail.list.as_ref().map_or(0, |(units, _)| list_len(*units as usize));
        let list = if broken(Mutation::ListPunched) { 0 } else { list };
        let end = len.saturating_sub(TAIL_LEN + list);
        let hole = self.view.snapshot.size.next_multiple_of(BLOCK_LEN)..end - end % BLOCK_LEN;
        if hole.is_empty() {
            return Ok(0);
        }
        file.punch(hole.clone()).during(Operation::Resize, &name)?;
        Ok(hole.end - hole.start)
    }
}
