//! The write transaction up to the commit: pages gather in memory, and in the shadow when they
//! become too many. What must be in place before the first byte reaches the shadow is here.

use std::ops::Range;

use dash_storage::{Directory, File, FileId, LockKind, Storage};

use crate::buffer::WriteBuffer;
use crate::connection::{Connection, KnownTail};
use crate::coordination::ShadowCondition;
use crate::error::{Context, Error, Operation, Result};
use crate::format::{BLOCK, IntentBlock, Protocol, TAIL_LEN, list_len};
use crate::header::{FENCE_OFFSET, HEADER_LEN, Header};
use crate::locks::{self, LockLevel};
use crate::ranges::RangeSet;
use crate::super_journal;
use crate::tail::{Tail, read_header, read_padded, extend, roomy_len, write_intent};

/// Where a transaction stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// SQLite writes pages.
    Building,
    /// Pages, page list and commit block are in the shadow (FCNTL_SYNC).
    Prepared,
    /// They are durable (xSync): the commit point.
    Durable,
}

/// A write transaction.
pub(crate) struct Transaction {
    /// Pages in memory.
    pub buffer: WriteBuffer,
    /// Pages already in the shadow, as the transaction left them there.
    pub spilled: RangeSet,
    /// Everything of the shadow that this transaction may have overwritten.
    pub dirtied: RangeSet,
    /// Size of the database in bytes, as SQLite sees it now.
    pub size: u64,
    /// The shadow's first byte has been written: a fence stands there.
    pub touched: bool,
    /// How far the commit is.
    pub phase: Phase,
    /// What the transaction changed, known when it is prepared.
    pub page_list: RangeSet,
    /// The state it will publish, known when it is prepared.
    pub snapshot: crate::coordination::Snapshot,
}

impl Transaction {
    pub fn new(size: u64) -> Self {
        Self {
            buffer: WriteBuffer::default(),
            spilled: RangeSet::new(),
            dirtied: RangeSet::new(),
            size,
            touched: false,
            phase: Phase::Building,
            page_list: RangeSet::new(),
            snapshot: crate::coordination::Snapshot::default(),
        }
    }

    /// Whether nothing has been written.
    pub fn is_clean(&self) -> bool {
        self.buffer.is_empty() && self.spilled.is_empty() && !self.touched
    }

    /// Whether any byte of `range` has been written.
    pub fn touches(&self, range: &Range<u64>) -> bool {
        self.buffer.intersects(range) || self.spilled.intersects(range.clone())
    }
}

impl<S: Storage> Connection<S> {
    /// Slot of the copy that is not current.
    pub(crate) fn shadow_slot(&self) -> usize {
        1 - self.current.slot
    }

    /// Keeps everybody off the shadow: nobody reads it from here until the lock is released
    /// (SHADOW-3). Makes or mends it first if it can't be trusted.
    pub(crate) fn exclude_readers(&mut self) -> Result<()> {
        let slot = self.shadow_slot();
        let condition = self.coordination.condition();
        if condition == ShadowCondition::Rebuild || self.files[slot].is_none() {
            self.rebuild()?;
        }
        self.exclude_from(slot)?;
        if self.coordination.condition() == ShadowCondition::Repair {
            self.repair()?;
        }
        self.remove_super_journal()
    }

    /// What was cut off is undone durably by now: its super-journal may go (F10 b).
    fn remove_super_journal(&mut self) -> Result<()> {
        match self.cut_off.take() {
            Some(name) => {
                let undone = self.directory_path.join(&self.names.db);
                super_journal::remove_if_unused(&self.storage, &self.directory_path, &name, &undone)
            }
            None => Ok(()),
        }
    }

    /// Takes SQLite's SHARED range of a slot exclusively, and waits for dash readers pinned there.
    pub(crate) fn exclude_from(&mut self, slot: usize) -> Result<()> {
        if self.excluded[slot] {
            return Ok(());
        }
        if self.coordination.is_pinned_by_others(slot)? {
            return Err(Error::Busy);
        }
        let (file, name) = (self.file(slot)?, self.role(slot));
        if file.try_lock(locks::SHARED, LockKind::Exclusive).during(Operation::Lock, &name)? {
            self.excluded[slot] = true;
            return Ok(());
        }
        // Without PENDING a stream of stock readers would keep the writer out for ever (T11).
        if !self.pending[slot] {
            self.pending[slot] = file.try_lock(locks::PENDING, LockKind::Exclusive).during(Operation::Lock, &name)?;
        }
        Err(Error::Busy)
    }

