//! What all connections to a database have counted, of any process, since the first of the present
//! ones opened it: words of the coordination file, to which each adds what it counted since it last
//! did. A connection does so with each commit and when it closes, so that a kill takes what it
//! counted since its last commit.

use dash_storage::SharedMemory;
use std::sync::atomic::Ordering::Relaxed;

/// Words of the coordination file that are kept for them.
pub const WORDS: usize = 32;

/// What a connection has added already.
#[derive(Debug, Clone, Copy, Default)]
pub struct Told([u64; WORDS]);

impl Told {
    /// Adds what was counted since the last time. `first`: the first of the words.
    pub fn tell<M: SharedMemory>(&mut self, memory: &M, first: usize, counted: &[u64]) {
        debug_assert!(counted.len() <= WORDS, "{} counters", counted.len());
        for (index, (told, &counted)) in self.0.iter_mut().zip(counted).enumerate() {
            if counted != *told {
                memory.word(first + index).fetch_add(counted - *told, Relaxed);
                *told = counted;
            }
        }
    }

    /// What all have told, and what this connection has not told yet.
    #[must_use]
    pub fn total<M: SharedMemory>(&self, memory: &M, first: usize, counted: &[u64]) -> Vec<u64> {
        let all = self.0.iter().zip(counted).enumerate();
        all.map(|(index, (told, counted))| {
            memory.word(first + index).load(Relaxed).wrapping_add(counted - told)
        })
        .collect()
    }
}
