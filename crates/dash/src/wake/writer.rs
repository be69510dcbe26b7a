//! Waiting for the slot WRITER of the wal-index.
//!
//! SQLite adds up what it asked to sleep, not what it slept, and gives up when that is its
//! `busy_timeout`: a sleep that ends before the lock is free takes patience away from whoever
//! waits. So a sleep takes WRITER itself, ahead of SQLite ([`Reserve`]), and ends early only when
//! it has it; SQLite's next attempt finds it held. Otherwise it lasts as long as it was to. A
//! connection that comes at the right moment may take the lock from one that waits; but one that
//! has waited for [`FAIR_AFTER`] stands in line ([`Turn`]) and is woken when the lock is free, and
//! one that has waited for [`URGENT_AFTER`] is let pass by the others of its process
//! ([`let_pass`]).
//!
//! Only the sleep of SQLite's own busy handler does this. Others come through `xSleep`, too: that
//! of a reader that has to begin anew, whose attempts are counted, and a program's own. The first
//! one is told by what came before: anything but a failed attempt at WRITER and the end of reading
//! disarms ([`forget`]). The second one by its length: the handler sleeps as long as [`DELAYS`] say
//! (main.c `sqliteDefaultBusyCallback`), from the first one on with each statement.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use dash_engine::handover::Turn;
use dash_ffi::HostVfs;
use dash_storage::real::Memory;

/// How long the write lock is left to whoever is fastest. Handing it from thread to thread takes
/// longer than a short transaction, so at first a sleep is just a sleep.
pub(super) const FAIR_AFTER: Duration = Duration::from_millis(3);

/// How a thread got a lock for which it had waited.
#[derive(Debug, Clone, Copy)]
pub struct Waited {
    /// The first failed attempt.
    pub since: Instant,
    /// Whether who was in the way woke it.
    pub woken: bool,
}

/// How long SQLite's busy handler sleeps, one time after the other, in milliseconds; the last for
/// ever.
const DELAYS: [u64; 12] = [1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100];

/// How long somebody waits before the others let it pass.
const URGENT_AFTER: Duration = Duration::from_millis(8);

/// How long they do so at most, and how often they look.
const LET_PASS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_micros(50));

/// How often WRITER is tried in line where stock SQLite may have it, which wakes nobody.
const STRANGERS: Duration = Duration::from_millis(2);

/// After so long a success has nothing to do with the sleep before it.
const FORGOTTEN: Duration = Duration::from_secs(1);

/// Those of a process that have waited too long for one database's WRITER.
#[derive(Default)]
pub struct Urgent(AtomicUsize);

/// One of them, while it sleeps.
struct Waits(Arc<Urgent>);

