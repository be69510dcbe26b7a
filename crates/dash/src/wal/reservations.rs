//! Locks that a sleep has taken for SQLite, and SQLite does not come for.
//!
//! What was taken for a sleep of SQLite's busy handler may be a program's own (`sqlite3_sleep`,
//! where dash is the default VFS), which then does something else; and a transaction that took one
//! before it reads may take its time. So a thread gives up what nobody has come for. A connection
//! that comes for it, or makes another call, settles it before.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use dash_storage::real::{self, PerProcess, without_fork};

/// What may hold such a lock.
pub trait Reserves: Send + Sync {
    /// Gives up a lock whose time is over; whether it holds one still.
    fn give_up_if_due(&self) -> bool;
}

/// How often the thread looks.
const PAUSE: Duration = Duration::from_millis(5);

/// How long the thread waits for work: a process ends with its last thread.
const IDLE: Duration = Duration::from_secs(1);

/// A forked child has none of its parent's, nor the thread that watches them.
static WATCH: PerProcess<Watch> = PerProcess::new();

#[derive(Default)]
struct Watch {
    /// Those that may hold one.
    links: Mutex<Vec<Weak<dyn Reserves>>>,
    /// Tells the thread that there is one.
    changed: Condvar,
    /// Whether the thread runs.
    runs: AtomicBool,
}

impl Watch {
    fn links(&self) -> MutexGuard<'_, Vec<Weak<dyn Reserves>>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the thread run; it ends only while nobody else has the list.
    fn starts(&self, _: &MutexGuard<'_, Vec<Weak<dyn Reserves>>>) -> bool {
        if self.runs.swap(true, Ordering::SeqCst) {
            return true;
        }
        let work = || dash_ffi::behind_the_wall("watching locks", watch_all);
        let thread = real::start_thread("dash-watch", work);
        self.runs.store(thread.is_ok(), Ordering::SeqCst);
        thread.is_ok()
    }
}

/// Whether the thread runs, or can be started.
pub fn can_be_watched() -> bool {
    let watch = WATCH.get();
    watch.starts(&watch.links())
}

/// Looks after a link until it holds nothing.
pub fn watch(link: Weak<dyn Reserves>) {
    let watch = WATCH.get();
    let mut links = watch.links();
    links.push(link);
    // It may have ended meanwhile. Where no other one can be had, the next one looks after it.
    watch.starts(&links);
    watch.changed.notify_one();
}

fn watch_all() {
    let watch = WATCH.get();
    loop {
        let list = watch.links();
        let woken = watch.changed.wait_timeout_while(list, IDLE, |list| list.is_empty());
        let (list, _) = woken.unwrap_or_else(PoisonError::into_inner);
        if list.is_empty() {
            watch.runs.store(false, Ordering::SeqCst);
            return;
        }
        drop(list);
        std::thread::sleep(PAUSE);
        let links = std::mem::take(&mut *watch.links());
        // A forked child must not find a link in the hands of this thread.
        let is_held = |link: &Weak<dyn Reserves>| {
            without_fork(|| link.upgrade().is_some_and(|link| link.give_up_if_due()))
        };
        let kept: Vec<_> = links.into_iter().filter(is_held).collect();
        watch.links().extend(kept);
    }
}
