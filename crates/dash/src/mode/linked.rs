//! Connections of this process to one database, which SQLite's calls and threads of dash's own come
//! to in turns.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::{Duration, Instant};

use dash_storage::real;

use crate::rest::Resting;

/// What changes of a connection. One call has it at a time. It ends at a fork: in the child it is
/// dead, and a thread may have it that is not there.
pub struct Linked<S> {
    state: Mutex<S>,
    /// [`real::forks`] when it was opened.
    forks: u64,
}

/// What changes, and nobody else's until it is dropped.
pub type Locked<'a, S> = MutexGuard<'a, S>;

impl<S> Linked<S> {
    /// Of a connection that is opened now.
    pub fn new(state: S) -> Self {
        Self { state: Mutex::new(state), forks: real::forks() }
    }

    /// Whether it came over `fork()`.
    #[inline]
    pub fn is_inherited(&self) -> bool {
        self.forks != real::forks()
    }

    /// Everything that changes.
    #[inline]
    pub fn state(&self) -> Locked<'_, S> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything that changes, if nobody has it.
    pub fn try_state(&self) -> Option<Locked<'_, S>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Everything that changes. `None` in a forked child where a thread has it that is not there.
    pub fn state_here(&self) -> Option<Locked<'_, S>> {
        if self.is_inherited() { self.try_state() } else { Some(self.state()) }
    }

    /// Everything that changes of a connection that is this process's own.
    pub fn own_state(&self) -> Option<Locked<'_, S>> {
        (!self.is_inherited()).then(|| self.state())
    }

    /// Everything that changes, if it is given up in time: a thread may have ended with it in hand.
    pub fn own_state_within(&self, time: Duration) -> Option<Locked<'_, S>> {
        let begun = Instant::now();
        loop {
            let state = self.try_state().filter(|_| !self.is_inherited());
            if state.is_some() || self.is_inherited() || begun.elapsed() >= time {
                return state;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The connections `L` of this process to one database, what is known of its rest, and what else
/// they share.
pub struct Links<L, More = ()> {
    list: Mutex<Vec<Weak<L>>>,
    pub resting: Resting,
    pub more: More,
}

impl<L, More: Default> Default for Links<L, More> {
    fn default() -> Self {
        Self { list: Mutex::default(), resting: Resting::default(), more: More::default() }
    }
}

impl<L, More> Links<L, More> {
    /// Those that are there.
    pub fn open(&self) -> Vec<Arc<L>> {
        let links = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        links.iter().filter_map(Weak::upgrade).collect()
    }

    /// One more.
    pub fn add(&self, link: &Arc<L>) {
        let mut links = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        links.retain(|link| link.strong_count() > 0);
        links.push(Arc::downgrade(link));
    }
}
