//! Lingering (`dash_linger=MS`): after the last close the engine keeps the database open for a
//! while, so that a program that opens it for every change makes one flush each time, and not also
//! those that taking a database over and giving it back cost.
//!
//! While it lingers the database counts as open: a stock writer gets "database is locked", and a
//! kill leaves what a kill leaves. It ends by itself, at the end of the process, and at once where
//! somebody wants what only a closed database allows: another mode, or another file under its name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use dash_shadow::{Connection, Error};
use dash_storage::real::{self, PerProcess, Real};

use super::orphans;

/// Of a forked child's parent nothing lingers in the child.
static LINGERING: PerProcess<Lingering> = PerProcess::new();

#[derive(Default)]
struct Lingering {
    state: Mutex<State>,
    /// Wakes the keeper when there is an earlier end to wait for.
    changed: Condvar,
    at_exit: OnceLock<()>,
}

#[derive(Default)]
struct State {
    /// The databases that linger, by path.
    kept: BTreeMap<PathBuf, Kept>,
    /// Whether a thread watches the ends.
    has_keeper: bool,
}

struct Kept {
    engine: Connection<Real>,
    until: Instant,
}

fn lingering() -> MutexGuard<'static, State> {
    LINGERING.get().state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Closes a connection, or keeps it for `time` in case the database is opened again soon.
///
/// # Errors
///
/// Those of closing.
pub fn close(
    engine: Connection<Real>,
    path: &Path,
    time: Duration,
    tell: &mut dyn FnMut(&str),
) -> Result<(), Error> {
    if time.is_zero() || !keeper_runs() {
        return orphans::close(engine, path, tell);
    }
    let until = Instant::now() + time;
    let mut lingering = lingering();
    if let Some(kept) = lingering.kept.get_mut(path) {
        kept.until = kept.until.max(until);
        drop(lingering);
        return orphans::close(engine, path, tell);
    }
    lingering.kept.insert(path.to_path_buf(), Kept { engine, until });
    LINGERING.get().changed.notify_one();
    Ok(())
}

/// Closes what lingers of a database, if anything does.
pub fn end(path: &Path) {
    let kept = lingering().kept.remove(path);
    if let Some(kept) = kept {
        finish(kept, path);
    }
}

/// The host's close succeeded long ago; the next opener recovers what this one leaves undone.
fn finish(kept: Kept, path: &Path) {
    drop(orphans::close(kept.engine, path, &mut |_| {}));
}

/// Closes what lingers of a database that is no longer what was closed: the host believes that it
/// may replace a closed file.
pub fn check(path: &Path) {
    let replaced = lingering()
        .kept
        .get(path)
        .is_some_and(|kept| !kept.engine.is_as_committed().unwrap_or(false));
    if replaced {
        end(path);
    }
}

/// Makes sure that somebody watches the ends, and that the end of the process is one.
fn keeper_runs() -> bool {
    LINGERING.get().at_exit.get_or_init(|| drop(dash_ffi::at_exit(end_all)));
    let mut lingering = lingering();
    if !lingering.has_keeper {
        let thread = std::thread::Builder::new().name("dash-linger".into());
        let thread = thread.spawn(|| dash_ffi::behind_the_wall("lingering", keep));
        if thread.is_err() {
            return false;
        }
        lingering.has_keeper = true;
    }
    true
}

fn keep() {
    let changed = &LINGERING.get().changed;
    let mut state = lingering();
    loop {
        let next = state.kept.iter().map(|(path, kept)| (kept.until, path.clone())).min();
        state = match next {
            None => changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some((until, path)) => match until.checked_duration_since(Instant::now()) {
                Some(time) => {
                    changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
                }
                None => {
                    drop(state);
                    end(&path);
                    lingering()
                }
            },
        };
    }
}

/// In a forked child that exits there is nothing to end but what lingers there itself.
extern "C" fn end_all() {
    real::process_ends();
    let kept = real::lock(&LINGERING.get().state).map(|mut state| std::mem::take(&mut state.kept));
    for (path, kept) in kept.unwrap_or_default() {
        finish(kept, &path);
    }
}
