//! Waking a busy handler the moment the lock it waits for is free.
//!
//! SQLite's busy handler sleeps through the VFS's `xSleep`, for 1 to 100 ms at a time. When a lock
//! attempt fails, the thread notes the database's [`Queue`]; once it has waited for [`FAIR_AFTER`], [`sleep`] waits
//! in that queue, and a connection of this process that gives a lock up lets the one in front out at once. Until
//! that one has tried (or [`GRACE`] is over) others that want to write get `SQLITE_BUSY`, so that nobody
//! starves. A writer that waits for readers to leave queues at once, and stands in front of all.
//!
//! `busy_timeout` keeps its meaning. SQLite adds up the times it asked to sleep, not those it slept, so
//! what an early wake-up saves is owed. A debt above [`OWED_MAX`], or [`EARLY_MAX`] wake-ups in a row that did not
//! lead to the lock (another process was faster), is slept off before the next attempt. `xSleep` answers the time
//! really slept.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dash_ffi::HostVfs;

/// How long a lock is kept for the one that was let out.
const GRACE: Duration = Duration::from_millis(2);
/// How long a lock is left to whoever is fastest. Handing it from thread to thread takes longer than a
/// short transaction, so at first a sleep is just a sleep.
const FAIR_AFTER: Duration = Duration::from_millis(3);
/// How often in a row a new snapshot is tried without sleeping.
const SNAPSHOTS_MAX: u32 = 2;
/// Wake-ups in a row that may come early.
const EARLY_MAX: u32 = 6;
/// What may be owed: at most this much too early a busy handler can give up.
const OWED_MAX: Duration = Duration::from_millis(100);
/// A failed attempt after a pause of this length has nothing to do with the sleep before it.
const NEW_SEQUENCE: Duration = Duration::from_millis(5);

/// Why a lock attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Somebody else writes.
    Writer,
    /// This connection writes, and readers are in the way.
    Readers,
    /// The snapshot is old: a new one can be had at once.
    Snapshot,
}

/// The threads that wait for a database's locks.
#[derive(Default)]
pub struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    releases: AtomicU64,
    sleepers: AtomicUsize,
    granted: AtomicBool,
    readers_wanted: AtomicBool,
    tickets: AtomicU64,
}

#[derive(Default)]
struct State {
    sleepers: Vec<u64>,
    granted: Option<(u64, Instant)>,
}

impl State {
    /// Who is to have the lock next, if that still holds.
    fn granted(&self) -> Option<u64> {
        self.granted.filter(|(_, since)| since.elapsed() < GRACE).map(|(ticket, _)| ticket)
    }
}

/// What a thread remembers between a failed attempt and the sleep after it.
struct Waiting {
    queue: Arc<Queue>,
    ticket: u64,
    cause: Cause,
    /// The count of releases before the attempt.
    seen: u64,
    /// Whether an attempt failed since the last sleep.
    failed: bool,
    early: u32,
    owed: Duration,
    /// The first failed attempt.
    since: Instant,
    slept_at: Instant,
}

thread_local! {
    static WAITING: RefCell<Option<Waiting>> = const { RefCell::new(None) };
}

