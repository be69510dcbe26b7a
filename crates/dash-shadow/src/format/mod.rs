//! The blocks, byte by byte: two in a tail, one in page 1. All integers are little-endian;
//! `FORMAT.md` shows the same tables, and a test compares them.
//!
//! All begin with eight bytes that no SQLite page can begin with: a b-tree page begins
//! with 2, 5, 10 or 13 (or "SQLite f"), an overflow or trunk page with a page number below
//! 0xFFFFFFFF, a pointer map with a type 1–5.

use crate::mutation::{Mutation, broken};
pub use commit_block::{
    CommitBlock, Unit, Vouched, decode_units, encode_units, list_len, unchanged_id,
};
pub use intent_block::{IntentBlock, REGION_BYTES, REGION_COUNT};

mod commit_block;
pub mod header;
pub(crate) mod which_counts;

pub mod first_page;

mod intent_block;

/// Bytes of the commit block and of the intent block.
pub const BLOCK: usize = 4096;

/// [`BLOCK`] as a file offset.
pub const BLOCK_LEN: u64 = 4096;

/// Bytes of both blocks: the least a tail has.
pub const TAIL_LEN: u64 = 2 * BLOCK_LEN;

/// The format written, and the one that is read. Format 1 kept every commit block in the tail:
/// whoever knows only that would take the tail's for the newest. No release wrote it.
pub const FORMAT_VERSION: u32 = 2;

/// Begins a commit block.
pub const COMMIT_MAGIC: [u8; 8] = *b"\xFF\xFF\xFF\xFFDSHC";

/// Begins a commit block in page 1.
pub const FIRST_PAGE_MAGIC: [u8; 8] = *b"\xFF\xFF\xFF\xFFDSHP";

/// Begins an intent block.
pub const INTENT_MAGIC: [u8; 8] = *b"\xFF\xFF\xFF\xFFDSHI";

/// Largest sequence of a commit: connections share it with a bit beside it, and count on.
pub const SEQUENCE_MAX: u64 = u64::MAX >> 2;

/// Longest name of a super-journal, in bytes.
pub const SUPER_NAME_MAX: usize = 256;

/// Units that fit into the commit block itself; more go to a list area ahead of the tail.
pub const INLINE_UNITS: usize = (BLOCK - layout::UNITS) / UNIT;

/// Bytes of one entry of a page list.
pub const UNIT: usize = 16;

/// Granularity of a unit's place and length: SQLite's smallest page.
pub const SECTOR: u64 = 512;

/// [`SECTOR`] as a number of bytes in memory.
pub const SECTOR_BYTES: usize = 512;

/// Offsets in the blocks.
pub mod layout {
    /// Magic, 8 bytes.
    pub const MAGIC: usize = 0;
    /// Format version, u32.
    pub const VERSION: usize = 8;
    /// CRC-32 of the block with this field zero, u32.
    pub const CHECKSUM: usize = 12;
    /// Pair id, u64.
    pub const PAIR: usize = 16;
    /// Inode number of the file the block is in, u64.
    pub const INODE: usize = 24;
    /// Slot of the file in the pair, u8 (0 or 1).
    pub const SLOT: usize = 32;
    /// State, u8.
    pub const STATE: usize = 33;
    /// Commit protocol, u8.
    pub const PROTOCOL: usize = 34;
    /// Block in page 1: where its list is, u8; 0: before it, 1: in the tail's commit block.
    pub const LIST_PLACE: usize = 35;
    /// Commit block of a superseded file, u8; bit 0: both names were durable when it was written;
    /// bit 1: another program had the file open.
    pub const CLOSED: usize = 35;
    /// Number of units, u32.
    pub const UNIT_COUNT: usize = 36;
    /// Sequence, u64.
    pub const SEQUENCE: usize = 40;
    /// Random commit id, u64.
    pub const ID: usize = 48;
    /// Commit id of the parent, u64; 0: the database was empty.
    pub const PARENT: usize = 56;
    /// SQLite's change counter, u32.
    pub const COUNTER: usize = 64;
    /// Page size in bytes, u32.
    pub const PAGE_SIZE: usize = 68;
    /// Size of the database in bytes, u64.
    pub const SIZE: usize = 72;
    /// Length of the block in page 1, without the list before it: its fields are those above.
    pub const FIRST_PAGE_LEN: usize = 80;
    /// Sequence of the other copy's commit this block vouches for, u64; 0: none.
    pub const VOUCHED_SEQUENCE: usize = 80;
    /// Its commit id, u64.
    pub const VOUCHED_ID: usize = 88;
    /// Its change counter, u32.
    pub const VOUCHED_COUNTER: usize = 96;
    /// CRC-32 of the list area, u32; 0 where the list is in the block.
    pub const LIST_CHECKSUM: usize = 100;
    /// Length of the super-journal's name, u32.
    pub const SUPER_LEN: usize = 104;
    /// When the file vouched for last changed.
    pub const VOUCHED_CHANGED: usize = 112;
    /// The super-journal's name, relative to the folder of the database; it may lie in another one
    /// (`../x/…`).
    pub const SUPER_NAME: usize = 128;
    /// The units.
    pub const UNITS: usize = 384;
    /// Intent block: log2 of the bytes of a region, u32.
    pub const REGION_SHIFT: usize = 32;
    /// Intent block: one bit a region, lowest bit first.
    pub const REGIONS: usize = 128;
    const _: () = assert!(FIRST_PAGE_LEN == SIZE + 8);
    const _: () = assert!(SUPER_NAME + super::SUPER_NAME_MAX == UNITS);
    const _: () = assert!((super::BLOCK - UNITS).is_multiple_of(super::UNIT));
}

