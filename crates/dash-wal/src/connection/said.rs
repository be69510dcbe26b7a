//! What commits say of themselves in the log, beside their frames: from the one who commits to the
//! one who writes the record, if that is in the same process.

use crate::annotation::{Room, Said, annotation};
use crate::connection::state::Connection;
use crate::connection::transaction::Transaction;
use crate::execute::Runner;
use crate::frames::{FRAME_HEADER, FrameHeader, frame_size, is_unsummed};
use crate::mutation::{Mutation, broken};
use crate::notes::{Frame, Intended, Notes};
use crate::process::Leader;
use crate::shared::coordination::{Coordination, Word};
use dash_engine::error::{Error, Result};
use dash_log::format::LINE;
use dash_log::record::ANNOTATION_MAX;
use dash_storage::{File, Storage};

/// Bytes that an annotation may take in a log of lines, which have little slack.
const IN_LINES: usize = 256;

impl Transaction {
    /// The last frame of a transaction is written. One without a checksum is written once more.
    pub fn note_said<F: File>(
        &mut self,
        number: u32,
        header: &[u8; FRAME_HEADER],
        notes: &Notes,
        c: &Coordination<F>,
    ) {
        let Some(said) = self.saying.next.take() else { return };
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
        self.transaction.saying.next = Some(Intended { said, full, runner });
    }

    /// Puts what is said of the transactions in it into the record that was built of the frames
    /// from `first` on.
    pub(crate) fn annotate(&self, leader: &mut Leader<S>, page: u32, first: u32) -> Result<()> {
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
pub(crate) fn ends(frames: &[u8], first: u32, size: usize) -> impl Iterator<Item = Frame> {
    (first..).zip(frames.chunks_exact(size)).filter_map(|(number, frame)| {
        let header = frame.first_chunk()?;
        FrameHeader::decode(header).is_commit().then_some((number, *header))
    })
}
