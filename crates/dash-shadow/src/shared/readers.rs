//! Reader entries: who reads which copy (SHADOW-9). See [`crate::shared::coordination`] for the
//! order in which pins and looks must come.

use crate::shared::coordination::{Coordination, ENTRIES, ENTRY, Word};
use crate::shared::handover::LINE;
use crate::shared::state::Current;
use dash_engine::error::Result;
use dash_engine::handover;
use dash_storage::{File, SharedMemory};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// Who reads a copy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pins {
    /// Somebody does.
    pub any: bool,
    /// Somebody has mapped pages of it.
    pub mapped: bool,
    /// Somebody reads, in either copy, a state that is not the newest.
    pub stale: bool,
    /// The newest snapshot that is read in it.
    pub newest_here: u64,
    /// The oldest one that is read in either copy, if it is not the newest state.
    pub oldest: Option<u64>,
}

/// A dash connection that reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reader {
    /// Its process, by the number that it has in its own pid namespace.
    pub process: u64,
    /// The inode number of that namespace; 0: not known.
    pub namespace: u64,
    /// When it began, by the storage's clock, in nanoseconds.
    pub since: u64,
    /// The commit that it reads.
    pub sequence: u64,
    /// Bytes that have been put into the version store since, which it may need.
    pub kept_bytes: u64,
    /// Its entry, and the pin in it.
    entry: usize,
    pin: u64,
}

impl Reader {
    /// Whether pages of the copy in `slot` are mapped, which must stay as they are.
    pub(crate) fn maps(&self, slot: usize) -> bool {
        self.pin & MAPPED != 0 && self.pin & PINNED & (slot as u64 + 1) != 0
    }
}

impl<F: File> Coordination<F> {
    pub(crate) fn pin_word(&self, entry: usize) -> &AtomicU64 {
        self.memory.word(ENTRIES + entry * ENTRY)
    }

    /// What the owner of an entry tells of itself, for whoever looks.
    fn told(&self, entry: usize, what: usize) -> &AtomicU64 {
        self.memory.word(ENTRIES + entry * ENTRY + what)
    }

    /// Tells since when this connection reads, and how long the version store was then. Before the
    /// pin.
    pub fn tell_beginning(&self, now: u64, end: u64) {
        if let Some(entry) = self.entry {
            self.told(entry, SINCE).store(now, Relaxed);
            self.told(entry, FOUND).store(end, Relaxed);
        }
    }

    /// Tells since when this connection has WRITER; 0: it has it no more.
    pub(crate) fn tell_writing(&self, now: u64) {
        if let Some(entry) = self.entry {
            self.told(entry, WRITES).store(now, Relaxed);
        }
    }

    /// The processes that say to have WRITER, since when, and the byte of the coordination file
    /// that the connection has locked; but for this one. It makes no system call, and so whoever
    /// was killed may be among them.
    pub(crate) fn writers(&self) -> Vec<(u32, u64, u64)> {
        let used = LINE.used(self.word(Word::ReaderHigh).load(Relaxed));
        let others = used.filter(|entry| self.entry != Some(*entry));
        let told = |entry| {
            let told = |what| self.told(entry, what).load(Relaxed);
            let byte = handover::entry(entry).start;
            Some((u32::try_from(told(PROCESS)).ok()?, told(WRITES), byte))
        };
        others.filter_map(told).filter(|(_, since, _)| *since != 0).collect()
    }

    /// The living connections that read, this one too, the oldest snapshot first.
    pub fn readers(&self) -> Result<Vec<Reader>> {
        let (_, end) = self.versions().unwrap_or_default();
        let mut readers = Vec::new();
        for entry in LINE.used(self.word(Word::ReaderHigh).load(SeqCst)) {
            let pin = self.pin_word(entry).load(SeqCst);
            if pin == 0 || Some(entry) != self.entry && !handover::is_alive(&self.file, entry)? {
                continue;
            }
            let told = |what| self.told(entry, what).load(Relaxed);
            readers.push(Reader {
                process: told(PROCESS),
                namespace: told(NAMESPACE),
                since: told(SINCE),
                sequence: pin >> SNAPSHOT_SHIFT,
                kept_bytes: end.saturating_sub(told(FOUND)),
                entry,
                pin,
            });
        }
        readers.sort_by_key(|reader| (reader.sequence, reader.since));
        Ok(readers)
    }

    /// The other ones that map pages of the copy in `slot`.
    pub(crate) fn others_that_map(&self, slot: usize) -> Result<Vec<Reader>> {
        let mut readers = self.readers()?;
        readers.retain(|reader| Some(reader.entry) != self.entry && reader.maps(slot));
        Ok(readers)
    }