    /// Lets readers onto both copies again.
    pub(crate) fn release_exclusion(&mut self) -> Result<()> {
        for slot in [0, 1] {
            let Some(file) = self.files[slot].clone() else { continue };
            if std::mem::take(&mut self.excluded[slot]) {
                file.unlock(locks::SHARED).during(Operation::Lock, self.role(slot))?;
            }
            if std::mem::take(&mut self.pending[slot]) {
                file.unlock(locks::PENDING).during(Operation::Lock, self.role(slot))?;
            }
        }
        Ok(())
    }

    /// Takes a write of SQLite's.
    pub fn write(&mut self, data: &[u8], offset: u64) -> Result<()> {
        self.continue_session()?;
        let Some(transaction) = &mut self.transaction else {
            return Err(Error::Refused("written without a lock".into()));
        };
        transaction.buffer.write(data, offset);
        transaction.size = transaction.size.max(offset + data.len() as u64);
        transaction.phase = Phase::Building;
        if transaction.buffer.bytes() > self.tuning.spill {
            self.spill()?;
        }
        Ok(())
    }

    /// Cuts the database.
    pub fn truncate(&mut self, size: u64) -> Result<()> {
        self.continue_session()?;
        let Some(transaction) = &mut self.transaction else {
            return Err(Error::Refused("truncated without a lock".into()));
        };
        if size == transaction.size {
            return Ok(());
        }
        transaction.buffer.remove(size..u64::MAX);
        transaction.spilled.remove(size..u64::MAX);
        transaction.size = size;
        transaction.phase = Phase::Building;
        Ok(())
    }

    /// Under locking_mode=EXCLUSIVE the next transaction begins without a lock call (T5): take the
    /// other copy here. `Busy` is the caller's to wait out; SQLite must never see it.
    fn continue_session(&mut self) -> Result<()> {
        if let Some(reason) = &self.poisoned {
            return Err(Error::Poisoned(reason.clone()));
        }
        if self.transaction.is_none() && self.level == LockLevel::Exclusive {
            self.check_names()?;
            self.exclude_readers()?;
            self.transaction = Some(Transaction::new(self.snapshot.size));
        }
        Ok(())
    }

    /// Reads through the running transaction.
    pub(crate) fn read_written(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        let Some(transaction) = &self.transaction else { return Ok(()) };
        if let Some(block) = transaction.buffer.exact(offset, buffer.len()) {
            buffer.copy_from_slice(block);
            return Ok(());
        }
        let range = offset..offset + buffer.len() as u64;
        let name = self.names.shown();
        let committed = usize::try_from(self.snapshot.size.saturating_sub(offset)).unwrap_or(buffer.len()).min(buffer.len());
        read_padded(&*self.current_file()?, &mut buffer[..committed], offset).during(Operation::Read, &name)?;
        buffer[committed..].fill(0);
        if transaction.spilled.intersects(range.clone()) {
            let shadow = self.file(self.shadow_slot())?;
            for spilled in transaction.spilled.overlapping(range.clone()) {
                let from = spilled.start.max(range.start);
                let to = spilled.end.min(range.end);
                if let (Ok(at), Ok(end)) = (usize::try_from(from - offset), usize::try_from(to - offset)) {
                    read_padded(&*shadow, &mut buffer[at..end], from).during(Operation::Read, &name)?;
                }
            }
        }
        transaction.buffer.overlay(buffer, offset);
        Ok(())
    }

    /// Writes the gathered pages, but not page 1, into the shadow to free memory.
    fn spill(&mut self) -> Result<()> {
        let Some(transaction) = &self.transaction else { return Ok(()) };
        let blocks: RangeSet = transaction
            .buffer
            .blocks()
            .filter(|(at, _)| *at > 0)
            .map(|(at, block)| at..at + block.len() as u64)
            .collect();
        let size = transaction.size;
        self.touch_shadow()?;
        self.make_room(size, 0)?;
        self.cover(&blocks)?;
        let (shadow, name) = (self.file(self.shadow_slot())?, self.role(self.shadow_slot()));
        let Some(transaction) = &mut self.transaction else { return Ok(()) };
        transaction.dirtied.union(&blocks);
        for (at, block) in transaction.buffer.blocks().filter(|(at, _)| *at > 0) {
            shadow.write_at(block, at).during(Operation::Write, &name)?;
            self.statistics.page_bytes += block.len() as u64;
        }
        transaction.spilled.union(&blocks);
        for range in blocks.iter() {
            transaction.buffer.remove(range);
        }
        self.statistics.spills += 1;
        Ok(())
    }

