//! What inodes are told apart by.

/// An inode, for ever: its number may be used again, this never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key(pub(crate) u64);

/// The root directory of every machine.
pub(crate) const ROOT: Key = Key(1);
