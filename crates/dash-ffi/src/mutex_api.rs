//! The routines of one SQLite copy for its mutexes.

use crate::sys::{ApiRoutines, MutexAlloc, MutexCall, MutexTry};

/// The routines of an SQLite's mutexes; one for a single thread is built without them.
#[derive(Clone, Copy)]
pub(crate) struct Mutexes {
    pub(crate) alloc: MutexAlloc,
    pub(crate) enter: MutexCall,
    pub(crate) attempt: MutexTry,
    pub(crate) leave: MutexCall,
}

impl Mutexes {
    /// # Safety
    ///
    /// `table` is that of an SQLite of 3.31 or later.
    pub(crate) unsafe fn copy(table: *const ApiRoutines) -> Option<Self> {
        // SAFETY: as the caller states.
        unsafe {
            Some(Self {
                alloc: (*table).mutex_alloc?,
                enter: (*table).mutex_enter?,
                attempt: (*table).mutex_try?,
                leave: (*table).mutex_leave?,
            })
        }
    }
}
