//! Statements in records of the log. Beside frames: what commits say of themselves, from the one
//! who commits to the one who writes the record, if that is in the same process. In the place of
//! frames: where statements provably come to the same pages when they are run again (protocol
//! `paper`). Nothing here is called in a process that records none.
//!
//! A record of statements is as durable as any. What it says of pages can be had only by running
//! it, on the database as it was before. So `-wal` is flushed before any page is copied into the
//! database (WAL-33), and before frames follow in the log (WAL-32): the statements of a window come
//! last. It is flushed, too, once they are so many that running them again would take long.
//!
//! A log carries nothing so that is not of somebody who may write the database: nobody would run it
//! again (WAL-48).
//!
//! The source is SQLite/SSL (VLDB 2017), whose log holds statements alone.

use crate::annotation::{Room, Said, annotation, carrying};
use crate::connection::state::Connection;
use crate::connection::transaction::Transaction;
use crate::context::{Carried, RecordContext};
use crate::execute::Runner;
use crate::frames::{FRAME_HEADER, FrameHeader, frame_size, is_unsummed, unpack};
use crate::made::Made;
use crate::mutation::{Mutation, broken};
use crate::notes::{Frame, Intended, Notes};
use crate::process::{Leader, Window};
use crate::shared::coordination::{Coordination, Word};
use dash_engine::error::{Error, Result};
use dash_log::format::LINE;
use dash_log::record::{ANNOTATION_MAX, CARRYING, WINDOW_START};
use dash_log::session::Batch;
use dash_storage::{File, Storage};
use std::sync::atomic::Ordering::SeqCst;

/// Bytes that an annotation may take in a log of lines, which have little slack.
const IN_LINES: usize = 256;

/// What a record says in the place of frames.
struct Carrying {
    /// The header of the last frame.
    header: [u8; FRAME_HEADER],
    runner: Runner,
    made: Made,
    commits: u32,
    annotation: Vec<u8>,
}

impl Transaction {
    /// The last frame of a transaction is written. One without a checksum is written once more.
    pub fn note_said<F: File>(
        &mut self,
        number: u32,
        header: &[u8; FRAME_HEADER],
        said: Intended,
        notes: &Notes,
        c: &Coordination<F>,
    ) {
        self.unsay(notes);
        if is_unsummed(header) {
            return;
        }
        let durable = c.durable();
        let is_ours = durable.covers(c.get(Word::Generation), 0);
        let durable = if is_ours { durable.frame } else { 0 };
        let frame = (number, *header);
        notes.add(frame, self.first, durable, said);
        self.saying.noted = Some(frame);
    }

    /// It was rolled back, with its last frame in `-wal`.
    pub fn unsay(&mut self, notes: &Notes) {
        if let Some(frame) = self.saying.noted.take() {
            notes.withdraw(frame);
        }
    }
}

impl<S: Storage> Connection<S> {
    /// The process that it is of: a connection that goes on in a forked child is another one.
    pub fn process_id(&self) -> u32 {
        self.files.shared.process
    }

    /// Something is to be said in the log of the transaction whose last frame is written next;
    /// `full`: it may make the record longer; `runner`: its statements may carry it, as they
    /// provably come to the same pages when that runs them again. Nothing fails for it.
    pub fn say(&mut self, said: Said, full: bool, runner: Option<Runner>) {
        self.process.records.store(true, SeqCst);
        self.transaction.saying.next = Some(Intended { said, full, runner });
    }

    /// Makes a record of the frames that were read back, or of the statements that ran. `None`: it
    /// is not to be in the log.
    pub(super) fn build_with_statements(
        &mut self,
        leader: &mut Leader<S>,
        batch: Batch,
    ) -> Result<Option<u32>> {
        if let Some(carrying) = self.carrying(leader, batch)? {
            return self.build_carrying(leader, batch, &carrying).map(Some);
        }
        if self.files.shared.is_carried() && !broken(Mutation::FramesBehindStatements) {
            return Ok(None);
        }
        let commits = self.build_frames(leader, batch)?;
        // A commit does not wait or fail for what is said of it.
        drop(self.annotate(leader, batch.page, batch.first));
        Ok(Some(commits))
    }

