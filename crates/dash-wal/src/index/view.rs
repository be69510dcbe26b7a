//! The index as SQLite sees it while it writes on a snapshot that others have committed behind:
//! memory of this process's own, at the places that SQLite knows, with the snapshot's header. The
//! shared regions are at other places meanwhile, where everything else here finds them.

use super::header::{self, End, RawHeader};
use super::{Index, WORDS, pages};
use crate::memory::index::Region;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_storage::{File, SharedMemory, Storage};
use std::ops::RangeInclusive;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::SeqCst;

impl<S: Storage> Index<S> {
    /// The header as it stands there, whole or not. `None`: region 0 is not mapped.
    pub(crate) fn raw_header(&self) -> Option<RawHeader> {
        Some(header::copy(self.regions.first()?.as_ref()?, 0))
    }

    /// Begins the view of a snapshot with this header, which ends with frame `last`. `unmarked`:
    /// SQLite reads by no mark, and all up to there is in the database.
    ///
    /// # Errors
    ///
    /// Mapping fails: then there is no view. `Busy`, where the index is in no file.
    pub(crate) fn begin_view(&mut self, raw: RawHeader, last: u32, unmarked: bool) -> Result<()> {
        let (region, _) = pages::place(last.saturating_add(1)).ok_or(Error::Busy)?;
        let covered = self.cover(0).and_then(|()| match region {
            0 => Ok(()),
            _ => self.cover(region),
        });
        if let Err(error) = covered {
            self.end_view()?;
            return Err(error);
        }
        for (index, memory) in &self.covered {
            if *index == region {
                pages::cut(memory, region, last);
            }
            if *index == 0 {
                header::write(memory, raw);
                if unmarked {
                    header::show_mark(memory, last);
                }
            }
        }
        Ok(())
    }

    /// Puts memory of this process's own over region `index`.
    fn cover(&mut self, index: usize) -> Result<()> {
        self.map_shared(index, true)?;
        self.covered.try_reserve(1).map_err(|_| Error::OutOfMemory)?;
        let Some(Some(Region::File(memory))) = self.regions.get_mut(index).map(Option::take) else {
            return Err(Error::Busy);
        };
        match memory.cover().during(Operation::Map, &self.shown) {
            Ok(shared) => {
                self.regions[index] = Some(Region::File(shared));
                self.covered.push((index, memory));
                Ok(())
            }
            Err(error) => {
                self.regions[index] = Some(Region::File(memory));
                Err(error)
            }
        }
    }

    /// Whether region `index` is the view's own, or to be: the snapshot has nothing in it.
    pub(super) fn is_viewed(&self, index: usize) -> bool {
        let last = self.covered.iter().map(|(index, _)| *index).max();
        last.is_some_and(|last| index > last) || self.covered_at(index).is_some()
    }

    fn covered_at(&self, index: usize) -> Option<&<S::File as File>::Memory> {
        self.covered.iter().find(|(covered, _)| *covered == index).map(|(_, memory)| memory)
    }

    /// Region `index` as the view has it: empty, where the snapshot has nothing in it.
    ///
    /// # Errors
    ///
    /// Mapping fails.
    pub(super) fn map_viewed(&mut self, index: usize) -> Result<Option<NonNull<u8>>> {
        if self.covered_at(index).is_none() {
            self.cover(index)?;
            let memory = self.covered_at(index).ok_or(Error::Busy)?;
            (0..WORDS).for_each(|word| memory.word(word).store(0, SeqCst));
        }
        Ok(self.covered_at(index).and_then(|memory| NonNull::new(memory.start())))
    }

    /// Sees to it that what SQLite is about to add for its frame `frame` goes to the view, also
    /// where it knows a region from an earlier generation.
    ///
    /// # Errors
    ///
    /// Mapping fails.
    pub(crate) fn view_frame(&mut self, frame: u32) -> Result<()> {
        let (region, _) = pages::place(frame).ok_or(Error::Busy)?;
        self.map_viewed(region).map(drop)
    }

    /// The view's header.
    pub(crate) fn viewed_header(&self) -> Option<RawHeader> {
        self.covered_at(0).map(|memory| header::copy(memory, 0))
    }

    /// Ends it: SQLite sees what all see.
    ///
    /// # Errors
    ///
    /// Mapping fails: then SQLite must not go on with this index.
    pub(crate) fn end_view(&mut self) -> Result<()> {
        while let Some((index, memory)) = self.covered.last() {
            if let Some(Some(Region::File(words))) = self.regions.get(*index) {
                memory.uncover(words).during(Operation::Map, &self.shown)?;
            }
            if let Some((index, memory)) = self.covered.pop() {
                self.regions[index] = Some(Region::File(memory));
            }
        }
        Ok(())
    }

    /// Maps the shared regions of these frames, which are made if need be. WRITE is held.
    ///
    /// # Errors
    ///
    /// Mapping fails.
    pub(crate) fn reach(&mut self, frames: RangeInclusive<u32>) -> Result<()> {
        let region = |frame| pages::place(frame).map(|(region, _)| region).ok_or(Error::Busy);
        for index in region(*frames.start())?..=region(*frames.end())? {
            self.map_shared(index, true)?;
        }
        Ok(())
    }

    /// Adds a frame to the shared tables, which [`Self::reach`] has mapped. WRITE is held.
    pub(crate) fn append(&self, frame: u32, page: u32) -> bool {
        let region = pages::place(frame).and_then(|(region, _)| self.regions.get(region)?.as_ref());
        region.is_some_and(|memory| pages::append(memory, frame, page))
    }

    /// Makes frames visible that end with `end`. WRITE is held.
    pub(crate) fn show(&self, end: End) {
        if let Some(Some(memory)) = self.regions.first() {
            header::show(memory, end);
        }
    }

    /// The newest of `frames` that has `page`.
    pub(crate) fn newest(&self, page: u32, frames: RangeInclusive<u32>) -> Option<u32> {
        let (first, _) = pages::place(*frames.start())?;
        let (last, _) = pages::place(*frames.end())?;
        let regions = (first..=last).rev().filter_map(|index| {
            let memory = self.regions.get(index)?.as_ref()?;
            pages::newest(memory, index, page, &frames)
        });
        regions.max()
    }
}