impl Waits {
    fn new(urgent: Arc<Urgent>) -> Self {
        urgent.0.fetch_add(1, Ordering::SeqCst);
        Self(urgent)
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Before an attempt to become the writer: gives those a moment that have waited too long.
pub fn let_pass(urgent: &Urgent) {
    if urgent.0.load(Ordering::SeqCst) == 0 {
        return;
    }
    let begun = Instant::now();
    let (longest, pause) = LET_PASS;
    while urgent.0.load(Ordering::SeqCst) > 0 && begun.elapsed() < longest {
        std::thread::sleep(pause);
    }
}

/// A connection for which WRITER can be taken ahead of SQLite.
pub trait Reserve: Send + Sync {
    /// Whether SQLite has called no other database in this thread since it called this one.
    fn was_called_last(&self) -> bool;

    /// Takes it, if it is free; whether it has it now.
    fn reserve(&self) -> bool;

    /// It has: sees to it that it is given up if SQLite does not come for it.
    fn watch(self: Arc<Self>);

    /// Gives it up, if SQLite has not come for it.
    fn give_up(&self);

    /// Who waits for it in this process.
    fn urgent(&self) -> Arc<Urgent>;

    /// Its place in line, and whether all who may have it wake the next one.
    fn turn(&self) -> Option<(Turn<Memory>, bool)>;
}

/// What a thread remembers from a failed attempt to the next one.
struct Waiting {
    who: Arc<dyn Reserve>,
    /// Whether an attempt failed since the last sleep, and nothing else came.
    failed: bool,
    /// Its number in line; 0: none yet.
    ticket: u64,
    /// The first failed attempt.
    since: Instant,
    /// When the last sleep ended, if no attempt has failed since.
    slept_at: Option<Instant>,
    /// Whether it ended early, with the lock.
    woken: bool,
}

thread_local! {
    /// The busy handler's next sleep, by its place in [`DELAYS`].
    static STEP: Cell<usize> = const { Cell::new(0) };
    static WAITING: RefCell<Option<Waiting>> = const { RefCell::new(None) };
}

/// What this thread remembers, if it is not being torn down.
fn with<R>(act: impl FnOnce(&mut Option<Waiting>) -> R) -> Option<R> {
    WAITING.try_with(|waiting| act(&mut waiting.borrow_mut())).ok()
}

/// Notes that this thread has failed to get WRITER.
pub fn failed(who: Arc<dyn Reserve>) {
    with(|place| match place {
        // However long ago: a thread may have waited for a core. A statement that begins anew is
        // known by its first sleep.
        Some(waiting) if Arc::ptr_eq(&waiting.who, &who) => {
            waiting.failed = true;
            waiting.slept_at = None;
        }
        _ => {
            *place = Some(Waiting {
                who,
                failed: true,
                ticket: 0,
                since: Instant::now(),
                slept_at: None,
                woken: false,
            });
        }
    });
}

/// Notes that SQLite does something else: the next sleep is another one's.
pub fn forget() {
    with(|place| {
        if let Some(waiting) = place {
            waiting.failed = false;
        }
    });
}

/// Forgets what this thread waited for: it has the lock. Answers how, if it has waited until now.
pub fn succeeded() -> Option<Waited> {
    let Waiting { since, woken, slept_at, .. } = with(Option::take).flatten()?;
    slept_at.filter(|at| at.elapsed() < FORGOTTEN).map(|_| Waited { since, woken })
}

/// How a sleep goes on with those of this thread before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// The busy handler's first one, for another statement.
    First,
    /// The busy handler's next one.
    Later,
    /// Somebody else's.
    Other,
}

/// Counts a sleep of this thread, whatever it is for.
pub(super) fn count(time: Duration) -> Next {
    let step = STEP.get();
    let is = |step: usize| {
        let delay = DELAYS.get(step).or(DELAYS.last());
        delay.is_some_and(|delay| Duration::from_millis(*delay) == time)
    };
    let (step, next) = match () {
        () if is(0) => (1, Next::First),
        () if step > 0 && is(step) => (step + 1, Next::Later),
        () => return Next::Other,
    };
    STEP.set(step);
    next
}

/// Sleeps for `time`, or until this thread's connection has WRITER; answers how long it was.
/// `None`, at once: this sleep is not for that.
pub(super) fn sleep(host: &HostVfs, time: Duration, next: Next) -> Option<Duration> {
    let mut waiting = with(Option::take).flatten()?;
    if std::mem::take(&mut waiting.woken) {
        // It got the lock, and sleeps again: it did not want it.
        waiting.who.give_up();
    }
    let failed = std::mem::take(&mut waiting.failed) && waiting.who.was_called_last();
    if !failed || next == Next::Other {
        return None;
    }
    let begun = Instant::now();
    if next == Next::First {
        (waiting.ticket, waiting.since) = (0, begun);
    }
    waiting.woken = waiting.wait(time, |time| _ = host.sleep(time));
    if waiting.woken {
        Arc::clone(&waiting.who).watch();
    }
    waiting.slept_at = Some(Instant::now());
    with(|place| place.replace(waiting));
    Some(begun.elapsed())
}

/// Waits for WRITER ahead of SQLite, in line; whether it was had before `time` was over.
pub fn wait_for(who: Arc<dyn Reserve>, time: Duration, sleep: impl Fn(Duration)) -> bool {
    let since = Instant::now();
    let (failed, woken) = (false, false);
    let mut waiting = Waiting { who, failed, ticket: 0, since, slept_at: None, woken };
    let got = waiting.wait(time, sleep);
    if got {
        waiting.who.watch();
    }
    got
}

impl Waiting {
    /// Whether the lock was had before `time` was over.
    fn wait(&mut self, time: Duration, sleep: impl Fn(Duration)) -> bool {
        let end = Instant::now() + time;
        let turn = self.who.turn();
        let mut waits = None;
        loop {
            if self.who.reserve() {
                return true;
            }
            let now = Instant::now();
            let Some(left) = end.checked_duration_since(now).filter(|left| !left.is_zero()) else {
                return false;
            };
            if waits.is_none() && self.since.elapsed() >= URGENT_AFTER {
                waits = Some(Waits::new(self.who.urgent()));
            }
            let unfair = (self.since + FAIR_AFTER).checked_duration_since(now);
            match (unfair, &turn) {
                (Some(unfair), _) if !unfair.is_zero() => sleep(left.min(unfair)),
                (_, Some((turn, is_woken))) => {
                    let left = if *is_woken { left } else { left.min(STRANGERS) };
                    if turn.wait(&mut self.ticket, left).is_none() {
                        sleep(left);
                    }
                }
                (_, None) => sleep(left),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    /// A lock that is free or not, and somebody who wants it.
    #[derive(Default)]
    struct Lock {
        free: AtomicBool,
        given_up: AtomicUsize,
    }

    impl Reserve for Lock {
        fn was_called_last(&self) -> bool {
            true
        }

        fn reserve(&self) -> bool {
            self.free.swap(false, Ordering::SeqCst)
        }

        fn watch(self: Arc<Self>) {}

        fn give_up(&self) {
            self.given_up.fetch_add(1, Ordering::SeqCst);
        }

        fn urgent(&self) -> Arc<Urgent> {
            Arc::default()
        }

        fn turn(&self) -> Option<(Turn<Memory>, bool)> {
            None
        }
    }

    fn waiting(who: &Arc<Lock>) -> Waiting {
        failed(Arc::clone(who) as Arc<_>);
        with(Option::take).flatten().expect("it has failed")
    }

    #[test]
    fn a_sleep_ends_early_only_with_the_lock() {
        let lock = Arc::new(Lock::default());
        let slept = AtomicUsize::new(0);
        let time = Duration::from_millis(5);
        let sleep = |time: Duration| {
            slept.fetch_add(1, Ordering::SeqCst);
            std::thread::sleep(time);
        };
        let begun = Instant::now();
        assert!(!waiting(&lock).wait(time, sleep));
        assert!(begun.elapsed() >= time && slept.load(Ordering::SeqCst) > 0);
        lock.free.store(true, Ordering::SeqCst);
        assert!(waiting(&lock).wait(time, |_| unreachable!("it is free")));
        assert!(!lock.free.load(Ordering::SeqCst), "and has it");
    }

    #[test]
    fn only_the_sleeps_of_sqlites_busy_handler_are_shortened() {
        let ms = Duration::from_millis;
        let mut expected = Next::First;
        for delay in DELAYS.into_iter().chain([100, 100]) {
            assert_eq!(count(ms(delay)), expected, "{delay}");
            // A reader that begins anew comes between, and a program.
            for other in [Duration::from_micros(39), ms(0), ms(3)] {
                assert_eq!(count(other), Next::Other);
            }
            expected = Next::Later;
        }
        assert_eq!(count(ms(1)), Next::First, "another statement");
        for other in [5, 10, 100] {
            assert_eq!(count(ms(other)), Next::Other, "a program's own");
        }
        assert_eq!(count(ms(2)), Next::Later);
    }

    #[test]
    fn anything_else_disarms() {
        let lock = Arc::new(Lock::default());
        failed(Arc::clone(&lock) as Arc<_>);
        forget();
        assert!(!with(Option::take).flatten().expect("remembered").failed);
        assert!(succeeded().is_none(), "nothing was waited for");
        let mut sleeper = waiting(&lock);
        sleeper.slept_at = Some(Instant::now());
        with(|place| place.replace(sleeper));
        assert!(succeeded().is_some());
    }
}
