//! What every section gets.

use std::path::PathBuf;

use crate::failure::Result;
use crate::report::Section;
use crate::volume::Volumes;

/// Where it is measured, and for how long.
pub struct Bench {
    /// Where.
    pub volumes: Volumes,
    /// Recordings.
    pub traces: Option<PathBuf>,
    /// Whether a tenth of the operations will do.
    pub quick: bool,
}

impl Bench {
    /// So many, or a tenth of that.
    pub fn many(&self, number: usize) -> usize {
        if self.quick { (number / 10).max(2) } else { number }
    }
}

/// A section's name and what makes it.
pub type Measure = (&'static str, fn(&Bench) -> Result<Section>);
