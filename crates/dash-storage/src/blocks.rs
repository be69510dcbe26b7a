//! Memory for direct I/O.

use std::io::{self, ErrorKind};
use std::ops::{Deref, DerefMut, Range};

/// Bytes that begin at a multiple of [`Blocks::ALIGNMENT`] in memory, zeros at first.
#[derive(Debug)]
pub struct Blocks {
    /// Never grows, so the bytes never move, wherever this does.
    memory: Vec<u8>,
    place: Range<usize>,
}

impl Blocks {
    /// The largest block that [`File::make_direct`](crate::File::make_direct) answers.
    pub const ALIGNMENT: usize = 4096;

    /// `len` zeros; [`ErrorKind::OutOfMemory`] if there is no room for them.
    pub fn try_new(len: usize) -> io::Result<Self> {
        let out_of_memory = || io::Error::from(ErrorKind::OutOfMemory);
        let room = len.checked_add(Self::ALIGNMENT - 1).ok_or_else(out_of_memory)?;
        let mut memory = Vec::new();
        memory.try_reserve_exact(room).map_err(|_| out_of_memory())?;
        memory.resize(room, 0_u8);
        let start = memory.as_ptr().addr().wrapping_neg() % Self::ALIGNMENT;
        Ok(Self { memory, place: start..start + len })
    }
}

impl Deref for Blocks {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.memory[self.place.clone()]
    }
}

impl DerefMut for Blocks {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.place.clone()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_begin_where_a_block_may_and_are_zeros() {
        for len in [0, 1, 512, 4096, 70_000] {
            let mut all: Vec<Blocks> = (0..20).map(|_| Blocks::try_new(len).unwrap()).collect();
            for blocks in &mut all {
                assert_eq!((blocks.len(), blocks.as_ptr().addr() % 4096), (len, 0));
                assert!(blocks.iter().all(|&byte| byte == 0));
                blocks.fill(7);
            }
            assert!(all.iter().all(|blocks| blocks.iter().all(|&byte| byte == 7)));
        }
    }

    #[test]
    fn memory_that_is_not_there_is_an_error() {
        for len in [usize::MAX, usize::MAX / 2, 1 << 62] {
            let error = Blocks::try_new(len).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{len}");
        }
    }
}
