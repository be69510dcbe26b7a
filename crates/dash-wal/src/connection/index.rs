//! The wal-index (`xShm*`): SQLite's memory, and its locks.

use crate::connection::state::Connection;
use crate::index::{self, Index};
use crate::mutation::{Mutation, broken};
use crate::rights::explained;
use crate::shared::coordination::Word;
use crate::shared::locks::OPEN;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_log::session::{Means, commit};
use dash_storage::{File, LockKind, Storage};
use std::ops::Range;
use std::ptr::NonNull;
use std::time::Duration;

/// Bytes of a region.
const REGION: usize = 32 << 10;

/// For how long whoever attaches the index waits for others of dash that have it for themselves,
/// and for somebody who closes and flushes.
const SHORT_PATIENCE: Duration = Duration::from_millis(10);
const PATIENCE: Duration = Duration::from_secs(10);

/// How often it is tried.
const PAUSE: Duration = Duration::from_micros(200);

impl<S: Storage> Connection<S> {
    /// The index, opened at its first use.
    fn open_index(&mut self) -> Result<&mut Index<S>> {
        if self.index.is_none()
            && let Some(memory) = self.memory.clone()
        {
            self.index = Some(self.attach_memory(&memory)?);
        }
        if self.index.is_none() {
            let (mut opened, is_first) = self.attach_index()?;
            if is_first {
                opened.map_region(0, false)?;
                if self.look_again(opened.header())? {
                    opened.void()?;
                }
                self.sum_up_as_found(&opened)?;
                opened.readmit()?;
            }
            self.index = Some(opened);
        }
        self.index.as_mut().ok_or(Error::Busy)
    }

    /// Attaches to `-shm`. Whether nobody else of dash has it: then nobody at all gets in, until
    /// [`Index::readmit`]. Else nobody of stock SQLite has written since they looked.
    ///
    /// # Errors
    ///
    /// `Busy` where a stock program writes; nobody is refused for somebody of dash who looks at
    /// what it has found, or who closes ([`Self::rest_for_those_who_stay`]). Those of the files.
    pub(crate) fn attach_index(&self) -> Result<(Index<S>, bool)> {
        let (directory, name) = (&*self.directory, &self.names.shm);
        let opened = Index::open(&self.storage, directory, name, &**self.database.file());
        let mut opened = opened
            .map_err(|error| explained(error, &self.storage, &self.session.path, &self.names))?;
        let mut waited = Duration::ZERO;
        loop {
            match opened.exclude() {
                Err(Error::Busy) => {}
                excluded => return excluded.map(|()| (opened, true)),
            }
            match opened.readmit() {
                Err(Error::Busy) => {}
                shared => return shared.map(|()| (opened, false)),
            }
            let open = self.coordination.file.lock_conflict(OPEN, LockKind::Exclusive);
            let closes = open.during(Operation::Lock, self.names.shown_coordination())?.is_some();
            if waited >= if closes { PATIENCE } else { SHORT_PATIENCE } {
                return Err(Error::Busy);
            }
            self.storage.sleep(PAUSE);
            waited += PAUSE;
        }
    }

    /// Goes on with the index of `old`, which came over `fork()` and is dead: SQLite keeps what it
    /// knows of it.
    ///
    /// # Errors
    ///
    /// As for [`Self::map_region`]; then `old` still has it.
    pub fn inherit_index(&mut self, old: &mut Self) -> Result<()> {
        if old.index.is_some() {
            self.open_index()?;
        }
        // Not yet in its place in this process either, perhaps.
        let dead = old.index.take().and_then(Index::inherit);
        self.inherited = old.inherited.take().or(dead);
        Ok(())
    }

    /// Memory of region `index`; with `extend` it is made if it is missing.
    ///
    /// # Errors
    ///
    /// `Busy` while a stock program writes; those of the file.
    pub fn map_region(
        &mut self,
        index: usize,
        size: usize,
        extend: bool,
    ) -> Result<Option<NonNull<u8>>> {
        if size != REGION {
            return Err(Error::Refused(format!(
                "regions of the wal-index have {REGION} bytes, not {size}"
            )));
        }
        self.open_index()?.map_region(index, extend)
    }

    /// Takes slots.
    ///
    /// # Errors
    ///
    /// `Busy` while somebody is in the way.
    pub fn index_lock(&mut self, slots: Range<usize>, kind: LockKind) -> Result<()> {
        let writer = slots.contains(&index::WRITE) && kind == LockKind::Exclusive;
        if writer && self.transaction.reserved {
            self.transaction.reserved = false;
            return Ok(());
        }
        if writer {
            self.check_sound()?;
            (self.transaction.pending, self.transaction.first) = (None, 0);
        }
        let reads = slots.start > index::READ && kind == LockKind::Shared;
        if reads && self.coordination.is(Word::HeldBack) && self.waits_to_read() {
            self.statistics.held_back += 1;
            return Err(Error::Busy);
        }
        if reads && self.coordination.is(Word::Unsummed) {
            // SQLite looks again at the header after this lock, and so it can begin to write.
            self.try_sum_up_for_the_dead()?;
        }
        let mut got = self.try_slots(&slots, kind);
        // SQLite asks for it where it finds no header.
        if writer
            && self.inherited.is_some()
            && let Some(index) = &mut self.index
            && let Err(error) = index.take_place_of(&mut self.inherited, got.is_ok())
        {
            index.unlock(slots, &self.coordination.file)?;
            return Err(error);
        }
        let marks = slots.start > index::READ && kind == LockKind::Exclusive;
        if marks && matches!(got, Err(Error::Busy)) && self.drain(slots.clone())? {
            got = Ok(());
        }
        if writer {
            got = got.and_then(|()| self.enter_writer(&slots));
            match &got {
                Ok(()) => {
                    self.own.begin();
                    self.coordination.set_writing(true);
                    self.got_writer();
                }
                Err(_) => {
                    self.statistics.busy += 1;
                    self.missed_writer();
                }
            }
        }
        got?;
        if slots.start == index::READ && kind == LockKind::Exclusive {
            self.same_generation(&slots)?;
        }
        self.note_lock(&slots, kind);
        if slots.contains(&index::CKPT) && kind == LockKind::Exclusive {
            self.checkpoint.barrier = false;
            self.checkpoint.generation = self.visible_generation();
            if let Err(error) = self.begin_draining() {
                self.index_unlock(slots)?;
                return Err(error);
            }
            return Ok(());
        }
        // What is read under READ(0) is in the database, and so was made durable before.
        if self.settings.durable_reads && slots.start > index::READ && kind == LockKind::Shared {
            return self.wait_until_durable(slots);
        }
        Ok(())
    }

