//! Waking a busy handler the moment the lock it waits for is free.
//!
//! SQLite's busy handler sleeps through the VFS's `xSleep`, for 1 to 100 ms at a time. When the
//! attempt to become the writer fails, the thread notes its place in line (a [`Turn`] of the
//! engine); once it has waited for [`FAIR_AFTER`], [`sleep`] waits there, and whoever gives the
//! lock up, in this process or in another one, hands it to the first in line, so that nobody
//! starves.
//!
//! A writer seldom waits for readers: only for those that map pages of the copy it writes, for
//! stock readers, and when the version store is full. Then it waits in the database's [`Queue`] at
//! once, and the readers that can be in its way, which are those that began before it waited, let
//! it out: where pages are mapped the last one of them, else each. So many scans that end one after
//! the other do not wear the writer's patience out.
//!
//! `busy_timeout` keeps its meaning. SQLite adds up the times it asked to sleep, not those it
//! slept, so what an early wake-up saves is owed, unless it came from the last reader in the way. A
//! debt above [`OWED_MAX`], or [`EARLY_MAX`] wake-ups in a row that did not lead to the lock
//! (somebody who did not wait was faster), is slept off before the next attempt. `xSleep` answers
//! the time really slept.
//!
//! So much for the engines whose lock is `xLock`'s. Where WRITER is a slot of the wal-index it is
//! waited for as [`writer`] says.

pub mod writer;

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dash_engine::handover::Turn;
use dash_ffi::HostVfs;
use dash_storage::real::Memory;

use crate::refused;
use writer::FAIR_AFTER;
pub use writer::Waited;

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

/// Where a database's writer waits for the readers of this process.
#[derive(Default)]
pub struct Queue {
    state: Mutex<()>,
    changed: Condvar,
    releases: AtomicU64,
    sleepers: AtomicUsize,
    /// Odd while a writer waits for readers; counted up whenever that changes.
    wanted: AtomicU64,
    /// Readers that map pages, by whether their snapshot is an odd commit: with two copies, that
    /// tells those of the one from those of the other.
    mapped: [AtomicUsize; 2],
    /// Whether the last release was that of the last reader in the way.
    freed: AtomicBool,
}

/// What is remembered of a reader from its beginning to its end.
#[derive(Debug, Default, Clone, Copy)]
pub struct Reader {
    wanted: u64,
    /// The newest commit when it began. None: it does not say what it reads.
    sequence: Option<u64>,
    mapped: bool,
}

impl Reader {
    fn side(&self) -> usize {
        usize::from(self.sequence.is_some_and(|sequence| sequence % 2 == 1))
    }
}

/// What a thread remembers between a failed attempt and the sleep after it.
struct Waiting {
    queue: Arc<Queue>,
    turn: Option<Turn<Memory>>,
    /// Its number in line; 0: none yet.
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
    /// Whether the last sleep ended early.
    woken: bool,
}

thread_local! {
    static WAITING: RefCell<Option<Waiting>> = const { RefCell::new(None) };
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, ()> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The count of releases: read it before a lock attempt, see [`Queue::failed`].
    pub fn releases(&self) -> u64 {
        self.releases.load(Ordering::SeqCst)
    }

    /// Notes that a lock attempt of this thread failed; `seen` is what [`Queue::releases`] answered
    /// before it, `turn` its place in line, if it has one.
    pub fn failed(self: &Arc<Self>, seen: u64, cause: Cause, turn: Option<Turn<Memory>>) {
        // A thread that is being torn down does not wait.
        let _ = WAITING.try_with(|waiting| {
            let mut waiting = waiting.borrow_mut();
            match &mut *waiting {
                Some(waiting)
                    if Arc::ptr_eq(&waiting.queue, self)
                        && waiting.slept_at.elapsed() < NEW_SEQUENCE =>
                {
                    waiting.seen = seen;
                    waiting.turn = turn;
                    waiting.cause = cause;
                    waiting.failed = true;
                }
                _ => {
                    let now = Instant::now();
                    *waiting = Some(Waiting {
                        queue: Arc::clone(self),
                        turn,
                        ticket: 0,
                        cause,
                        seen,
                        failed: true,
                        early: 0,
                        owed: Duration::ZERO,
                        since: now,
                        slept_at: now,
                        woken: false,
                    });
                }
            }
        });
    }

    /// Asks readers to tell when they leave: the writer waits for them.
    pub fn want_readers_gone(&self, wanted: bool) {
        // Only the one writer changes it.
        let now = self.wanted.load(Ordering::SeqCst);
        if (now % 2 == 1) != wanted {
            self.wanted.store(now + 1, Ordering::SeqCst);
        }
    }

    /// To be called before a reader takes its lock; `sequence` is the newest commit, if it knows.
    pub fn reader(&self, sequence: Option<u64>) -> Reader {
        Reader { wanted: self.wanted.load(Ordering::SeqCst), sequence, mapped: false }
    }

    /// To be called before a reader maps its first page.
    pub fn maps(&self, reader: &mut Reader) {
        if !reader.mapped {
            reader.mapped = true;
            self.mapped[reader.side()].fetch_add(1, Ordering::SeqCst);
        }
    }

    /// A reader has given its copy up: lets the writer out that waits for it, if there is one.
    /// `newest` is the newest commit.
    pub fn reader_left(&self, reader: Reader, newest: impl FnOnce() -> u64) {
        let mapped = &self.mapped[reader.side()];
        let last = reader.mapped && mapped.fetch_sub(1, Ordering::SeqCst) == 1;
        let wanted = self.wanted.load(Ordering::SeqCst);
        let may_be_in_the_way = wanted % 2 == 1 && wanted != reader.wanted;
        if !may_be_in_the_way || reader.sequence.is_some_and(|sequence| sequence >= newest()) {
            return;
        }
        if last {
            self.release(true);
        } else if reader.sequence.is_none() || mapped.load(Ordering::SeqCst) == 0 {
            self.release(false);
        }
    }

    fn release(&self, freed: bool) {
        self.freed.store(freed, Ordering::SeqCst);
        self.releases.fetch_add(1, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) != 0 {
            let _state = self.state();
            self.changed.notify_all();
        }
    }

    /// Waits for a release since `seen` was read; `false` if the time was over first.
    fn wait(&self, seen: u64, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        let mut state = self.state();
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let woken = loop {
            if self.releases() != seen {
                break true;
            }
            let Some(left) = deadline.checked_duration_since(Instant::now()) else {
                break false;
            };
            state =
                self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        };
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        woken
    }
}

