//! Whether a file system keeps names, inodes and data in order. Only ext4 tells.

use std::fs;
use std::path::Path;

/// What ext4 says instead of the number of the thread that writes the journal (since Linux 4.19).
const NONE: &str = "<none>";

/// The mount option by which the blocks of a removed file are used again at once.
const WRITEBACK: &str = "data=writeback";

/// Whether the one on this device does; yes, where it can't be told.
pub(super) fn keeps_order(device: u64) -> bool {
    let (major, minor) = (nix::sys::stat::major(device), nix::sys::stat::minor(device));
    let disk = fs::read_link(format!("/sys/dev/block/{major}:{minor}")).ok();
    let Some(name) = disk.as_deref().and_then(Path::file_name) else { return true };
    let says = |folder: &str, file| fs::read_to_string(Path::new(folder).join(name).join(file));
    let has_none = says("/sys/fs/ext4", "journal_task").is_ok_and(|writer| writer.trim() == NONE);
    let in_no_order =
        says("/proc/fs/ext4", "options").is_ok_and(|all| all.lines().any(|one| one == WRITEBACK));
    !has_none && !in_no_order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept_where_nothing_is_said() {
        assert!(keeps_order(0) && keeps_order(u64::MAX));
    }
}
