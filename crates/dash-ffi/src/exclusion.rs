//! Work that no SQLite of this process opens files meanwhile: what its VFS `unix` does with the
//! mutex that guards its list of open files (os_unix.c `unixBigLock`), which it holds when it adds
//! one there, and before it takes a lock through it.

use crate::mutex_api::Mutexes;
use crate::slot::Slot;
use core::ffi::c_int;
use core::ptr::NonNull;
use std::collections::BTreeMap;

/// `SQLITE_MUTEX_STATIC_VFS1`.
const OF_UNIX: c_int = 11;

/// Does something while no SQLite that has files of ours open in this process opens any through its
/// VFS `unix`. Not from inside that VFS; and no fork may come into it, as a child would find the
/// mutexes held for ever.
pub fn while_nobody_opens(work: &mut dyn FnMut()) {
    // SAFETY: SQLite's own routine; a static mutex is there for ever, and null where there is one
    // thread only.
    let mutex = |it: Mutexes| Some((NonNull::new(unsafe { (it.alloc)(OF_UNIX) })?, it));
    let all = Slot::all_in_use().filter_map(|slot| mutex(slot.api.mutexes?));
    // In the order of their places: of two who take several, none waits for the other.
    let all: BTreeMap<_, _> = all.collect();
    for (mutex, it) in &all {
        // SAFETY: this thread has not entered it, as the caller states.
        unsafe { (it.enter)(mutex.as_ptr()) };
    }
    work();
    for (mutex, it) in all.iter().rev() {
        // SAFETY: entered above, by this thread.
        unsafe { (it.leave)(mutex.as_ptr()) };
    }
}
