//! The cases of a test, several at a time: for most of their time they wait, for disks or for
//! processes.

use std::sync::{Mutex, PoisonError};
use std::thread;

/// So many at a time.
const CREW: usize = 4;

/// Does this with each case, in threads of this one's name, by which skips are told.
///
/// # Panics
///
/// Where one does, after the others that have begun.
pub fn each<I>(cases: I, work: impl Fn(I::Item) + Sync)
where
    I: IntoIterator<IntoIter: Send>,
{
    let cases = Mutex::new(cases.into_iter());
    let next = || cases.lock().unwrap_or_else(PoisonError::into_inner).next();
    let name = thread::current().name().unwrap_or("a test").to_owned();
    thread::scope(|scope| {
        for _ in 0..CREW {
            let all = || {
                while let Some(case) = next() {
                    work(case);
                }
            };
            let begun = thread::Builder::new().name(name.clone()).spawn_scoped(scope, all);
            begun.expect("a thread");
        }
    });
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    use super::*;

    #[test]
    fn each_case_has_its_turn_under_the_tests_name() {
        let (seen, test) = (AtomicU32::new(0), thread::current().name().map(str::to_owned));
        each(0..20, |case| {
            assert_eq!(thread::current().name().map(str::to_owned), test);
            seen.fetch_or(1 << case, Relaxed);
        });
        assert_eq!(seen.into_inner(), (1 << 20) - 1);
    }

    #[test]
    #[should_panic(expected = "panicked")]
    fn one_that_fails_fails_the_test() {
        each(0..20, |case| assert_ne!(case, 7));
    }
}
