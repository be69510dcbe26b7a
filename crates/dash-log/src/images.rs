//! The images that a chain of records makes: the last one of each unit, built up entry by entry.
//!
//! The writer keeps the same of its window: what an entry's difference is made against (LOG-10).

use crate::difference::apply;
use crate::record::Entry;
use dash_engine::error::{Error, Result};
use dash_engine::memory::zeros;
use std::collections::HashMap;

/// The last image of each unit.
pub struct Images {
    unit_bytes: usize,
    last: HashMap<u32, Vec<u8>>,
    /// Where the next image is made.
    spare: Vec<u8>,
}

impl Images {
    /// None yet; each will have so many bytes.
    #[must_use]
    pub fn new(unit_bytes: u32) -> Self {
        let unit_bytes = usize::try_from(unit_bytes).unwrap_or(usize::MAX);
        Self { unit_bytes, last: HashMap::new(), spare: Vec::new() }
    }

    /// Bytes of an image.
    #[must_use]
    pub fn unit_bytes(&self) -> usize {
        self.unit_bytes
    }

    /// The image that the next entry of the chain makes; from now on its unit's last one.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] for a difference that is none, or to an image that there is not;
    /// [`Error::OutOfMemory`]. The unit's last image is as it was then.
    pub fn feed(&mut self, entry: &Entry<'_>) -> Result<&[u8]> {
        let unit = entry.unit;
        let old = self.last.get(&unit);
        if entry.based && old.is_none() {
            return Err(Error::Corrupt(format!(
                "the log is damaged: what it says of page {unit} builds on an image that it does not have"
            )));
        }
        if self.spare.is_empty() {
            self.spare = zeros(self.unit_bytes as u64)?;
        }
        let old = old.filter(|_| entry.based).map(Vec::as_slice);
        apply(entry.difference, old, &mut self.spare).map_err(|_| {
            Error::Corrupt(format!("the log is damaged: what it says of page {unit} is no image"))
        })?;
        self.last.try_reserve(1).map_err(|_| Error::OutOfMemory)?;
        let image = self.last.entry(unit).or_default();
        std::mem::swap(image, &mut self.spare);
        Ok(image)
    }

    /// Takes an image as the last one of its unit: what the writer has just logged.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`]; the unit's last image is as it was then.
    pub fn set(&mut self, unit: u32, image: &[u8]) -> Result<()> {
        match self.last.get_mut(&unit) {
            Some(last) => last.copy_from_slice(image),
            None => {
                let mut bytes = Vec::new();
                bytes.try_reserve_exact(image.len()).map_err(|_| Error::OutOfMemory)?;
                bytes.extend_from_slice(image);
                self.last.try_reserve(1).map_err(|_| Error::OutOfMemory)?;
                self.last.insert(unit, bytes);
            }
        }
        Ok(())
    }

    /// The last image of a unit, if the chain has one.
    #[must_use]
    pub fn image_of(&self, unit: u32) -> Option<&[u8]> {
        self.last.get(&unit).map(Vec::as_slice)
    }

    /// All units, each with its last image, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &[u8])> {
        self.last.iter().map(|(&unit, image)| (unit, image.as_slice()))
    }

    /// How many units have one.
    #[must_use]
    pub fn len(&self) -> usize {
        self.last.len()
    }

    /// Whether none has.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.last.is_empty()
    }

    /// Forgets all: a window begins.
    pub fn clear(&mut self) {
        self.last.clear();
    }
}
