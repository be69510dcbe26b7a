//! Shared memory: words of an inode that all processes of the machine see. What a process stores
//! after its death, on the way out of a call that failed, nobody sees.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use dash_storage::{REGION, SharedMemory, real};

/// Words of a chunk: a region, so that what lies in one lies together in memory.
const CHUNK: usize = 4096;
const _: () = assert!(CHUNK as u64 * 8 == REGION);

/// Words that never move.
#[derive(Clone)]
enum Chunk {
    /// At one place for all.
    Together(Arc<[AtomicU64]>),
    /// At another one for each who maps them, as in the real home.
    Apart(Arc<real::Memory>),
}

impl Chunk {
    fn word(&self, index: usize) -> &AtomicU64 {
        match self {
            Self::Together(words) => &words[index],
            Self::Apart(words) => words.word(index),
        }
    }

    fn words(&self) -> impl Iterator<Item = &AtomicU64> {
        (0..CHUNK).map(|index| self.word(index))
    }

    /// At another place for each who maps them, if nobody has mapped them yet.
    fn apart(self) -> Self {
        let Self::Together(words) = &self else { return self };
        let Ok(apart) = real::Memory::of_no_file(CHUNK) else { return self };
        if Arc::strong_count(words) > 1 {
            return self;
        }
        for (index, word) in words.iter().enumerate() {
            apart.word(index).store(word.load(Ordering::SeqCst), Ordering::SeqCst);
        }
        Self::Apart(Arc::new(apart))
    }

    /// For somebody who maps them.
    fn mapped(&self) -> Self {
        match self {
            Self::Together(words) => Self::Together(Arc::clone(words)),
            Self::Apart(words) => {
                Self::Apart(words.again().map_or_else(|_| Arc::clone(words), Arc::new))
            }
        }
    }
}

/// The words of one inode, in chunks that never move, so that growing disturbs no one.
#[derive(Default)]
pub(crate) struct Words(BTreeMap<usize, Chunk>);

impl Words {
    /// `words` words from chunk `first` on; new ones are made from the file's bytes.
    ///
    /// `initial` reads the file at an offset; `dead` tells of the process that maps them.
    pub(crate) fn share(
        &mut self,
        first: usize,
        words: usize,
        (dead, is_region): (Arc<AtomicBool>, bool),
        initial: impl Fn(&mut [u8], u64),
    ) -> Memory {
        let read = |chunk: usize| {
            let mut bytes = vec![0; CHUNK * 8];
            initial(&mut bytes, (chunk * CHUNK * 8) as u64);
            let words = bytes.as_chunks::<8>().0.iter();
            let words = words.map(|word| AtomicU64::new(u64::from_le_bytes(*word)));
            Chunk::Together(words.collect())
        };
        let numbers = first..first + words.div_ceil(CHUNK).max(1);
        let chunk = |number| {
            let chunk = self.0.remove(&number).unwrap_or_else(|| read(number));
            let chunk = if is_region { chunk.apart() } else { chunk };
            let mapped = chunk.mapped();
            self.0.insert(number, chunk);
            mapped
        };
        let chunks = numbers.map(chunk).collect();
        Memory { chunks, words, dead, left: OnceLock::new() }
    }

    /// The same words with chunks of their own.
    pub(crate) fn copy(&self) -> Self {
        let copy = |chunk: &Chunk| Chunk::Together(chunk.words().map(copy).collect());
        Self(self.0.iter().map(|(&number, chunk)| (number, copy(chunk))).collect())
    }

    /// Lays the words over `buffer`, just read from the file's bytes at `offset`: a page cache has
    /// one truth.
    pub(crate) fn overlay(&self, buffer: &mut [u8], offset: u64) {
        self.each(offset, buffer.len(), |place, word, at| {
            buffer[place] = word.load(Ordering::SeqCst).to_le_bytes()[at];
        });
    }

    /// The file's bytes were written.
    pub(crate) fn write(&self, data: &[u8], offset: u64) {
        self.each(offset, data.len(), |place, word, at| {
            let mut bytes = word.load(Ordering::SeqCst).to_le_bytes();
            bytes[at] = data[place];
            word.store(u64::from_le_bytes(bytes), Ordering::SeqCst);
        });
    }

    /// Zeros, in every mapping: the file was cut there, or initialized.
    pub(crate) fn zero(&self, range: Range<u64>) {
        let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        let (first, end) = (index(range.start.div_ceil(8)), index(range.end / 8));
        for (number, chunk) in &self.0 {
            let places = number * CHUNK..;
            let words = places.zip(chunk.words()).filter(|(place, _)| (first..end).contains(place));
            words.for_each(|(_, word)| word.store(0, Ordering::SeqCst));
        }
    }

    /// Of `len` bytes of the file at `offset` those that are words: which it is of them, its word,
    /// and which it is of the word's.
    fn each(&self, offset: u64, len: usize, mut act: impl FnMut(usize, &AtomicU64, usize)) {
        let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        let (start, end) = (index(offset), index(offset).saturating_add(len));
        let chunks = self.0.range(start / (CHUNK * 8)..end.div_ceil(CHUNK * 8));
        for (number, chunk) in chunks {
            let first = number * CHUNK * 8;
            for place in start.max(first)..end.min(first + CHUNK * 8) {
                act(place - start, chunk.word((place - first) / 8), place % 8);
            }
        }
    }
}

fn copy(word: &AtomicU64) -> AtomicU64 {
    AtomicU64::new(word.load(Ordering::SeqCst))
}

/// A part of a file as words that processes share.
pub struct Memory {
    /// At least one.
    chunks: Vec<Chunk>,
    words: usize,
    dead: Arc<AtomicBool>,
    /// The words as they were after the death, for the dead process alone.
    left: OnceLock<Vec<AtomicU64>>,
}

impl Memory {
    /// Where word `index` lies.
    fn place(&self, index: usize) -> &AtomicU64 {
        if self.dead.load(Ordering::Relaxed) {
            let all = || self.chunks.iter().flat_map(Chunk::words);
            return &self.left.get_or_init(|| all().map(copy).collect())[index];
        }
        self.chunks[index / CHUNK].word(index % CHUNK)
    }
}

impl SharedMemory for Memory {
    fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < self.words, "word {index} of {}", self.words);
        self.place(index)
    }

    fn len(&self) -> usize {
        self.words
    }

    /// Of a process that is dead by now: of the words that it alone has. One that kept the place
    /// from before writes where all see it, so whoever looks with raw pointers goes on with
    /// [`Machine::killed`](crate::Machine::killed).
    fn start(&self) -> *mut u8 {
        std::ptr::from_ref(self.place(0)).cast_mut().cast()
    }

    fn cover(&self) -> io::Result<Self> {
        let [Chunk::Apart(place)] = &*self.chunks else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        if self.dead.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let chunks = vec![Chunk::Apart(Arc::new(place.cover()?))];
        let (words, dead, left) = (self.words, Arc::clone(&self.dead), OnceLock::new());
        Ok(Self { chunks, words, dead, left })
    }

    fn uncover(&self, words: &Self) -> io::Result<()> {
        match (&*self.chunks, &*words.chunks) {
            ([Chunk::Apart(place)], [Chunk::Apart(words)]) => place.uncover(words),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    fn wait(&self, index: usize, while_is: u64, _time: Duration) -> bool {
        std::thread::yield_now();
        self.word(index).load(Ordering::SeqCst) != while_is
    }

    /// Nobody sleeps.
    fn wake(&self, _index: usize) {}
}
