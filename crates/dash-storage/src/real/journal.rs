//! Whether a file system keeps a journal. Only ext4 tells, since Linux 4.19.

use std::fs;
use std::path::Path;

/// What it says instead of the number of the thread that writes the journal.
const NONE: &str = "<none>";

/// Whether the one on this device does; yes, where it can't be told.
pub(super) fn is_kept(device: u64) -> bool {
    let (major, minor) = (nix::sys::stat::major(device), nix::sys::stat::minor(device));
    let disk = fs::read_link(format!("/sys/dev/block/{major}:{minor}")).ok();
    let writer = disk.as_deref().and_then(Path::file_name).and_then(|name| {
        fs::read_to_string(Path::new("/sys/fs/ext4").join(name).join("journal_task")).ok()
    });
    writer.is_none_or(|writer| writer.trim() != NONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_is_kept_where_nothing_is_said() {
        assert!(is_kept(0) && is_kept(u64::MAX));
    }
}
