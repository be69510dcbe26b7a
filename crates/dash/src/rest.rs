//! Coming to rest (`dash_rest`): when, as the URI says it, and the thread that sees to it. What is
//! done then is each mode's.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use dash_storage::real::{self, without_fork};

/// When the database comes to rest.
pub const PARAMETER: &str = "dash_rest";

/// What it may be.
const RESTS: RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(3600);

/// A database comes to rest so often at most.
pub const EVERY: Duration = Duration::from_secs(1);

/// How long after its last commit the database comes to rest; `None`: it does not.
///
/// # Errors
///
/// What may be given.
pub fn read(text: &str) -> Result<Option<Duration>, String> {
    if text.eq_ignore_ascii_case("off") {
        return Ok(None);
    }
    let time = text.parse().ok().map(Duration::from_millis).filter(|time| RESTS.contains(time));
    let (least, most) = (RESTS.start().as_millis(), RESTS.end().as_millis());
    time.map(Some).ok_or_else(|| {
        format!("{PARAMETER}={text}: give milliseconds, from {least} to {most}, or off")
    })
}

/// What is known of the rest of a database, by the connections of this process to it.
pub struct Resting {
    /// Nanoseconds after which somebody is going to look whether it can come to rest.
    after: AtomicU64,
    /// When it came to rest last.
    last: Mutex<Option<Instant>>,
    /// When this process has committed last: nanoseconds since [`START`]; 0: it has not.
    committed: AtomicU64,
}

/// What times are counted from.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// A look comes so much of the time before the next one at least.
const PARTS: u32 = 4;

/// Nobody is going to.
const NEVER: u64 = u64::MAX;

impl Default for Resting {
    fn default() -> Self {
        let (after, committed) = (AtomicU64::new(NEVER), AtomicU64::new(0));
        Self { after, last: Mutex::default(), committed }
    }
}

impl Resting {
    /// It is looked after from now on, at the latest in `after`; whether it was already.
    pub fn begin(&self, after: Duration) -> bool {
        let after = u64::try_from(after.as_nanos()).map_or(NEVER - 1, |after| after.min(NEVER - 1));
        self.after.load(Ordering::Relaxed) <= after
            || self.after.fetch_min(after, Ordering::SeqCst) <= after
    }

    /// It is so no more: whoever commits from here on has it watched anew.
    pub fn end(&self) {
        self.after.store(NEVER, Ordering::SeqCst);
    }

    /// This process has committed just now.
    #[inline]
    pub fn has_committed(&self) {
        let now = u64::try_from(START.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.committed.store(now.max(1), Ordering::Relaxed);
    }

    /// For how long nobody is to commit still, as far as this process has.
    pub fn is_left(&self, after: Duration) -> Duration {
        match self.committed.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            last => (after + Duration::from_nanos(last)).saturating_sub(START.elapsed()),
        }
    }

    /// After a look that has found a commit, when it is looked at again.
    pub fn pause(&self, after: Duration, is_first: bool) -> Duration {
        pause(after, self.is_left(after), is_first)
    }

    /// When it is looked at first: so that the second look can come at the end of the time.
    pub fn first_look(after: Duration) -> Duration {
        after - after / PARTS
    }

    /// When it came to rest last.
    pub fn last(&self) -> MutexGuard<'_, Option<Instant>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When it is looked at again where `left` is left of the time `after`: at its end, but not so soon
/// that somebody in another process who goes on committing would not be seen.
fn pause(after: Duration, left: Duration, is_first: bool) -> Duration {
    match left.is_zero() && !is_first {
        // Others have committed, and go on perhaps.
        true => after,
        false => left.max(after / PARTS),
    }
}

/// The databases of one mode that are to come to rest, and a thread that looks after them: it ends
/// once there are none, as the process ends with its last thread. `L` are the connections of this
/// process to one of them.
pub struct Keeper<T, L> {
    watched: Mutex<Vec<Watched<T, L>>>,
    /// Tells the thread that there is one more.
    changed: Condvar,
    /// The process in which the thread runs; 0: it does not.
    runs_in: AtomicU32,
    /// The databases that were ever watched.
    known: Mutex<Vec<Weak<L>>>,
    at_exit: OnceLock<()>,
    /// The process ends.
    ends: AtomicBool,
    /// What the thread has done since, in databases.
    steps: AtomicU64,
}

/// How long the end of the process waits for one step of that; and where a handler of a signal
/// seems to have called `exit`. How often it looks.
const STEP: Duration = Duration::from_secs(10);
const STEP_IN_HANDLER: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(1);
/// How long the thread waits for work.
const IDLE: Duration = Duration::from_secs(1);

/// One of them.
pub struct Watched<T, L> {
    /// The connections of this process to it.
    pub links: Weak<L>,
    /// When it is looked at next.
    pub due: Instant,
    /// What is known of it.
    pub what: T,
}

impl<T, L> Default for Keeper<T, L> {
    fn default() -> Self {
        Self {
            watched: Mutex::default(),
            changed: Condvar::new(),
            runs_in: AtomicU32::new(0),
            known: Mutex::default(),
            at_exit: OnceLock::new(),
            ends: AtomicBool::new(false),
            steps: AtomicU64::new(0),
        }
    }
}

impl<T: Send + 'static, L: Send + Sync + 'static> Keeper<T, L> {
    fn watched(&self) -> MutexGuard<'_, Vec<Watched<T, L>>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> MutexGuard<'_, Vec<Weak<L>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks after one more, or after one of them as is said now. `work` calls
    /// [`keep`](Self::keep), in the thread; `at_exit` is called at the end of the process. `false`:
    /// there is no thread to be had.
    pub fn watch(&'static self, one: Watched<T, L>, work: fn(), at_exit: extern "C" fn()) -> bool {
        self.at_exit.get_or_init(|| drop(dash_ffi::at_exit(at_exit)));
        let links = Weak::clone(&one.links);
        let mut watched = self.watched();
        if self.runs_in.swap(std::process::id(), Ordering::SeqCst) == 0 {
            let run = move || dash_ffi::behind_the_wall("coming to rest", work);
            if real::start_thread("dash-rest", run).is_err() {
                self.runs_in.store(0, Ordering::SeqCst);
                return false;
            }
        }
        watched.retain(|other| !other.links.ptr_eq(&links));
        watched.push(one);
        drop(watched);
        self.changed.notify_one();
        let mut known = self.known();
        known.retain(|other| other.strong_count() > 0 && !other.ptr_eq(&links));
        known.push(links);
        true
    }