    /// Takes them, if nobody has them but somebody who comes to rest.
    fn try_slots(&mut self, slots: &Range<usize>, kind: LockKind) -> Result<()> {
        let rested = self.coordination.get(Word::Rested);
        let Some(index) = &mut self.index else { return Err(Error::Busy) };
        let got = index.lock(slots.clone(), kind, &self.coordination.file);
        let changes = kind == LockKind::Exclusive && slots.start <= index::CKPT;
        match got {
            Err(Error::Busy) if changes => self.past_rest(slots, rested),
            got => got,
        }
    }

    /// WRITER was taken: what a dead writer has left undone is done first, or it is given up.
    fn enter_writer(&mut self, slots: &Range<usize>) -> Result<()> {
        let summed = self.sum_up_for_the_dead();
        if let (Err(_), Some(index)) = (&summed, &mut self.index) {
            index.unlock(slots.clone(), &self.coordination.file)?;
        }
        summed
    }

    /// `dash_read=durable`: what is visible now is durable before it is read.
    fn wait_until_durable(&mut self, slots: Range<usize>) -> Result<()> {
        let waited = match self.visible_end() {
            Ok(Some(end)) if end > 0 && self.wal.is_some() => commit(self, end, Means::Flush),
            other => other.map(drop),
        };
        if waited.is_err() {
            self.index_unlock(slots)?;
        }
        waited
    }

    /// Gives slots up.
    ///
    /// # Errors
    ///
    /// Those of the file.
    pub fn index_unlock(&mut self, slots: Range<usize>) -> Result<()> {
        let exclusive = |index: &Index<S>, slot| index.held(slot) == Some(LockKind::Exclusive);
        let writer = slots.contains(&index::WRITE)
            && self.index.as_ref().is_some_and(|index| exclusive(index, index::WRITE));
        let mut told = Ok(());
        // In a checkpoint SQLite has made the index anew: this generation is the one that it
        // copies.
        if writer && self.index.as_ref().is_some_and(|index| exclusive(index, index::CKPT)) {
            self.checkpoint.generation = self.visible_generation();
        }
        if writer {
            told = self.write_held().and_then(|()| self.tell_sums());
            if let Some(index) = &self.index {
                index.tell_apart(|| self.storage.random());
            }
            self.writer_released();
            self.coordination.set(Word::Writing, 0);
        } else if slots.start >= index::READ && slots.len() == 1 {
            self.read_released();
        }
        if slots.contains(&index::CKPT) {
            self.end_draining()?;
        }
        self.note_unlock(&slots);
        if let Some(index) = &mut self.index {
            index.unlock(slots, &self.coordination.file)?;
        }
        if writer {
            self.coordination.wake_first()?;
        }
        told
    }

    /// Takes WRITER ahead of SQLite, for its next attempt.
    ///
    /// # Errors
    ///
    /// Those of the file.
    pub fn try_writer(&mut self) -> Result<bool> {
        if self.transaction.reserved {
            return Ok(true);
        }
        if self.index.is_none() || self.coordination.is(Word::Poisoned) {
            return Ok(false);
        }
        match self.index_lock(index::WRITE..index::WRITE + 1, LockKind::Exclusive) {
            Ok(()) => {
                self.transaction.reserved = true;
                Ok(true)
            }
            Err(Error::Busy) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Gives it up, if SQLite has not come for it.
    ///
    /// # Errors
    ///
    /// Those of the file.
    pub fn release_writer(&mut self) -> Result<()> {
        match std::mem::take(&mut self.transaction.reserved) {
            true => self.index_unlock(index::WRITE..index::WRITE + 1),
            false => Ok(()),
        }
    }

    /// Gives the index up; with `delete` also its file, if nobody else has it.
    ///
    /// # Errors
    ///
    /// Those of the file.
    pub fn unmap(&mut self, delete: bool) -> Result<()> {
        self.release_writer()?;
        self.inherited = None;
        if delete {
            self.note_backfill();
        }
        // Nobody else may be left who knows of it (WAL-19).
        let summed = match self.coordination.is(Word::Unsummed) && !broken(Mutation::LeftUnsummed) {
            true => self.try_sum_up_for_the_dead(),
            false => Ok(()),
        };
        match self.index.take() {
            Some(index) => {
                let unmapped = index.unmap(&*self.directory, &self.coordination.file, delete);
                summed.and(unmapped).and(self.detach_memory(delete))
            }
            None => Ok(()),
        }
    }
}
