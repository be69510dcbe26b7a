//! Coming to rest (`dash_rest`): when, as the URI says it, and the thread that sees to it. What is
//! done then is each mode's.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dash_storage::real::without_fork;

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

/// The databases of one mode that are to come to rest, and a thread that looks after them: it
/// sleeps for good while there are none.
pub struct Keeper<T> {
    watched: Mutex<Vec<Watched<T>>>,
    /// Tells the thread that there is one more.
    changed: Condvar,
    /// Whether the thread runs.
    runs: AtomicBool,
}

/// One of them.
pub struct Watched<T> {
    /// When it is looked at next.
    pub due: Instant,
    /// What is known of it.
    pub what: T,
}

impl<T> Default for Keeper<T> {
    fn default() -> Self {
        Self { watched: Mutex::default(), changed: Condvar::new(), runs: AtomicBool::new(false) }
    }
}

impl<T> Keeper<T> {
    fn watched(&self) -> MutexGuard<'_, Vec<Watched<T>>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks after one more. `work` calls [`keep`](Self::keep), in the thread. `false`: there is no
    /// thread to be had.
    pub fn watch(&self, one: Watched<T>, work: fn()) -> bool {
        if !self.runs.swap(true, Ordering::SeqCst) {
            let thread = std::thread::Builder::new().name("dash-rest".into());
            let run = move || dash_ffi::behind_the_wall("coming to rest", work);
            if thread.spawn(run).is_err() {
                self.runs.store(false, Ordering::SeqCst);
                return false;
            }
        }
        self.watched().push(one);
        self.changed.notify_one();
        true
    }

    /// Has `look` look at each when it is due, and at what is left of it again. A forked child must
    /// not find a connection in its hands.
    pub fn keep(&self, look: fn(T) -> Option<Watched<T>>) {
        let mut watched = self.watched();
        loop {
            let next = watched.iter().map(|one| one.due).min();
            watched = match next.map(|due| due.saturating_duration_since(Instant::now())) {
                None => self.changed.wait(watched).unwrap_or_else(PoisonError::into_inner),
                Some(time) if !time.is_zero() => {
                    let woken = self.changed.wait_timeout(watched, time);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                Some(_) => {
                    let now = Instant::now();
                    let (due, later) = watched.drain(..).partition(|one| one.due <= now);
                    *watched = later;
                    drop(watched);
                    let due: Vec<Watched<T>> = due;
                    let left = due.into_iter().filter_map(|one| without_fork(|| look(one.what)));
                    let left: Vec<_> = left.collect();
                    let mut watched = self.watched();
                    watched.extend(left);
                    watched
                }
            };
        }
    }
}
