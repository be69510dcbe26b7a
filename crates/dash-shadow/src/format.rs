//! The two blocks of a tail, byte by byte. All integers are little-endian; `FORMAT.md` shows the
//! same table, and a test compares them.
//!
//! Both blocks begin with eight bytes that no SQLite page can begin with: a b-tree page begins
//! with 2, 5, 10 or 13 (or "SQLite f"), an overflow or trunk page with a page number below
//! 0xFFFFFFFF, a pointer map with a type 1–5.

use dash_storage::FileId;

/// Bytes of the commit block and of the intent block.
pub const BLOCK: usize = 4096;
/// [`BLOCK`] as a file offset.
pub const BLOCK_LEN: u64 = 4096;
/// Bytes of both blocks: the least a tail has.
pub const TAIL_LEN: u64 = 2 * BLOCK_LEN;
/// The format written, and the newest that is read.
pub const FORMAT_VERSION: u32 = 1;
/// Begins a commit block.
pub const COMMIT_MAGIC: [u8; 8] = *b"\xFF\xFF\xFF\xFFDSHC";
/// Begins an intent block.
pub const INTENT_MAGIC: [u8; 8] = *b"\xFF\xFF\xFF\xFFDSHI";

/// Longest name of a super-journal, in bytes.
pub const SUPER_NAME_MAX: usize = 256;
/// Units that fit into the commit block itself; more go to a list area ahead of the tail.
pub const INLINE_UNITS: usize = (BLOCK - layout::UNITS) / UNIT;
/// Bytes of one entry of a page list.
pub const UNIT: usize = 16;
/// Granularity of a unit's place and length: SQLite's smallest page.
pub const SECTOR: u64 = 512;
/// Set in the flags of a unit that aggregate update carried: the transaction did not change it.
const UNIT_CARRIED: u64 = 1 << 48;

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
    /// The super-journal's name, without its directory.
    pub const SUPER_NAME: usize = 128;
    /// The units.
    pub const UNITS: usize = 384;
    /// Intent block: log2 of the bytes of a region, u32.
    pub const REGION_SHIFT: usize = 32;
    /// Intent block: one bit a region, lowest bit first.
    pub const REGIONS: usize = 128;
    const _: () = assert!(SUPER_NAME + super::SUPER_NAME_MAX == UNITS);
    const _: () = assert!((super::BLOCK - UNITS) % super::UNIT == 0);
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

/// How many flushes a commit makes (`PRAGMA dash_commit`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// One flush: pages, page list and commit block together.
    #[default]
    Single = 1,
    /// Three: the paper's Algorithm 1 (version update, aggregate update, version reset) with our blocks.
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

/// A run of bytes written by a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    /// Where, in bytes; a multiple of [`SECTOR`].
    pub offset: u64,
    /// How long, in bytes; a multiple of [`SECTOR`].
    pub len: u64,
    /// CRC-32 of the bytes as committed.
    pub checksum: u32,
    /// Carried by aggregate update, not changed by the transaction.
    pub carried: bool,
}

impl Unit {
    /// The bytes it covers.
    pub fn range(&self) -> std::ops::Range<u64> {
        self.offset..self.offset + self.len
    }

