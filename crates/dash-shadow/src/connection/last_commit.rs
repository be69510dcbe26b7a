//! What a connection keeps of its last commit: the pages, if they are few, so that the next one
//! need not read back what it carries.

use crate::connection::transaction::buffer::WriteBuffer;

/// Bytes that a connection keeps of its last commit at most.
const KEPT_MAX: usize = 64 << 10;

/// What a commit of this connection wrote.
pub(crate) struct LastCommit {
    pub id: u64,
    pub pages: WriteBuffer,
}

impl LastCommit {
    /// Of the commit with this id; `None` if it was large.
    pub fn keep(id: u64, pages: WriteBuffer) -> Option<Self> {
        (pages.bytes() <= KEPT_MAX).then_some(Self { id, pages })
    }
}