impl Waiting {
    /// Sleeps, or waits; whether it was woken.
    fn wait(&mut self, host: &HostVfs, time: Duration) -> bool {
        let woken = match (self.cause, &self.turn) {
            (Cause::Readers, _) => Some(self.queue.wait(self.seen, time)),
            (Cause::Snapshot, _) if self.early < SNAPSHOTS_MAX => Some(true),
            (_, Some(turn)) if self.since.elapsed() >= FAIR_AFTER => {
                turn.wait(&mut self.ticket, time)
            }
            _ => None,
        };
        woken.unwrap_or_else(|| {
            host.sleep(time);
            false
        })
    }
}

/// Forgets what this thread waited for: it has the lock. Answers how, if it has waited until now.
pub fn succeeded() -> Option<Waited> {
    let waiting = WAITING.try_with(|waiting| waiting.borrow_mut().take()).ok().flatten()?;
    let Waiting { since, woken, .. } = waiting;
    (waiting.slept_at.elapsed() < NEW_SEQUENCE).then_some(Waited { since, woken })
}

/// `xSleep`: for about `time`, or until the lock that this thread failed to get is given up.
pub fn sleep(host: &HostVfs, time: Duration) -> Duration {
    let next = writer::count(time);
    refused::sleeps(next != writer::Next::Other);
    if let Some(slept) = writer::sleep(host, time, next) {
        return slept;
    }
    let waiting = WAITING.try_with(|waiting| waiting.borrow_mut().take()).ok().flatten();
    let Some(mut waiting) = waiting.filter(|waiting| waiting.failed) else {
        return host.sleep(time);
    };
    let begun = Instant::now();
    waiting.failed = false;
    waiting.woken = false;
    if waiting.early >= EARLY_MAX || waiting.owed > OWED_MAX {
        host.sleep(time + waiting.owed);
        waiting.owed = Duration::ZERO;
        waiting.early = 0;
    } else {
        waiting.woken = waiting.wait(host, time);
        let freed = waiting.queue.freed.load(Ordering::SeqCst);
        if waiting.woken && !(waiting.cause == Cause::Readers && freed) {
            waiting.early += 1;
            waiting.owed += time.saturating_sub(begun.elapsed());
        }
    }
    waiting.slept_at = Instant::now();
    let _ = WAITING.try_with(|place| place.borrow_mut().replace(waiting));
    begun.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_wakes_the_writer() {
        let queue = Arc::new(Queue::default());
        let seen = queue.releases();
        let waiter = std::thread::spawn({
            let queue = Arc::clone(&queue);
            move || queue.wait(seen, Duration::from_secs(60))
        });
        while queue.sleepers.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        queue.release(false);
        assert!(waiter.join().expect("no panic"));
    }

    #[test]
    fn a_release_between_the_attempt_and_the_sleep_is_not_missed() {
        let queue = Arc::new(Queue::default());
        let seen = queue.releases();
        queue.release(false);
        assert!(queue.wait(seen, Duration::from_secs(60)));
    }

    #[test]
    fn only_readers_in_the_way_wake_the_writer() {
        let queue = Queue::default();
        let woken_by = |reader: Reader, newest: u64| {
            let before = queue.releases();
            queue.reader_left(reader, || newest);
            queue.releases() > before
        };
        let mut mapping = [7, 7, 8].map(|sequence| queue.reader(Some(sequence)));
        let (old, unknown) = (queue.reader(Some(7)), queue.reader(None));
        let gone = queue.reader(Some(7));
        assert!(!woken_by(gone, 8), "nobody waits");
        mapping.iter_mut().for_each(|reader| queue.maps(reader));
        queue.want_readers_gone(true);
        queue.want_readers_gone(true);
        let late = queue.reader(Some(7));
        assert!(!woken_by(late, 8), "began when the writer was waiting");
        assert!(!woken_by(old, 8), "others map pages of that copy");
        assert!(woken_by(unknown, 8));
        let [first, second, newest] = mapping;
        assert!(!woken_by(first, 8), "not the last one");
        assert!(woken_by(second, 8) && queue.freed.load(Ordering::SeqCst));
        assert!(!woken_by(newest, 8), "reads the newest copy");
        queue.want_readers_gone(false);
        assert_eq!(queue.mapped.each_ref().map(|count| count.load(Ordering::SeqCst)), [0, 0]);
    }

    #[test]
    fn without_a_release_a_sleep_lasts_its_time() {
        let queue = Arc::new(Queue::default());
        let begun = Instant::now();
        assert!(!queue.wait(0, Duration::from_millis(20)));
        assert!(begun.elapsed() >= Duration::from_millis(20));
    }
}
