//! The end of the process, at which nothing may be waited for that the ending thread itself holds.
//!
//! A handler of a signal that calls `exit` does so in the middle of anything, and what it has
//! interrupted goes on no more. So from then on a lock is waited for a moment only, once; what
//! can't be closed without it stays open, and the kernel closes it.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, SigmaskHow, Signal};

static ENDS: AtomicBool = AtomicBool::new(false);
static GAVE_UP: AtomicBool = AtomicBool::new(false);

const PATIENCE: Duration = Duration::from_millis(100);
const PAUSE: Duration = Duration::from_millis(1);

/// The process ends: to be said by every handler that is called at its end.
pub fn process_ends() {
    ENDS.store(true, Ordering::Relaxed);
}

/// Takes a lock; `None`: the process ends, and the lock can't be had.
pub fn lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    let Some(patience) = patience() else {
        return Some(mutex.lock().unwrap_or_else(PoisonError::into_inner));
    };
    let begun = Instant::now();
    loop {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if begun.elapsed() < patience => {
                std::thread::sleep(PAUSE);
            }
            Err(TryLockError::WouldBlock) => {
                gave_up();
                return None;
            }
        }
    }
}

/// Starts a thread that no handler of the host's for a signal interrupts: one that calls `exit`
/// would wait there for this thread. Faults come through.
///
/// # Errors
///
/// No thread can be had.
pub fn start_thread(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let mut signals = SigSet::all();
    let faults = [Signal::SIGSEGV, Signal::SIGBUS, Signal::SIGFPE, Signal::SIGILL];
    faults.into_iter().for_each(|fault| signals.remove(fault));
    let before = signals.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let thread = Builder::new().name(name.to_owned()).spawn(work);
    before.thread_set_mask()?;
    thread
}

/// Whether this thread has blocked a signal, as a handler has the one it handles.
#[must_use]
pub fn is_signal_blocked() -> bool {
    SigSet::thread_get_mask().is_ok_and(|blocked| blocked.iter().next().is_some())
}

/// How long something may be waited for; `None`: as long as it takes.
pub(super) fn patience() -> Option<Duration> {
    let patience = if GAVE_UP.load(Ordering::Relaxed) { Duration::ZERO } else { PATIENCE };
    ENDS.load(Ordering::Relaxed).then_some(patience)
}

/// It was waited for in vain, and so will everything be.
pub(super) fn gave_up() {
    GAVE_UP.store(true, Ordering::Relaxed);
}
