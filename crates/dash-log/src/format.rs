//! What head and record have in common: how they begin, what they are measured in, how numbers are
//! read and written, and what bytes can be that are neither.

use crate::format::layout::{CHECKSUM, ID, MAGIC_LEN, SEQUENCE, VERSION as VERSION_AT};
use std::ops::RangeInclusive;

/// The format of the head and of the records of a log of sectors.
pub const VERSION: u32 = 1;

/// The format of the heads of a log of lines, which says that records there may be compact: the
/// latest that is read.
pub const LINES_VERSION: u32 = 3;

/// The same of all that are read. Before compact records those of a log of lines were as in one of
/// sectors.
pub(crate) const LINES_VERSIONS: RangeInclusive<u32> = 2..=LINES_VERSION;

/// Bytes of a head. A device writes so many whole: in a log of sectors records begin at multiples
/// of it, in the file and in the ring.
pub const SECTOR: usize = 512;

/// What byte-addressable memory writes back at once, though not whole: in a log of lines records
/// begin at multiples of it.
pub const LINE: usize = 64;

/// Where the ring begins in the file. The head has the block before it.
pub const RING_START: u64 = 4096;

/// Longest context of an engine, in bytes, in a head. A record's may be 65,535 bytes long.
pub const HEAD_CONTEXT_MAX: usize = 256;

/// What a log is laid out for. It stays so for the file's life, whatever it is copied to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Devices, which write sectors whole.
    Sectors,
    /// Byte-addressable memory, where lines tear.
    Lines,
}

impl Form {
    /// Records begin at multiples of so many bytes.
    #[must_use]
    pub fn step(self) -> usize {
        match self {
            Self::Sectors => SECTOR,
            Self::Lines => LINE,
        }
    }
}

/// Offsets of what head and record have in the same place, in every version of the format: so an
/// older dash can tell what a newer one wrote.
pub mod layout {
    /// Bytes of the magic, which stands first.
    pub const MAGIC_LEN: usize = 8;
    /// Version, u32.
    pub const VERSION: usize = 8;
    /// CRC-32, this field zero, u32.
    pub const CHECKSUM: usize = 12;
    /// The log's id, u64.
    pub const ID: usize = 16;
    /// A record's sequence, u64.
    pub const SEQUENCE: usize = 24;
}

/// Why bytes are no head and no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invalid {
    /// Something else, or nothing, is there.
    Absent,
    /// It begins like one, but is torn, overwritten or damaged.
    Damaged,
    /// Its checksum is right, and what it says can't be.
    Malformed,
    /// A newer dash wrote it, with this version of the format; or with a flag that this one does
    /// not know.
    Newer(u32),
}

/// How the bytes of a head or a record begin, if they begin with `magic`.
pub(crate) struct Beginning {
    pub(crate) version: u32,
    pub(crate) checksum: u32,
    pub(crate) id: u64,
    pub(crate) sequence: u64,
}

impl Beginning {
    pub(crate) fn of(bytes: &[u8], magic: [u8; MAGIC_LEN]) -> Option<Self> {
        let begins = bytes.len() >= SEQUENCE + 8 && bytes.starts_with(&magic);
        begins.then(|| Self {
            version: u32_at(bytes, VERSION_AT),
            checksum: u32_at(bytes, CHECKSUM),
            id: u64_at(bytes, ID),
            sequence: u64_at(bytes, SEQUENCE),
        })
    }

    /// Whether this is one of those versions.
    pub(crate) fn is_of(&self, versions: RangeInclusive<u32>) -> Result<(), Invalid> {
        match self.version {
            it if versions.contains(&it) => Ok(()),
            newer if newer > *versions.end() => Err(Invalid::Newer(newer)),
            _ => Err(Invalid::Damaged),
        }
    }
}

/// CRC-32 of `bytes` with the checksum's field, which is at `field`, zero.
pub(crate) fn checksum_but(field: usize, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[..field]);
    hasher.update(&[0; 4]);
    hasher.update(&bytes[field + 4..]);
    hasher.finalize()
}

/// The same, with the field where heads and most records have it.
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    checksum_but(CHECKSUM, bytes)
}

/// Puts the checksum into its field.
pub(crate) fn seal(bytes: &mut [u8]) {
    let sum = checksum(bytes);
    put(bytes, CHECKSUM, &sum.to_le_bytes());
}

pub(crate) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array(bytes, at))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(bytes, at))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(bytes, at))
}

/// `N` bytes at `at`; zeros where `bytes` has not so many.
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}
