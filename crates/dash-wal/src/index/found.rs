//! A wal-index as the file that somebody has left, and what it says of checkpoints.

use super::header::{BACKFILL, HEADER, decode, number};
use crate::connection::same_files::is_another;
use crate::frames::Salts;
use crate::mutation::{Mutation, broken};
use crate::names::Names;
use dash_engine::error::{Context, Operation, Result};
use dash_engine::io::read_padded;
use dash_engine::open::open_if_there;
use dash_storage::{File, FileId, OpenMode, Storage};

/// Where `nBackfillAttempted` is (wal.c `WalCkptInfo`), and the end of it.
const ATTEMPTED: usize = 128;
const END: usize = ATTEMPTED + 4;

/// A wal-index that nobody need have open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FoundIndex {
    /// The salts of its `-wal`, and the last frame that counts; `None`: its header is none, or was
    /// being written.
    header: Option<(Salts, u32)>,
    /// Up to which frame all is in the database.
    copied: u32,
    /// Up to which frame some may be.
    attempted: u32,
}

impl FoundIndex {
    /// The one beside a database; `None`: there is none. `of`: the one that its users had, by the
    /// word IndexFile of the coordination file; any other says nothing of what they did. One who
    /// has only opened the database had none, nor one in `locking_mode=EXCLUSIVE`.
    pub(crate) fn of_users<S: Storage>(
        directory: &S::Directory,
        names: &Names,
        of: u64,
    ) -> Option<Self> {
        let Ok(read) = Self::read::<S>(directory, names) else { return Some(Self::default()) };
        let (found, id) = read?;
        let is_its = of != 0 && !is_another(of, Some(id)) || broken(Mutation::AnyIndexBelieved);
        Some(if is_its { found } else { Self::default() })
    }

    /// Whichever there is beside a database.
    pub(crate) fn find<S: Storage>(
        directory: &S::Directory,
        names: &Names,
    ) -> Result<Option<Self>> {
        Ok(Self::read::<S>(directory, names)?.map(|(found, _)| found))
    }

    fn read<S: Storage>(directory: &S::Directory, names: &Names) -> Result<Option<(Self, FileId)>> {
        let Some(index) = open_if_there::<S>(directory, &names.shm, OpenMode::Read)? else {
            return Ok(None);
        };
        let mut bytes = [0; END];
        read_padded(&index, &mut bytes, 0).during(Operation::Read, names.shown())?;
        let (first, second) = bytes.split_at(HEADER);
        let header = first.first_chunk().filter(|_| second.starts_with(first)).and_then(decode);
        let found = Self {
            header: header.map(|header| (header.salts, header.mx_frame)),
            copied: number(&bytes, BACKFILL),
            attempted: number(&bytes, ATTEMPTED),
        };
        Ok(Some((found, index.id())))
    }

    /// The salts of its `-wal`, and up to which frame checkpoints may have copied.
    pub(crate) fn checkpoints(&self) -> Option<(Salts, u32)> {
        Some((self.header?.0, self.copied.max(self.attempted)))
    }

    /// The salts of its `-wal`, and the last frame that anybody saw.
    pub(crate) fn end(&self) -> Option<(Salts, u32)> {
        self.header
    }

    /// Whether anybody saw a frame that no checkpoint has copied.
    pub(crate) fn has_uncopied(&self) -> bool {
        self.header.is_some_and(|(_, last)| self.copied < last)
    }

    /// Whether all frames of a generation that anybody saw are in the database: its checkpoint was
    /// complete, or another one has begun since. `None`: it says nothing.
    pub(crate) fn has_copied(&self, generation: Salts) -> Option<bool> {
        let (salts, last) = self.header?;
        match salts == generation {
            false => Some(true),
            // No checksum is of these.
            true if self.copied > last => None,
            true => Some(self.copied == last),
        }
    }

    /// Whether a frame before the frame `first` of a generation is not in the database.
    pub(crate) fn lacks_before(&self, generation: Salts, first: u32) -> bool {
        let is_its = self.header.is_some_and(|(salts, _)| salts == generation);
        is_its && self.copied < first.saturating_sub(1)
    }
}