fn ticket_of_this_thread(queue: &Arc<Queue>) -> Option<u64> {
    WAITING
        .try_with(|waiting| {
            let waiting = waiting.borrow();
            let waiting = waiting.as_ref()?;
            Arc::ptr_eq(&waiting.queue, queue).then_some(waiting.ticket)
        })
        .ok()
        .flatten()
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The count of releases: read it before a lock attempt, see [`Queue::failed`].
    pub fn releases(&self) -> u64 {
        self.releases.load(Ordering::SeqCst)
    }

    /// Whether this thread may try to become the writer: the lock is not kept for another one.
    pub fn admits(self: &Arc<Self>) -> bool {
        if !self.granted.load(Ordering::SeqCst) {
            return true;
        }
        let mine = ticket_of_this_thread(self);
        let mut state = self.state();
        match state.granted() {
            Some(ticket) if Some(ticket) != mine => false,
            _ => {
                state.granted = None;
                self.granted.store(false, Ordering::SeqCst);
                true
            }
        }
    }

    /// Notes that a lock attempt of this thread failed; `seen` is what [`Queue::releases`] answered
    /// before it.
    pub fn failed(self: &Arc<Self>, seen: u64, cause: Cause) {
        // A thread that is being torn down does not wait.
        let _ = WAITING.try_with(|waiting| {
            let mut waiting = waiting.borrow_mut();
            match &mut *waiting {
                Some(waiting)
                    if Arc::ptr_eq(&waiting.queue, self)
                        && waiting.slept_at.elapsed() < NEW_SEQUENCE =>
                {
                    waiting.seen = seen;
                    waiting.cause = cause;
                    waiting.failed = true;
                }
                _ => {
                    let now = Instant::now();
                    *waiting = Some(Waiting {
                        queue: Arc::clone(self),
                        ticket: self.tickets.fetch_add(1, Ordering::Relaxed) + 1,
                        cause,
                        seen,
                        failed: true,
                        early: 0,
                        owed: Duration::ZERO,
                        since: now,
                        slept_at: now,
                    });
                }
            }
        });
    }

    /// Asks readers to tell when they leave: the writer waits for them.
    pub fn want_readers_gone(&self, wanted: bool) {
        self.readers_wanted.store(wanted, Ordering::SeqCst);
    }

    /// A reader has given its copy up: lets the writer out that waits for it, if there is one.
    pub fn reader_left(&self) {
        if self.readers_wanted.load(Ordering::SeqCst) {
            self.released();
        }
    }

    /// Lets the one in front out: a lock was given up.
    pub fn released(&self) {
        self.releases.fetch_add(1, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut state = self.state();
        if state.granted().is_some() {
            return;
        }
        if let Some(first) = state.sleepers.iter().min().copied() {
            self.grant(&mut state, first);
            self.changed.notify_all();
        }
    }

    fn grant(&self, state: &mut State, ticket: u64) {
        state.granted = Some((ticket, Instant::now()));
        self.granted.store(true, Ordering::SeqCst);
    }

    /// Waits for a release; `false` if the time was over first.
    fn wait(&self, ticket: u64, seen: u64, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        let mut state = self.state();
        state.sleepers.push(ticket);
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        // Between the failed attempt and now nobody knew of this thread.
        if self.releases() != seen && state.granted().is_none() {
            self.grant(&mut state, ticket);
        }
        let woken = loop {
            if state.granted() == Some(ticket) {
                break true;
            }
            let now = Instant::now();
            if now >= deadline {
                break false;
            }
            state = self
                .changed
                .wait_timeout(state, deadline - now)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        };
        state.sleepers.retain(|sleeper| *sleeper != ticket);
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        woken
    }
}

impl Waiting {
    /// Sleeps, or waits in the queue; whether it was woken.
    fn wait(&self, host: &HostVfs, time: Duration) -> bool {
        match self.cause {
            // No ticket is 0 but that of the one writer, who goes first.
            Cause::Readers => self.queue.wait(0, self.seen, time),
            Cause::Snapshot if self.early < SNAPSHOTS_MAX => true,
            _ if self.since.elapsed() < FAIR_AFTER => {
                host.sleep(time);
                false
            }
            _ => self.queue.wait(self.ticket, self.seen, time),
        }
    }
}

/// Forgets what this thread waited for: it has the lock.
pub fn succeeded() {
    let _ = WAITING.try_with(|waiting| waiting.borrow_mut().take());
}

/// `xSleep`: for about `time`, or until the lock that this thread failed to get is given up.
pub fn sleep(host: &HostVfs, time: Duration) -> Duration {
    let waiting = WAITING.try_with(|waiting| waiting.borrow_mut().take()).ok().flatten();
    let Some(mut waiting) = waiting.filter(|waiting| waiting.failed) else {
        return host.sleep(time);
    };
    let begun = Instant::now();
    waiting.failed = false;
    if waiting.early >= EARLY_MAX || waiting.owed > OWED_MAX {
        host.sleep(time + waiting.owed);
        waiting.owed = Duration::ZERO;
        waiting.early = 0;
    } else if waiting.wait(host, time) {
        waiting.early += 1;
        waiting.owed += time.saturating_sub(begun.elapsed());
    }
    waiting.slept_at = Instant::now();
    let _ = WAITING.try_with(|place| place.borrow_mut().replace(waiting));
    begun.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_lets_the_one_in_front_out_and_keeps_others_back() {
        let queue = Arc::new(Queue::default());
        let seen = queue.releases();
        let waiter = std::thread::spawn({
            let queue = Arc::clone(&queue);
            move || {
                let begun = Instant::now();
                let woken = queue.wait(1, seen, Duration::from_secs(5));
                (woken, begun.elapsed())
            }
        });
        while queue.sleepers.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        queue.released();
        let admitted = queue.admits();
        let (woken, waited) = waiter.join().expect("no panic");
        assert!(woken && waited < Duration::from_secs(4));
        assert!(!admitted, "the lock is kept for the one that was let out");
        std::thread::sleep(GRACE);
        assert!(queue.admits());
    }

    #[test]
    fn a_release_between_the_attempt_and_the_sleep_is_not_missed() {
        let queue = Arc::new(Queue::default());
        let seen = queue.releases();
        queue.released();
        assert!(queue.wait(1, seen, Duration::from_secs(5)));
    }

    #[test]
    fn without_a_release_a_sleep_lasts_its_time() {
        let queue = Arc::new(Queue::default());
        let begun = Instant::now();
        assert!(!queue.wait(1, 0, Duration::from_millis(20)));
        assert!(begun.elapsed() >= Duration::from_millis(20));
    }
}
