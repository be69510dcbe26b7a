//! How far `-wal` is durable: the durable end, one word, so that nobody sees half of it.

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

/// The lower half of a word.
fn lower(word: u64) -> u32 {
    u32::try_from(word & u64::from(u32::MAX)).unwrap_or(0)
}

/// Two 32-bit numbers of a header as one word.
pub fn pack(numbers: [u32; 2]) -> u64 {
    u64::from(numbers[0]) << 32 | u64::from(numbers[1])
}

/// And back.
pub fn unpack(word: u64) -> [u32; 2] {
    [lower(word >> 32), lower(word)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_durable_end_is_one_word() {
        let end = DurableEnd::new(0x1_0000_0007, 9);
        assert_eq!(DurableEnd::of(end.word()), end);
        assert!(end.covers(7, 9) && end.covers(0x5_0000_0007, 1));
        assert!(!end.covers(7, 10) && !end.covers(8, 1));
        assert_eq!(unpack(pack([3, u32::MAX])), [3, u32::MAX]);
    }
}
