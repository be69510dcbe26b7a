//! A commit that was reported as failed and could not be undone, because nothing can be written any
//! more: the device fails, the file system has turned read-only. In the page cache it looks whole,
//! as one does whose writer was killed just before the exchange. Its id is kept in the coordination
//! file, the one place that can still change, so that nobody takes it for committed (SHADOW-13).
//!
//! The id is random and says what was decided for good, so that a coordination file of before a
//! power loss can't mislead. It is read from the file where there is no right to map it for
//! writing.

use std::sync::atomic::Ordering::SeqCst;

use dash_storage::{Directory, File, Storage};

use crate::connection::Connection;
use crate::coordination::{Coordination, Word};
use crate::tail::Tail;

impl<F: File> Coordination<F> {
    /// Id of the commit that failed and could not be undone; 0: none.
    pub fn failed_commit(&self) -> u64 {
        self.word(Word::Failed).load(SeqCst)
    }
}

impl<S: Storage> Connection<S> {
    /// Keeps the id of the commit that the shadow shows, or else of the one that was being made.
    ///
    /// Only while `app.db` names the current copy: where a failed exchange got half-way and could
    /// not be taken back, whoever comes next has to finish it. Whether nobody will take it for
    /// committed.
    pub(crate) fn remember_failed(&self, made: u64) -> bool {
        let (current, slot) = (self.current_file(), self.shadow_slot());
        let named = self.directory.metadata(&self.names.db).ok().flatten();
        if !matches!((&current, named), (Ok(file), Some(named)) if named.id == file.id()) {
            return false;
        }
        let shown = self.file(slot).and_then(|file| {
            let tail = Tail::read(&*file, &self.role(slot))?;
            Ok(tail.bound(file.id()).map_or(0, |block| block.id))
        });
        let id = shown.ok().filter(|&id| id != 0).unwrap_or(made);
        if id != 0 {
            self.coordination.word(Word::Failed).store(id, SeqCst);
        }
        true
    }
}
