//! What this process has open here of each file: how many descriptors are in use, which are parked.
//!
//! A forked child begins with nothing: it has another list ([`PerProcess`]).

use std::collections::{HashMap, HashSet};
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::ending;
use super::fork::Number;
use super::per_process::PerProcess;
use super::table::Entry;
use crate::FileId;

static FILES: PerProcess<Mutex<Files>> = PerProcess::new();

/// How many are parked in this process; so much costs nothing where nothing is.
static PARKED: PerProcess<AtomicUsize> = PerProcess::new();

/// All of them.
#[derive(Default)]
pub(super) struct Files {
    open: HashMap<FileId, Open>,
    /// Those with more parked than in use.
    due: HashSet<FileId>,
    numbers: HashSet<RawFd>,
}

/// What is open of one file.
#[derive(Default)]
struct Open {
    used: usize,
    parked: Vec<Parked>,
    /// Until then somebody else in this process is taken to have it open.
    held_until: Option<Instant>,
}

/// A descriptor that is owned by the list.
pub(super) struct Parked {
    pub(super) number: RawFd,
    pub(super) entry: &'static Entry<Number>,
    /// The process that has opened it, counted in forks.
    pub(super) generation: u64,
    pub(super) writable: bool,
}

/// This process's. Nothing else is waited for while it is held. `None`: the process ends.
pub(super) fn ours() -> Option<MutexGuard<'static, Files>> {
    // The first one to ask may have to wait for a fork, which may wait for us.
    PARKED.get();
    ending::lock(FILES.get())
}

/// Whether anything is parked: a load, so that opening costs nothing when nothing is.
pub(super) fn any_parked() -> bool {
    PARKED.get().load(Ordering::Relaxed) != 0
}

/// A look that is short enough for any time, and the part of the time that longer ones may take.
const SHORT: Duration = Duration::from_micros(200);
const PART: u32 = 20;

impl Open {
    fn is_held(&self) -> bool {
        self.held_until.is_some_and(|until| Instant::now() < until)
    }
}

impl Files {
    pub(super) fn number_is_ours(&mut self, number: RawFd) {
        self.numbers.insert(number);
    }

    /// Before it is closed. `of`: it was one in use of this file.
    pub(super) fn number_is_free(&mut self, number: RawFd, of: Option<FileId>) {
        self.numbers.remove(&number);
        if let Some(id) = of {
            self.change(id, |open| open.used -= 1);
        }
    }

    /// Whether a number is that of a descriptor of this home.
    pub(super) fn is_ours(&self, number: RawFd) -> bool {
        self.numbers.contains(&number)
    }

    /// One more is in use.
    pub(super) fn begins(&mut self, id: FileId) {
        self.change(id, |open| open.used += 1);
    }

    /// One that was in use is parked.
    pub(super) fn park(&mut self, id: FileId, parked: Parked) {
        PARKED.get().fetch_add(1, Ordering::Relaxed);
        self.change(id, |open| {
            open.used -= 1;
            open.parked.push(parked);
        });
    }

    /// A parked one, which is in use now.
    pub(super) fn unpark(&mut self, id: FileId, writable: bool) -> Option<Parked> {
        let parked = &self.open.get(&id)?.parked;
        let place = parked.iter().position(|parked| parked.writable == writable)?;
        PARKED.get().fetch_sub(1, Ordering::Relaxed);
        self.change(id, |open| {
            open.used += 1;
            Some(open.parked.swap_remove(place))
        })
    }

    /// Takes all that may wait no longer, which are in use now. `leaves`: one more of this file is
    /// about to go.
    pub(super) fn take_due(&mut self, leaves: Option<FileId>) -> Vec<(FileId, Parked)> {
        let leaves = leaves.filter(|id| !self.may_wait(*id, 1));
        let is_free = |id: &FileId| self.open.get(id).is_some_and(|open| !open.is_held());
        let due = self.due.iter().copied().filter(is_free);
        let due: HashSet<_> = due.chain(leaves).collect();
        let take = |id| {
            let taken = self.change(id, |open| {
                open.used += open.parked.len();
                std::mem::take(&mut open.parked)
            });
            PARKED.get().fetch_sub(taken.len(), Ordering::Relaxed);
            taken.into_iter().map(move |parked| (id, parked))
        };
        due.into_iter().flat_map(take).collect()
    }

    /// Whether a descriptor of a file may be parked without asking who has it open: not more than
    /// others are in use, of which the last one asks; more, where somebody else was found to have
    /// it. The next opening of the file takes a parked one over. `besides`: so many more are about
    /// to be parked, or not in use any more.
    pub(super) fn may_wait(&self, id: FileId, besides: usize) -> bool {
        let waits = |open: &Open| {
            open.parked.len() + besides <= open.used || open.used > 1 && open.is_held()
        };
        self.open.get(&id).is_some_and(waits)
    }

    /// Somebody else has a file open, as a look has found that took so long. The next look comes
    /// when looking has no more than a small part of the time.
    pub(super) fn is_held(&mut self, id: FileId, look: Duration) {
        let pause = look.saturating_sub(SHORT) * PART;
        self.change(id, |open| open.held_until = Some(Instant::now() + pause));
    }

    fn change<R>(&mut self, id: FileId, change: impl FnOnce(&mut Open) -> R) -> R {
        let open = self.open.entry(id).or_default();
        let changed = change(open);
        if open.parked.len() > open.used {
            self.due.insert(id);
        } else {
            self.due.remove(&id);
        }
        if open.used == 0 && open.parked.is_empty() {
            self.open.remove(&id);
        }
        changed
    }
}
