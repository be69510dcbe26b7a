//! What a file system says of a file.

use crate::{FileId, FileKind};

/// The part of `stat(2)` that engines use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metadata {
    /// Device and inode number.
    pub id: FileId,
    /// What kind of file it is.
    pub kind: FileKind,
    /// Size in bytes.
    pub len: u64,
    /// Number of names (hard links).
    pub links: u64,
    /// Permission bits, as for [`OpenMode::CreateNew`](crate::OpenMode::CreateNew).
    pub permissions: u32,
    /// User id of the owner.
    pub owner: u32,
    /// Group id.
    pub group: u32,
    /// When content, names or rights last changed (`st_ctim`), in nanoseconds; nobody can set it. 0
    /// where that is not known.
    pub changed: u64,
    /// When its content was last written (`st_mtim`), likewise; the same as `changed` if nothing
    /// but that came last.
    pub written: u64,
}

impl Metadata {
    /// Whether the same users may do the same with both, as far as this tells (not access control
    /// lists).
    #[must_use]
    pub fn has_access_of(&self, other: &Self) -> bool {
        let access = |of: &Self| (of.permissions & 0o777, of.owner, of.group);
        access(self) == access(other)
    }
}
