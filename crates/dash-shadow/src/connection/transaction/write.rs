//! The write transaction up to the commit: pages gather in memory, and in the shadow when they
//! become too many. What must be in place before the first byte reaches the shadow is here.

use crate::connection::state::Connection;
use crate::connection::transaction::Transaction;
use crate::mutation::{Mutation, broken};
use crate::shared::locks::LockLevel;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::io::read_padded;
use dash_engine::ranges::RangeSet;
use dash_storage::{File, Storage};

impl<S: Storage> Connection<S> {
    /// Takes a write of SQLite's.
    pub fn write(&mut self, data: &[u8], offset: u64) -> Result<()> {
        self.continue_session()?;
        let Some(transaction) = &mut self.transaction else {
            return Err(Error::Refused("written without a lock".into()));
        };
        transaction.buffer.write(data, offset)?;
        transaction.size = transaction.size.max(offset + data.len() as u64);
        transaction.stage.writes_on();
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
        transaction.stage.writes_on();
        Ok(())
    }

    /// Under locking_mode=EXCLUSIVE the next transaction begins without a lock call (T5): take the
    /// other copy here. `Busy` is the caller's to wait out; SQLite must never see it.
    fn continue_session(&mut self) -> Result<()> {
        if self.debts.unpublished.is_some() {
            self.publish_at_last()?;
        }
        if let Some(reason) = &self.debts.poisoned {
            return Err(Error::Poisoned(reason.clone()));
        }
        if self.transaction.is_none() && self.view.level == LockLevel::Exclusive {
            self.check_names()?;
            self.check_kept_limit_of_session()?;
            self.exclude_readers()?;
            self.transaction = Some(Transaction::new(self.view.snapshot.size));
        }
        Ok(())
    }

    /// Reads through the running transaction.
    pub(crate) fn read_written(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        let Some(transaction) = &self.transaction else {
            return Ok(());
        };
        if let Some(block) = transaction.buffer.exact(offset, buffer.len()) {
            buffer.copy_from_slice(block);
            return Ok(());
        }
        let range = offset..offset + buffer.len() as u64;
        let name = self.pair.names.shown();
        let committed = usize::try_from(self.view.snapshot.size.saturating_sub(offset))
            .unwrap_or(buffer.len())
            .min(buffer.len());
        read_padded(&*self.current_file()?, &mut buffer[..committed], offset)
            .during(Operation::Read, name)?;
        buffer[committed..].fill(0);
        if transaction.spilled.intersects(range.clone()) {
            let shadow = self.pair.file(self.shadow_slot())?;
            for spilled in transaction.spilled.overlapping(range.clone()) {
                let from = spilled.start.max(range.start);
                let to = spilled.end.min(range.end);
                if let (Ok(at), Ok(end)) =
                    (usize::try_from(from - offset), usize::try_from(to - offset))
                {
                    read_padded(&*shadow, &mut buffer[at..end], from)
                        .during(Operation::Read, name)?;
                }
            }
        }
        transaction.buffer.overlay(buffer, offset);
        Ok(())
    }

    /// Writes the gathered pages, but not page 1, into the shadow to free memory.
    fn spill(&mut self) -> Result<()> {
        self.headroom_for_lists()?;
        let Some(transaction) = &self.transaction else {
            return Ok(());
        };
        let blocks: RangeSet = transaction
            .buffer
            .blocks()
            .filter(|(at, _)| *at > 0)
            .map(|(at, block)| at..at + block.len() as u64)
            .collect();
        let size = transaction.size;
        // First: where there is no space for that, nothing is to be undone.
        self.put_aside(&blocks)?;
        self.begin_writing_shadow()?;
        self.take_block_back()?;
        self.make_room(size, 0)?;
        self.cover(&blocks)?;
        let (shadow, name) = (self.pair.file(self.shadow_slot())?, self.role(self.shadow_slot()));
        let Some(transaction) = &mut self.transaction else {
            return Ok(());
        };
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

    /// Ends the write transaction: what was not published is undone.
    pub(crate) fn end_write(&mut self) -> Result<()> {
        // SQLite can do nothing with an error of xUnlock. What could not be undone is given up, and
        // if even that failed the next write says so.
        drop(self.discard());
        // The next lock meets the same error.
        if self.debts.unpublished.is_some() {
            drop(self.publish_at_last());
        }
        self.target.put_aside.label = None;
        let released = self.release_exclusion();
        // Nobody can write the new copy before WRITER is free, so it is safe to move over now.
        let pinned = self.move_pin();
        let unlocked = self.pair.coordination.release_writer();
        released.and(pinned).and(unlocked)
    }

    /// Forgets the running transaction and undoes what it wrote into the shadow.
    pub(crate) fn discard(&mut self) -> Result<()> {
        match self.transaction.take() {
            Some(_) if broken(Mutation::NoUndo) => {
                self.pair.coordination.set_in_flight(0);
                Ok(())
            }
            Some(transaction) if transaction.stage.is_in_flight() => {
                if transaction.took_room {
                    self.give_current_room_back();
                }
                self.undo(&transaction.dirtied, transaction.snapshot.id)
            }
            _ => Ok(()),
        }
    }
}
