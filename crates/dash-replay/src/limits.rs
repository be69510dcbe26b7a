//! How much the SQL of a log may take: a log may come from anybody, and a replay ends. What a
//! database needs grows with its size, and so do the limits.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Instructions of SQLite's between two looks. One of them may take long: it compares, or copies,
/// as much as a value may have.
const LOOK: u32 = 100;

/// Instructions that one statement may take, and more for each page: to go over all rows of the
/// smallest ones takes about 10,000 a page.
const STEPS: u64 = 100_000_000;
const STEPS_OF_A_PAGE: u64 = 50_000;

/// The time that one may take, and more for so many pages.
const TIME: Duration = Duration::from_secs(60);
const PAGES_OF_A_SECOND: u64 = 100;

/// How much all statements together may take of what one may.
const STATEMENTS: u32 = 20;

/// Bytes by which a copy may become larger than what is known of its database.
const SLACK: u64 = 16 << 20;

/// Bytes that a value may have at least, and at most: SQLite's own limit.
const LENGTH: std::ops::RangeInclusive<u64> = 1 << 20..=1_000_000_000;

/// Bytes that all of SQLite may take in this process, and more for each byte of the database.
const MEMORY: u64 = 128 << 20;
const MEMORY_OF_A_BYTE: u64 = 4;

/// See the module.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Instructions of one statement.
    pub steps: u64,
    /// The time of one statement.
    pub time: Duration,
    /// Pages that the database is known to have, or may have by what is in its files.
    pub room: u32,
    page: u32,
    spent: Arc<Mutex<Spent>>,
}

/// What was spent so far.
#[derive(Debug, Default)]
struct Spent {
    steps: u64,
    time: Duration,
    /// When the statement in hand began, and its instructions.
    here: Option<(Instant, u64)>,
    stopped: bool,
}

impl Limits {
    /// Those of a database that can have so many pages of so many bytes.
    pub fn of(room: u32, page: u32) -> Self {
        let many = u64::from(room);
        Self {
            steps: STEPS + STEPS_OF_A_PAGE * many,
            time: TIME + Duration::from_secs(many / PAGES_OF_A_SECOND),
            room,
            page: page.max(1),
            spent: Arc::default(),
        }
    }

    /// Pages of a copy.
    pub fn pages(&self) -> u32 {
        let slack = u32::try_from(SLACK / u64::from(self.page)).unwrap_or(u32::MAX);
        self.room.saturating_add(slack)
    }

    /// Bytes of a value.
    pub fn length(&self) -> i32 {
        let bytes = u64::from(self.room) * u64::from(self.page);
        i32::try_from(bytes.clamp(*LENGTH.start(), *LENGTH.end())).unwrap_or(i32::MAX)
    }

    /// Bytes that SQLite may take.
    pub fn memory(&self) -> i64 {
        let bytes = MEMORY + MEMORY_OF_A_BYTE * u64::from(self.room) * u64::from(self.page);
        i64::try_from(bytes).unwrap_or(i64::MAX)
    }

    /// Whether a statement should have been stopped long ago: SQLite asks between two instructions
    /// alone, and one that calls a function takes as long as that.
    pub fn is_overdue(&self, now: Instant) -> bool {
        let begun = self.spent().here.map(|(begun, _)| begun);
        begun.is_some_and(|begun| now.saturating_duration_since(begun) > self.time * 2)
    }

    fn spent(&self) -> MutexGuard<'_, Spent> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// After how many instructions SQLite is to ask, and what: whether to stop.
    pub fn hook(&self) -> (i32, impl FnMut() -> bool + Send + 'static) {
        let mine = self.clone();
        let ask = move || {
            let mut spent = mine.spent();
            spent.steps += u64::from(LOOK);
            let Some((begun, steps)) = &mut spent.here else { return false };
            *steps += u64::from(LOOK);
            let is_over = *steps > mine.steps || begun.elapsed() > mine.time;
            let stop = is_over || mine.is_over(&spent);
            spent.stopped |= stop;
            stop
        };
        (LOOK.cast_signed(), ask)
    }

    /// Runs a statement within the limits; with the instructions after which it was stopped, if it
    /// was.
    pub fn during<R>(&self, run: impl FnOnce() -> R) -> (R, Option<u64>) {
        let begun = Instant::now();
        (self.spent().here, self.spent().stopped) = (Some((begun, 0)), false);
        let result = run();
        let mut spent = self.spent();
        spent.time += begun.elapsed();
        let here = spent.here.take().map_or(0, |(_, steps)| steps);
        (result, spent.stopped.then_some(here))
    }

    /// Whether nothing is left for any statement.
    pub fn is_spent(&self) -> bool {
        self.is_over(&self.spent())
    }

    fn is_over(&self, spent: &Spent) -> bool {
        let steps = self.steps.saturating_mul(u64::from(STATEMENTS));
        spent.steps > steps || spent.time > self.time * STATEMENTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SEC A10-4
    #[test]
    fn what_was_not_stopped_is_overdue() {
        let limits = Limits::of(10, 4096);
        let later = || Instant::now() + limits.time * 2;
        assert!(!limits.is_overdue(later()));
        let (overdue, stopped) = limits.during(|| {
            [Instant::now(), later() - limits.time, later() + TIME].map(|it| limits.is_overdue(it))
        });
        assert_eq!((overdue, stopped), ([false, false, true], None));
        assert!(!limits.is_overdue(later() + TIME));
    }
}
