//! Which cache a file is in: that of this start of the system, and of this mount of its file
//! system.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::OnceLock;

use rustix::fs::{AtFlags, StatxFlags, statx};

/// Asks for a number of the mount that is not used again before the next start
/// (`STATX_MNT_ID_UNIQUE`, Linux 6.8); the older one is, as soon as something is unmounted.
const UNIQUE_MOUNT: StatxFlags = StatxFlags::from_bits_retain(0x4000);
/// A new number at each start of the system.
const START: &str = "/proc/sys/kernel/random/boot_id";

/// A number of start and mount; `None` where the kernel does not tell both.
pub(super) fn life(file: &File) -> Option<u64> {
    static STARTED: OnceLock<Option<String>> = OnceLock::new();
    let started = STARTED.get_or_init(|| fs::read_to_string(START).ok()).as_ref()?;
    let found = statx(file, c"", AtFlags::EMPTY_PATH, UNIQUE_MOUNT).ok()?;
    if found.stx_mask & UNIQUE_MOUNT.bits() == 0 {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    (started, found.stx_mnt_id).hash(&mut hasher);
    Some(hasher.finish().max(1))
}
