//! The database as of the newest commit, by its pages: for whoever has to know of it what a
//! transaction that is about to be committed was run on, and can't ask SQLite. WRITER is held.

use crate::connection::state::Connection;
use crate::frames::{FRAME_HEADER, frame_offset, pack};
use crate::shared::coordination::Word;
use dash_engine::error::{Context, Operation, Result};
use dash_engine::io::read_exact;
use dash_engine::memory::zeros;
use dash_storage::Storage;

/// A commit, by the last frame in a generation of `-wal`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Newest {
    generation: u64,
    frame: u32,
    /// Pages of the database; 0: as many as its file has.
    pages: u32,
}

impl<S: Storage> Connection<S> {
    /// The newest commit; `None`: nothing tells which one that is.
    #[must_use]
    pub fn newest_commit(&self) -> Option<Newest> {
        let header = self.index.header()?;
        let ours = pack(header.salts) == self.files.shared.get(Word::Salts);
        let generation = self.files.shared.get(Word::Generation);
        let (frame, pages) = if ours { (header.mx_frame, header.pages) } else { (0, 0) };
        Some(Newest { generation, frame, pages })
    }

    /// Whether a commit behind `seen`, up to `newest`, may have written one of these pages.
    pub fn may_differ(&self, seen: Newest, newest: Newest, pages: &[u32]) -> bool {
        let is_one = |frame| {
            let page = self.index.open.as_ref().and_then(|index| index.page_of(frame));
            page.is_none_or(|page| pages.contains(&page))
        };
        seen.generation != newest.generation
            || seen.frame > newest.frame
            || (seen.frame.saturating_add(1)..=newest.frame).any(is_one)
    }

    /// A page as of that commit, by its number from 1; `None`: there is none.
    ///
    /// # Errors
    ///
    /// Those of the files.
    pub fn committed_page(&mut self, newest: Newest, number: u32) -> Result<Option<Vec<u8>>> {
        let Some(size) = self.wal.page_size(&self.files)? else { return Ok(None) };
        // A file, or a frame, may have what a commit has cut off.
        if newest.frame > 0 && number > newest.pages {
            return Ok(None);
        }
        let mut page = zeros(size.into())?;
        let mut found = None;
        for frame in (1..=newest.frame).rev() {
            if self.wal.page_in(frame, size, self.index.open.as_ref(), &self.files)? == number {
                found = Some(frame);
                break;
            }
        }
        let whole = match found {
            Some(frame) => {
                let at = frame_offset(frame, size) + FRAME_HEADER as u64;
                self.wal
                    .file(&self.files)?
                    .read_exact(&mut page, at)
                    .during(Operation::Read, self.files.names.shown_wal())?
            }
            None => {
                let at = u64::from(number.saturating_sub(1)) * u64::from(size);
                read_exact(&**self.files.database.file(), &mut page, at)
                    .during(Operation::Read, self.files.names.shown())?
            }
        };
        Ok(whole.then_some(page))
    }
}
