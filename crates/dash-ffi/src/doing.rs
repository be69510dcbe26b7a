//! What a connection is doing just now.

use crate::api::Api;
use crate::connection::ConnectionRef;
use crate::statement_api::next_busy;
use crate::sys::Connection;
use core::ffi::{CStr, c_int};

/// `SQLITE_TXN_NONE`.
const TXN_NONE: c_int = 0;

impl Api {
    /// Whether any transaction is open on a connection, not one that is about to begin. Before 3.34
    /// it is one of the program's.
    ///
    /// # Safety
    ///
    /// As for [`Api::db_name`].
    pub(crate) unsafe fn is_in_transaction(&self, db: *mut Connection) -> bool {
        match self.txn_state {
            // SAFETY: as the caller states; without a schema it answers for all of them.
            Some(state) => unsafe { state(db, core::ptr::null()) > TXN_NONE },
            // SAFETY: as the caller states.
            None => unsafe { (self.get_autocommit)(db) == 0 },
        }
    }
}

impl ConnectionRef<'_> {
    /// Whether `sqlite3_interrupt` was called for a statement that runs: where none does, as in a
    /// step of a backup, the call means nothing. An SQLite before 3.41 can't tell: not.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        let (api, db) = (self.slot.api, self.as_ptr());
        let routines = (api.next_stmt, api.stmt_busy);
        // SAFETY: an open connection that this thread holds.
        let runs = || unsafe { !next_busy(routines, db, core::ptr::null_mut()).is_null() };
        // SAFETY: as above.
        api.is_interrupted.is_some_and(|is| unsafe { is(db) } != 0) && runs()
    }

    /// Whether it is in a transaction: then SQLite calls no busy handler for the write lock
    /// (btree.c `sqlite3BtreeBeginTrans`).
    #[must_use]
    pub fn is_reading(&self) -> bool {
        // SAFETY: an open connection that this thread holds.
        unsafe { self.slot.api.is_in_transaction(self.as_ptr()) }
    }

    /// Whether several of its databases are in a transaction, `temp` apart. An SQLite before 3.39
    /// can't tell: not.
    #[must_use]
    pub fn reads_several(&self) -> bool {
        let (state, db) = (self.slot.api.txn_state, self.as_ptr());
        // SAFETY: an open connection that this thread holds, and a C string.
        let is_in =
            |schema: &&CStr| state.is_some_and(|it| unsafe { it(db, schema.as_ptr()) } > TXN_NONE);
        core::iter::once(c"main").chain(self.attached()).filter(is_in).count() > 1
    }
}
