//! The commit: [`prepare`](Connection::prepare) at FCNTL_SYNC, [`flush`](Connection::flush) at
//! xSync, [`publish`](Connection::publish) at COMMIT_PHASETWO. The steps have the
//! names that DASH gives them in its sections 4.2–4.4.

use crate::connection::fence::HEAD;
use crate::connection::state::Connection;
use crate::connection::transaction::buffer::WriteBuffer;
use crate::connection::transaction::stage::Stage;
use crate::file::tail::write_commit;
use crate::format::header::{HEADER_LEN, Header, LEAP, Marks, plain, seal};
use crate::format::{
    CommitBlock, Place, SUPER_NAME_MAX, State, TAIL_LEN, Unit, first_page, list_len, unchanged_id,
};
use crate::mutation::{Mutation, broken};
use crate::shared::state::Snapshot;
use dash_engine::error::{Error, Result};
use dash_engine::header::{is_summed, not_sqlites, sum_again};
use dash_engine::io::{STRIDE, bytes_of, write_pieces};
use dash_engine::memory::{headroom_for, zeros};
use dash_engine::ranges::RangeSet;
use dash_storage::{File, Storage};
use std::ffi::OsStr;
use std::ops::Range;

/// Where the bytes of a unit come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The transaction's memory.
    Buffer,
    /// The shadow itself: written before, when memory was short.
    Spilled,
    /// The current copy: aggregate update.
    Current,
}

impl<S: Storage> Connection<S> {
    /// Aggregate update: writes pages, page list and commit block into the shadow. May be called
    /// again after more writes. With `super_journal` (its name relative to the database's
    /// directory) the commit counts only once that file is gone.
    pub fn prepare(&mut self, super_journal: Option<&OsStr>) -> Result<()> {
        // A database without a page is no commit: SQLite has rolled back the very first one.
        let nothing_to_do = self.transaction.as_ref().is_none_or(|transaction| {
            transaction.is_clean() || transaction.stage.is_prepared() || transaction.size == 0
        });
        if nothing_to_do {
            return Ok(());
        }
        let super_name = super_journal.map_or(Ok(&[][..]), |name| {
            let name = name.as_encoded_bytes();
            if name.len() > SUPER_NAME_MAX {
                return Err(Error::Refused(
                    "the path between the attached databases is too long for a transaction over both".into(),
                ));
            }
            Ok(name)
        })?;
        let header = self.seal_first_page()?;
        self.clip_to_size(&header)?;
        self.headroom_for_lists()?;
        let carried = if self.pair.coordination.is_settled() || broken(Mutation::NothingCarried) {
            RangeSet::new()
        } else {
            self.current_page_list()?
        };
        let (mut id, parent) = (self.commit_id(), self.view.snapshot.id);
        let Some(transaction) = &mut self.transaction else {
            return Ok(());
        };
        if transaction.unchanged {
            id = unchanged_id(parent);
        }
        let mut changed = transaction.buffer.ranges();
        changed.union(&transaction.spilled);
        let size = transaction.size;
        let carried = carried.below(size).without(&changed);
        transaction.page_list = changed.clone();
        transaction.header = Some(header);
        transaction.snapshot =
            Snapshot { size, version: header.version(), id, counter: header.counter() };
        let plan = self.plan(&carried);
        let mut all = changed;
        all.union(&carried);
        // First: where there is no space for that, nothing is to be undone.
        if !broken(Mutation::PagesNotPutAside) {
            self.put_aside(&all)?;
        }
        if let Some(transaction) = &mut self.transaction {
            transaction.dirtied.union(&all);
        }
        self.begin_writing_shadow()?;
        self.take_block_back()?;
        self.make_room(size, plan.len())?;
        self.cover(&all)?;
        self.write_units(&plan, super_name)?;
        self.pair.coordination.set_of_several(!super_name.is_empty());
        if let Some(transaction) = &mut self.transaction {
            transaction.stage.become_(Stage::Prepared { of_several: !super_name.is_empty() });
        }
        Ok(())
    }

    /// Sets of places, lists and plans are made of what was written, a few of each.
    pub(crate) fn headroom_for_lists(&self) -> Result<()> {
        let carried = self.memo.page_list.as_ref().map_or(0, |(_, list)| list.count());
        let written = self.transaction.as_ref().map_or(0, |transaction| {
            transaction.buffer.count() + transaction.spilled.count() + transaction.dirtied.count()
        });
        headroom_for((carried + written).saturating_mul(4))
    }

