//! The last commits of the database, of all its connections: a ring in the coordination file.
//!
//! A commit takes a place by its number and fills it with plain stores: no lock, no system call.
//! The first word is 0 meanwhile, and the number afterwards, so a reader knows which places are
//! whole. One that is killed over its place leaves it 0.

use crate::shared::coordination::{COMMIT, COMMITS, Coordination, MAX_COMMITS, Word};
use dash_storage::{File, SharedMemory};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::fence;

/// How many are shown: fewer than there is room for, as the oldest ones may be filled again while
/// they are read.
const KEPT: u64 = 1000;

/// Of how many nanoseconds nobody knows.
const NONE: u64 = u64::MAX;

/// A commit. Times are nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecentCommit {
    /// When it was done, by the storage's clock.
    pub at: u64,
    /// The process that made it.
    pub process: u32,
    /// Frames it wrote.
    pub frames: u32,
    /// How long it waited to become the writer.
    pub wait: u64,
    /// From visible until durable, the wait for another connection's flush included. `None`: it was
    /// not to be made durable (`synchronous=NORMAL`).
    pub flush: Option<u64>,
    /// The record that holds it, where it is in the log, and that is known.
    pub record: Option<Record>,
}

/// What a record holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Transactions that became durable with it.
    pub commits: u32,
    /// Its bytes in the log, padding included.
    pub bytes: u32,
}

impl Record {
    fn word(self) -> u64 {
        u64::from(self.commits) << 32 | u64::from(self.bytes)
    }

    fn of(word: u64) -> Option<Self> {
        let [commits, bytes] = halves(word);
        (word != 0).then_some(Self { commits, bytes })
    }
}

fn halves(word: u64) -> [u32; 2] {
    let half = |word: u64| u32::try_from(word & u64::from(u32::MAX)).unwrap_or(0);
    [half(word >> 32), half(word)]
}

impl<F: File> Coordination<F> {
    /// Puts a commit into the ring.
    pub fn note_commit(&self, commit: &RecentCommit) {
        let number = self.word(Word::Commits).fetch_add(1, SeqCst);
        let word = |index: usize| self.memory.word(place(number) + index);
        word(0).store(0, SeqCst);
        fence(SeqCst);
        word(1).store(commit.at, Relaxed);
        word(2).store(u64::from(commit.process) << 32 | u64::from(commit.frames), Relaxed);
        word(3).store(commit.wait, Relaxed);
        word(4).store(commit.flush.unwrap_or(NONE), Relaxed);
        word(5).store(commit.record.map_or(0, Record::word), Relaxed);
        word(0).store(number.wrapping_add(1), SeqCst);
    }

    /// The last commits, the newest one first.
    pub fn recent_commits(&self) -> Vec<RecentCommit> {
        recent(&*self.memory)
    }

    /// Says what the newest record holds: frames `first` to `last`. The lock LOG is held.
    pub fn note_record(&self, (first, last): (u32, u32), record: Record) {
        self.set(Word::RecordFrames, 0);
        self.set(Word::Record, record.word());
        self.set(Word::RecordFrames, u64::from(first) << 32 | u64::from(last));
    }

    /// The record that holds a frame, if that is the newest one.
    pub fn record_of(&self, frame: u32) -> Option<Record> {
        let frames = self.get(Word::RecordFrames);
        let [first, last] = halves(frames);
        let record = Record::of(self.get(Word::Record));
        let same = self.get(Word::RecordFrames) == frames;
        record.filter(|_| same && first != 0 && (first..=last).contains(&frame))
    }
}

/// The last commits in the ring, the newest one first.
pub(crate) fn recent<M: SharedMemory>(memory: &M) -> Vec<RecentCommit> {
    let end = memory.word(Word::Commits as usize).load(SeqCst);
    let commit = |number: u64| {
        let word = |index: usize| memory.word(place(number) + index);
        let whole = || word(0).load(SeqCst) == number + 1;
        if !whole() {
            return None;
        }
        let [process, frames] = halves(word(2).load(Relaxed));
        let flush = word(4).load(Relaxed);
        let commit = RecentCommit {
            at: word(1).load(Relaxed),
            process,
            frames,
            wait: word(3).load(Relaxed),
            flush: (flush != NONE).then_some(flush),
            record: Record::of(word(5).load(Relaxed)),
        };
        fence(SeqCst);
        whole().then_some(commit)
    };
    (end.saturating_sub(KEPT)..end).rev().filter_map(commit).collect()
}

/// The first word of a commit's place.
fn place(number: u64) -> usize {
    COMMITS + usize::try_from(number % MAX_COMMITS as u64).unwrap_or(0) * COMMIT
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use dash_simulated::{File as Simulated, Machine};

    fn coordination() -> Coordination<Simulated> {
        Coordination::map(testing::open(&Machine::new(1), "app.db-dash")).unwrap()
    }

    #[test]
    fn the_last_thousand_are_there_newest_first() {
        let coordination = coordination();
        assert_eq!(coordination.recent_commits(), []);
        let commit = |number: u32| RecentCommit {
            at: u64::from(number),
            process: 7,
            frames: number,
            wait: 3,
            flush: number.is_multiple_of(2).then_some(u64::from(number)),
            record: number.is_multiple_of(3).then_some(Record { commits: 2, bytes: number }),
        };
        for number in 1..=2500 {
            coordination.note_commit(&commit(number));
        }
        let wanted: Vec<_> = (1501..=2500).rev().map(commit).collect();
        assert_eq!(coordination.recent_commits(), wanted);
    }

    #[test]
    fn a_place_that_is_being_filled_is_left_out() {
        let coordination = coordination();
        let commit =
            RecentCommit { at: 1, process: 1, frames: 1, wait: 0, flush: None, record: None };
        for _ in 0..3 {
            coordination.note_commit(&commit);
        }
        coordination.memory.word(place(1)).store(0, SeqCst);
        assert_eq!(coordination.recent_commits().len(), 2);
    }

    #[test]
    fn only_the_newest_record_is_known() {
        let coordination = coordination();
        assert_eq!(coordination.record_of(1), None);
        let record = Record { commits: 3, bytes: 4096 };
        coordination.note_record((5, 9), record);
        assert_eq!(
            [4, 5, 9, 10].map(|frame| coordination.record_of(frame)),
            [None, Some(record), Some(record), None]
        );
    }
}
