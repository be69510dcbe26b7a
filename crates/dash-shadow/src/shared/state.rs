//! What the coordination file says of a copy, and of the shadow.

use crate::format::header::{Header, Marks};

/// How far the shadow can be trusted to equal the current copy outside its page list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShadowCondition {
    /// It can: this session wrote or checked it.
    Known,
    /// Its intent says where it may not: compare those regions first.
    Repair,
    /// It can't, or there is none: make a new one.
    Rebuild,
}

/// What readers must know of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// Size of the database in bytes.
    pub size: u64,
    /// Bytes 24–39 of its header.
    pub version: [u8; 16],
    /// Id of its commit; 0: an empty database.
    pub id: u64,
    /// Its change counter.
    pub counter: u32,
}

/// The current copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Current {
    /// Sequence of its commit.
    pub sequence: u64,
    /// 0 or 1.
    pub slot: usize,
}

impl Snapshot {
    /// Describes a file that carries no commit of ours.
    pub(crate) fn foreign(header: Option<&Header>, len: u64, id: u64) -> Self {
        let Some(header) = header else {
            return Self::default();
        };
        let page = u64::from(header.page_size().unwrap_or(512));
        let size = header.size().unwrap_or(len - len % page);
        Self { size: size.min(len), version: header.version(), id, counter: header.counter() }
    }
}
