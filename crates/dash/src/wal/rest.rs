//! Bringing a database to rest in which nobody commits any more (`dash_rest`), and at the end of
//! the process: whoever is killed then leaves what stock SQLite reads and writes (WAL-30 in
//! FORMAT.md of `dash-wal`).
//!
//! A thread does it, on a connection of this process that SQLite has open, between two of its
//! calls. It watches from a commit, checkpoint or read transaction that left the log in use until
//! the database is at rest, whoever commits or is killed meanwhile; and ends a moment after
//! nothing is watched any more.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dash_storage::real::{PerProcess, Real};
use dash_wal::{Connection, Newest, Rest, Stock};

use super::link::{Link, Links, State};
use crate::mode::linked::Locked;
use crate::rest::{self, EVERY, Resting};

/// So often it is tried where no connection can tell which commit is the newest: under
/// locking_mode=EXCLUSIVE none can.
const BLIND: u32 = 10;

/// A forked child watches what is its own.
static KEEPER: PerProcess<rest::Keeper<Watched, Links>> = PerProcess::new();

/// A database that is to come to rest.
struct Watched {
    /// How long nobody is to have committed before.
    after: Duration,
    /// The newest commit when it was looked at last.
    newest: Option<Newest>,
    blind: u32,
}

/// Has the database come to rest `after` its last commit: the log is in use.
pub fn watch(links: &Arc<Links>, after: Duration) {
    if links.resting.begin(after) {
        return;
    }
    let what = Watched { after, newest: None, blind: 0 };
    let due = Instant::now() + Resting::first_look(after);
    let one = rest::Watched { links: Arc::downgrade(links), due, what };
    if !KEEPER.get().watch(one, keep, at_exit) {
        // The next commit tries again.
        links.resting.end();
    }
}

/// A connection has been closed, which may have chosen a longer time than the others.
pub fn closed(links: &Arc<Links>) {
    let after = |link: &Arc<Link>| {
        link.own_state_within(Duration::ZERO)?.engine().ok().and_then(|engine| engine.rests_after())
    };
    if let Some(after) = links.open().iter().filter_map(after).min() {
        watch(links, after);
    }
}

fn keep() {
    KEEPER.get().keep(|one, links| one.look(links, |link| link.own_state()), last);
}

extern "C" fn at_exit() {
    if let Some(keeper) = KEEPER.found() {
        keeper.finish();
    }
}

/// Whatever was committed last, the process ends. What a thread has in hand for long is left alone.
fn last(links: &Links) {
    let now = Watched { after: Duration::ZERO, newest: None, blind: 0 };
    // Twice: the first time it is seen what the newest commit is.
    if let Some((_, now)) = now.look(links, soon) {
        now.look(links, soon);
    }
}

/// A connection's state, if its thread gives that up soon.
fn soon(link: &Link) -> Option<Locked<'_, State>> {
    link.own_state_within(EVERY)
}

type Lock = fn(&Link) -> Option<Locked<'_, State>>;

impl Watched {
    /// Looks whether somebody has committed since the last time; if not it is to come to rest. What
    /// is left to be watched, and when.
    fn look(mut self, links: &Links, lock: Lock) -> Option<(Duration, Self)> {
        let Some(seen) = links.open().iter().find_map(|link| self.look_through(links, link, lock))
        else {
            self.blind += 1;
            let gives_up = self.blind >= BLIND;
            if gives_up {
                links.resting.end();
            }
            return (!gives_up).then_some((EVERY, self));
        };
        self.blind = 0;
        let pause = match seen {
            Seen::AtRest => return None,
            Seen::Left => {
                leave_sessions(links, lock);
                return None;
            }
            Seen::Committed(newest) => {
                let before = self.newest.replace(newest);
                links.resting.pause(self.after, before.is_none())
            }
            Seen::Early(time) => time,
            Seen::Busy => self.after.max(EVERY),
        };
        Some((pause, self))
    }

    /// Through one connection; `None`: it can't tell.
    fn look_through(&self, links: &Links, link: &Link, lock: Lock) -> Option<Seen> {
        let mut state = lock(link)?;
        if !state.has_log {
            return None;
        }
        let engine = state.engine().ok()?;
        let resting = &links.resting;
        resting.end();
        let seen = (|| {
            if engine.is_at_rest() {
                return Some(Seen::at_rest(engine));
            }
            // What fails here is told to the next who commits, or closes.
            let newest = engine.newest().ok()??;
            if self.newest != Some(newest) {
                return Some(Seen::Committed(newest));
            }
            let left = resting.is_left(self.after);
            if !left.is_zero() {
                return Some(Seen::Early(left));
            }
            let last = *resting.last();
            let early = last.map_or(Duration::ZERO, |last| EVERY.saturating_sub(last.elapsed()));
            if !early.is_zero() && !self.after.is_zero() {
                return Some(Seen::Early(early));
            }
            match engine.come_to_rest() {
                Ok(Rest::AtRest) => {
                    *resting.last() = Some(Instant::now());
                    Some(Seen::at_rest(engine))
                }
                // The next commit has it watched again.
                Ok(Rest::Moved) => Some(Seen::AtRest),
                Ok(Rest::NotNow) | Err(_) => Some(Seen::Busy),
            }
        })();
        let goes_on = !matches!(seen, Some(Seen::AtRest | Seen::Left));
        match goes_on && resting.begin(self.after) {
            // By another one, which began meanwhile.
            true => Some(Seen::AtRest),
            false => seen,
        }
    }
}

/// The database is at rest: each connection holds for itself what has kept stock checkpoints out.
fn leave_sessions(links: &Links, lock: Lock) {
    for link in links.open() {
        if let Some(mut state) = lock(&link)
            && let Ok(engine) = state.engine()
        {
            drop(engine.leave_session());
        }
    }
}

/// What a look has shown.
enum Seen {
    /// Nothing need be watched any more.
    AtRest,
    /// Nothing need be watched any more, and stock SQLite may checkpoint.
    Left,
    /// Somebody has committed.
    Committed(Newest),
    /// It has been at rest a moment ago.
    Early(Duration),
    /// Somebody is at work.
    Busy,
}

impl Seen {
    fn at_rest(engine: &Connection<Real>) -> Self {
        if engine.stock() == Stock::Write { Self::Left } else { Self::AtRest }
    }
}