    /// What carries the frames that were read back, if all of their transactions may be carried so.
    fn carrying(&self, leader: &Leader<S>, batch: Batch) -> Result<Option<Carrying>> {
        if !leader.may_carry || !self.process.notes.may_carry() {
            return Ok(None);
        }
        let size = usize::try_from(frame_size(batch.page)).map_err(|_| Error::OutOfMemory)?;
        let frames: Vec<_> = ends(&leader.kept.read, batch.first, size).collect();
        let Some(&(last, header)) = frames.last() else { return Ok(None) };
        let salts = unpack(self.files.shared.get(Word::Salts));
        if last != batch.last || FrameHeader::decode(&header).salts != salts {
            return Ok(None);
        }
        let carried =
            if self.files.shared.is_carried() { self.files.shared.get(Word::Carried) } else { 0 };
        if carried + frames.len() as u64 > self.settings.tuning.carried_max {
            return Ok(None);
        }
        let Some((runner, said)) = self.process.notes.carrying(&frames) else { return Ok(None) };
        // All that a window's statements carry is run again by one SQLite.
        let by = runner.word();
        let of_others =
            self.files.shared.is_carried() && self.files.shared.get(Word::CarriedBy) != by;
        if of_others && !broken(Mutation::TwoRunners) {
            return Ok(None);
        }
        let Some(annotation) = self.annotation_of(&said) else { return Ok(None) };
        let Some(made) = Made::of(&leader.kept.read, size) else { return Ok(None) };
        // Nothing of it is said again.
        drop(self.process.notes.take(frames.iter().copied()));
        let commits = u32::try_from(said.len()).unwrap_or(u32::MAX);
        Ok(Some(Carrying { header, runner, made, commits, annotation }))
    }

    /// It takes no more than the room that what is said may take where that is asked for (WAL-23).
    fn annotation_of(&self, said: &[(u32, Said)]) -> Option<Vec<u8>> {
        let quarter = usize::try_from(self.files.shared.get(Word::Ring) / 4).unwrap_or(usize::MAX);
        carrying(said).filter(|bytes| bytes.len() <= quarter)
    }

    /// Makes a record of that; answers how many transactions end in it.
    fn build_carrying(
        &mut self,
        leader: &mut Leader<S>,
        batch: Batch,
        carrying: &Carrying,
    ) -> Result<u32> {
        let starts = self.files.shared.get(Word::Window) == 0;
        let generation = self.files.shared.get(Word::Generation);
        let mut header = carrying.header;
        if broken(Mutation::EndForgotten) {
            header[16] ^= 1;
        }
        let context = RecordContext {
            generation,
            first_frame: batch.first,
            carried: Some(Carried {
                last: batch.last,
                header,
                runner: carrying.runner,
                made: carrying.made.clone(),
            }),
            start: if starts { Some(self.wal.generation(&self.files)?) } else { None },
        };
        let flags = CARRYING | if starts { WINDOW_START } else { 0 };
        self.session.begin_record(leader, flags, batch.page, 0, &context.encode())?;
        leader.builder.annotate(&carrying.annotation)?;
        // No difference follows in this window.
        let (first, upto) = (batch.first, batch.last);
        leader.kept.window = Window { generation, first, upto, ..Window::default() };
        leader.kept.carried = carrying.commits;
        self.files.shared.set(Word::CarriedBy, carrying.runner.word());
        self.counters.own.carried += u64::from(carrying.commits);
        Ok(carrying.commits)
    }

    /// Puts what is said of the transactions in it into the record that was built of the frames
    /// from `first` on.
    fn annotate(&self, leader: &mut Leader<S>, page: u32, first: u32) -> Result<()> {
        let size = usize::try_from(frame_size(page)).map_err(|_| Error::OutOfMemory)?;
        let mut items = self.process.notes.take(ends(&leader.kept.before, first, size));
        let Some(log) = leader.log.as_ref().filter(|_| !items.is_empty()) else { return Ok(()) };
        if broken(Mutation::AnnotationAddsBlocks) {
            items.iter_mut().for_each(|(_, _, full)| *full = true);
        }
        self.files.shared.set(Word::Said, 1);
        leader.builder.slack(log.block())?;
        let block = usize::try_from(log.block()).map_err(|_| Error::OutOfMemory)?;
        let quarter = usize::try_from(self.files.shared.get(Word::Ring) / 4);
        let room = Room {
            record: leader.builder.len(),
            block,
            free: if block == LINE { IN_LINES } else { 0 },
            full: ANNOTATION_MAX.min(quarter.unwrap_or(ANNOTATION_MAX)),
        };
        leader.builder.annotate(&annotation(&items, room))
    }
}

/// The last frames of the transactions in `frames`, of `size` bytes each, from number `first` on.
fn ends(frames: &[u8], first: u32, size: usize) -> impl Iterator<Item = Frame> {
    (first..).zip(frames.chunks_exact(size)).filter_map(|(number, frame)| {
        let header = frame.first_chunk()?;
        FrameHeader::decode(header).is_commit().then_some((number, *header))
    })
}
