//! What is to be said in the log of transactions that are not durable yet: handed by those who
//! commit to whoever of this process writes the record.
//!
//! A note is known by the whole header of its transaction's last frame, which has a checksum of
//! everything before it in `-wal`: what was rolled back has another one than what others have
//! written in its place (WAL-24).

use crate::annotation::{Item, Said};
use crate::execute::Runner;
use crate::frames::{FRAME_HEADER, FrameHeader};
use crate::mutation::{Mutation, broken};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, TryLockError};

/// Bytes of statements that are kept. Of those that come then only the fact is.
const BYTES: usize = 4 << 20;
/// How often the list is tried to be had. A thread that a fork left behind has it for ever.
const ATTEMPTS: usize = 10_000;

/// The last frame of a transaction.
pub(crate) type Frame = (u32, [u8; FRAME_HEADER]);

/// What is to be said of a transaction.
#[derive(Debug)]
pub(crate) struct Intended {
    pub said: Said,
    /// It may add blocks.
    pub full: bool,
    /// It may carry the transaction, which provably does the same when this runs it again.
    pub runner: Option<Runner>,
}

/// What a connection has to say.
#[derive(Debug, Default)]
pub(crate) struct Saying {
    /// Of the transaction whose last frame is written next.
    pub next: Option<Intended>,
    /// The last frame of the transaction in hand, of which something is noted.
    pub noted: Option<Frame>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Notes(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    notes: VecDeque<Note>,
    bytes: usize,
}

#[derive(Debug)]
struct Note {
    frame: Frame,
    said: Option<Said>,
    full: bool,
    runner: Option<Runner>,
}

impl Note {
    fn bytes(&self) -> usize {
        self.said.as_ref().map_or(0, |said| said.statements.len())
    }

    fn salts(&self) -> [u32; 2] {
        FrameHeader::decode(&self.frame.1).salts
    }
}

impl Kept {
    fn retain(&mut self, keep: impl Fn(&Note) -> bool) {
        self.notes.retain(keep);
        self.bytes = self.notes.iter().map(Note::bytes).sum();
    }
}

impl Notes {
    /// Who can't have it does without: no commit waits for that.
    fn kept(&self) -> Option<MutexGuard<'_, Kept>> {
        for _ in 0..ATTEMPTS {
            match self.0.try_lock() {
                Ok(kept) => return Some(kept),
                Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => std::thread::yield_now(),
            }
        }
        None
    }

    /// The last frame of a transaction was written, whose first one is `first`. What was noted of
    /// frames from there on was rolled back, and what is up to `durable` is in no record to come.
    pub(crate) fn add(&self, frame: Frame, first: u32, durable: u32, intended: Intended) {
        let Intended { said, full, runner } = intended;
        let Some(mut kept) = self.kept() else { return };
        let salts = FrameHeader::decode(&frame.1).salts;
        kept.retain(|note| note.salts() == salts && (durable + 1..first).contains(&note.frame.0));
        let fits = kept.bytes + said.statements.len() <= BYTES;
        let note = Note { frame, said: fits.then_some(said), full, runner };
        kept.bytes += note.bytes();
        kept.notes.push_back(note);
    }

    /// A transaction was rolled back after all.
    pub(crate) fn withdraw(&self, frame: Frame) {
        if !broken(Mutation::RolledBackNoteKept)
            && let Some(mut kept) = self.kept()
        {
            kept.retain(|note| note.frame != frame);
        }
    }

    /// Whether any transaction may be carried by its statements.
    pub(crate) fn may_carry(&self) -> bool {
        self.kept().is_some_and(|kept| kept.notes.iter().any(|note| note.runner.is_some()))
    }

    /// What carries the transactions that end with these frames: what is said of each, where all of
    /// them are to be carried, and run again by the same.
    pub(crate) fn carrying(&self, frames: &[Frame]) -> Option<(Runner, Vec<(u32, Said)>)> {
        let kept = self.kept()?;
        let mut runner = None;
        let of = |frame: &Frame| {
            let note = kept.notes.iter().find(|note| note.frame == *frame)?;
            let same = *runner.get_or_insert(note.runner?) == note.runner?;
            Some((frame.0, note.said.clone().filter(|_| same)?))
        };
        let items = frames.iter().map(of).collect::<Option<Vec<_>>>()?;
        Some((runner?, items))
    }

