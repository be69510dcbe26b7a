//! What this process has open here of each file: how many descriptors are in use, which are parked.
//!
//! A forked child begins with nothing: it has another list ([`PerProcess`]).

use std::collections::{HashMap, HashSet};
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

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
}

/// A descriptor that is owned by the list.
pub(super) struct Parked {
    pub(super) number: RawFd,
    pub(super) entry: &'static Entry<Number>,
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
    parked() != 0
}

/// How many are parked.
pub(super) fn parked() -> usize {
    PARKED.get().load(Ordering::SeqCst)
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
        PARKED.get().fetch_add(1, Ordering::SeqCst);
        self.change(id, |open| {
            open.used -= 1;
            open.parked.push(parked);
        });
    }

    /// A parked one, which is in use now.
    pub(super) fn unpark(&mut self, id: FileId, writable: bool) -> Option<Parked> {
        let parked = &self.open.get(&id)?.parked;
        let place = parked.iter().position(|parked| parked.writable == writable)?;
        PARKED.get().fetch_sub(1, Ordering::SeqCst);
        self.change(id, |open| {
            open.used += 1;
            Some(open.parked.swap_remove(place))
        })
    }

    /// How many are in use of a file.
    pub(super) fn used(&self, id: FileId) -> usize {
        self.open.get(&id).map_or(0, |open| open.used)
    }

    /// Whether there are any that may wait no longer; `leaves`: one file is about to lose a user.
    pub(super) fn are_due(&self, leaves: Option<FileId>) -> bool {
        !self.due.is_empty() || leaves.is_some_and(|id| !self.may_wait(id, 1))
    }

    /// Takes what may wait no longer, which is in use then: of one file that is about to lose a
    /// user more, and of `all`.
    pub(super) fn take_due(&mut self, leaves: Option<FileId>, all: bool) -> Vec<(FileId, Parked)> {
        let leaves = leaves.filter(|id| !self.may_wait(*id, 1));
        let due = self.due.iter().copied().filter(|_| all);
        let due: HashSet<_> = due.chain(leaves).collect();
        let take = |id| {
            let taken = self.change(id, |open| {
                open.used += open.parked.len();
                std::mem::take(&mut open.parked)
            });
            PARKED.get().fetch_sub(taken.len(), Ordering::SeqCst);
            taken.into_iter().map(move |parked| (id, parked))
        };
        due.into_iter().flat_map(take).collect()
    }

    /// Whether a descriptor of a file may be parked without asking who has it open: not more than
    /// others are in use, of which the last one asks. The next opening of the file takes a parked
    /// one over. `besides`: so many more are about to be parked, or not in use any more.
    pub(super) fn may_wait(&self, id: FileId, besides: usize) -> bool {
        self.open.get(&id).is_some_and(|open| open.parked.len() + besides <= open.used)
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
