//! An index that came over `fork()`: SQLite keeps pointers into its regions, which are dead and
//! show zeros. The first time it asks for WRITE, because it finds no header there, the regions of
//! the index as it is now come into their places (WAL-21).

use super::{Home, Index, WORDS, header};
use crate::memory::index::Region;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_storage::{File, REGION, Storage};

/// The regions of such an index, by their number; the memory is not used, and never unmapped. The
/// first one is there; without it they are dead for ever.
pub(crate) struct Inherited<S: Storage>(Vec<Option<<S::File as File>::Memory>>);

impl<S: Storage> Index<S> {
    /// What whoever goes on in the forked child needs of it, if SQLite knows any region. The rest
    /// is left as it is: nothing is closed, and nothing given up.
    pub(crate) fn inherit(mut self) -> Option<Inherited<S>> {
        for (index, memory) in std::mem::take(&mut self.covered) {
            // Where SQLite has its pointers; the other one is the parent's, like all there.
            let other = self.regions[index].replace(Region::File(memory));
            std::mem::forget(other);
        }
        let regions = std::mem::take(&mut self.regions).into_iter();
        let mapped = |region: Option<Region<_>>| match region {
            Some(Region::File(memory)) => Some(memory),
            Some(Region::Memory(_)) | None => None,
        };
        let regions: Vec<_> = regions.map(mapped).collect();
        std::mem::forget(self);
        (!regions.is_empty()).then_some(Inherited(regions))
    }

    /// Puts the regions of this index where those are that SQLite knows. Not while the index has to
    /// be made longer, or has a header that says nothing, and WRITE is not `held`: SQLite keeps its
    /// cache if it finds the header that it knows, and that one may be of another index, made since
    /// the fork. Whoever gives WRITE up makes it one that nobody knows ([`Self::tell_apart`]).
    ///
    /// # Errors
    ///
    /// Those of the file: then the regions stay dead.
    pub(crate) fn take_place_of(
        &mut self,
        inherited: &mut Option<Inherited<S>>,
        held: bool,
    ) -> Result<()> {
        let Some(Inherited(regions)) = inherited else { return Ok(()) };
        if regions.is_empty() {
            let message = format!("{}: its memory was lost after fork()", self.shown);
            return Err(Error::CantOpen(message));
        }
        let Home::File(file, _) = &self.home else { return Ok(()) };
        let len = file.metadata().during(Operation::Stat, &self.shown)?.len;
        let is_short = len < regions.len() as u64 * REGION;
        let found = match len < REGION {
            true => None,
            false => {
                let probe = file.shared_region(0, WORDS);
                header::read(&probe.during(Operation::Map, &self.shown)?)
            }
        };
        if (is_short || found.as_ref().is_none_or(header::tells_nothing)) && !held {
            return Ok(());
        }
        let regions = std::mem::take(regions);
        // The header is in the first one: while that is dead nothing is read in the others.
        self.regions.resize_with(self.regions.len().max(regions.len()), || None);
        for (index, old) in regions.into_iter().enumerate().rev() {
            let Some(old) = old else { continue };
            let offset = index as u64 * REGION;
            let memory = file.shared_region_in_place_of(old, offset, WORDS);
            // Forgotten rather than unmapped after an error: SQLite knows where they are.
            let memory = match memory.during(Operation::Map, &self.shown) {
                Ok(memory) => memory,
                Err(error) => {
                    std::mem::take(&mut self.regions).into_iter().for_each(std::mem::forget);
                    return Err(error);
                }
            };
            self.regions[index] = Some(Region::File(memory));
        }
        *inherited = None;
        Ok(())
    }
}
