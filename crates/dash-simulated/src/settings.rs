//! What kind of machine it is.

use dash_storage::WORD;

use crate::key::Key;

/// How names and inodes survive a power loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Metadata {
    /// A prefix of the operations on a directory survives: they are written to a journal first.
    #[default]
    Journaled,
    /// There is no journal. The entries of a directory lie in one sector and so survive as a
    /// prefix, but each inode survives on its own.
    OneSector,
    /// There is no journal, and the entries of a directory lie in sectors of their own: each name,
    /// and each inode, survives on its own. An exchange may be torn in half.
    Apart,
}

/// What a power loss leaves alone.
#[derive(Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) unit: u64,
    /// The folder whose files lie in byte-addressable memory.
    pub(crate) memory: Option<Key>,
    pub(crate) exchange: bool,
    pub(crate) links: bool,
    pub(crate) clone: bool,
    pub(crate) whole_cuts: bool,
    pub(crate) direct: Option<u32>,
    pub(crate) reuse_numbers: bool,
    pub(crate) read_only: bool,
    pub(crate) capacity: Option<u64>,
    pub(crate) metadata: Metadata,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            unit: 512,
            memory: None,
            exchange: true,
            links: true,
            clone: false,
            whole_cuts: false,
            direct: Some(512),
            reuse_numbers: false,
            read_only: false,
            capacity: None,
            metadata: Metadata::Journaled,
        }
    }
}

impl Settings {
    /// In what units files tear that are made in a folder.
    pub(crate) fn unit_in(&self, folder: Key) -> u64 {
        if self.memory == Some(folder) { WORD } else { self.unit }
    }
}
