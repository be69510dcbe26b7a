//! What a connection keeps of its last commit: the pages, if they are few, so that the next one
//! need not read back what it carries.

use crate::connection::transaction::buffer::WriteBuffer;

/// Bytes that a connection keeps of its last commit at most.
pub(crate) const KEPT_MAX: usize = 64 << 10;

/// What a commit of this connection wrote.
pub(crate) struct LastCommit {
    pub id: u64,
    pub pages: WriteBuffer,
}
