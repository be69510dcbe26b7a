//! Bringing the shadow back to the current copy: after a rollback or a failed flush
//! ([`undo`](Connection::undo)), after a crash ([`repair`](Connection::repair)), or from nothing
//! ([`rebuild`](Connection::rebuild)). All three end with a flush before the shadow is used again
//! (SHADOW-8, protocols.md F2–F6) and leave a block that vouches for the current copy.

use std::sync::Arc;

use dash_storage::{Directory, File, FileKind, OpenMode, Storage};

use crate::connection::{Connection, hold_life};
use crate::coordination::ShadowCondition;
use crate::error::{Context, Error, Operation, Result};
use crate::format::{BLOCK, CommitBlock, IntentBlock, Protocol, State, TAIL_LEN, Vouched};
use crate::header::{Header, unmark};
use crate::ranges::RangeSet;
use crate::tail::{STRIDE, Tail, copy, extend, read_header, read_padded, roomy_len, write_commit, write_intent};

impl<S: Storage> Connection<S> {
    /// Makes the shadow the current copy's equal after a transaction dirtied `dirtied` in it. A
    /// failure poisons the connection: nothing more is written, and the next writer finds the mark.
    pub(crate) fn undo(&mut self, dirtied: &RangeSet) -> Result<()> {
        self.statistics.undone += 1;
        let undone = self.copy_back(dirtied);
        if let Err(error) = &undone {
            self.poisoned = Some(error.to_string());
        }
        undone
    }

    fn copy_back(&mut self, dirtied: &RangeSet) -> Result<()> {
        let slot = self.shadow_slot();
        self.coordination.next_tail_epoch(slot); // what failed may have moved it
        if self.snapshot.size == 0 {
            return self.void();
        }
        let mut ranges = dirtied.clone();
        ranges.union(&self.current_page_list()?);
        self.restore(&ranges)?;
        self.coordination.set_in_flight(0);
        Ok(())
    }

    /// There is nothing to copy from: the database is still empty. Makes sure that the block of a
    /// first commit is gone, and the shadow made anew.
    fn void(&mut self) -> Result<()> {
        let slot = self.shadow_slot();
        let (file, name) = (self.file(slot)?, self.role(slot));
        let len = file.metadata().during(Operation::Stat, &name)?.len;
        if len >= TAIL_LEN {
            file.write_at(&[0; 2 * BLOCK], len - TAIL_LEN).during(Operation::Write, &name)?;
        }
        self.flush_file(slot)?;
        self.coordination.set_condition(ShadowCondition::Rebuild);
        self.coordination.set_in_flight(0);
        Ok(())
    }

    /// Copies `ranges` from the current copy; intent first, page 1 last, the block that vouches
    /// with it, one flush (protocols.md section 4, step 10).
    fn restore(&mut self, ranges: &RangeSet) -> Result<()> {
        let slot = self.shadow_slot();
        let (shadow, current, name) = (self.file(slot)?, self.current_file()?, self.role(slot));
        self.fence_header(slot)?;
        let ranges = ranges.below(self.snapshot.size);
        let tail = Tail::read(&*shadow, &name)?;
        let mut len = tail.len;
        if len < TAIL_LEN || len < self.snapshot.size + TAIL_LEN {
            len = roomy_len(self.snapshot.size, 0, &self.tuning);
            extend(&*shadow, tail.len, len, &name)?;
        }
        let mut intent = self.new_intent(shadow.id(), len);
        intent.mark(&(0..FIRST_PAGE));
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
        write_intent(&*shadow, len, &intent, &name)?;
        for range in ranges.iter().filter(|range| range.end > FIRST_PAGE) {
            copy(&*current, &*shadow, range.start.max(FIRST_PAGE)..range.end, &name)?;
        }
        self.write_vouching_block(State::Settled, self.snapshot.counter, &intent, len)?;
        self.copy_first_page()?;
        self.flush_file(slot)?;
        self.write_vouching_block(State::Superseded, self.snapshot.counter, &intent, len)?;
        self.remember_tail(len, intent);
        Ok(())
    }

    /// Page 1 of the current copy, marked as in a shadow.
    fn copy_first_page(&self) -> Result<()> {
        let slot = self.shadow_slot();
        let (shadow, current, name) = (self.file(slot)?, self.current_file()?, self.role(slot));
        let mut page = vec![0; usize::try_from(FIRST_PAGE.min(self.snapshot.size)).unwrap_or(0)];
        read_padded(&*current, &mut page, 0).during(Operation::Read, &name)?;
        unmark(&mut page);
        if page.len() > 18 {
            page[18] = 3;
        }
        shadow.write_at(&page, 0).during(Operation::Write, &name)
    }

