//! What the log's head says of `-wal` while no record counts.

use super::{Bytes, Generation, RecordContext, damaged};
use crate::frames::unpack;
use crate::stamp::Stamp;
use dash_engine::error::Result;

/// A generation whose `-wal` stays where no record counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftGeneration {
    /// The salts of `-wal`'s header.
    pub salts: [u32; 2],
    /// See [`Generation::stamp`].
    pub stamp: Stamp,
}

impl LeftGeneration {
    /// By words of shared memory; `None`: one of both is not known.
    pub fn of_words(salts: u64, stamp: [u64; 2]) -> Option<Self> {
        let left = Self { salts: unpack(salts), stamp: Stamp::of_words(stamp) };
        (salts != 0 && left.stamp.is_known()).then_some(left)
    }
}

/// What the log's head says of `-wal` while no record counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HeadContext {
    /// Nothing: `-wal` is as SQLite has it.
    #[default]
    Nothing,
    /// The same, and a session has ended: so many flushes had made its commits durable. The next
    /// one is taken to be as long.
    Closed {
        flushes: u32,
        /// What the database was like when the generation of `-wal` began, if there is one.
        left: Option<LeftGeneration>,
    },
    /// `-wal` with the header of this generation, or an older one, is void: what it held is in the
    /// database, durably (WAL-6).
    Void(Generation),
}

impl HeadContext {
    /// As bytes: none; the flushes, u32, and where a `-wal` stays its salts, u32 each, and the
    /// stamp; or those of a window's start.
    pub fn encode(&self) -> Vec<u8> {
        match *self {
            Self::Nothing => Vec::new(),
            Self::Closed { flushes, left } => {
                let mut bytes = flushes.to_le_bytes().to_vec();
                if let Some(left) = left {
                    bytes.extend(left.salts.into_iter().flat_map(u32::to_le_bytes));
                    left.stamp.put(&mut bytes);
                }
                bytes
            }
            Self::Void(start) => {
                let generation = start.number;
                let (carried, start) = (None, Some(start));
                RecordContext { generation, first_frame: 0, carried, start }.encode()
            }
        }
    }

    /// And back.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        match bytes.len() {
            0 => Ok(Self::Nothing),
            4 => Ok(Self::Closed { flushes: Bytes(bytes).u32()?, left: None }),
            28 => {
                let mut rest = Bytes(bytes);
                let (flushes, salts) = (rest.u32()?, [rest.u32()?, rest.u32()?]);
                Ok(Self::Closed {
                    flushes,
                    left: Some(LeftGeneration { salts, stamp: rest.stamp()? }),
                })
            }
            _ => {
                let context = RecordContext::decode(bytes, false)?;
                context.start.map(Self::Void).ok_or_else(damaged)
            }
        }
    }
}
