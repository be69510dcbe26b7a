//! Fences: what keeps stock SQLite from a copy that is being written (SHADOW-4, SHADOW-5), and the
//! flushes they need.

use crate::connection::state::Connection;
use crate::connection::transaction::stage::Stage;
use crate::file::void_commit::void_commit;
use crate::format::header::{FENCE_OFFSET, HEADER_LEN, Header, Marks};
use crate::format::{Protocol, SECTOR, TAIL_LEN};
use crate::mutation::{Mutation, broken};
use crate::shared::coordination::Word;
use crate::shared::locks;
use crate::shared::state::ShadowCondition;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::fence::{self, Found};
use dash_engine::io::read_header;
use dash_storage::{Directory, File, FileKind, LockKind, Storage};
use std::sync::atomic::Ordering::SeqCst;

/// Bytes of a copy's start that are written apart and last, since they take its fence away
/// (SHADOW-5). A process that is killed within a longer write leaves a part of it: Linux looks for
/// deadly signals between two pages of its cache.
pub(crate) const HEAD: usize = 4096;

impl<S: Storage> Connection<S> {
    /// What must stand before the shadow's first byte changes: the name fence where a stock reader
    /// could find this file under `app.db` after a power loss (SHADOW-4), the mark for dash that a
    /// writer is at work, and the header fence for stock descriptors opened long ago (SHADOW-5).
    pub(crate) fn begin_writing_shadow(&mut self) -> Result<()> {
        if self.transaction.as_ref().is_none_or(|transaction| transaction.stage.is_in_flight()) {
            return Ok(());
        }
        // Under locking_mode=EXCLUSIVE a transaction may follow one that failed and could not be
        // undone, without a lock call at which that would be noticed.
        if self.pair.coordination.in_flight() != 0 {
            self.finish_dead_writer()?;
        }
        if self.pair.coordination.condition() != ShadowCondition::Known {
            self.exclude_readers()?;
        }
        self.reserve.keep()?;
        let slot = self.shadow_slot();
        self.guard_names(slot)?;
        self.pair.coordination.set_in_flight(self.view.current.sequence + 1);
        // From here on being in flight says it, and whoever undoes this mends that too.
        self.pair.coordination.clear_half_settled();
        if let Some(transaction) = &mut self.transaction {
            transaction.stage.become_(Stage::Writing { block: false });
        }
        self.put_aside(&std::iter::once(0..SECTOR).collect())?;
        self.fence_header(slot)?;
        if broken(Mutation::PaperLiteral)
            && self.transaction.as_ref().is_some_and(|transaction| transaction.snapshot.id != 0)
            && self.shadow_tail()?.len > TAIL_LEN
        {
            // The version update of Algorithm 1 as printed: the number of the commit that begins.
            let block = self.commit_block(Vec::new(), &[])?;
            self.write_tail_block(block)?;
        }
        if self.protocol == Protocol::Paper {
            // The paper's version update: the mark is durable before the pages.
            self.flush_file(slot)?;
        }
        Ok(())
    }

    /// SQLite writes again after FCNTL_SYNC, in the same transaction: under locking_mode=EXCLUSIVE
    /// a rollback of what was spilled ends with a sync and without an unlock (pager.c
    /// `sqlite3PagerRollback`). The block that is in the shadow by then does not list what is
    /// written now (SHADOW-8), so it goes first, durably.
    pub(crate) fn take_block_back(&mut self) -> Result<()> {
        let prepared = self.transaction.as_mut().is_some_and(|transaction| {
            let block = transaction.stage.has_block();
            if block {
                transaction.stage.become_(Stage::Writing { block: false });
            }
            block && !broken(Mutation::PreparedAgain)
        });
        if !prepared {
            return Ok(());
        }
        let slot = self.shadow_slot();
        self.fence_header(slot)?;
        let len = self.shadow_tail()?.len;
        void_commit(&*self.pair.file(slot)?, len, &self.role(slot))?;
        self.flush_file(slot)
    }

    /// Marks the header of a copy that is about to be written, in the page cache only.
    pub(crate) fn fence_header(&self, slot: usize) -> Result<()> {
        let (file, name) = (self.pair.file(slot)?, self.role(slot));
        // Any header that differs in every byte a pager compares will do; the current copy's is at
        // hand.
        let mut bytes = [0; HEADER_LEN];
        bytes[24..40].copy_from_slice(&self.view.snapshot.version);
        let header = match read_header_if_short(&self.view.snapshot.size, &*file, &name)? {
            Some(header) => header,
            None => Header(bytes),
        };
        if broken(Mutation::NoHeaderFence) {
            return Ok(());
        }
        file.write_at(&header.fence(), FENCE_OFFSET).during(Operation::Write, &name)
    }

