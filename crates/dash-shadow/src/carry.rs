//! Aggregate update: what the last commit changed is written into the other copy, too (DASH section
//! 4.3). A connection that made that commit still has its pages, if they are few, and reads none
//! back.

use std::ops::Range;

use dash_storage::{File, Storage};

use crate::buffer::WriteBuffer;
use crate::connection::Connection;
use crate::error::{Context, Operation, Result};
use crate::memory::zeros;
use crate::tail::{read_padded, write_pieces};

/// Bytes that a connection keeps of its last commit at most.
const KEPT_MAX: usize = 64 << 10;

/// What a commit of this connection wrote.
pub(crate) struct LastCommit {
    id: u64,
    pages: WriteBuffer,
}

impl LastCommit {
    /// Of the commit with this id; `None` if it was large.
    pub fn keep(id: u64, pages: WriteBuffer) -> Option<Self> {
        (pages.bytes() <= KEPT_MAX).then_some(Self { id, pages })
    }
}

impl<S: Storage> Connection<S> {
    /// Writes `range` of the current copy into the shadow. Returns its CRC-32.
    pub(crate) fn carry(&self, shadow: &S::File, range: &Range<u64>, name: &str) -> Result<u32> {
        let kept = self.last_commit.as_ref().filter(|last| {
            // Nobody writes a copy while it is current (SHADOW-7).
            last.id == self.snapshot.id && last.pages.covers(range)
        });
        if let Some(last) = kept {
            return last.pages.write_to(shadow, range, name);
        }
        let bytes = bytes_of(&*self.current_file()?, range, name)?;
        write_pieces(shadow, &bytes, range.start, name)?;
        Ok(crc32fast::hash(&bytes))
    }
}

/// What a file has in `range`; zeros where it ends before.
pub(crate) fn bytes_of<F: File>(file: &F, range: &Range<u64>, name: &str) -> Result<Vec<u8>> {
    let mut bytes = zeros(range.end - range.start)?;
    read_padded(file, &mut bytes, range.start).during(Operation::Read, name)?;
    Ok(bytes)
}
