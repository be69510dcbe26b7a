//! Holes: parts of a file that were never written, and read as zeros. A file may claim any length
//! for nothing, so what goes through a whole file goes around them. What is short is read instead:
//! that costs less than asking.

use crate::error::{Context, Operation, Result};
use crate::file::io::STRIDE;
use crate::format::Unit;
use crate::memory::headroom_for;
use crate::ranges::RangeSet;
use dash_storage::File;
use std::ops::Range;

/// Up to so many bytes are read without asking for holes.
const FEW: u64 = 2 * STRIDE;

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

/// The holes of a file that a page list of many bytes names.
pub struct Holes {
    /// `None`: not looked for.
    data: Option<RangeSet>,
    /// The last checksum of zeros, and of how many.
    zeros: (u64, u32),
}

impl Holes {
    /// Looks for them, if it is worth it.
    pub fn where_many<F: File>(file: &F, units: &[Unit], name: &str) -> Result<Self> {
        let bytes = units.iter().fold(0, |sum: u64, unit| sum.saturating_add(unit.len));
        let end = units.iter().map(|unit| unit.range().end).max().unwrap_or(0);
        let data = if bytes > FEW { Some(data_in(file, 0..end, name)?) } else { None };
        Ok(Self { data, zeros: (0, 0) })
    }

    /// Whether all of a unit is a hole.
    pub fn has(&self, unit: &Unit) -> bool {
        self.data.as_ref().is_some_and(|data| !data.intersects(unit.range()))
    }

    /// The checksum of a unit that is a hole; `None`: it has to be read.
    pub fn checksum(&mut self, unit: &Unit) -> Option<u32> {
        if !self.has(unit) {
            return None;
        }
        if self.zeros.0 != unit.len {
            const ZEROS: [u8; 512] = [0; 512];
            let mut hasher = crc32fast::Hasher::new();
            for _ in 0..unit.len / 512 {
                hasher.update(&ZEROS);
            }
            self.zeros = (unit.len, hasher.finalize());
        }
        Some(self.zeros.1)
    }
}
