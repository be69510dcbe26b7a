//! The commit block and its page list.

use super::{
    BLOCK, BlockError, COMMIT_MAGIC, FORMAT_VERSION, INLINE_UNITS, Place, Protocol, SECTOR,
    SEQUENCE_MAX, SUPER_NAME_MAX, State, UNIT, check, layout, put_u32, put_u64, seal, u32_at,
    u64_at,
};

/// Set in the flags of a unit that aggregate update carried: the transaction did not change it.
const UNIT_CARRIED: u64 = 1 << 48;

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
        bytes[..8].copy_from_slice(&((self.offset / SECTOR) | flags).to_le_bytes());
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
    /// Where it is.
    pub place: Place,
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
    /// Both names were durable when this was written: the database was closed cleanly.
    pub names_durable: bool,
    /// Another program had this file open when the database was closed.
    pub held: bool,
    /// When its file last changed ([`Metadata::changed`](dash_storage::Metadata)); as long as that
    /// is so it is durable, and so is its name. 0: not known.
    pub changed: u64,
}

/// The id of a commit that changes nothing, made on `parent`: so its block tells that it is one.
/// All other ids are drawn.
pub fn unchanged_id(parent: u64) -> u64 {
    parent.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1).clamp(1, u64::MAX - 1)
}

impl CommitBlock {
    /// Whether the commit holds the same as the one that it was made on.
    pub fn is_unchanged(&self) -> bool {
        self.parent != 0 && self.id == unchanged_id(self.parent)
    }

    /// Bytes of the list area that this block's units need ahead of the tail.
    pub fn list_len(&self) -> u64 {
        list_len(self.unit_count as usize)
    }

    /// The block as bytes. Units that don't fit are left out: they go to the list area.
    pub fn encode(&self) -> Box<[u8; BLOCK]> {
        let mut b = Box::new([0; BLOCK]);
        b[..8].copy_from_slice(&COMMIT_MAGIC);
        put_u32(&mut b[..], layout::VERSION, FORMAT_VERSION);
        put_head(&mut b[..], self);
        if let Some(vouched) = self.vouched {
            put_u64(&mut b[..], layout::VOUCHED_SEQUENCE, vouched.sequence);
            put_u64(&mut b[..], layout::VOUCHED_ID, vouched.id);
            put_u32(&mut b[..], layout::VOUCHED_COUNTER, vouched.counter);
            b[layout::CLOSED] = u8::from(vouched.names_durable) | u8::from(vouched.held) << 1;
            put_u64(&mut b[..], layout::VOUCHED_CHANGED, vouched.changed);
        }
        put_u32(&mut b[..], layout::LIST_CHECKSUM, self.list_checksum);
        let name = &self.super_journal[..self.super_journal.len().min(SUPER_NAME_MAX)];
        put_u32(&mut b[..], layout::SUPER_LEN, u32::try_from(name.len()).unwrap_or(0));
        b[layout::SUPER_NAME..layout::SUPER_NAME + name.len()].copy_from_slice(name);
        if self.units.len() <= INLINE_UNITS {
            let list = encode_units(&self.units);
            b[layout::UNITS..layout::UNITS + list.len()].copy_from_slice(&list);
        }
        seal(&mut b);
        b
    }

    /// Reads a block.
    pub fn decode(bytes: &[u8]) -> Result<Self, BlockError> {
        check(bytes, COMMIT_MAGIC)?;
        let block = head(bytes)?;
        let vouched = Vouched {
            sequence: u64_at(bytes, layout::VOUCHED_SEQUENCE),
            id: u64_at(bytes, layout::VOUCHED_ID),
            counter: u32_at(bytes, layout::VOUCHED_COUNTER),
            names_durable: bytes[layout::CLOSED] & 1 != 0,
            held: bytes[layout::CLOSED] & 2 != 0,
            changed: u64_at(bytes, layout::VOUCHED_CHANGED),
        };
        let inline = block.unit_count as usize <= INLINE_UNITS;
        let list = if inline { block.unit_count as usize * UNIT } else { 0 };
        let name = (u32_at(bytes, layout::SUPER_LEN) as usize).min(SUPER_NAME_MAX);
        Ok(Self {
            vouched: (vouched.sequence > 0).then_some(vouched),
            super_journal: bytes[layout::SUPER_NAME..layout::SUPER_NAME + name].to_vec(),
            list_checksum: u32_at(bytes, layout::LIST_CHECKSUM),
            units: decode_units(&bytes[layout::UNITS..layout::UNITS + list]),
            ..block
        })
    }
}

/// The fields that a block in the tail and one in page 1 have at the same offsets.
pub(super) fn put_head(b: &mut [u8], block: &CommitBlock) {
    put_u64(b, layout::PAIR, block.pair);
    put_u64(b, layout::INODE, block.inode);
    b[layout::SLOT] = block.slot;
    b[layout::STATE] = block.state as u8;
    b[layout::PROTOCOL] = block.protocol as u8;
    put_u32(b, layout::UNIT_COUNT, block.unit_count);
    put_u64(b, layout::SEQUENCE, block.sequence);
    put_u64(b, layout::ID, block.id);
    put_u64(b, layout::PARENT, block.parent);
    put_u32(b, layout::COUNTER, block.counter);
    put_u32(b, layout::PAGE_SIZE, block.page_size);
    put_u64(b, layout::SIZE, block.size);
}

/// Reads them; the rest is empty.
pub(super) fn head(bytes: &[u8]) -> Result<CommitBlock, BlockError> {
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
    let sequence = u64_at(bytes, layout::SEQUENCE);
    if sequence > SEQUENCE_MAX {
        return Err(BlockError::Damaged);
    }
    Ok(CommitBlock {
        place: Place::Tail,
        pair: u64_at(bytes, layout::PAIR),
        inode: u64_at(bytes, layout::INODE),
        slot: bytes[layout::SLOT] & 1,
        state,
        protocol,
        sequence,
        id: u64_at(bytes, layout::ID),
        parent: u64_at(bytes, layout::PARENT),
        counter: u32_at(bytes, layout::COUNTER),
        page_size: u32_at(bytes, layout::PAGE_SIZE),
        size: u64_at(bytes, layout::SIZE),
        vouched: None,
        super_journal: Vec::new(),
        unit_count: u32_at(bytes, layout::UNIT_COUNT),
        list_checksum: 0,
        units: Vec::new(),
    })
}

/// Bytes of the list area for so many units, a multiple of [`BLOCK`]; 0 if they fit into the block.
pub fn list_len(units: usize) -> u64 {
    if units <= INLINE_UNITS { 0 } else { ((units * UNIT).div_ceil(BLOCK) * BLOCK) as u64 }
}

/// A page list as bytes.
pub fn encode_units(units: &[Unit]) -> Vec<u8> {
    units.iter().flat_map(Unit::encode).collect()
}

/// A page list from bytes; a rest shorter than a unit is left out.
pub fn decode_units(bytes: &[u8]) -> Vec<Unit> {
    bytes.chunks_exact(UNIT).map(Unit::decode).collect()
}
