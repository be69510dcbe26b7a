//! The images that a chain of records makes: the last one of each unit, built up entry by entry.
//!
//! The writer keeps the same of its window: what an entry's difference is made against (LOG-10).
//!
//! A few bytes of a log may make a large image, and a log may have many. So only some are kept as
//! they are. Of the others each is kept as a difference to zeros, which takes about what the log
//! has of it: however large the images, a log is read in memory that is in proportion to its own
//! length (LOG-18).

use crate::difference::{Copies, Differ, apply};
use crate::record::Entry;
use dash_engine::error::{Error, Result};
use dash_engine::memory::zeros;
use std::collections::HashMap;

/// Bytes of images that are kept as they are.
const WHOLE_MOST: usize = 64 << 20;

/// The last image of each unit.
pub struct Images {
    unit_bytes: usize,
    /// So many of them are kept as they are.
    most: usize,
    whole: HashMap<u32, Vec<u8>>,
    /// As differences to zeros. Of a unit that is in `whole`, too, that counts.
    packed: HashMap<u32, Vec<u8>>,
    differ: Differ,
    /// Where the next image is made.
    spare: Vec<u8>,
}

impl Images {
    /// None yet; each will have so many bytes.
    #[must_use]
    pub fn new(unit_bytes: u32) -> Self {
        Self::with_room(unit_bytes, WHOLE_MOST)
    }

    /// The same, with so many bytes for images that are kept as they are: for tests.
    #[must_use]
    pub fn with_room(unit_bytes: u32, room: usize) -> Self {
        let unit_bytes = usize::try_from(unit_bytes).unwrap_or(usize::MAX);
        Self {
            unit_bytes,
            most: (room / unit_bytes.max(1)).max(1),
            whole: HashMap::new(),
            packed: HashMap::new(),
            differ: Differ::default(),
            spare: Vec::new(),
        }
    }

    /// The image that the next entry of the chain makes; from now on its unit's last one.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] for a difference that is none, or to an image that there is not;
    /// [`Error::OutOfMemory`]. The unit's last image is as it was then.
    pub fn feed(&mut self, entry: &Entry<'_>) -> Result<&[u8]> {
        let unit = entry.unit;
        if entry.based && !self.unpack(unit)? {
            return Err(Error::Corrupt(format!(
                "the log is damaged: what it says of page {unit} builds on an image that it does not have"
            )));
        }
        if self.spare.is_empty() {
            self.spare = zeros(self.unit_bytes as u64)?;
        }
        let old = self.whole.get(&unit).filter(|_| entry.based).map(Vec::as_slice);
        apply(entry.difference, old, &mut self.spare).map_err(|_| {
            Error::Corrupt(format!("the log is damaged: what it says of page {unit} is no image"))
        })?;
        self.make_room(unit)?;
        let image = self.whole.entry(unit).or_default();
        std::mem::swap(image, &mut self.spare);
        Ok(image)
    }

    /// Takes an image as the last one of its unit: what the writer has just logged.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`]; the unit's last image is as it was then.
    pub fn set(&mut self, unit: u32, image: &[u8]) -> Result<()> {
        let bytes = copied(image)?;
        self.make_room(unit)?;
        self.whole.insert(unit, bytes);
        Ok(())
    }

    /// The last image of a unit, if the chain has one.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`].
    pub fn image_of(&mut self, unit: u32) -> Result<Option<&[u8]>> {
        self.unpack(unit)?;
        Ok(self.whole.get(&unit).map(Vec::as_slice))
    }

    /// Whether no unit has one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.packed.is_empty()
    }

    /// Bytes that all of them take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.whole.values().chain(self.packed.values()).map(Vec::capacity).sum()
    }

    /// Forgets all: a window begins.
    pub fn clear(&mut self) {
        self.whole.clear();
        self.packed.clear();
    }

    /// Has the last image of a unit as it is; whether there is one.
    fn unpack(&mut self, unit: u32) -> Result<bool> {
        if self.whole.contains_key(&unit) {
            return Ok(true);
        }
        let Some(packed) = self.packed.get(&unit) else { return Ok(false) };
        let mut image = zeros(self.unit_bytes as u64)?;
        let damaged = |_| Error::Corrupt("an image is not what it was packed as".to_owned());
        apply(packed, None, &mut image).map_err(damaged)?;
        self.make_room(unit)?;
        self.whole.insert(unit, image);
        Ok(true)
    }

    /// Has room for the image of a unit as it is.
    fn make_room(&mut self, unit: u32) -> Result<()> {
        if self.whole.len() >= self.most && !self.whole.contains_key(&unit) {
            self.pack()?;
        }
        self.whole.try_reserve(1).map_err(|_| Error::OutOfMemory)
    }

    /// Packs all that are kept as they are.
    fn pack(&mut self) -> Result<()> {
        let mut bytes = Vec::new();
        for (&unit, image) in &self.whole {
            bytes.clear();
            self.differ.encode(None, image, Copies::Everywhere, &mut bytes)?;
            self.packed.try_reserve(1).map_err(|_| Error::OutOfMemory)?;
            self.packed.insert(unit, copied(&bytes)?);
        }
        self.whole.clear();
        Ok(())
    }
}

fn copied(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(bytes.len()).map_err(|_| Error::OutOfMemory)?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}
