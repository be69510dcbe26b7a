//! Shared memory: words of an inode that all processes of the machine see. What a process stores
//! after its death, on the way out of a call that failed, nobody sees.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::SharedMemory;

const CHUNK: usize = 512;

type Chunk = Arc<[AtomicU64; CHUNK]>;

/// The words of one inode, in chunks that never move, so that growing disturbs no one.
#[derive(Default)]
pub(super) struct Words(Vec<Chunk>);

impl Words {
    /// The first `words` words; new ones are made from the file's bytes.
    ///
    /// `initial` reads the file at an offset; `dead` tells of the process that maps them.
    pub(super) fn share(
        &mut self,
        words: usize,
        dead: Arc<AtomicBool>,
        initial: impl Fn(&mut [u8], u64),
    ) -> Memory {
        let chunks = words.div_ceil(CHUNK);
        for chunk in self.0.len()..chunks {
            let mut bytes = [0; CHUNK * 8];
            initial(&mut bytes, (chunk * CHUNK * 8) as u64);
            let read = bytes.as_chunks::<8>().0;
            let word = |index: usize| AtomicU64::new(u64::from_le_bytes(read[index]));
            self.0.push(Arc::new(std::array::from_fn(word)));
        }
        let chunks = self.0.iter().take(chunks).cloned().collect();
        Memory { chunks, words, dead, left: OnceLock::new() }
    }

    /// Lays the words over `buffer`, just read from the file's bytes at `offset`: a page cache has
    /// one truth.
    pub(super) fn overlay(&self, buffer: &mut [u8], offset: u64) {
        for (place, byte) in (offset..).zip(buffer) {
            let (word, at) = (usize::try_from(place / 8).unwrap_or(usize::MAX), place % 8);
            let Some(chunk) = self.0.get(word / CHUNK) else { break };
            let bytes = chunk[word % CHUNK].load(Ordering::SeqCst).to_le_bytes();
            *byte = bytes[usize::try_from(at).unwrap_or(0)];
        }
    }

    /// The file was cut: what lies behind is zeros, in every mapping.
    pub(super) fn cut(&self, len: u64) {
        let first = usize::try_from(len.div_ceil(8)).unwrap_or(usize::MAX);
        for word in self.0.iter().flat_map(|chunk| chunk.iter()).skip(first) {
            word.store(0, Ordering::SeqCst);
        }
    }
}

/// A file's beginning as words that processes share.
pub struct Memory {
    chunks: Vec<Chunk>,
    words: usize,
    dead: Arc<AtomicBool>,
    /// The words as they were after the death, for the dead process alone.
    left: OnceLock<Vec<AtomicU64>>,
}

impl SharedMemory for Memory {
    fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < self.words, "word {index} of {}", self.words);
        if self.dead.load(Ordering::Relaxed) {
            let all = || self.chunks.iter().flat_map(|chunk| chunk.iter());
            let copy = |word: &AtomicU64| AtomicU64::new(word.load(Ordering::SeqCst));
            return &self.left.get_or_init(|| all().map(copy).collect())[index];
        }
        &self.chunks[index / CHUNK][index % CHUNK]
    }

    fn len(&self) -> usize {
        self.words
    }

    fn wait(&self, index: usize, while_is: u64, _time: Duration) -> bool {
        std::thread::yield_now();
        self.word(index).load(Ordering::SeqCst) != while_is
    }

    /// Nobody sleeps.
    fn wake(&self, _index: usize) {}
}
