//! What words of the coordination file tell of `-wal` together: its generation, and how far that is
//! durable. The durable end is one word, so that nobody sees half of it.

use crate::context::{Generation, HeadContext, LeftGeneration, WAL_HEADER};
use crate::frames::pack;
use crate::mutation::{Mutation, broken};
use crate::shared::coordination::{Coordination, Word};
use crate::stamp::Stamp;
use dash_storage::File;
use std::sync::atomic::Ordering::SeqCst;

/// A place in `-wal`: frame `frame` of a generation. Frames count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DurableEnd {
    /// Lower half of the generation's number.
    pub generation: u32,
    /// The last durable frame; 0: none is.
    pub frame: u32,
}

impl DurableEnd {
    /// Of a generation.
    pub fn new(generation: u64, frame: u32) -> Self {
        Self { generation: lower(generation), frame }
    }

    /// As a word holds it.
    pub fn of(word: u64) -> Self {
        Self { generation: lower(word >> 32), frame: lower(word) }
    }

    /// The word.
    pub fn word(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.frame)
    }

    /// Whether frame `frame` of `generation` is durable.
    pub fn covers(self, generation: u64, frame: u32) -> bool {
        self.generation == lower(generation) && self.frame >= frame
    }
}

impl<F: File> Coordination<F> {
    /// How far `-wal` is durable.
    pub fn durable(&self) -> DurableEnd {
        DurableEnd::of(self.get(Word::Durable))
    }

    /// Says so.
    pub fn set_durable(&self, frame: u32) {
        let end = DurableEnd::new(self.get(Word::Generation), frame);
        self.set(Word::Durable, end.word());
    }

    /// Whether frame `frame` of the generation is durable.
    pub fn is_durable(&self, frame: u32) -> bool {
        self.durable().covers(self.get(Word::Generation), frame)
    }

    /// Whether frame `frame`, which was made durable, is so by a flush and not by a mere write.
    pub fn is_flushed(&self, frame: u32) -> bool {
        self.is_durable(frame) && !self.is(Word::LogUnflushed)
    }

    /// `-wal` was flushed under the header with these salts: no older one is on the device.
    pub fn wal_is_flushed(&self, salts: [u32; 2]) {
        self.set(Word::Settled, pack(salts));
        self.set(Word::FirstSalt, u64::from(salts[0]));
        self.set(Word::Predecessor, 0);
        self.set(Word::HeaderNew, 0);
    }

    /// `end`, or the last frame before it of which it is known that all up to it have their
    /// checksums.
    pub fn last_known_sum(&self, end: u32) -> u32 {
        let known = |word| DurableEnd::of(self.get(word));
        let of_now = |known: &DurableEnd| known.covers(self.get(Word::Generation), 0);
        let words = [Word::Durable, Word::Summed].map(known);
        let last = words.iter().filter(|known| of_now(known)).map(|known| known.frame).max();
        last.unwrap_or(0).min(end)
    }

    /// All frames of `generation` up to `frame` have their checksums.
    pub fn set_summed(&self, generation: u64, frame: u32) {
        let known = DurableEnd::new(generation, frame);
        self.word(Word::Summed).fetch_max(known.word(), SeqCst);
    }

    /// `end`, or the last frame before a transaction that lacks checksums. Where stock SQLite
    /// writes, nobody has said so of its frames.
    pub fn summed_end(&self, end: u32) -> u32 {
        let end = match self.is(Word::Stock) && !broken(Mutation::RoundsUnsummed) {
            true => self.last_known_sum(end),
            false => end,
        };
        match self.get(Word::Unsummed) {
            0 => end,
            _ if broken(Mutation::UnsummedTaken) => end,
            first => u32::try_from(first - 1).map_or(end, |before| end.min(before)),
        }
    }

    /// Whether the window has a record that its statements carry.
    pub fn is_carried(&self) -> bool {
        self.get(Word::Window) != 0 && self.is(Word::Carried)
    }

    /// Whether the log counts for nothing and nobody is fenced off.
    pub fn is_at_rest(&self) -> bool {
        !self.is(Word::Session) && !self.is(Word::Fence)
    }

    /// The database before anything of this generation was copied there.
    pub fn stamp(&self) -> Stamp {
        Stamp::of_words([self.get(Word::Stamp), self.get(Word::StampPage)])
    }

    /// A generation with this header, and the present numbers.
    pub fn generation(&self, header: &[u8; WAL_HEADER]) -> Generation {
        let salt = |word| u32::try_from(self.get(word)).unwrap_or(0);
        Generation {
            number: self.get(Word::Generation),
            header: *header,
            first: salt(Word::FirstSalt),
            predecessor: salt(Word::Predecessor),
            stamp: self.stamp(),
        }
    }

    /// What the log's head says of a session that ends.
    pub fn closed(&self) -> HeadContext {
        let records = self.get(Word::Sequence).saturating_sub(self.get(Word::FirstSequence));
        let flushes = records + self.get(Word::StockCommits);
        let flushes = u32::try_from(flushes).unwrap_or(u32::MAX);
        let stamp = [self.get(Word::Stamp), self.get(Word::StampPage)];
        let left = LeftGeneration::of_words(self.get(Word::Salts), stamp);
        HeadContext::Closed { flushes, left: left.filter(|_| !broken(Mutation::LeftUnsaid)) }
    }
}

/// The lower half of a word.
fn lower(word: u64) -> u32 {
    u32::try_from(word & u64::from(u32::MAX)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::{pack, unpack};

    #[test]
    fn a_durable_end_is_one_word() {
        let end = DurableEnd::new(0x1_0000_0007, 9);
        assert_eq!(DurableEnd::of(end.word()), end);
        assert!(end.covers(7, 9) && end.covers(0x5_0000_0007, 1));
        assert!(!end.covers(7, 10) && !end.covers(8, 1));
        assert_eq!(unpack(pack([3, u32::MAX])), [3, u32::MAX]);
    }
}
