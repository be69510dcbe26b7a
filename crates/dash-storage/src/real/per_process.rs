//! Statics of which every process has its own.
//!
//! What a lock guards is of no use in a forked child where it is about threads and connections of
//! the parent; and a thread that is not there may hold it for ever. So the child finds a new one in
//! its place. The old one stays where it is: nobody knows who has a reference.

use std::sync::OnceLock;

use super::fork;

/// A value for each process; meant for statics.
pub struct PerProcess<T> {
    first: OnceLock<Box<Node<T>>>,
}

struct Node<T> {
    /// The process, counted in forks.
    generation: u64,
    value: T,
    next: OnceLock<Box<Node<T>>>,
}

impl<T: Default> PerProcess<T> {
    /// Nothing is made yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { first: OnceLock::new() }
    }

    /// This process's; a new one, if nobody has asked for it yet.
    pub fn get(&self) -> &T {
        let mut place = &self.first;
        loop {
            let node = place.get().unwrap_or_else(|| {
                // A child must not find it half made.
                let _inside = fork::inside();
                place.get_or_init(Node::new)
            });
            if node.generation == fork::forks() {
                return &node.value;
            }
            place = &node.next;
        }
    }

    /// This process's, if somebody has asked for it: nothing is made.
    pub fn found(&self) -> Option<&T> {
        let mut place = &self.first;
        loop {
            let node = place.get()?;
            if node.generation == fork::forks() {
                return Some(&node.value);
            }
            place = &node.next;
        }
    }
}

impl<T: Default> Default for PerProcess<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Default> Node<T> {
    fn new() -> Box<Self> {
        let generation = fork::forks();
        Box::new(Self { generation, value: T::default(), next: OnceLock::new() })
    }
}