    fn encode(&self) -> [u8; UNIT] {
        let mut bytes = [0; UNIT];
        let flags = if self.carried { UNIT_CARRIED } else { 0 };
        bytes[..8].copy_from_slice(&(self.offset / SECTOR | flags).to_le_bytes());
        let sectors = u32::try_from(self.len / SECTOR).unwrap_or(u32::MAX);
        bytes[8..12].copy_from_slice(&sectors.to_le_bytes());
        bytes[12..].copy_from_slice(&self.checksum.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Self {
        let place = u64_at(bytes, 0);
        Self {
            offset: (place & (UNIT_CARRIED - 1)) * SECTOR,
            len: u64::from(u32_at(bytes, 8)) * SECTOR,
            checksum: u32_at(bytes, 12),
            carried: place & UNIT_CARRIED != 0,
        }
    }
}

/// A decoded commit block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitBlock {
    /// Which two files belong together.
    pub pair: u64,
    /// Inode number of the file the block was written into.
    pub inode: u64,
    /// Slot of that file.
    pub slot: u8,
    /// What it says of its file.
    pub state: State,
    /// Protocol of the commit.
    pub protocol: Protocol,
    /// Sequence of the commit, from 1.
    pub sequence: u64,
    /// Random id of the commit.
    pub id: u64,
    /// Id of the commit it was made on; 0: an empty database.
    pub parent: u64,
    /// SQLite's change counter after the commit.
    pub counter: u32,
    /// Page size after the commit.
    pub page_size: u32,
    /// Size of the database after the commit, in bytes.
    pub size: u64,
    /// The other copy's commit that was published or copied, see [`State`].
    pub vouched: Option<Vouched>,
    /// Super-journal of a transaction over several databases; name without directory.
    pub super_journal: Vec<u8>,
    /// How many units the list has.
    pub unit_count: u32,
    /// CRC-32 of the list area.
    pub list_checksum: u32,
    /// The units, if they fit into the block.
    pub units: Vec<Unit>,
}

/// A commit of the other copy that is known to have been published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vouched {
    /// Its sequence.
    pub sequence: u64,
    /// Its id.
    pub id: u64,
    /// Its change counter.
    pub counter: u32,
}

/// Why bytes are no block of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockError {
    /// Something else, or nothing, is there.
    Absent,
    /// Ours, but torn or damaged.
    Damaged,
    /// Written by a newer dash.
    Newer(u32),
}

impl CommitBlock {
    /// Bytes of the list area that this block's units need ahead of the tail.
    pub fn list_len(&self) -> u64 {
        list_len(self.unit_count as usize)
    }

    /// The block as bytes. Units that don't fit are left out: they go to the list area.
    pub fn encode(&self) -> Box<[u8; BLOCK]> {
        let mut b = Box::new([0; BLOCK]);
        b[..8].copy_from_slice(&COMMIT_MAGIC);
        put_u32(&mut *b, layout::VERSION, FORMAT_VERSION);
        put_u64(&mut *b, layout::PAIR, self.pair);
        put_u64(&mut *b, layout::INODE, self.inode);
        b[layout::SLOT] = self.slot;
        b[layout::STATE] = self.state as u8;
        b[layout::PROTOCOL] = self.protocol as u8;
        put_u32(&mut *b, layout::UNIT_COUNT, self.unit_count);
        put_u64(&mut *b, layout::SEQUENCE, self.sequence);
        put_u64(&mut *b, layout::ID, self.id);
        put_u64(&mut *b, layout::PARENT, self.parent);
        put_u32(&mut *b, layout::COUNTER, self.counter);
        put_u32(&mut *b, layout::PAGE_SIZE, self.page_size);
        put_u64(&mut *b, layout::SIZE, self.size);
        if let Some(vouched) = self.vouched {
            put_u64(&mut *b, layout::VOUCHED_SEQUENCE, vouched.sequence);
            put_u64(&mut *b, layout::VOUCHED_ID, vouched.id);
            put_u32(&mut *b, layout::VOUCHED_COUNTER, vouched.counter);
        }
        put_u32(&mut *b, layout::LIST_CHECKSUM, self.list_checksum);
        let name = &self.super_journal[..self.super_journal.len().min(SUPER_NAME_MAX)];
        put_u32(&mut *b, layout::SUPER_LEN, u32::try_from(name.len()).unwrap_or(0));
        b[layout::SUPER_NAME..layout::SUPER_NAME + name.len()].copy_from_slice(name);
        if self.units.len() <= INLINE_UNITS {
            let list = encode_units(&self.units);
            b[layout::UNITS..layout::UNITS + list.len()].copy_from_slice(&list);
        }
        seal(&mut *b);
        b
    }