    /// A block that says: the other copy's commit was published. Page cache only.
    /// `counter`: the change counter of the state that is in the shadow.
    pub(crate) fn write_vouching_block(&self, state: State, counter: u32, intent: &IntentBlock, len: u64) -> Result<()> {
        let slot = self.shadow_slot();
        let (shadow, name) = (self.file(slot)?, self.role(slot));
        let mut block = CommitBlock {
            pair: self.coordination.pair(),
            inode: shadow.id().inode,
            slot: u8::from(slot == 1),
            state,
            protocol: Protocol::Single,
            sequence: self.current.sequence,
            id: 0,
            parent: 0,
            counter,
            page_size: 0,
            size: 0,
            vouched: Some(Vouched {
                sequence: self.current.sequence,
                id: self.snapshot.id,
                counter: self.snapshot.counter,
            }),
            super_journal: Vec::new(),
            unit_count: 0,
            list_checksum: 0,
            units: Vec::new(),
        };
        // The list checksum of a vouching block is the intent's: it tells a later session whether
        // the intent it finds is the durable one (F4).
        block.list_checksum = crc32fast::hash(&*intent.encode());
        write_vouching(&*shadow, len, &block, &name)
    }

    /// Compares the shadow with the current copy where its intent says they may differ, and mends
    /// it. Takes no flush when nothing differs and the intent is known to be durable.
    pub(crate) fn repair(&mut self) -> Result<()> {
        let slot = self.shadow_slot();
        let (shadow, name) = (self.file(slot)?, self.role(slot));
        let tail = Tail::read(&*shadow, &name)?;
        let mut ranges = match tail.bound_intent(shadow.id()) {
            Some(intent) => intent.ranges(),
            None => std::iter::once(0..self.snapshot.size).collect(),
        };
        ranges.union(&self.current_page_list()?);
        let ranges = ranges.below(self.snapshot.size);
        let block = tail.bound(shadow.id());
        // A restore that was not flushed, or whose flush failed: equal in the cache says nothing
        // of the disk (F3), so all of it is written again.
        let unproven = block.is_none_or(|block| block.state == State::Settled);
        let different = if unproven { ranges } else { self.differences(&ranges)? };
        let vouched = block.is_some_and(|block| {
            block.state == State::Superseded
                && block.vouched.is_some_and(|vouched| vouched.id == self.snapshot.id)
                && tail.intent.as_ref().is_ok_and(|intent| crc32fast::hash(&*intent.encode()) == block.list_checksum)
        });
        self.coordination.next_tail_epoch(slot);
        let page_list = self.current_page_list()?;
        let beyond_the_list = different.without(&page_list);
        if !(vouched && beyond_the_list.is_empty()) {
            self.statistics.repairs += 1;
            self.guard(slot)?;
            self.coordination.set_in_flight(self.current.sequence + 1);
            self.forget_commit(&tail)?;
            self.restore(&different)?;
            self.coordination.set_in_flight(0);
        }
        self.coordination.set_condition(ShadowCondition::Known);
        Ok(())
    }

    /// A commit that was cut off must not become whole while its pages are copied over: one that
    /// it merely carried is right in both. Whoever has read the current copy since would see it
    /// come back from the dead.
    fn forget_commit(&mut self, tail: &Tail) -> Result<()> {
        let slot = self.shadow_slot();
        let (shadow, name) = (self.file(slot)?, self.role(slot));
        let newer = tail.bound(shadow.id()).is_some_and(|block| {
            matches!(block.state, State::Whole | State::Prepared) && block.sequence > self.current.sequence
        });
        if newer {
            shadow.write_at(&[0; BLOCK], tail.len - BLOCK as u64).during(Operation::Write, &name)?;
            self.flush_file(slot)?;
        }
        Ok(())
    }