    /// Puts page 1 into every commit (T6) with a change counter that no cached page 1 has (T1).
    /// Where bytes of each page are reserved it stays as SQLite wrote it: an extension may have its
    /// checksum there. SQLite counts each of its commits but for those within
    /// locking_mode=EXCLUSIVE, which nobody reads between.
    fn seal_first_page(&mut self) -> Result<Header> {
        let (counter, guarded) = (self.view.snapshot.counter, self.will_be_guarded());
        let missing = self
            .transaction
            .as_mut()
            .is_some_and(|transaction| transaction.buffer.first_mut().is_none());
        if missing {
            let mut start = [0; HEADER_LEN];
            self.read_written(&mut start, 0)?;
            let page =
                Header(start).page_size().ok_or_else(|| not_sqlites(self.pair.names.shown()))?;
            let mut first = zeros(u64::from(page))?;
            self.read_written(&mut first, 0)?;
            if let Some(transaction) = &mut self.transaction {
                transaction.buffer.write(&first, 0)?;
            }
        }
        let refused = not_sqlites(self.pair.names.shown());
        let Some(first) =
            self.transaction.as_mut().and_then(|transaction| transaction.buffer.first_mut())
        else {
            return Err(refused);
        };
        // What the host read from the current copy has that copy's block in it.
        plain(first);
        if !broken(Mutation::FirstPageNotCleared) {
            first_page::clear(first);
        }
        let header = Header::of(first).filter(Header::is_sqlite).ok_or(refused)?;
        let keeps = header.reserved() > 0;
        let summed = is_summed(first);
        let least = if guarded || keeps || broken(Mutation::NoLeap) { 1 } else { LEAP };
        // A backup copies the source's WAL mode, too. SQLite has that in its page cache, and would
        // go there.
        let written = header.counter().wrapping_add(u32::from(header.is_wal()));
        let ahead = written.wrapping_sub(counter);
        let fresh = match ahead {
            0 if keeps => written,
            _ if (least..1 << 31).contains(&ahead) => written,
            _ => counter.wrapping_add(least),
        };
        let valid = header.size().is_some();
        if valid {
            seal(first, fresh);
        } else {
            first[24..28].copy_from_slice(&fresh.to_be_bytes());
            first[18..20].fill(1);
        }
        if summed {
            sum_again(first);
        }
        let sealed = Header::of(first).unwrap_or(header);
        if keeps && !guarded {
            self.guard(self.shadow_slot(), true)?;
        }
        Ok(sealed)
    }

    /// The header states the size (T21); what lies between the old end and pages that were never
    /// written becomes zeros (T23).
    fn clip_to_size(&mut self, header: &Header) -> Result<()> {
        let old = self.view.snapshot.size;
        let Some(transaction) = &mut self.transaction else {
            return Ok(());
        };
        if let Some(size) = header.size() {
            transaction.size = size;
        }
        let size = transaction.size;
        transaction.buffer.remove(size..u64::MAX);
        transaction.spilled.remove(size..u64::MAX);
        if size > old {
            let mut gap: RangeSet = std::iter::once(old..size).collect();
            gap = gap.without(&transaction.buffer.ranges()).without(&transaction.spilled);
            for range in gap.iter() {
                for part in split(range) {
                    transaction.buffer.write(&zeros(part.end - part.start)?, part.start)?;
                }
            }
        }
        Ok(())
    }

    /// The units of the commit, those with page 1 last (constraint 5: unfenced last).
    fn plan(&self, carried: &RangeSet) -> Vec<(Range<u64>, Source)> {
        let Some(transaction) = &self.transaction else {
            return Vec::new();
        };
        let buffered = transaction.buffer.ranges();
        let mut spilled = transaction.spilled.without(&buffered);
        if broken(Mutation::SpilledPagesNotListed) {
            spilled = RangeSet::new();
        }
        let mut plan: Vec<(Range<u64>, Source)> =
            [(&buffered, Source::Buffer), (&spilled, Source::Spilled), (carried, Source::Current)]
                .into_iter()
                .flat_map(|(set, source)| {
                    set.iter().flat_map(split).map(move |range| (range, source))
                })
                .collect();
        let last = !broken(Mutation::FirstPageFirst);
        plan.sort_by_key(|(range, _)| (last && range.start == 0, range.start));
        plan
    }

