//! The wal-index (`xShm*`): SQLite's memory, and its locks.

use crate::connection::drain::waits_to_read;
use crate::connection::index::WRITER;
use crate::connection::state::Connection;
use crate::frames::frame_size;
use crate::index::{self, Index};
use crate::mutation::{Mutation, broken};
use crate::shared::coordination::Word;
use dash_engine::error::{Error, Result};
use dash_log::session::{Means, commit};
use dash_storage::{LockKind, Storage};
use std::ops::Range;
use std::ptr::NonNull;

/// Bytes of a region.
const REGION: usize = 32 << 10;

impl<S: Storage> Connection<S> {
    /// The index, opened at its first use.
    fn open_index(&mut self) -> Result<&mut Index<S>> {
        if self.index.open.is_none()
            && let Some(memory) = self.wal.memory.clone()
        {
            self.index.open = Some(self.attach_memory(&memory)?);
        }
        if self.index.open.is_none() {
            let (mut opened, is_first) = self.files.attach_index()?;
            let joined = self.files.join_files(&opened, self.wal.id());
            self.wal.is_refused = matches!(&joined, Err(error) if !matches!(error, Error::Busy));
            joined?;
            let entered = if is_first { self.enter_index(&mut opened) } else { Ok(()) };
            if entered.is_err() {
                self.files.leave_files()?;
            }
            entered?;
            self.index.open = Some(opened);
        }
        self.index.open.as_mut().ok_or(Error::Busy)
    }

    /// Nobody else has the index that was opened.
    fn enter_index(&mut self, opened: &mut Index<S>) -> Result<()> {
        if !opened.is_as_left() {
            opened.map_region(0, false)?;
        }
        if self.look_again(opened.header())? {
            opened.void()?;
        }
        opened.settle()?;
        self.wal.sum_up_as_found(opened, &self.files)?;
        opened.readmit()
    }

