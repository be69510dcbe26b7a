//! A commit that was reported as failed and could not be undone, because nothing can be written any
//! more: the device fails, the file system has turned read-only. In the page cache it looks whole,
//! as one does whose writer was killed just before the exchange. Its id is kept in the coordination
//! file, the one place that can still change, so that nobody takes it for committed (SHADOW-13).
//!
//! The id is random and says what was decided for good, so that a coordination file of before a
//! power loss can't mislead. It is read from the file where there is no right to map it for
//! writing.

use crate::shared::coordination::{Coordination, Word};
use dash_storage::File;
use std::sync::atomic::Ordering::SeqCst;

impl<F: File> Coordination<F> {
    /// Id of the commit that failed and could not be undone; 0: none.
    pub fn failed_commit(&self) -> u64 {
        self.word(Word::Failed).load(SeqCst)
    }
}