    /// Reads a block.
    pub fn decode(bytes: &[u8]) -> Result<Self, BlockError> {
        check(bytes, COMMIT_MAGIC)?;
        let state = match bytes[layout::STATE] {
            1 => State::Whole,
            2 => State::Prepared,
            3 => State::Superseded,
            4 => State::Settled,
            _ => return Err(BlockError::Damaged),
        };
        let protocol = match bytes[layout::PROTOCOL] {
            1 => Protocol::Single,
            2 => Protocol::Paper,
            3 => Protocol::Exclusive,
            _ => return Err(BlockError::Damaged),
        };
        let vouched = Vouched {
            sequence: u64_at(bytes, layout::VOUCHED_SEQUENCE),
            id: u64_at(bytes, layout::VOUCHED_ID),
            counter: u32_at(bytes, layout::VOUCHED_COUNTER),
        };
        let unit_count = u32_at(bytes, layout::UNIT_COUNT);
        let inline = unit_count as usize <= INLINE_UNITS;
        let list = if inline { unit_count as usize * UNIT } else { 0 };
        let name = (u32_at(bytes, layout::SUPER_LEN) as usize).min(SUPER_NAME_MAX);
        Ok(Self {
            pair: u64_at(bytes, layout::PAIR),
            inode: u64_at(bytes, layout::INODE),
            slot: bytes[layout::SLOT] & 1,
            state,
            protocol,
            sequence: u64_at(bytes, layout::SEQUENCE),
            id: u64_at(bytes, layout::ID),
            parent: u64_at(bytes, layout::PARENT),
            counter: u32_at(bytes, layout::COUNTER),
            page_size: u32_at(bytes, layout::PAGE_SIZE),
            size: u64_at(bytes, layout::SIZE),
            vouched: (vouched.sequence > 0).then_some(vouched),
            super_journal: bytes[layout::SUPER_NAME..layout::SUPER_NAME + name].to_vec(),
            unit_count,
            list_checksum: u32_at(bytes, layout::LIST_CHECKSUM),
            units: decode_units(&bytes[layout::UNITS..layout::UNITS + list]),
        })
    }
}

/// Bytes of the list area for so many units, a multiple of [`BLOCK`]; 0 if they fit into the block.
pub fn list_len(units: usize) -> u64 {
    if units <= INLINE_UNITS {
        0
    } else {
        ((units * UNIT).div_ceil(BLOCK) * BLOCK) as u64
    }
}

/// A page list as bytes.
pub fn encode_units(units: &[Unit]) -> Vec<u8> {
    units.iter().flat_map(Unit::encode).collect()
}

/// A page list from bytes; a rest shorter than a unit is left out.
pub fn decode_units(bytes: &[u8]) -> Vec<Unit> {
    bytes.chunks_exact(UNIT).map(Unit::decode).collect()
}

/// A decoded intent block: the regions of a file that may differ from the other copy after a crash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntentBlock {
    /// Which two files belong together.
    pub pair: u64,
    /// Inode number of the file the block was written into.
    pub inode: u64,
    /// log2 of the bytes of a region.
    pub region_shift: u32,
    /// One bit a region.
    pub regions: Box<[u8; BLOCK - layout::REGIONS]>,
}

/// Regions that an intent block has room for.
pub const REGION_COUNT: u64 = (BLOCK_LEN - layout::REGIONS as u64) * 8;
/// log2 of the smallest region that is read.
const REGION_SHIFT_MIN: u32 = 12;

impl IntentBlock {
    /// An intent with no region, fit for a database of `size` bytes, in regions of `region` bytes
    /// or more.
    pub fn new(pair: u64, file: FileId, size: u64, region: u64) -> Self {
        let mut region_shift = region.max(1 << REGION_SHIFT_MIN).ilog2();
        while size >> region_shift >= REGION_COUNT / 2 {
            region_shift += 1;
        }
        Self { pair, inode: file.inode, region_shift, regions: Box::new([0; BLOCK - layout::REGIONS]) }
    }

    /// Regions that share a byte with `range`; `None` if they reach past the last one.
    fn bits(&self, range: &std::ops::Range<u64>) -> Option<std::ops::RangeInclusive<u64>> {
        let last = range.end.saturating_sub(1) >> self.region_shift;
        (last < REGION_COUNT).then_some(range.start >> self.region_shift..=last)
    }