    /// Goes on with the index of `old`, which came over `fork()` and is dead: SQLite keeps what it
    /// knows of it.
    ///
    /// # Errors
    ///
    /// As for [`Self::map_region`]; then `old` still has it.
    pub fn inherit_index(&mut self, old: &mut Self) -> Result<()> {
        if old.index.open.is_some() {
            self.open_index()?;
        }
        // SQLite keeps its cache.
        self.reads = std::mem::take(&mut old.reads);
        // Not yet in its place in this process either, perhaps.
        let dead = old.index.open.take().and_then(Index::inherit);
        self.index.inherited = old.index.inherited.take().or(dead);
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

    /// Takes slots; `marks`: to change marks, all of them to begin `-wal` anew. A session may have
    /// begun since WRITER was taken: its guard is shared by all.
    fn lock_slots(&mut self, slots: &Range<usize>, kind: LockKind, marks: bool) -> Result<()> {
        if marks && slots.len() > 1 {
            self.guard_session()?;
        }
        self.index.lock_past_rest(slots, kind, &self.files)
    }

    /// Takes slots.
    ///
    /// # Errors
    ///
    /// `Busy` while somebody is in the way.
    pub fn index_lock(&mut self, slots: Range<usize>, kind: LockKind) -> Result<()> {
        let writer = slots.contains(&index::WRITE) && kind == LockKind::Exclusive;
        if self.lock_in_view(&slots, kind)? {
            return Ok(());
        }
        if writer && self.index.reserved {
            self.index.reserved = false;
            self.reads.begin_to_write(self.header_sum());
            return Ok(());
        }
        if writer {
            self.files.check_sound()?;
            (self.transaction.pending, self.transaction.first) = (None, 0);
        }
        let reads = slots.start > index::READ && kind == LockKind::Shared;
        if reads && self.files.shared.is(Word::HeldBack) && waits_to_read(&self.files) {
            self.counters.own.held_back += 1;
            return Err(Error::Busy);
        }
        if reads && self.files.shared.is(Word::Unsummed) {
            // SQLite looks again at the header after this lock, and so it can begin to write.
            self.try_sum_up_for_the_dead()?;
        }
        self.take_slots(&slots, kind)?;
        let reads = slots.start >= index::READ && kind == LockKind::Shared;
        if reads {
            self.guard_reading(&slots)?;
        }
        if slots.start == index::READ && kind == LockKind::Exclusive {
            self.checkpoint.same_generation(&slots, &mut self.index, &self.files)?;
        }
        self.index.note_lock(&slots, kind, &self.files);
        let header = self.index.open.as_ref().and_then(Index::raw_header);
        if let Some(header) = header.filter(|_| reads) {
            self.reads.begin(header);
        }
        if slots.contains(&index::CKPT) && kind == LockKind::Exclusive {
            let least = self.settings.tuning.drain_frames;
            self.checkpoint.barrier = false;
            self.checkpoint.generation = self.index.visible_generation();
            let drained = self.checkpoint.begin_draining(&mut self.index, least, &self.files);
            if drained.is_err() {
                self.index_unlock(slots)?;
            }
            self.counters.own.drains += u64::from(drained?);
            return Ok(());
        }
        // What is read under READ(0) is in the database, and so was made durable before.
        if self.settings.durable_reads && slots.start > index::READ && kind == LockKind::Shared {
            return self.wait_until_durable(slots);
        }
        Ok(())
    }

    /// Takes slots of the index. For a reader's, those are waited for that keep `-wal` from being
    /// begun anew ([`super::drain`]).
    fn take_slots(&mut self, slots: &Range<usize>, kind: LockKind) -> Result<()> {
        let writer = slots.contains(&index::WRITE) && kind == LockKind::Exclusive;
        let marks = slots.start > index::READ && kind == LockKind::Exclusive;
        let mut got = self.lock_slots(slots, kind, marks);
        // SQLite asks for it where it finds no header.
        if writer
            && self.index.inherited.is_some()
            && let Some(index) = &mut self.index.open
            && let Err(error) = index.take_place_of(&mut self.index.inherited, got.is_ok())
        {
            self.index.unlock(slots.clone(), &self.files)?;
            return Err(error);
        }
        let least = self.settings.tuning.drain_frames;
        if marks && matches!(got, Err(Error::Busy)) {
            let (index, files) = (&mut self.index, &self.files);
            if self.checkpoint.drain(slots.clone(), index, least, files)? {
                got = Ok(());
            }
        }
        if writer {
            got = got.and_then(|()| self.enter_writer(slots));
            if got.is_err() {
                self.counters.own.busy += 1;
                self.index.missed_writer(&self.files);
            }
        }
        got
    }

    /// WRITER was taken: what a dead writer has left undone is done first, or it is given up.
    fn enter_writer(&mut self, slots: &Range<usize>) -> Result<()> {
        let looked = self.files.check_written_wal(self.wal.id());
        let looked = looked.and_then(|()| self.look_at_strangers());
        let looked = looked.and_then(|()| match self.files.shared.is(Word::Unsummed) {
            true => self.sum_up_for_the_dead(),
            false => Ok(()),
        });
        if let Err(error) = looked {
            self.index.unlock(slots.clone(), &self.files)?;
            return Err(error);
        }
        self.wal.own.begin();
        self.reads.begin_to_write(self.header_sum());
        self.index.got_writer(&self.files);
        Ok(())
    }

    /// `dash_read=durable`: what is visible now is durable before it is read.
    fn wait_until_durable(&mut self, slots: Range<usize>) -> Result<()> {
        // What is read may be of a generation that stock SQLite has begun since.
        let adopted = if broken(Mutation::ReadUnadopted) { Ok(()) } else { self.adopt() };
        let waited = match adopted.and_then(|()| self.visible_end()) {
            Ok(Some(end)) if end > 0 && self.wal.open.is_some() => commit(self, end, Means::Flush),
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
    pub fn index_unlock(&mut self, mut slots: Range<usize>) -> Result<()> {
        if self.view_lock(&slots, None) {
            return Ok(());
        }
        slots = self.end_view(slots)?;
        let writer = slots.contains(&index::WRITE) && self.index.holds(index::WRITE);
        let mut told = Ok(());
        // In a checkpoint SQLite has made the index anew: this generation is the one that it
        // copies.
        if writer && self.index.holds(index::CKPT) {
            self.checkpoint.generation = self.index.visible_generation();
        }
        if writer {
            told = self.wal.write_held(&self.files);
            if told.is_ok() && self.transaction.unsummed != 0 {
                told = self.tell_sums();
            }
            if let Some(index) = &self.index.open {
                index.tell_apart(|| self.files.storage.random());
            }
            self.note_own_index();
            self.writer_released();
            let header = self.index.open.as_ref().and_then(Index::raw_header);
            self.reads.cease_to_write(header.as_ref());
            self.files.shared.set(Word::Writing, 0);
        } else if slots.start >= index::READ && slots.len() == 1 {
            self.read_released();
        }
        if slots.contains(&index::CKPT) && self.checkpoint.end_draining(&self.files) {
            self.index_unlock(WRITER)?;
        }
        self.files.shared.tell_given_up(&slots);
        self.index.unlock(slots, &self.files)?;
        if writer {
            self.files.shared.wake_first()?;
        }
        told
    }

    /// Takes WRITER ahead of SQLite, for its next attempt.
    ///
    /// # Errors
    ///
    /// Those of the file.
    pub fn try_writer(&mut self) -> Result<bool> {
        if self.index.reserved {
            return Ok(true);
        }
        if self.index.open.is_none() || self.files.shared.is(Word::Poisoned) {
            return Ok(false);
        }
        match self.index_lock(WRITER, LockKind::Exclusive) {
            Ok(()) => {
                self.index.reserved = true;
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
        match std::mem::take(&mut self.index.reserved) {
            true => self.index_unlock(WRITER),
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
        self.index.inherited = None;
        if delete {
            self.wal.note_backfill(self.index.open.as_ref());
            // What is voided next is what is there.
            self.adopt()?;
        }
        // Nobody else may be left who knows of it (WAL-19).
        let summed = match self.files.shared.is(Word::Unsummed) && !broken(Mutation::LeftUnsummed) {
            true => self.try_sum_up_for_the_dead(),
            false => Ok(()),
        };
        match self.index.open.take() {
            Some(index) => {
                if index.id().is_some() {
                    // First: who comes next may make another `-shm`.
                    self.files.leave_files()?;
                }
                let unmapped = index.unmap(&*self.files.directory, &self.files.shared.file, delete);
                summed.and(unmapped).and(self.wal.detach_memory(delete, &self.files))
            }
            None => Ok(()),
        }
    }

    /// The bytes of `-wal` where a checkpoint has some to copy still; it makes no system call.
    #[must_use]
    pub fn uncopied_wal(&self) -> Option<u64> {
        let (index, (_, page)) = (self.index.open.as_ref()?, self.wal.page?);
        let end = index.header()?.mx_frame;
        (index.is_backfilled() == Some(false)).then(|| u64::from(end) * frame_size(page))
    }

    /// Whether somebody has committed since this connection began to read: then it can't write.
    #[must_use]
    pub fn is_outdated(&self) -> bool {
        self.reads.is_outdated(self.header_sum())
    }

    /// The checksum of the index's header: of another state it is another one.
    #[must_use]
    pub fn header_sum(&self) -> Option<u64> {
        self.index.open.as_ref().and_then(Index::header_sum)
    }
}
