//! Lingering (`dash_linger=MS`): after the last close the engine keeps the database open for a
//! while, so that a program that opens it for every change makes one flush each time, and not also
//! those that taking a database over and giving it back cost.
//!
//! While it lingers the database counts as open: a stock writer gets "database is locked", and a
//! kill leaves what a kill leaves. It ends by itself, at the end of the process, and at once where
//! somebody wants what only a closed database allows: another mode, or another file under its name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

use dash_shadow::{Connection, Error};
use dash_storage::real::Real;

/// The databases that linger, by path.
static LINGERING: Mutex<Lingering> = Mutex::new(Lingering { kept: BTreeMap::new(), keeper: 0 });
/// Wakes the keeper when there is an earlier end to wait for.
static CHANGED: Condvar = Condvar::new();

/// The process that databases may linger in: [`Lingering::keeper`], for who must not wait for the
/// lock.
static HOME: AtomicU32 = AtomicU32::new(0);

struct Lingering {
    kept: BTreeMap<PathBuf, Kept>,
    /// The process whose thread watches the ends; 0 for none. In a forked child it is another's.
    keeper: u32,
}

struct Kept {
    engine: Connection<Real>,
    until: Instant,
}

fn lingering() -> MutexGuard<'static, Lingering> {
    let mut lingering = LINGERING.lock().unwrap_or_else(PoisonError::into_inner);
    if lingering.keeper != 0 && lingering.keeper != std::process::id() {
        // A forked child: its parent's connections are dead here, and the parent gives them back.
        std::mem::take(&mut lingering.kept).into_values().for_each(|kept| {
            std::mem::forget(kept.engine);
        });
        lingering.keeper = 0;
    }
    lingering
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
        return engine.close_telling(tell);
    }
    let until = Instant::now() + time;
    let mut lingering = lingering();
    if let Some(kept) = lingering.kept.get_mut(path) {
        kept.until = kept.until.max(until);
        drop(lingering);
        return engine.close_telling(tell);
    }
    lingering.kept.insert(path.to_path_buf(), Kept { engine, until });
    CHANGED.notify_one();
    Ok(())
}

/// Closes what lingers of a database, if anything does.
pub fn end(path: &Path) {
    let kept = lingering().kept.remove(path);
    if let Some(kept) = kept {
        // The host's close succeeded long ago; the next opener recovers what this one left undone.
        drop(kept.engine.close());
    }
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
    static AT_EXIT: Once = Once::new();
    AT_EXIT.call_once(|| drop(dash_ffi::at_exit(end_all)));
    let mut lingering = lingering();
    if lingering.keeper == 0 {
        let thread = std::thread::Builder::new().name("dash-linger".into());
        let thread = thread.spawn(|| dash_ffi::behind_the_wall("lingering", keep));
        if thread.is_err() {
            return false;
        }
        lingering.keeper = std::process::id();
        HOME.store(lingering.keeper, Ordering::SeqCst);
    }
    true
}

fn keep() {
    let mut state = lingering();
    loop {
        let next = state.kept.iter().map(|(path, kept)| (kept.until, path.clone())).min();
        state = match next {
            None => CHANGED.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some((until, path)) => match until.checked_duration_since(Instant::now()) {
                Some(time) => {
                    CHANGED.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
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

/// In a forked child that exits there is nothing to end, and the lock may be held for ever: by a
/// thread that only the parent has.
extern "C" fn end_all() {
    if HOME.load(Ordering::SeqCst) != std::process::id() {
        return;
    }
    let paths: Vec<PathBuf> = lingering().kept.keys().cloned().collect();
    paths.iter().for_each(|path| end(path));
}
