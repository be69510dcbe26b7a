//! How much room a folder's file system has.

use std::path::Path;

use nix::sys::statvfs::statvfs;

/// Room on a file system.
#[derive(Debug, Clone, Copy)]
pub struct Space {
    /// Bytes that this user may still take.
    pub free: u64,
    /// Bytes in all.
    pub total: u64,
    /// Files that this user may still make; none where the file system counts none.
    pub files: Option<u64>,
}

impl Space {
    /// Of the file system that `folder` is on.
    pub fn of(folder: &Path) -> Option<Self> {
        let found = statvfs(folder).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(widen(found.fragment_size()));
        let counts = widen(found.files()) > 0;
        Some(Self {
            free: bytes(widen(found.blocks_available())),
            total: bytes(widen(found.blocks())),
            files: counts.then(|| widen(found.files_available())),
        })
    }
}

/// The integers of `struct statvfs` have other widths on other machines; none is negative.
fn widen(number: impl TryInto<u64>) -> u64 {
    number.try_into().unwrap_or(u64::MAX)
}
