//! What the connections of this process share about a database that they have open.

use std::any::Any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use dash_storage::real::without_fork;

use crate::wake::Queue;

/// What the connections of this process share about a database.
#[derive(Default)]
pub struct Shared {
    /// The connections that wait for its locks.
    pub queue: Arc<Queue>,
    /// Connections that may write it, and so keep stock writers out.
    pub(super) writers: AtomicUsize,
    /// What the engines share, each by its type.
    own: Mutex<Vec<Arc<dyn Any + Send + Sync>>>,
}

impl Shared {
    /// What the connections of one engine share: made when it is first asked for.
    pub fn of<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        without_fork(|| {
            let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(found) = own.iter().find_map(|own| Arc::clone(own).downcast().ok()) {
                return found;
            }
            let new = Arc::<T>::default();
            own.push(new.clone());
            new
        })
    }

    /// Whether a connection of this process may write it.
    pub fn has_writers(&self) -> bool {
        self.writers.load(Ordering::SeqCst) > 0
    }
}

/// A connection that keeps stock writers out, until it is dropped.
pub struct Writing(Arc<Shared>);

impl Writing {
    /// One more.
    pub fn new(shared: &Arc<Shared>) -> Self {
        shared.writers.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(shared))
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.0.writers.fetch_sub(1, Ordering::SeqCst);
    }
}