    /// Writes the units, the head of page 1 last, and the commit block with it or behind it.
    fn write_units(&mut self, plan: &[(Range<u64>, Source)], super_name: &[u8]) -> Result<()> {
        let slot = self.shadow_slot();
        let (shadow, name) = (self.pair.file(slot)?, self.role(slot));
        let mut units = Vec::new();
        units.try_reserve_exact(plan.len()).map_err(|_| Error::OutOfMemory)?;
        for (range, source) in plan {
            let (len, carried) = (range.end - range.start, *source == Source::Current);
            let bytes = if carried {
                &mut self.statistics.carried_bytes
            } else {
                &mut self.statistics.page_bytes
            };
            *bytes += if *source == Source::Spilled { 0 } else { len };
            let checksum = match source {
                Source::Buffer if range.start == 0 && !broken(Mutation::FirstPageFirst) => {
                    self.buffer().checksum(range)
                }
                Source::Buffer => self.buffer().write_to(&*shadow, range, &name)?,
                Source::Spilled => crc32fast::hash(&bytes_of(&*shadow, range, &name)?),
                Source::Current => self.carry(&*shadow, range, &name)?,
            };
            units.push(Unit { offset: range.start, len, checksum, carried });
        }
        if let Some(transaction) = &mut self.transaction {
            transaction.stage.become_(Stage::Writing { block: true });
        }
        let first = plan.iter().find(|(range, _)| range.start == 0);
        let mut block = self.commit_block(units, super_name)?;
        self.place_block(&mut block);
        if let Some((range, _)) = first {
            let apart = !broken(Mutation::FirstPageWithOthers);
            let head = if apart { range.end.min(HEAD as u64) } else { range.end };
            if range.end > head {
                self.buffer().write_to(&*shadow, &(head..range.end), &name)?;
            }
            self.buffer().write_to(&*shadow, &(0..head), &name)?;
        }
        if block.place == Place::FirstPage { Ok(()) } else { self.write_tail_block(block) }
    }

    /// What the running transaction has in memory.
    pub(crate) fn buffer(&self) -> &WriteBuffer {
        static NOTHING: WriteBuffer = WriteBuffer::new();
        self.transaction.as_ref().map_or(&NOTHING, |transaction| &transaction.buffer)
    }

    pub(crate) fn commit_block(&self, units: Vec<Unit>, super_name: &[u8]) -> Result<CommitBlock> {
        let slot = self.shadow_slot();
        let transaction = self.transaction.as_ref();
        let (snapshot, header) =
            transaction.map(|t| (t.snapshot, t.header)).unwrap_or((self.view.snapshot, None));
        Ok(CommitBlock {
            place: Place::Tail,
            pair: self.pair.coordination.pair(),
            inode: self.pair.file(slot)?.id().inode,
            slot: u8::from(slot == 1),
            state: if super_name.is_empty() { State::Whole } else { State::Prepared },
            protocol: self.protocol,
            sequence: self.view.current.sequence + 1,
            id: snapshot.id,
            parent: if broken(Mutation::NoParent) { 0 } else { self.view.snapshot.id },
            counter: snapshot.counter,
            page_size: header.and_then(|header| header.page_size()).unwrap_or(0),
            size: snapshot.size,
            vouched: None,
            super_journal: super_name.to_vec(),
            unit_count: u32::try_from(units.len()).unwrap_or(u32::MAX),
            list_checksum: 0,
            units,
        })
    }

    /// Puts the block into page 1, or where it does not fit the announcement of the one in the
    /// tail.
    fn place_block(&mut self, block: &mut CommitBlock) {
        let Some(page) = self.transaction.as_mut().and_then(|t| t.buffer.first_mut()) else {
            return;
        };
        let Some(room) = first_page::room(page) else {
            return;
        };
        let fits = block.units.len() <= room && block.super_journal.is_empty();
        block.place = if fits { Place::FirstPage } else { Place::Announced };
        first_page::insert(block, page);
    }

    pub(crate) fn write_tail_block(&mut self, mut block: CommitBlock) -> Result<()> {
        let slot = self.shadow_slot();
        let len = self.shadow_tail()?.len;
        let (file, name) = (self.pair.file(slot)?, self.role(slot));
        let units = std::mem::take(&mut block.units);
        // A reader of an older, larger state may have pages where the list goes.
        let area = list_len(units.len());
        let end = len.saturating_sub(TAIL_LEN);
        self.put_aside(&std::iter::once(end.saturating_sub(area)..end).collect())?;
        self.statistics.tail_bytes += write_commit(&*file, len, &mut block, units, &name)?;
        Ok(())
    }

    /// Aggregate update: what the last commit changed is written into the other copy, too (DASH
    /// section 4.3). A connection that made that commit still has its pages, if they are few, and
    /// reads none back. Writes `range` of the current copy into the shadow; returns its CRC-32.
    fn carry(&self, shadow: &S::File, range: &Range<u64>, name: &str) -> Result<u32> {
        let kept = self.memo.last_commit.as_ref().filter(|last| {
            // Nobody writes a copy while it is current (SHADOW-7).
            last.id == self.view.snapshot.id && last.pages.covers(range)
        });
        if let Some(last) = kept {
            return last.pages.write_to(shadow, range, name);
        }
        let bytes = bytes_of(&*self.current_file()?, range, name)?;
        write_pieces(shadow, &bytes, range.start, name)?;
        Ok(crc32fast::hash(&bytes))
    }
}

/// Cuts a range where units must not be longer.
fn split(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let parts = (range.end - range.start).div_ceil(STRIDE);
    (0..parts)
        .map(move |i| range.start + i * STRIDE..(range.start + (i + 1) * STRIDE).min(range.end))
}