    /// Where the two copies differ in `ranges`, in strides.
    fn differences(&self, ranges: &RangeSet) -> Result<RangeSet> {
        let slot = self.shadow_slot();
        let (shadow, current, name) = (self.file(slot)?, self.current_file()?, self.role(slot));
        let mut different = RangeSet::new();
        let mut buffers = [vec![0; BUFFER], vec![0; BUFFER]];
        for range in ranges.iter() {
            let mut at = range.start;
            while at < range.end {
                let part = usize::try_from(range.end - at).unwrap_or(BUFFER).min(BUFFER);
                let [a, b] = &mut buffers;
                read_padded(&*shadow, &mut a[..part], at).during(Operation::Read, &name)?;
                read_padded(&*current, &mut b[..part], at).during(Operation::Read, &name)?;
                if at == 0 {
                    unmark(&mut a[..part]);
                    unmark(&mut b[..part]);
                }
                for (i, (x, y)) in a[..part].chunks(BLOCK).zip(b[..part].chunks(BLOCK)).enumerate() {
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

    /// Makes a new shadow. The current copy gets a block first if it has none, so that the first
    /// commit has a parent; both are durable, and so is the new name, before they are used.
    pub(crate) fn rebuild(&mut self) -> Result<()> {
        self.statistics.rebuilds += 1;
        let slot = self.shadow_slot();
        let name = self.names.shadow.to_string_lossy().into_owned();
        self.remove_old_shadow()?;
        if self.snapshot.size > 0 {
            self.give_block()?;
        }
        let current = self.current_file()?;
        let permissions = current.metadata().during(Operation::Stat, &name)?.permissions;
        let shadow = self
            .directory
            .open(&self.names.shadow, OpenMode::CreateNew { permissions })
            .during(Operation::Open, &name)?;
        hold_life(&shadow, &name)?;
        shadow.copy_ownership(&current).during(Operation::Open, &name)?;
        let size = self.snapshot.size;
        let len = roomy_len(size, 0, &self.tuning);
        extend(&shadow, size, len, &name)?;
        let mut intent = self.new_intent(shadow.id(), len);
        if len <= self.tuning.intent_all {
            intent.mark(&(0..len));
        } else {
            intent.mark(&(0..STRIDE));
            intent.mark(&(size.saturating_sub(STRIDE)..len));
        }
        write_intent(&shadow, len, &intent, &name)?;
        let shadow = Arc::new(shadow);
        if size > 0 && shadow.clone_range(&current, 0..size - size % STRIDE).is_ok() {
            copy(&*current, &*shadow, size - size % STRIDE..size, &name)?;
        } else {
            copy(&*current, &*shadow, 0..size, &name)?;
        }
        self.files[slot] = Some(shadow);
        self.excluded[slot] = false;
        self.pending[slot] = false;
        if size > 0 {
            self.copy_first_page()?;
            self.write_vouching_block(State::Settled, self.snapshot.counter, &intent, len)?;
        }
        self.flush_file(slot)?;
        if size > 0 {
            self.write_vouching_block(State::Superseded, self.snapshot.counter, &intent, len)?;
        }
        self.flush_directory()?;
        self.coordination.set_name_on_disk(self.current.slot);
        self.remember_tail(len, intent);
        let id = self.files[slot].as_ref().map(|file| file.id());
        self.coordination.set_inode(slot, id);
        self.generation = self.coordination.generation();
        self.coordination.set_condition(ShadowCondition::Known);
        Ok(())
    }

    fn remove_old_shadow(&mut self) -> Result<()> {
        let name = self.names.shadow.to_string_lossy();
        match self.directory.metadata(&self.names.shadow).during(Operation::Stat, &name)? {
            None => Ok(()),
            Some(found) if found.kind == FileKind::Regular => {
                self.directory.unlink(&self.names.shadow).during(Operation::Delete, &name)
            }
            Some(_) => Err(Error::CantOpen(format!("{name} is in the way: it is not a file; remove it"))),
        }
    }

    /// The block of a current copy that has none of ours yet.
    fn give_block(&mut self) -> Result<()> {
        let slot = self.current.slot;
        let (file, name) = (self.current_file()?, self.role(slot));
        let tail = Tail::read(&*file, &name)?;
        if tail.bound(file.id()).is_some_and(|block| block.id == self.snapshot.id) {
            return Ok(());
        }
        // The old shadow is gone for good before a torn block here could make it look like the winner.
        self.flush_directory()?;
        let header = read_header(&*file, &name)?.filter(Header::is_sqlite);
        let Some(header) = header else {
            return Err(Error::NotADatabase(format!("{name} is not an SQLite database")));
        };
        let size = self.snapshot.size;
        let len = if tail.len >= size + TAIL_LEN && tail.len.is_multiple_of(BLOCK as u64) { tail.len } else { roomy_len(size.max(tail.len), 0, &self.tuning) };
        extend(&*file, tail.len, len, &name)?;
        let intent = self.new_intent(file.id(), len);
        write_intent(&*file, len, &intent, &name)?;
        let mut block = CommitBlock {
            pair: self.coordination.pair(),
            inode: file.id().inode,
            slot: u8::from(slot == 1),
            state: State::Whole,
            protocol: self.protocol,
            sequence: self.current.sequence,
            id: self.snapshot.id,
            parent: u64::MAX,
            counter: self.snapshot.counter,
            page_size: header.page_size().unwrap_or(0),
            size,
            vouched: None,
            super_journal: Vec::new(),
            unit_count: 0,
            list_checksum: 0,
            units: Vec::new(),
        };
        write_commit(&*file, len, &mut block, Vec::new(), &name)?;
        self.coordination.next_tail_epoch(slot);
        self.flush_file(slot)?;
        self.page_list = Some((self.current.sequence, RangeSet::new()));
        Ok(())
    }
}

/// What [`Connection::copy_first_page`] copies: the largest page.
const FIRST_PAGE: u64 = 65_536;
/// Bytes compared at once.
const BUFFER: usize = 256 << 10;

fn write_vouching<F: File>(file: &F, len: u64, block: &CommitBlock, name: &str) -> Result<()> {
    file.write_at(&*block.encode(), len - BLOCK as u64).during(Operation::Write, name)
}
