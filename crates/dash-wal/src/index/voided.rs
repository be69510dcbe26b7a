//! Headers that no SQLite reads on with: one that keeps it out, and none, of which the next one to
//! come makes the index anew.

use super::{Index, header};
use dash_engine::error::Result;
use dash_storage::Storage;

impl<S: Storage> Index<S> {
    /// Gives `-shm` a header that no stock SQLite reads on with, nor recovers from: of another
    /// version, and whole. WRITE, CKPT and RECOVER of stock are kept out.
    pub(crate) fn forbid(&mut self) -> Result<()> {
        self.map_region(0, true)?;
        if let Some(Some(memory)) = self.regions.first() {
            header::forbid(memory);
        }
        Ok(())
    }

    /// Takes such a header away: whoever comes next makes the index anew.
    pub(crate) fn allow(&mut self) -> Result<()> {
        self.map_region(0, false)?;
        if let Some(Some(memory)) = self.regions.first() {
            header::allow(memory);
        }
        Ok(())
    }

    /// Takes away whatever header there is, likewise. Nobody else writes meanwhile.
    pub(crate) fn void(&mut self) -> Result<()> {
        self.map_region(0, false)?;
        self.void_header();
        Ok(())
    }

    /// Takes the header away, so that whoever comes next makes the index anew. WRITE is held.
    pub(crate) fn void_header(&self) {
        if let Some(Some(memory)) = self.regions.first() {
            header::void(memory);
        }
    }
}
