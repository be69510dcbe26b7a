//! The head: the file's first sector, or one of its first two. It says whose log it is, whether it
//! is in use, and which records are void (LOG-11). Commits don't write it.

use crate::format::{
    Beginning, HEAD_CONTEXT_MAX, Invalid, LINES_VERSION, LINES_VERSIONS, SECTOR, VERSION, checksum,
    layout as common, put, seal, u16_at, u32_at, u64_at,
};
use dash_engine::error::{Error, Result};
use std::ops::RangeInclusive;

/// Begins a head.
pub const MAGIC: [u8; 8] = *b"\xFF\xFF\xFF\xFFDSHG";

/// No log gets to such a sequence or turn, whatever it lives through: where one is found, nobody
/// has counted up to it.
pub const COUNT_MAX: u64 = 1 << 63;

/// No position.
const UNSAID: u64 = u64::MAX;

/// Offsets in the head, behind what it has in common with a record.
pub mod layout {
    /// State, u32.
    pub const STATE: usize = 24;
    /// Block in bytes, u32.
    pub const BLOCK: usize = 28;
    /// Sequence up to which records are void, u64.
    pub const SEQUENCE: usize = 32;
    /// Bytes of the ring, u64.
    pub const RING: usize = 40;
    /// Inode number of the database, u64.
    pub const OWNER: usize = 48;
    /// Where the first record goes that is not void, u64; all bits set: that is not said.
    pub const NEXT: usize = 56;
    /// Length of the context, u16.
    pub const CONTEXT_LEN: usize = 64;
    /// The engine's context.
    pub const CONTEXT: usize = 66;
    /// In a log of lines: which head it is, from 1 on, u64.
    pub const TURN: usize = 328;
    const _: () = assert!(CONTEXT + crate::format::HEAD_CONTEXT_MAX <= TURN);
    const _: () = assert!(TURN + 8 <= crate::format::SECTOR);
}

/// Whether the log says anything that the database doesn't.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Nothing: the file may be deleted.
    Clean = 0,
    /// Somebody has written records, or is about to.
    InUse = 1,
}

/// A head, decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The log's id, drawn when the file was made. What has another one is no record of it.
    pub id: u64,
    /// Whether the log counts.
    pub state: State,
    /// What records were padded to when this was written, in bytes.
    pub block: u32,
    /// Records with this sequence, or a lower one, are void.
    pub sequence: u64,
    /// Bytes of the ring when this was written: the file's length without the head's block.
    pub ring: u64,
    /// Inode number of the database when this was written.
    pub owner: u64,
    /// Where the next record goes, as [`Ring::next`](crate::ring::Ring::next) takes it: said of a
    /// log at rest, so that nobody need read the ring to see that no record counts (LOG-12).
    pub next: Option<u64>,
    /// What the engine keeps here, at most [`HEAD_CONTEXT_MAX`] bytes.
    pub context: Vec<u8>,
}

impl Head {
    /// The head of a log of sectors as bytes, one sector.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] for a context that is too long.
    pub fn encode(&self) -> Result<[u8; SECTOR]> {
        self.encode_as(VERSION, 0)
    }

    /// One of the two heads of a log of lines as bytes.
    ///
    /// # Errors
    ///
    /// As of [`encode`](Self::encode).
    pub fn encode_turn(&self, turn: u64) -> Result<[u8; SECTOR]> {
        self.encode_as(LINES_VERSION, turn)
    }

    fn encode_as(&self, version: u32, turn: u64) -> Result<[u8; SECTOR]> {
        let too_long = || Error::Refused("the context of a log's head is too long".to_owned());
        let len = self.context.len();
        if len > HEAD_CONTEXT_MAX {
            return Err(too_long());
        }
        let len = u16::try_from(len).map_err(|_| too_long())?;
        let mut bytes = [0; SECTOR];
        put(&mut bytes, 0, &MAGIC);
        put(&mut bytes, common::VERSION, &version.to_le_bytes());
        put(&mut bytes, common::ID, &self.id.to_le_bytes());
        put(&mut bytes, layout::STATE, &(self.state as u32).to_le_bytes());
        put(&mut bytes, layout::BLOCK, &self.block.to_le_bytes());
        put(&mut bytes, layout::SEQUENCE, &self.sequence.to_le_bytes());
        put(&mut bytes, layout::RING, &self.ring.to_le_bytes());
        put(&mut bytes, layout::OWNER, &self.owner.to_le_bytes());
        let next = self.next.unwrap_or(UNSAID);
        put(&mut bytes, layout::NEXT, &next.to_le_bytes());
        put(&mut bytes, layout::CONTEXT_LEN, &len.to_le_bytes());
        put(&mut bytes, layout::CONTEXT, &self.context);
        put(&mut bytes, layout::TURN, &turn.to_le_bytes());
        seal(&mut bytes);
        Ok(bytes)
    }

    /// The head of a log of sectors, which `bytes` begin with.
    ///
    /// # Errors
    ///
    /// [`Invalid::Absent`] where there are only zeros: none was ever written. A newer version is
    /// told whatever its checksum, as it may be another one (LOG-8).
    pub fn decode(bytes: &[u8]) -> std::result::Result<Self, Invalid> {
        Self::decode_as(bytes, VERSION..=VERSION)
    }

    /// A head of a log of lines, which `bytes` begin with, and its turn.
    ///
    /// # Errors
    ///
    /// As of [`decode`](Self::decode).
    pub fn decode_turn(bytes: &[u8]) -> std::result::Result<(Self, u64), Invalid> {
        let head = Self::decode_as(bytes, LINES_VERSIONS)?;
        match u64_at(bytes, layout::TURN) {
            turn if turn < COUNT_MAX => Ok((head, turn)),
            _ => Err(Invalid::Malformed),
        }
    }

    fn decode_as(
        bytes: &[u8],
        versions: RangeInclusive<u32>,
    ) -> std::result::Result<Self, Invalid> {
        let sector = bytes.get(..SECTOR).ok_or(Invalid::Absent)?;
        if sector.iter().all(|&byte| byte == 0) {
            return Err(Invalid::Absent);
        }
        let beginning = Beginning::of(sector, MAGIC).ok_or(Invalid::Damaged)?;
        beginning.is_of(versions)?;
        if checksum(sector) != beginning.checksum {
            return Err(Invalid::Damaged);
        }
        let state = match u32_at(sector, layout::STATE) {
            0 => State::Clean,
            1 => State::InUse,
            _ => return Err(Invalid::Malformed),
        };
        let len = usize::from(u16_at(sector, layout::CONTEXT_LEN));
        let sequence = u64_at(sector, layout::SEQUENCE);
        if len > HEAD_CONTEXT_MAX || sequence >= COUNT_MAX {
            return Err(Invalid::Malformed);
        }
        Ok(Self {
            id: beginning.id,
            state,
            block: u32_at(sector, layout::BLOCK),
            sequence,
            ring: u64_at(sector, layout::RING),
            owner: u64_at(sector, layout::OWNER),
            next: Some(u64_at(sector, layout::NEXT)).filter(|&next| next != UNSAID),
            context: sector[layout::CONTEXT..layout::CONTEXT + len].to_vec(),
        })
    }
}
