//! What the connections of this process share about a database in mode shadow.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;

use super::link::Link;
use crate::rest::Resting;

/// The thread that settles the database.
#[derive(Default)]
pub struct Settling(Mutex<Option<JoinHandle<()>>>);

impl Settling {
    /// The thread, if there is one.
    pub fn thread(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The connections of this process to one database, and what is known of its rest.
#[derive(Default)]
pub struct Links {
    list: Mutex<Vec<Weak<Link>>>,
    pub resting: Resting,
}

impl Links {
    /// Those that are there.
    pub fn open(&self) -> Vec<Arc<Link>> {
        let links = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        links.iter().filter_map(Weak::upgrade).collect()
    }

    /// One more.
    pub fn add(&self, link: &Arc<Link>) {
        let mut links = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        links.retain(|link| link.strong_count() > 0);
        links.push(Arc::downgrade(link));
    }
}