/// What a commit block says of the file it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The file is the state after commit `sequence`, if the listed units have their checksums.
    Whole = 1,
    /// The same, but only if the super-journal named is gone.
    Prepared = 2,
    /// The file is an older state; the other copy's commit `vouched` was published.
    Superseded = 3,
    /// The file equals the other copy's commit `vouched`.
    Settled = 4,
}

/// Where a commit block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the last 4 KiB of the file.
    Tail,
    /// In page 1.
    FirstPage,
    /// Page 1 says in the tail, but another one is there: the commit was cut off.
    Announced,
}

/// How many flushes a commit makes (`PRAGMA dash_commit`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// One flush: pages, page list and commit block together.
    #[default]
    Single = 1,
    /// Three: the paper's Algorithm 1 (version update, aggregate update, version reset) with our
    /// blocks.
    Paper = 2,
    /// Two: the paper's SHADOW-X (aggregate update, version reset) with our blocks.
    Exclusive = 3,
}

impl Protocol {
    /// The name in `PRAGMA dash_commit`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Paper => "paper",
            Self::Exclusive => "exclusive",
        }
    }

    /// The protocol of this name, if there is one; case does not matter.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Single, Self::Paper, Self::Exclusive]
            .into_iter()
            .find(|protocol| protocol.name().eq_ignore_ascii_case(name))
    }
}

/// Why bytes are no block of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockError {
    /// Something else, or nothing, is there.
    Absent,
    /// Ours, but torn or damaged.
    Damaged,
    /// Written by a dash of another format.
    OtherFormat(u32),
}

pub(super) fn seal(block: &mut [u8; BLOCK]) {
    put_u32(&mut block[..], layout::CHECKSUM, 0);
    let checksum = crc32fast::hash(&block[..]);
    put_u32(&mut block[..], layout::CHECKSUM, checksum);
}

pub(super) fn check(bytes: &[u8], magic: [u8; 8]) -> Result<(), BlockError> {
    if bytes.len() < BLOCK || bytes[..8] != magic {
        return Err(BlockError::Absent);
    }
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[..layout::CHECKSUM]);
    hasher.update(&[0; 4]);
    hasher.update(&bytes[layout::CHECKSUM + 4..BLOCK]);
    let same = hasher.finalize() == u32_at(bytes, layout::CHECKSUM);
    if !same && !broken(Mutation::BlockChecksumIgnored) {
        return Err(BlockError::Damaged);
    }
    match u32_at(bytes, layout::VERSION) {
        FORMAT_VERSION => Ok(()),
        0 => Err(BlockError::Damaged),
        other => Err(BlockError::OtherFormat(other)),
    }
}

pub(super) fn put_u32(b: &mut [u8], at: usize, value: u32) {
    b[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

pub(super) fn put_u64(b: &mut [u8], at: usize, value: u64) {
    b[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

pub(super) fn u32_at(b: &[u8], at: usize) -> u32 {
    b[at..at + 4].iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte))
}

pub(super) fn u64_at(b: &[u8], at: usize) -> u64 {
    b[at..at + 8].iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}