    /// The name fence (SHADOW-4): before the first write into a file that may be
    /// named `app.db` on disk. The first commit after opening makes do with durable names.
    pub(crate) fn guard_names(&mut self, slot: usize) -> Result<()> {
        self.guard(slot, false)
    }

    /// The same; `anyway`: also where the names are durable, for a commit that can't leap
    /// (SHADOW-19).
    pub(crate) fn guard(&mut self, slot: usize, anyway: bool) -> Result<()> {
        if broken(Mutation::NoNameFence) {
            return Ok(());
        }
        let generation = self.pair.coordination.generation();
        let lagging = self.others_may_lag(generation)?;
        let behind = lagging || self.pair.coordination.may_be_named_on_disk(slot);
        if self.pair.coordination.fence() || !(behind || anyway) {
            self.pair.coordination.word(Word::Guarded).store(generation, SeqCst);
            return Ok(());
        }
        // One that is found may have been put up without a flush.
        let found = self.pair.coordination.fence_found() && !broken(Mutation::FoundFenceBelieved);
        if lagging || self.pair.coordination.commits() > 0 || found || anyway {
            // Whoever closes last looks for it, also if this process dies in the next step.
            self.pair.coordination.set_fence_found(true);
            self.raise_fence()?;
        }
        // Where none was found and none has been made it is taken for none: whoever needs one makes
        // it.
        let fence = match self.pair.coordination.fence_found() {
            true => self
                .pair
                .directory
                .metadata(&self.pair.names.fence)
                .during(Operation::Stat, self.pair.names.fence.to_string_lossy())?,
            false => None,
        };
        if fence.is_some_and(|fence| fence.kind != FileKind::Directory) {
            return Err(Error::Refused(format!(
                "{} is a rollback journal of stock SQLite; close all connections and open the database again",
                self.pair.names.fence.to_string_lossy()
            )));
        }
        if !broken(Mutation::NameFenceNotFlushed) {
            self.flush_directory()?;
        }
        self.pair.coordination.set_name_on_disk(1 - slot);
        self.pair.coordination.set_fence(fence.is_some());
        self.pair.coordination.word(Word::Guarded).store(generation, SeqCst);
        Ok(())
    }

    /// Whether what [`guard_names`](Self::guard_names) has to see to is seen to.
    pub(crate) fn is_guarded(&self, slot: usize) -> Result<bool> {
        let behind = self.others_may_lag(self.pair.coordination.generation())?
            || self.pair.coordination.may_be_named_on_disk(slot);
        Ok(self.pair.coordination.fence() || !behind || broken(Mutation::NoNameFence))
    }

    /// Whether somebody may be alive who has not noticed that a new shadow was made, and so does
    /// not hold RESERVED of a file that is about to be called `app.db` (SHADOW-14). Answers for one
    /// generation until the fence stands or nobody is found: a later opener takes the files as
    /// they are.
    fn others_may_lag(&self, generation: u64) -> Result<bool> {
        if self.pair.coordination.word(Word::Guarded).load(SeqCst) == generation {
            return Ok(false);
        }
        // In this order: an opener holds OPEN until it is ALIVE.
        for range in [locks::OPEN, locks::ALIVE] {
            let holder = self.pair.coordination.file().lock_conflict(range, LockKind::Exclusive);
            if holder.during(Operation::Lock, self.pair.names.shown_coordination())?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Sees to it that a name fence stands, to be made durable by a flush of the folder.
    fn raise_fence(&mut self) -> Result<()> {
        let (directory, names) = (&*self.pair.directory, &self.pair.names);
        let found = fence::find(directory, &names.fence)?;
        if found == Found::Journal {
            return Ok(());
        }
        let flushes = !broken(Mutation::FenceInodeNotFlushed);
        self.statistics.directory_flushes += u64::from(flushes);
        let place = fence::Place { directory, names, like: &*self.current_file()? };
        place.raise(found == Found::Fence, flushes)
    }

    /// Whether the name fence stands when the shadow is written next:
    /// [`guard_names`](Self::guard_names) puts it there. (Also where it does for other reasons,
    /// this may say no.)
    pub(crate) fn will_be_guarded(&self) -> bool {
        let behind = self.pair.coordination.may_be_named_on_disk(self.shadow_slot());
        self.pair.coordination.fence() || self.pair.coordination.commits() > 0 && behind
    }
}

/// The shadow's own header where the current copy has none yet.
fn read_header_if_short<F: File>(size: &u64, file: &F, name: &str) -> Result<Option<Header>> {
    if *size == 0 { read_header(file, name) } else { Ok(None) }
}
