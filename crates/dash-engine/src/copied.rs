//! A copy of the words that connections share, for whoever only looks at them from outside: no
//! mapping, no lock, and nothing that anybody could notice.
//!
//! The words are copied one after the other, so two of them may be of different moments.

use crate::io::read_padded;
use dash_storage::{File, SharedMemory};
use std::io;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// The words of a file, as they were.
#[derive(Debug)]
pub struct Copied {
    words: Vec<AtomicU64>,
}

impl Copied {
    /// Copies the first `words` of a file; those behind its end are 0.
    ///
    /// # Errors
    ///
    /// Those of reading it.
    pub fn of<F: File>(file: &F, words: usize) -> io::Result<Self> {
        let mut bytes = vec![0; words * size_of::<u64>()];
        read_padded(file, &mut bytes, 0)?;
        let word = |bytes: &[u8; 8]| AtomicU64::new(u64::from_ne_bytes(*bytes));
        Ok(Self { words: bytes.as_chunks().0.iter().map(word).collect() })
    }
}

impl SharedMemory for Copied {
    fn word(&self, index: usize) -> &AtomicU64 {
        &self.words[index]
    }

    fn len(&self) -> usize {
        self.words.len()
    }

    fn start(&self) -> *mut u8 {
        self.words.as_ptr().cast_mut().cast()
    }

    /// Nobody changes a copy.
    fn wait(&self, _: usize, _: u64, _: Duration) -> bool {
        false
    }

    fn wake(&self, _: usize) {}
}
