//! Holes: parts of a file that were never written, and read as zeros. A file may claim any length
//! for nothing, so what goes through a whole file goes around them. What is short is read instead:
//! that costs less than asking.

use crate::error::{Context, Operation, Result};
use crate::io::STRIDE;
use crate::memory::headroom_for;
use crate::ranges::RangeSet;
use dash_storage::File;
use std::ops::Range;

/// Up to so many bytes are read without asking for holes.
pub const FEW: u64 = 2 * STRIDE;

/// The part of `range` that may hold anything but zeros.
pub fn data_in<F: File>(file: &F, range: Range<u64>, name: &str) -> Result<RangeSet> {
    if range.end.saturating_sub(range.start) <= FEW {
        return Ok(std::iter::once(range).collect());
    }
    let mut data = RangeSet::new();
    let mut at = range.start;
    while at < range.end {
        let found = file.data_from(at).during(Operation::Read, name)?;
        let Some(found) = found.filter(|found| found.start < range.end && found.end > at) else {
            break;
        };
        headroom_for(1)?;
        data.insert(found.start.max(at)..found.end.min(range.end));
        at = found.end;
    }
    Ok(data)
}

/// The part of `ranges` that may hold anything but zeros in one of two files.
pub fn data_in_either<F: File>(files: [&F; 2], ranges: &RangeSet, name: &str) -> Result<RangeSet> {
    if ranges.bytes() <= FEW {
        return Ok(ranges.clone());
    }
    let mut data = RangeSet::new();
    for range in ranges.iter() {
        for file in files {
            data.union(&data_in(file, range.clone(), name)?);
        }
    }
    Ok(data)
}
