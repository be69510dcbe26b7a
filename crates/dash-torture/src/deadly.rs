//! A process that dies where it was told to: before the n-th call from then on that changes a file
//! or flushes one. What it had done until then stays in the system's cache.

use std::io::Result;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::sync::mpsc;

use crate::faults::sql::call::{Call, Kind};
use crate::faults::sql::seccomp::{self, Answer};

/// Calls that are left; the process lives on as long as nobody has set it.
static LEFT: AtomicI64 = AtomicI64::new(i64::MAX);

/// The process dies before so many more calls have been made by the thread that works in [`run`].
pub(crate) fn die_after(calls: i64) {
    LEFT.store(calls, SeqCst);
}

/// Does the work in a thread of its own. Before each of its calls of storage, and before those of
/// the threads that dash starts in it, the kernel asks this one.
///
/// # Errors
///
/// Where the kernel does not ask.
pub(crate) fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let (hand_over, take) = mpsc::channel();
    let worker = std::thread::spawn(move || {
        let listener = seccomp::ask_from_now_on()?;
        hand_over.send(listener).map_err(std::io::Error::other)?;
        drop(hand_over);
        Ok(work())
    });
    if let Ok(listener) = take.recv() {
        std::thread::spawn(move || listener.answer(answer));
    }
    worker.join().unwrap_or_else(|_| Err(std::io::Error::other("the worker panicked")))
}

fn answer(call: &Call) -> Answer {
    let counts = matches!(
        call.kind,
        Kind::Write
            | Kind::Flush
            | Kind::Resize
            | Kind::Rename
            | Kind::Remove
            | Kind::MakeDirectory
    );
    // Pipes and sockets are none of the files.
    let is_file = || call.file().is_some_and(|file| file.is_absolute());
    let is_armed = LEFT.load(SeqCst) != i64::MAX;
    if is_armed && counts && is_file() && LEFT.fetch_sub(1, SeqCst) <= 0 {
        // The signal arrives before the call is answered.
        let _never_fails = nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL);
    }
    Answer::GoOn
}