    /// At the end of the process: waits while the thread brings to rest what it can. Here nothing
    /// is allocated and no lock is taken: a handler of a signal may have called `exit` in the
    /// middle of anything, and the thread may be in need of what that has interrupted.
    pub fn finish(&self) {
        real::process_ends();
        self.ends.store(true, Ordering::SeqCst);
        let step = if real::is_signal_blocked() { STEP_IN_HANDLER } else { STEP };
        let (mut steps, mut since) = (0, Instant::now());
        // A child of `_Fork` has the number of its parent here.
        let here = std::process::id();
        while self.runs_in.load(Ordering::SeqCst) == here && since.elapsed() < step {
            // It may have looked before this was said, and wait only now.
            self.changed.notify_one();
            std::thread::sleep(LOOK);
            let now = self.steps.load(Ordering::SeqCst);
            if now != std::mem::replace(&mut steps, now) {
                since = Instant::now();
            }
        }
    }

    /// In the thread: all that were ever watched are brought to rest.
    fn finish_all(&self, last: fn(&L)) {
        let known = real::lock(&self.known).map(|mut known| std::mem::take(&mut *known));
        for links in known.unwrap_or_default().iter().filter_map(Weak::upgrade) {
            last(&links);
            self.steps.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Has `look` look at each when it is due, and again when it says so, and `last` at the end of
    /// the process. A forked child must not find a connection in its hands.
    pub fn keep(&self, look: fn(T, &L) -> Option<(Duration, T)>, last: fn(&L)) {
        let ended = Ended(&self.runs_in);
        let mut watched = self.watched();
        loop {
            if self.ends.load(Ordering::SeqCst) {
                drop(watched);
                return self.finish_all(last);
            }
            let next = watched.iter().map(|one| one.due).min();
            watched = match next.map(|due| due.saturating_duration_since(Instant::now())) {
                None => {
                    let woken = self.changed.wait_timeout(watched, IDLE);
                    let (watched, waited) = woken.unwrap_or_else(PoisonError::into_inner);
                    let is_idle = watched.is_empty() && !self.ends.load(Ordering::SeqCst);
                    if waited.timed_out() && is_idle {
                        // The next one to be watched waits for this lock, and starts a thread.
                        drop(ended);
                        return;
                    }
                    watched
                }
                Some(time) if !time.is_zero() => {
                    let woken = self.changed.wait_timeout(watched, time);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                Some(_) => {
                    let now = Instant::now();
                    let (due, later) = watched.drain(..).partition(|one| one.due <= now);
                    *watched = later;
                    drop(watched);
                    let due: Vec<Watched<T, L>> = due;
                    let look_at = |Watched { links, what, .. }: Watched<T, L>| {
                        let looked = without_fork(|| look(what, &*links.upgrade()?));
                        let (pause, what) = looked?;
                        Some(Watched { links, due: Instant::now() + pause, what })
                    };
                    let left: Vec<_> = due.into_iter().filter_map(look_at).collect();
                    let mut watched = self.watched();
                    for one in left {
                        // One that was said meanwhile counts.
                        if !watched.iter().any(|other| other.links.ptr_eq(&one.links)) {
                            watched.push(one);
                        }
                    }
                    watched
                }
            };
        }
    }
}

/// Says that the thread runs no more, also where it panics.
struct Ended<'a>(&'a AtomicU32);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AFTER: Duration = Duration::from_secs(10);

    /// It took twice as long: the first look found the commit, and the next one came as late.
    #[test]
    fn a_database_comes_to_rest_that_long_after_its_last_commit() {
        let first = Resting::first_look(AFTER);
        // A single commit, and two of which the other came 3 s later.
        for later in [0, 3].map(Duration::from_secs) {
            let left = (later + AFTER).saturating_sub(first);
            assert_eq!(first + pause(AFTER, left, true), later + AFTER);
        }
        let just_now = Resting::default();
        just_now.has_committed();
        assert!(just_now.is_left(AFTER) > Duration::ZERO);
    }

    #[test]
    fn but_not_between_two_commits_of_another_process() {
        assert_eq!(pause(AFTER, Duration::ZERO, false), AFTER);
        assert!(pause(AFTER, Duration::ZERO, true) >= AFTER / PARTS);
        assert!(pause(AFTER, Duration::from_nanos(1), true) >= AFTER / PARTS);
        assert_eq!(Resting::default().is_left(AFTER), Duration::ZERO);
    }
}
