//! The holes of files that page lists name: see [`dash_engine::holes`].

use crate::format::Unit;
use dash_engine::error::Result;
use dash_engine::holes::{FEW, data_in};
use dash_engine::ranges::RangeSet;
use dash_storage::File;

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
