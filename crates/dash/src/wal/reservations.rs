//! Locks that a sleep has taken for SQLite, and SQLite does not come for.
//!
//! What was taken for a sleep of SQLite's busy handler may be a program's own (`sqlite3_sleep`,
//! where dash is the default VFS), which then does something else. So a thread gives up what nobody
//! has come for in [`LEASE`]. A connection that comes for it, or makes another call, settles it
//! before.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use super::link::Link;

/// For how long a lock is held for SQLite: longer than a thread waits for a core on a busy machine.
const LEASE: Duration = Duration::from_millis(100);

/// Those that may hold one.
static WATCHED: Mutex<Vec<Weak<Link>>> = Mutex::new(Vec::new());
/// Tells the watch that there is one.
static CHANGED: Condvar = Condvar::new();
/// The process whose thread watches; 0 before there is one.
static HOME: AtomicU32 = AtomicU32::new(0);

fn watched() -> MutexGuard<'static, Vec<Weak<Link>>> {
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the thread runs, or can be started: in a forked child it does not, nor is its parent's
/// list of any use there.
pub fn can_be_watched() -> bool {
    let home = HOME.load(Ordering::SeqCst);
    if home == std::process::id() {
        return true;
    }
    if home != 0
        || HOME.compare_exchange(0, std::process::id(), Ordering::SeqCst, Ordering::SeqCst).is_err()
    {
        return false;
    }
    let thread = std::thread::Builder::new().name("dash-watch".into());
    let thread = thread.spawn(|| dash_ffi::behind_the_wall("watching locks", watch_all));
    if thread.is_err() {
        HOME.store(0, Ordering::SeqCst);
    }
    thread.is_ok()
}

/// Looks after a link until it holds nothing.
pub fn watch(link: Arc<Link>) {
    watched().push(Arc::downgrade(&link));
    CHANGED.notify_one();
}

fn watch_all() {
    loop {
        let list = watched();
        let list = CHANGED.wait_while(list, |list| list.is_empty());
        drop(list.unwrap_or_else(PoisonError::into_inner));
        std::thread::sleep(LEASE);
        let links = std::mem::take(&mut *watched());
        let kept: Vec<_> = links.into_iter().filter(is_still_held).collect();
        watched().extend(kept);
    }
}

/// Gives up what is overdue; whether there is something left to look after.
fn is_still_held(link: &Weak<Link>) -> bool {
    let Some(link) = link.upgrade() else {
        return false;
    };
    let mut state = link.state();
    if state.reserved.is_some_and(|since| since.elapsed() >= LEASE) {
        state.give_up();
    }
    let held = state.reserved.is_some();
    link.watched.store(held, Ordering::SeqCst);
    held
}
