//! Aggregate update: what the last commit changed is written into the other copy, too (DASH section
//! 4.3). A connection that made that commit still has its pages, if they are few, and reads none
//! back.

use crate::connection::last_commit::{KEPT_MAX, LastCommit};
use crate::connection::state::Connection;
use crate::connection::transaction::buffer::WriteBuffer;
use dash_engine::error::Result;
use dash_engine::io::{bytes_of, write_pieces};
use dash_storage::Storage;
use std::ops::Range;

impl LastCommit {
    /// Of the commit with this id; `None` if it was large.
    pub fn keep(id: u64, pages: WriteBuffer) -> Option<Self> {
        (pages.bytes() <= KEPT_MAX).then_some(Self { id, pages })
    }
}

impl<S: Storage> Connection<S> {
    /// Writes `range` of the current copy into the shadow. Returns its CRC-32.
    pub(crate) fn carry(&self, shadow: &S::File, range: &Range<u64>, name: &str) -> Result<u32> {
        let kept = self.memo.last_commit.as_ref().filter(|last| {
            // Nobody writes a copy while it is current (SHADOW-7).
            last.id == self.view.snapshot.id && last.pages.covers(range)
        });
        if let Some(last) = kept {
            return last.pages.write_to(shadow, range, name);
        }
        let bytes = bytes_of(&*self.current_file()?, range, name)?;
        write_pieces(shadow, &bytes, range.start, name)?;
        Ok(crc32fast::hash(&bytes))
    }
}
