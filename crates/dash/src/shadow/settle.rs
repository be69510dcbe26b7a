//! Settling: after a large transaction the other copy is brought up in the background, so that the
//! next small commit need not carry all of it.
//!
//! A connection of its own does it, in a thread that every connection of this process waits for
//! before it closes: a process that ended in the middle would leave the database as a crash does.
//! It is in nobody's way: it holds no lock while it flushes, and gives way between two pieces of
//! copying to a writer, which waits for that inside its lock call (`housekeeping.rs` of the
//! engine).

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use dash_shadow::{Connection, Error, OpenOptions};
use dash_storage::real::{self, Real};

use crate::mode::Shared;

/// Bytes to carry from which it is worth a thread.
pub const WORTH: u64 = 4 << 20;
/// How often it looks again whether a writer, or a reader of the other copy, is still in the way.
const ATTEMPTS: usize = 50;
/// For how long each time.
const PAUSE: Duration = Duration::from_millis(2);

/// The thread that settles a database.
#[derive(Default)]
struct Settling(Mutex<Option<JoinHandle<()>>>);

impl Settling {
    fn thread(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Settles `path` in the background, unless that is being done already.
pub fn in_background(path: PathBuf, shared: &Shared) {
    let settling = shared.of::<Settling>();
    let mut settling = settling.thread();
    if settling.as_ref().is_some_and(|thread| !thread.is_finished()) {
        return;
    }
    let thread = real::start_thread("dash-settle", move || {
        // What fails here the next commit does, and reports.
        dash_ffi::behind_the_wall("settling", || drop(settle(&path)));
    });
    // Without a thread the next commit carries the pages, as it would anyway.
    *settling = thread.ok();
}

/// Whether it is being settled.
pub fn is_at_work(shared: &Shared) -> bool {
    shared.of::<Settling>().thread().as_ref().is_some_and(|thread| !thread.is_finished())
}

/// Waits until nothing is being settled.
pub fn finish(shared: &Shared) {
    let thread = shared.of::<Settling>().thread().take();
    if let Some(thread) = thread {
        // A panic in the thread has been noted there; the database recovers as from a crash.
        drop(thread.join());
    }
}

fn settle(path: &std::path::Path) -> Result<(), Error> {
    let options = OpenOptions { create: false, ..OpenOptions::default() };
    let mut connection = Connection::open(&Real, path, &options)?;
    let mut settled = connection.settle(WORTH);
    for _ in 0..ATTEMPTS {
        if !matches!(settled, Err(Error::Busy | Error::BusySnapshot)) {
            break;
        }
        std::thread::sleep(PAUSE);
        settled = connection.settle(WORTH);
    }
    connection.hand_over();
    connection.close().and(settled.map(drop))
}