    /// What must stand before the shadow's first byte changes: the name fence where a stock reader
    /// could find this file under `app.db` after a power loss (SHADOW-4), the mark for dash that a
    /// writer is at work, and the header fence for stock descriptors opened long ago (SHADOW-5).
    pub(crate) fn touch_shadow(&mut self) -> Result<()> {
        if self.transaction.as_ref().is_none_or(|transaction| transaction.touched) {
            return Ok(());
        }
        let slot = self.shadow_slot();
        self.guard(slot)?;
        self.coordination.set_in_flight(self.current.sequence + 1);
        if let Some(transaction) = &mut self.transaction {
            transaction.touched = true;
        }
        self.fence_header(slot)?;
        if self.protocol == Protocol::Paper {
            // The paper's version update: the mark is durable before the pages.
            self.flush_file(slot)?;
        }
        Ok(())
    }

    /// Marks the header of a copy that is about to be written, in the page cache only.
    pub(crate) fn fence_header(&self, slot: usize) -> Result<()> {
        let (file, name) = (self.file(slot)?, self.role(slot));
        // Any header that differs in every byte a pager compares will do; the current copy's is at hand.
        let mut bytes = [0; HEADER_LEN];
        bytes[24..40].copy_from_slice(&self.snapshot.version);
        let header = match read_header_if_short(&self.snapshot.size, &*file, &name)? {
            Some(header) => header,
            None => Header(bytes),
        };
        file.write_at(&header.fence(), FENCE_OFFSET).during(Operation::Write, &name)
    }

