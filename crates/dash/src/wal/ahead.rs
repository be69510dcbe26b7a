//! Transactions that take WRITER before they read, as after `BEGIN IMMEDIATE`.
//!
//! A transaction is refused where others have written what it had read (WAL-54). A program that
//! repeats it is not to meet them again, and one that does not is to see few refusals. So a
//! connection whose transaction was refused begins its next ones in the line of writers: nobody
//! commits while they read. These are more each time while refusals go on ([`MOST`]), so that
//! transactions that always meet go one after the other, and others go side by side.
//!
//! Nobody has to wait long for one that thinks, or only reads: WRITER is given up by itself after a
//! moment ([`LEASE`]), and the transaction is one like any other then. A connection whose
//! transactions take longer would keep others out for nothing, so it tries that seldom. One that
//! has only read ends it, and one of a thread's connections gives way to another
//! ([`let_own_thread_pass`]).

use std::cell::RefCell;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use dash_ffi::HostVfs;

use super::link::{Link, State};
use crate::wake::writer;

/// So many transactions begin so after a refusal at most, and so many times more than after the
/// one before.
const MOST: u32 = 64;
const MORE: u32 = 4;

/// After so many transactions without a refusal the next one is the first.
const CALM: u32 = 64;

/// For how long it is theirs while they read.
const LEASE: Duration = Duration::from_millis(10);

/// So many refusals are left alone after one that took longer.
const SKIPS: u32 = 32;

/// For how long WRITER is waited for before a transaction begins without it.
const PATIENCE: Duration = Duration::from_millis(50);

/// What a connection remembers of its refusals.
#[derive(Debug, Default)]
pub struct Ahead {
    /// Transactions that are to begin with WRITER.
    left: u32,
    /// How many these were after the last refusal.
    span: u32,
    /// Transactions since that began without.
    calm: u32,
    /// Refusals that are left alone, as one took too long.
    skips: u32,
    /// It was taken for the transaction that begins.
    holds: bool,
    /// SQLite begins to read again: others have committed while WRITER was waited for.
    again: bool,
}

impl Ahead {
    /// A transaction was refused.
    pub fn refused(&mut self) {
        (self.holds, self.again) = (false, false);
        if let Some(skips) = self.skips.checked_sub(1) {
            self.skips = skips;
            return;
        }
        let goes_on = self.span > 0 && self.calm < CALM;
        self.span = if goes_on { (MORE * self.span).min(MOST) } else { 1 };
        (self.left, self.calm) = (self.span, 0);
    }

    /// A transaction is about to write. `held`: WRITER is still there that was taken for it; `got`:
    /// it has it.
    pub fn asks(&mut self, held: bool, got: bool) {
        self.again = false;
        match std::mem::take(&mut self.holds) {
            true if held => self.left = self.left.saturating_sub(1),
            true => *self = Self { skips: SKIPS, ..Self::default() },
            false => self.calm = self.calm.saturating_add(got.into()),
        }
    }

    /// SQLite stops reading; whether it is done, and WRITER is of no use to it.
    pub fn stops_reading(&mut self) -> bool {
        let is_done = !std::mem::take(&mut self.again);
        if is_done && std::mem::take(&mut self.holds) {
            (self.left, self.span) = (0, 0);
        }
        is_done
    }
}

thread_local! {
    /// The last connection for which this thread has taken it.
    static LAST: RefCell<Weak<Link>> = const { RefCell::new(Weak::new()) };
}

/// Gives WRITER up that this thread has taken for another connection, which can't go on while this
/// one waits; whether it was held.
pub fn let_own_thread_pass(link: &Arc<Link>) -> bool {
    let last = LAST.try_with(|last| last.borrow().upgrade()).ok().flatten();
    last.is_some_and(|last| {
        !Arc::ptr_eq(&last, link) && !last.is_inherited() && last.state().give_up()
    })
}

impl Ahead {
    /// SQLite is about to begin to read: takes WRITER before, if that is due.
    pub fn begins(&mut self, link: &Arc<Link>, host: &HostVfs) {
        if self.left == 0 || self.holds {
            return;
        }
        let mut state = link.state();
        let kept = state.kept.clone();
        // Where it reads another database, its lock may be what somebody waits for.
        let begins = kept.and_then(|kept| kept.visit(|it| !it.is_autocommit() && !it.is_reading()));
        let sum = |state: &mut State| state.engine().ok().and_then(|engine| engine.header_sum());
        let before = sum(&mut state);
        drop(state);
        if begins != Some(true) {
            return;
        }
        let_own_thread_pass(link);
        let sleep = |time| _ = host.sleep(time);
        self.holds = writer::wait_for(Arc::clone(link) as Arc<_>, PATIENCE, sleep);
        if self.holds {
            let _ = LAST.try_with(|last| last.replace(Arc::downgrade(link)));
            let mut state = link.state();
            state.reserved = state.reserved.map(|_| Instant::now() + LEASE);
            self.again = before != sum(&mut state);
        } else {
            // Somebody writes for long, or waits for this thread.
            self.left = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Begins a transaction as [`Ahead::begins`] does; whether it has WRITER.
    fn begins(ahead: &mut Ahead) -> bool {
        ahead.holds = ahead.left > 0;
        ahead.holds
    }

    /// How many in a row begin with it.
    fn run(ahead: &mut Ahead) -> u32 {
        let mut count = 0;
        while begins(ahead) {
            count += 1;
            ahead.asks(true, true);
            assert!(ahead.stops_reading());
        }
        count
    }

    #[test]
    fn after_each_refusal_soon_after_another_they_are_more() {
        let mut ahead = Ahead::default();
        assert_eq!(run(&mut ahead), 0);
        for expected in [1, 4, 16, 64, 64] {
            ahead.refused();
            assert_eq!(run(&mut ahead), expected);
        }
        for _ in 0..CALM {
            ahead.asks(false, true);
        }
        ahead.refused();
        assert_eq!(run(&mut ahead), 1);
    }

    #[test]
    fn one_that_takes_long_is_seldom_tried_again() {
        let mut ahead = Ahead::default();
        for expected in [1, 1 + SKIPS, 1 + SKIPS] {
            let mut refusals = 0;
            while !begins(&mut ahead) {
                ahead.refused();
                refusals += 1;
            }
            assert_eq!(refusals, expected);
            ahead.asks(false, true);
        }
        assert!(!begins(&mut ahead));
    }

    #[test]
    fn one_that_only_reads_ends_it() {
        let mut ahead = Ahead::default();
        ahead.refused();
        ahead.refused();
        assert!(begins(&mut ahead));
        ahead.again = true;
        assert!(!ahead.stops_reading(), "it begins again");
        assert!(ahead.holds && ahead.stops_reading());
        assert_eq!(run(&mut ahead), 0);
    }
}
