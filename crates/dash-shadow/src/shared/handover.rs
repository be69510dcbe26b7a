//! The write lock WRITER, and the words that hand it from connection to connection: see
//! [`dash_engine::handover`].

use crate::shared::coordination::{Coordination, ENTRIES, ENTRY, MAX_READERS, Word};
use crate::shared::locks;
use dash_engine::error::{Context, Operation, Result};
use dash_engine::handover::{Handed, Line, Turn, is_alive};
use dash_storage::{File, LockKind};
use std::sync::atomic::Ordering::SeqCst;

/// The words of the coordination file that tell of WRITER. A ticket is the third word of a reader
/// entry, behind the process.
pub(crate) const LINE: Line = Line {
    writing: Word::Writing as usize,
    waiting: Word::Waiting as usize,
    tickets: Word::Tickets as usize,
    handed_to: Word::HandedTo as usize,
    high: Word::ReaderHigh as usize,
    entries: MAX_READERS,
    first_process: ENTRIES + 1,
    first_ticket: ENTRIES + 2,
    stride: ENTRY,
};

impl<F: File> Coordination<F> {
    /// Tries to take WRITER.
    pub(crate) fn try_writer(&self) -> Result<bool> {
        let name = "the coordination file";
        let got =
            self.file.try_lock(locks::WRITER, LockKind::Exclusive).during(Operation::Lock, name)?;
        if got {
            self.word(Word::Writing).store(1, SeqCst);
        }
        Ok(got)
    }

    /// Gives WRITER up.
    pub(crate) fn release_writer(&self) -> Result<()> {
        self.word(Word::Writing).store(0, SeqCst);
        self.tell_writing(0);
        self.file.unlock(locks::WRITER).during(Operation::Lock, "the coordination file")
    }

    /// Tells the connection that handed WRITER over that it was taken.
    pub(crate) fn acknowledge_handover(&self) {
        LINE.acknowledge(&*self.memory);
    }

    /// Where this connection can wait for its turn. `None`: it has no reader entry, and polls.
    pub(crate) fn turn(&self) -> Option<Turn<F::Memory>> {
        self.entry.map(|entry| Turn::of(&self.memory, LINE, entry))
    }

    /// See [`Line::hand_over`].
    pub(crate) fn hand_over(&self) -> Result<Handed> {
        LINE.hand_over(&*self.memory, self.entry, |entry| is_alive(&self.file, entry))
    }
}