    /// The name fence (protocols.md section 2): before the first write into a file that may be
    /// named `app.db` on disk. The first commit after opening makes do with durable names.
    pub(crate) fn guard(&mut self, slot: usize) -> Result<()> {
        if self.coordination.fence() || !self.coordination.may_be_named_on_disk(slot) {
            return Ok(());
        }
        if self.coordination.commits() > 0 {
            match self.directory.create_directory(&self.names.fence) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                other => other.during(Operation::Open, self.names.fence.to_string_lossy())?,
            }
        }
        let fence = self
            .directory
            .metadata(&self.names.fence)
            .during(Operation::Stat, self.names.fence.to_string_lossy())?;
        if fence.is_some_and(|fence| fence.kind != dash_storage::FileKind::Directory) {
            return Err(Error::Refused(format!(
                "{} is a rollback journal of stock SQLite; close all connections and open the database again",
                self.names.fence.to_string_lossy()
            )));
        }
        self.flush_directory()?;
        self.coordination.set_name_on_disk(1 - slot);
        self.coordination.set_fence(fence.is_some());
        Ok(())
    }

    /// Makes directory operations durable.
    pub(crate) fn flush_directory(&mut self) -> Result<()> {
        self.statistics.directory_flushes += 1;
        self.directory.flush().during(Operation::FlushDirectory, self.names.shown())
    }

    /// Makes the file in `slot` durable.
    pub(crate) fn flush_file(&mut self, slot: usize) -> Result<()> {
        self.statistics.flushes += 1;
        self.file(slot)?.flush().during(Operation::Flush, self.role(slot))
    }

    /// An intent with no region.
    pub(crate) fn new_intent(&self, file: FileId, size: u64) -> IntentBlock {
        IntentBlock::new(self.coordination.pair(), file, size, self.tuning.intent_region)
    }

    /// The shadow's tail: as this connection left it, or as the disk has it.
    pub(crate) fn shadow_tail(&mut self) -> Result<KnownTail> {
        let slot = self.shadow_slot();
        let file = self.file(slot)?;
        let epoch = self.coordination.tail_epoch(slot);
        if let Some(known) = &self.known_tails[slot]
            && known.sequence == epoch
        {
            return Ok(known.clone());
        }
        let name = self.role(slot);
        let tail = Tail::read(&*file, &name)?;
        let intent = match tail.bound_intent(file.id()) {
            // SHADOW-6: another connection's intent is durable here, because the flush of its
            // commit, or of the repair that this session began with, covered it.
            Some(intent) => intent.clone(),
            None => self.new_intent(file.id(), self.snapshot.size),
        };
        let known = KnownTail { sequence: epoch, len: tail.len, intent };
        self.known_tails[slot] = Some(known.clone());
        Ok(known)
    }

    /// Remembers a changed tail; every other connection will read it again.
    pub(crate) fn remember_tail(&mut self, len: u64, intent: IntentBlock) {
        let slot = self.shadow_slot();
        let sequence = self.coordination.next_tail_epoch(slot);
        self.known_tails[slot] = Some(KnownTail { sequence, len, intent });
    }

    /// Makes the shadow long enough for a database of `size` bytes and a list of `units`.
    pub(crate) fn make_room(&mut self, size: u64, units: usize) -> Result<()> {
        let slot = self.shadow_slot();
        let known = self.shadow_tail()?;
        let list = list_len(units);
        if known.len >= TAIL_LEN && size + list + TAIL_LEN <= known.len {
            return Ok(());
        }
        let (file, name) = (self.file(slot)?, self.role(slot));
        let len = roomy_len(size, list, &self.tuning).max(known.len);
        let mut intent = self.new_intent(file.id(), len);
        for range in known.intent.ranges().iter() {
            intent.mark(&(range.start..range.end.min(len)));
        }
        // What the file grows by is new to it: it belongs to the regions that may differ.
        intent.mark(&(known.len.saturating_sub(TAIL_LEN)..len));
        self.statistics.growths += 1;
        self.statistics.tail_bytes += BLOCK as u64;
        extend(&*file, known.len.max(size), len, &name)?;
        write_intent(&*file, len, &intent, &name)?;
        self.flush_file(slot)?;
        if known.len >= TAIL_LEN {
            let wipe = usize::try_from(TAIL_LEN.min(len - known.len)).unwrap_or(BLOCK);
            file.write_at(&vec![0; wipe], known.len - TAIL_LEN).during(Operation::Write, &name)?;
        }
        self.remember_tail(len, intent);
        Ok(())
    }

    /// SHADOW-6: no place is dirtied before a durable intent covers it.
    pub(crate) fn cover(&mut self, ranges: &RangeSet) -> Result<()> {
        let known = self.shadow_tail()?;
        if ranges.iter().all(|range| known.intent.covers(&range)) {
            return Ok(());
        }
        let slot = self.shadow_slot();
        let (file, name) = (self.file(slot)?, self.role(slot));
        let mut intent = known.intent;
        let mut coarser = self.new_intent(file.id(), known.len);
        if intent.region_shift < coarser.region_shift {
            for range in intent.ranges().iter() {
                coarser.mark(&(range.start..range.end.min(known.len)));
            }
            intent = coarser;
        }
        let stride = self.tuning.intent_stride;
        for range in ranges.iter() {
            let wide = range.start - range.start % stride..range.end.next_multiple_of(stride).min(known.len);
            if !intent.mark(&wide) {
                return Err(Error::Refused("the database is too large for its intent block".into()));
            }
        }
        self.statistics.intent_widenings += 1;
        self.statistics.tail_bytes += BLOCK as u64;
        write_intent(&*file, known.len, &intent, &name)?;
        self.flush_file(slot)?;
        self.remember_tail(known.len, intent);
        Ok(())
    }

    /// Ends the write transaction: what was not published is undone.
    pub(crate) fn end_write(&mut self) -> Result<()> {
        let undone = self.discard();
        let released = self.release_exclusion();
        // Nobody can write the new copy before WRITER is free, so it is safe to move over now.
        let pinned = self.pin(self.current.slot);
        let unlocked = self
            .coordination
            .file()
            .unlock(locks::WRITER)
            .during(Operation::Lock, self.names.coordination.to_string_lossy());
        undone.and(released).and(pinned).and(unlocked)
    }

    /// Forgets the running transaction and undoes what it wrote into the shadow.
    pub(crate) fn discard(&mut self) -> Result<()> {
        match self.transaction.take() {
            Some(transaction) if transaction.touched => self.undo(&transaction.dirtied),
            _ => Ok(()),
        }
    }
}

/// The shadow's own header where the current copy has none yet.
fn read_header_if_short<F: File>(size: &u64, file: &F, name: &str) -> Result<Option<Header>> {
    if *size == 0 { read_header(file, name) } else { Ok(None) }
}