    /// Takes a free reader entry for the life of this connection. Without one, reading takes
    /// SQLite's SHARED lock.
    /// `namespace`: of pids.
    pub fn register(&mut self, namespace: u64) -> Result<()> {
        self.entry = LINE.register(&self.file, &self.memory)?;
        if let Some(entry) = self.entry {
            self.pin_word(entry).store(0, SeqCst);
            self.told(entry, WRITES).store(0, SeqCst);
            self.told(entry, PROCESS).store(u64::from(std::process::id()), SeqCst);
            self.told(entry, NAMESPACE).store(namespace, SeqCst);
        }
        Ok(())
    }

    /// Gives the reader entry back, before the file is closed: that releases its lock.
    pub fn unregister(&mut self) {
        self.unpin();
        if let Some(entry) = self.entry.take() {
            LINE.leave(&*self.memory, entry);
        }
    }

    /// Whether this connection has a reader entry.
    pub fn is_registered(&self) -> bool {
        self.entry.is_some()
    }

    /// Says that this connection reads the copy in `slot`. To be followed by a second look at
    /// [`Self::current`].
    pub fn pin(&self, current: Current) {
        if let Some(entry) = self.entry {
            self.pin_word(entry).store(pin_of(current), SeqCst);
        }
    }

    /// Says that this connection maps pages of the copy it has pinned.
    pub fn pin_mapped(&self, current: Current) -> bool {
        if let Some(entry) = self.entry {
            let word = self.pin_word(entry);
            let both = if word.load(SeqCst) & PINNED == BOTH { BOTH } else { 0 };
            word.store(pin_of(current) | both | MAPPED, SeqCst);
        }
        self.entry.is_some()
    }

    /// Moves the pin to what this connection has just committed (or failed to). SQLite keeps pages
    /// it has mapped until the lock falls, so the copy they are in stays pinned too.
    pub fn move_pin(&self, current: Current) {
        if let Some(entry) = self.entry {
            let word = self.pin_word(entry);
            let old = word.load(SeqCst);
            let mut pin = pin_of(current);
            if old & MAPPED != 0 {
                pin |= MAPPED | (old & PINNED);
            }
            word.store(pin, SeqCst);
        }
    }

    /// Says that this connection reads nothing.
    pub fn unpin(&self) {
        if let Some(entry) = self.entry {
            self.pin_word(entry).store(0, SeqCst);
        }
    }

    /// Who else reads the copy in `slot`, of those alive. Clears the entries of dead ones.
    pub fn pins_of_others(&self, slot: usize) -> Result<Pins> {
        let mut pins = Pins::default();
        let newest = self.current().sequence;
        for entry in LINE.used(self.word(Word::ReaderHigh).load(SeqCst)) {
            let pin = self.pin_word(entry).load(SeqCst);
            let here = pin & PINNED & (slot as u64 + 1) != 0;
            let stale = pin != 0 && pin >> SNAPSHOT_SHIFT < newest;
            if Some(entry) == self.entry || !(here || stale) {
                continue;
            }
            if handover::is_alive(&self.file, entry)? {
                pins.any |= here;
                pins.mapped |= here && pin & MAPPED != 0;
                pins.stale |= stale;
                let snapshot = pin >> SNAPSHOT_SHIFT;
                if here {
                    pins.newest_here = pins.newest_here.max(snapshot);
                }
                if stale {
                    pins.oldest = Some(pins.oldest.map_or(snapshot, |old| old.min(snapshot)));
                }
                continue;
            }
            // Its owner died between pinning and letting go. If a new owner registers right now it
            // pins the current copy, never this one.
            let _ = self.pin_word(entry).compare_exchange(pin, 0, SeqCst, SeqCst);
        }
        Ok(pins)
    }
}

/// Words of an entry behind the pin; the third one is [`crate::shared::handover`]'s.
const PROCESS: usize = 1;
const SINCE: usize = 3;
const NAMESPACE: usize = 4;
/// The end of the version store when it began.
const FOUND: usize = 5;

/// Since when it has WRITER; 0: it hasn't.
const WRITES: usize = 6;

/// Where in the pin of a reader the sequence of its snapshot begins.
const SNAPSHOT_SHIFT: u32 = 3;

/// In the pin of a reader: pages are mapped, and must stay as they are.
const MAPPED: u64 = 4;

/// In the pin of a reader: a bit for each slot.
const PINNED: u64 = 3;

/// Both of them: pages of the other copy are still mapped.
const BOTH: u64 = 3;

/// The word that says which snapshot a reader reads, and where.
fn pin_of(current: Current) -> u64 {
    current.sequence << SNAPSHOT_SHIFT | (current.slot as u64 + 1)
}

/// The sequence of the snapshot that a reader with this pin reads; none if it reads nothing.
pub(crate) fn snapshot_of(pin: u64) -> Option<u64> {
    (pin != 0).then_some(pin >> SNAPSHOT_SHIFT)
}
