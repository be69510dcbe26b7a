//! Bringing a database to rest in which nobody commits any more (`dash_rest`), and at the end of
//! the process: whoever is killed then leaves what stock SQLite reads and writes (SHADOW-25 in
//! FORMAT.md of `dash-shadow`).
//!
//! Every process lets its connections go that are in no transaction, once nobody has committed for
//! a while; the last one to do so closes the database. A process watches from a transaction until
//! it has let all go and the others have, too, whoever commits or is killed meanwhile; what was in
//! a transaction then has it watched again when that ends. Where nobody has written, nothing has to
//! be brought to rest: there a process lets go once it has not used the database for as long, so
//! that it does not keep it from resting when others write later, and no process goes on looking.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dash_storage::real::PerProcess;

use super::engine::Rollback;
use super::link::{Link, Links};
use crate::rest::{self, EVERY, Resting};

/// The databases of one engine that are to come to rest.
pub type Keeper<E> = rest::Keeper<Watched, Links<E>>;

/// An engine whose databases come to rest.
pub trait Rests: Rollback {
    /// Where they are watched. A forked child watches what is its own.
    fn keeper() -> &'static PerProcess<Keeper<Self>>;
}

/// A database that is to come to rest.
pub struct Watched {
    /// How long nobody is to have committed before.
    after: Duration,
    /// The newest commit when it was looked at last, and how many transactions there had been here.
    seen: Option<(u64, u64)>,
    /// This process has let go, and looks so seldom whether the others have.
    beside: Option<Duration>,
}

/// It does so at least this often.
const SELDOM: Duration = Duration::from_secs(60);

/// Has the database come to rest `after` its last commit.
pub fn watch<E: Rests>(links: &Arc<Links<E>>, after: Duration) {
    // Whatever the others have chosen: the longest time counts.
    if links.resting.begin(Duration::ZERO) {
        return;
    }
    let what = Watched { after, seen: None, beside: None };
    let due = Instant::now() + Resting::first_look(after);
    let one = rest::Watched { links: Arc::downgrade(links), due, what };
    if !E::keeper().get().watch(one, keep::<E>, at_exit::<E>) {
        // The next transaction tries again.
        links.resting.end();
    }
}

/// A connection has been closed: the longest time that the others have chosen may be shorter.
pub fn closed<E: Rests>(links: &Arc<Links<E>>) {
    if let Some(after) = links.open().iter().filter_map(|link| link.rest).max() {
        links.resting.end();
        watch(links, after);
    }
}

fn keep<E: Rests>() {
    E::keeper().get().keep(Watched::look, last);
}

extern "C" fn at_exit<E: Rests>() {
    if let Some(keeper) = E::keeper().found() {
        keeper.finish();
    }
}

/// Whatever was committed last, the process ends. What a thread has in hand for long is left alone.
fn last<E: Rollback>(links: &Links<E>) {
    for link in links.open() {
        if link.is_inherited() || link.rest.is_none() {
            continue;
        }
        E::finish_work(link.shared());
        if let Some(mut state) = link.own_state_within(EVERY)
            && state.is_written()
        {
            // Nobody is there to be told any more.
            drop(link.let_go(&mut state, &mut |_| {}));
        }
    }
}

impl Watched {
    /// Looks whether somebody has committed since the last time; if not, the connections are let
    /// go. What is left to be watched, and when.
    fn look<E: Rollback>(mut self, links: &Links<E>) -> Option<(Duration, Self)> {
        // Whoever ends a transaction from here on has it watched anew.
        links.resting.end();
        let pause = self.pause(links)?;
        // By another one, which began meanwhile?
        let is_watched = links.resting.begin(Duration::ZERO);
        (!is_watched).then_some((pause, self))
    }

    /// Does it; `None`: there is nothing left to be watched.
    fn pause<E: Rollback>(&mut self, links: &Links<E>) -> Option<Duration> {
        // Who is never to be let go keeps the database from resting.
        let is_mine = |link: &Arc<Link<E>>| !link.is_inherited() && link.rest.is_some();
        let open: Vec<_> = links.open().into_iter().filter(is_mine).collect();
        self.after = open.iter().filter_map(|link| link.rest).max()?;
        let later = self.after.max(EVERY);
        let (mut newest, mut used, mut is_written) = (None, 0, false);
        for link in &open {
            // What SQLite is doing just now may take a while.
            let Some(state) = link.try_state() else { return Some(later) };
            newest = newest.max(state.newest());
            used += state.used;
            is_written |= state.is_written();
        }
        let Some(newest) = newest else {
            return self.look_at_others(open.first()?);
        };
        self.beside = None;
        let seen = self.seen;
        self.seen = Some((newest, used));
        if seen.is_none_or(|seen| seen.0 != newest) {
            return Some(match is_written {
                true => links.resting.pause(self.after, seen.is_none()),
                false => self.after,
            });
        }
        if !is_written && seen != self.seen {
            return Some(later);
        }
        let left = links.resting.is_left(self.after);
        if is_written && !left.is_zero() {
            return Some(left);
        }
        let early = links.resting.last().map(|last| EVERY.saturating_sub(last.elapsed()));
        if let Some(early) = early.filter(|early| !early.is_zero()) {
            return Some(early);
        }
        let mut is_done = true;
        for link in &open {
            is_done &= link.try_state().is_some_and(|mut state| link.try_let_go(&mut state));
        }
        *links.resting.last() = Some(Instant::now());
        match (is_done, is_written) {
            (false, _) => Some(later),
            (true, true) => {
                self.beside = Some(later);
                self.look_at_others(open.first()?)
            }
            (true, false) => None,
        }
    }

    /// Nothing is open here any more. Others may have the database open for longer, as they are in
    /// a transaction or have chosen so, and be killed: then it is opened, which cleans up after
    /// them. What fails here may not fail for ever.
    fn look_at_others<E: Rollback>(&mut self, link: &Link<E>) -> Option<Duration> {
        let pause = self.beside?;
        let is_open = E::is_open(&link.path);
        if !is_open && matches!(E::is_at_rest(&link.path), Ok(true)) {
            return None;
        }
        self.seen = None;
        if !is_open && link.engine().is_ok() {
            return Some(self.after);
        }
        self.beside = Some((pause * 2).min(SELDOM.max(pause)));
        Some(pause)
    }
}
