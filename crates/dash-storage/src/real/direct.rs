//! Direct I/O: whether a file can be written around the page cache, and in what blocks.
//!
//! The file system says what it asks for (`statx`, Linux 6.1). A device may take less than it
//! writes at once: one of 4096-byte sectors that shows 512-byte ones reads a sector to write a part
//! of it, and may tear what shared it. So its physical block counts, too.

use std::fs::{self, File};
use std::io;

use nix::errno::Errno;
use nix::sys::statfs::{TMPFS_MAGIC, fstatfs};
use rustix::fs::{AtFlags, OFlags, Statx, StatxFlags, fcntl_getfl, fcntl_setfl, statx};

use super::retry::uninterrupted;

/// Asks for the alignment of direct I/O (`STATX_DIOALIGN`).
const ALIGNMENT: StatxFlags = StatxFlags::from_bits_retain(0x2000);
/// What is assumed of a device that says nothing; also the largest block.
const LARGEST: u32 = 4096;
const SMALLEST: u32 = 512;

/// Makes the description direct and answers its block; `None`, and unchanged, where it can't be.
pub(super) fn make(file: &File) -> io::Result<Option<u32>> {
    let Some(block) = block(file)? else {
        return Ok(None);
    };
    let flags = fcntl_getfl(file)?;
    match uninterrupted(|| Ok(fcntl_setfl(file, flags | OFlags::DIRECT)?)) {
        Ok(()) => Ok(Some(block)),
        Err(error) if error.raw_os_error() == Some(Errno::EINVAL as i32) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Has it go through the cache again.
pub(super) fn unmake(file: &File) -> io::Result<()> {
    let flags = fcntl_getfl(file)?;
    uninterrupted(|| Ok(fcntl_setfl(file, flags - OFlags::DIRECT)?))
}

fn block(file: &File) -> io::Result<Option<u32>> {
    // Memory takes the flag since Linux 6.6, and has nothing around which to write.
    if uninterrupted(|| Ok(fstatfs(file)?))?.filesystem_type() == TMPFS_MAGIC {
        return Ok(None);
    }
    let Ok(found) = statx(file, c"", AtFlags::EMPTY_PATH, ALIGNMENT) else {
        return Ok(Some(LARGEST));
    };
    let asked = match (found.stx_dio_offset_align, found.stx_dio_mem_align) {
        _ if found.stx_mask & ALIGNMENT.bits() == 0 => SMALLEST,
        // It goes through the cache whatever is asked for: ext4 that journals data, for instance.
        (0, _) => return Ok(None),
        (offset, memory) => offset.max(memory),
    };
    let block = asked.max(physical(&found)).clamp(SMALLEST, LARGEST).next_power_of_two();
    Ok((asked <= block).then_some(block))
}

/// What the device writes at once, as far as it says; of a partition its whole disk does.
fn physical(found: &Statx) -> u32 {
    let device = format!("/sys/dev/block/{}:{}", found.stx_dev_major, found.stx_dev_minor);
    let read = |queue| fs::read_to_string(format!("{device}/{queue}/physical_block_size"));
    let text = read("queue").or_else(|_| read("../queue"));
    text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(LARGEST)
}
