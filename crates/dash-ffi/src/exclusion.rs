//! Work that no SQLite of this process opens files meanwhile: what its VFS `unix` does with the
//! mutex that guards its list of open files (os_unix.c `unixBigLock`), which it holds when it adds
//! one there, and before it takes a lock through it.

use crate::mutex_api::Mutexes;
use crate::slot::Slot;
use crate::sys::Mutex;
use core::ffi::c_int;
use core::ptr::NonNull;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// `SQLITE_MUTEX_STATIC_VFS1`.
const OF_UNIX: c_int = 11;

const PAUSE: Duration = Duration::from_millis(1);

/// Does something while no SQLite of this process that dash was loaded into opens any file through
/// its VFS `unix`; `false`: `patience` ended before, and nothing was done. Not from inside that
/// VFS; and no fork may come into it, as a child would find the mutexes held for ever.
pub fn while_nobody_opens(work: &mut dyn FnMut(), patience: Option<Duration>) -> bool {
    // SAFETY: SQLite's own routine; a static mutex is there for ever, and null where there is one
    // thread only.
    let mutex = |it: Mutexes| Some((NonNull::new(unsafe { (it.alloc)(OF_UNIX) })?, it));
    let all = Slot::all_there().filter_map(|slot| mutex(slot.api.mutexes?));
    // In the order of their places: of two who take several, none waits for the other.
    let all: BTreeMap<_, _> = all.collect();
    let until = patience.map(|patience| Instant::now() + patience);
    let entered = all.iter().take_while(|(mutex, it)| enter(**mutex, **it, until)).count();
    if entered == all.len() {
        work();
    }
    for (mutex, it) in all.iter().take(entered).rev() {
        // SAFETY: entered above, by this thread.
        unsafe { (it.leave)(mutex.as_ptr()) };
    }
    entered == all.len()
}

/// Whether it was entered in time.
fn enter(mutex: NonNull<Mutex>, it: Mutexes, until: Option<Instant>) -> bool {
    let Some(until) = until else {
        // SAFETY: this thread has not entered it, as the caller states.
        unsafe { (it.enter)(mutex.as_ptr()) };
        return true;
    };
    // SAFETY: as above; if it has, the answer is that it is held.
    while unsafe { (it.attempt)(mutex.as_ptr()) } != 0 {
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(PAUSE);
    }
    true
}