    /// What is to be said of the transactions that end with these frames, which are in the record
    /// that is being made. Nothing that is older will be in one.
    pub(crate) fn take(&self, frames: impl Iterator<Item = Frame>) -> Vec<Item> {
        let Some(mut kept) = self.kept().filter(|kept| !kept.notes.is_empty()) else {
            return Vec::new();
        };
        let (mut items, mut last) = (Vec::new(), 0);
        for frame in frames {
            let is_it = |note: &Note| match broken(Mutation::RolledBackNoteKept) {
                true => note.frame.0 == frame.0,
                false => note.frame == frame,
            };
            if let Some(at) = kept.notes.iter().position(is_it)
                && let Some(note) = kept.notes.remove(at)
            {
                let number = if broken(Mutation::NoteOfAnother) { last } else { frame.0 };
                items.push((number, note.said, note.full));
            }
            last = frame.0;
        }
        kept.retain(|note| note.frame.0 > last);
        items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(number: u32, sum: u8) -> Frame {
        let mut header = [sum; FRAME_HEADER];
        header[8..16].fill(1);
        (number, header)
    }

    fn said(connection: u64, bytes: usize) -> Intended {
        let said =
            Said { process: 1, connection: Some(connection), time: 0, statements: vec![7; bytes] };
        Intended { said, full: false, runner: None }
    }

    /// WAL-32
    #[test]
    fn either_all_are_carried_or_none() {
        let notes = Notes::default();
        let by = |build| Some(Runner { version: 3_045_001, build });
        for (number, runner) in [(1, by(1)), (2, by(1)), (3, by(2)), (4, None)] {
            notes.add(frame(number, 1), number, 0, Intended { runner, ..said(9, 5) });
        }
        let carried = |frames: &[Frame]| notes.carrying(frames).map(|(_, items)| items.len());
        assert_eq!(carried(&[frame(1, 1)]), Some(1));
        assert_eq!(carried(&[frame(1, 1), frame(2, 1)]), Some(2));
        assert_eq!(carried(&[frame(2, 1), frame(3, 1)]), None, "by another SQLite");
        assert_eq!(carried(&[frame(3, 1), frame(4, 1)]), None, "not provably");
        assert_eq!(carried(&[frame(1, 1), frame(2, 2)]), None, "of other frames");
        assert_eq!(carried(&[frame(1, 1), frame(5, 1)]), None, "by another process");
        assert_eq!(carried(&[]), None);
    }

    fn taken(notes: &Notes, frames: &[Frame]) -> Vec<(u32, Option<u64>)> {
        let items = notes.take(frames.iter().copied());
        items
            .into_iter()
            .map(|(frame, said, _)| (frame, said.and_then(|it| it.connection)))
            .collect()
    }

    /// WAL-24.
    #[test]
    fn a_note_goes_with_its_own_transaction_alone() {
        let notes = Notes::default();
        notes.add(frame(3, 1), 2, 0, said(1, 10));
        notes.add(frame(5, 2), 4, 0, said(2, 10));
        // Rolled back, and others wrote frames in its place.
        assert_eq!(taken(&notes, &[frame(3, 1), frame(5, 9)]), [(3, Some(1))]);
        notes.add(frame(7, 3), 6, 5, said(3, 10));
        notes.withdraw(frame(7, 4));
        notes.add(frame(6, 5), 6, 5, said(4, 10));
        assert_eq!(taken(&notes, &[frame(6, 5), frame(7, 3)]), [(6, Some(4))]);
        notes.add(frame(9, 3), 8, 5, said(5, 10));
        notes.withdraw(frame(9, 3));
        assert_eq!(taken(&notes, &[frame(9, 3)]), []);
    }

    #[test]
    fn what_is_too_much_is_known_to_be_missing() {
        let notes = Notes::default();
        notes.add(frame(1, 1), 1, 0, said(1, BYTES));
        notes.add(frame(2, 1), 2, 0, said(2, 1));
        assert_eq!(taken(&notes, &[frame(1, 1), frame(2, 1)]), [(1, Some(1)), (2, None)]);
        notes.add(frame(3, 1), 3, 0, said(3, BYTES));
        // It became durable without a record.
        notes.add(frame(4, 1), 4, 3, said(4, BYTES));
        assert_eq!(taken(&notes, &[frame(3, 1), frame(4, 1)]), [(4, Some(4))]);
    }
}
