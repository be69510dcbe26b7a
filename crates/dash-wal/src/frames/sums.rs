//! The header's numbers, and the checksum that it and the frames have.

/// Bytes of the header.
pub(crate) const HEADER: usize = 32;

/// WAL_MAGIC, with its lowest bit clear.
pub(super) const MAGIC: u32 = 0x377f_0682;

/// WAL_MAX_VERSION.
pub(super) const FORMAT: u32 = 3_007_000;

/// A running checksum.
pub(crate) type Checksum = [u32; 2];

/// How a checksum reads the words that it adds up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ByteOrder {
    /// `0x377f0682`: made by a little-endian machine.
    Little,
    /// `0x377f0683`: made by a big-endian one.
    Big,
}

impl ByteOrder {
    /// This machine's.
    pub(crate) const NATIVE: Self =
        if cfg!(target_endian = "big") { Self::Big } else { Self::Little };
}

/// Adds `data`, whole groups of 8 bytes, to a checksum (wal.c `walChecksumBytes`).
pub(crate) fn checksum(order: ByteOrder, data: &[u8], seed: Checksum) -> Checksum {
    match order {
        ByteOrder::Little => add_up(data, seed, u32::from_le_bytes),
        ByteOrder::Big => add_up(data, seed, u32::from_be_bytes),
    }
}

#[inline(always)]
fn add_up(data: &[u8], [mut one, mut two]: Checksum, word: impl Fn([u8; 4]) -> u32) -> Checksum {
    let (pairs, rest) = data.as_chunks::<8>();
    debug_assert!(rest.is_empty(), "SQLite adds up whole pairs of words");
    for &[a, b, c, d, e, f, g, h] in pairs {
        one = one.wrapping_add(word([a, b, c, d])).wrapping_add(two);
        two = two.wrapping_add(word([e, f, g, h])).wrapping_add(one);
    }
    [one, two]
}

/// A number of four bytes.
pub(super) fn number(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().fold(0, |value, &byte| value << 8 | u32::from(byte))
}