    /// Whether every byte of `range` is in a marked region.
    pub fn covers(&self, range: &std::ops::Range<u64>) -> bool {
        self.bits(range)
            .is_some_and(|bits| bits.into_iter().all(|bit| self.is_set(bit)))
    }

    fn is_set(&self, bit: u64) -> bool {
        usize::try_from(bit / 8).is_ok_and(|i| self.regions[i] & (1 << (bit % 8)) != 0)
    }

    /// Marks the regions of `range`; `false` if the block has no room for a place so far out.
    pub fn mark(&mut self, range: &std::ops::Range<u64>) -> bool {
        let Some(bits) = self.bits(range) else { return false };
        for bit in bits {
            if let Ok(i) = usize::try_from(bit / 8) {
                self.regions[i] |= 1 << (bit % 8);
            }
        }
        true
    }

    /// The marked regions as byte ranges, each with its neighbours merged.
    pub fn ranges(&self) -> super::ranges::RangeSet {
        (0..REGION_COUNT)
            .filter(|&bit| self.is_set(bit))
            .map(|bit| bit << self.region_shift..(bit + 1) << self.region_shift)
            .collect()
    }

    /// The block as bytes.
    pub fn encode(&self) -> Box<[u8; BLOCK]> {
        let mut b = Box::new([0; BLOCK]);
        b[..8].copy_from_slice(&INTENT_MAGIC);
        put_u32(&mut *b, layout::VERSION, FORMAT_VERSION);
        put_u64(&mut *b, layout::PAIR, self.pair);
        put_u64(&mut *b, layout::INODE, self.inode);
        put_u32(&mut *b, layout::REGION_SHIFT, self.region_shift);
        b[layout::REGIONS..].copy_from_slice(&*self.regions);
        seal(&mut *b);
        b
    }

    /// Reads a block.
    pub fn decode(bytes: &[u8]) -> Result<Self, BlockError> {
        check(bytes, INTENT_MAGIC)?;
        let region_shift = u32_at(bytes, layout::REGION_SHIFT);
        let mut regions = Box::new([0; BLOCK - layout::REGIONS]);
        regions.copy_from_slice(&bytes[layout::REGIONS..BLOCK]);
        if !(REGION_SHIFT_MIN..48).contains(&region_shift) {
            return Err(BlockError::Damaged);
        }
        Ok(Self {
            pair: u64_at(bytes, layout::PAIR),
            inode: u64_at(bytes, layout::INODE),
            region_shift,
            regions,
        })
    }
}

fn seal(block: &mut [u8; BLOCK]) {
    put_u32(block, layout::CHECKSUM, 0);
    let checksum = crc32fast::hash(block);
    put_u32(block, layout::CHECKSUM, checksum);
}

fn check(bytes: &[u8], magic: [u8; 8]) -> Result<(), BlockError> {
    if bytes.len() < BLOCK || bytes[..8] != magic {
        return Err(BlockError::Absent);
    }
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[..layout::CHECKSUM]);
    hasher.update(&[0; 4]);
    hasher.update(&bytes[layout::CHECKSUM + 4..BLOCK]);
    if hasher.finalize() != u32_at(bytes, layout::CHECKSUM) {
        return Err(BlockError::Damaged);
    }
    match u32_at(bytes, layout::VERSION) {
        FORMAT_VERSION => Ok(()),
        0 => Err(BlockError::Damaged),
        newer => Err(BlockError::Newer(newer)),
    }
}

fn put_u32(b: &mut [u8; BLOCK], at: usize, value: u32) {
    b[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

fn put_u64(b: &mut [u8; BLOCK], at: usize, value: u64) {
    b[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

fn u32_at(b: &[u8], at: usize) -> u32 {
    b[at..at + 4].iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte))
}

fn u64_at(b: &[u8], at: usize) -> u64 {
    b[at..at + 8].iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}
