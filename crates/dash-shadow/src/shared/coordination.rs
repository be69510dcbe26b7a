//! The coordination file `app.db-dash`: words of memory shared by the connections of all
//! processes that have the database open. It exists while somebody does, is made anew by the
//! first opener and holds nothing that recovery needs: the truth is in the two tails.
//!
//! Why a file of its own and not the mapped tail: whoever copies a backup over `app.db` cuts that
//! file first, and a process that has it mapped dies of SIGBUS (T21). Nobody copies over this.
//!
//! Reading takes no lock: a connection **pins** the copy it reads in its reader entry and then
//! looks again whether that copy is still current. A writer, before its first byte into the other
//! copy, waits until no entry pins that. All words are accessed sequentially consistent: either
//! the reader sees that its copy was superseded, or the writer sees its pin (SHADOW-9). An entry
//! belongs to whoever holds the lock on its byte; entries of the dead are cleared by writers.

use crate::format::header::VERSION_BYTES;
use crate::shared::layout::{self, Layout};
use crate::shared::state::{Current, ShadowCondition, Snapshot};
use dash_engine::coordination::{Head, named};
use dash_engine::error::{Context, Operation, Result};
use dash_engine::totals;
use dash_storage::{File, FileId, SharedMemory};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

/// Words of the file.
pub(crate) const WORDS: usize = 4096;

/// Words of a reader entry: one cache line.
pub(crate) const ENTRY: usize = 8;

/// Where the counters of all connections begin: in the page that the head is in, which everybody
/// has touched by then. A page that is touched for the first time after its device has failed ends
/// the process (SIGBUS).
pub(crate) const TOTALS: usize = 64;

/// Where the reader entries begin.
pub(crate) const ENTRIES: usize = TOTALS + totals::WORDS;

/// How many connections can read without a lock call.
pub const MAX_READERS: usize = (WORDS - ENTRIES) / ENTRY;

/// Words of the head.
#[derive(Clone, Copy)]
pub(crate) enum Word {
    Magic = 0,
    /// Changes whenever the pair of inodes does.
    Generation = 1,
    /// `sequence << 1 | slot` of the current copy.
    Current = 2,
    /// Sequence of a commit being written into the shadow; 0: none.
    InFlight = 3,
    Inode = 4,
    Device = 6,
    /// Bit i: slot i may be named `app.db` on disk (SHADOW-4).
    NamesOnDisk = 7,
    /// 1: the name fence stands and is durable.
    Fence = 8,
    /// A [`ShadowCondition`].
    Condition = 9,
    Pair = 10,
    /// Sequence of the commit that the shadow equals in every page; 0: of none.
    Settled = 40,
    /// Id of a commit that failed and could not be undone; 0: none. See [`crate::shared::failed`].
    Failed = 41,
    /// Generation for which the name fence stands if somebody may not have noticed it.
    Guarded = 42,
    /// Commits since the first opener.
    Commits = 11,
    /// Reader entries ever used.
    ReaderHigh = 12,
    /// 1: the first opener found a name fence.
    FenceFound = 13,
    /// Position of the first byte of the version store.
    VersionsBase = 14,
    /// Position behind its last one.
    VersionsEnd = 15,
    /// Words of slot 0, then of slot 1.
    Slot = 16,
    /// 1: somebody holds WRITER and will look whether others wait. See [`crate::shared::handover`]
    /// for these.
    Writing = 43,
    /// Connections that wait for WRITER, or died of it.
    Waiting = 44,
    /// Tickets drawn.
    Tickets = 45,
    /// 1 + the reader entry that WRITER is being handed to; 0: none.
    HandedTo = 46,
    /// Bit i: the newest commit in slot i was made in this session, and flushed.
    Flushed = 47,
    /// A [`crate::shared::durability::Durability`].
    Durability = 48,
    /// 1: names were exchanged since the first opener.
    NamesChanged = 55,
    /// What is being settled, and in which generation. See [`crate::connection::settle`], then
    /// [`crate::shared::housekeeping`].
    Settling = 49,
    SettlingIn = 50,
    Kept = 51,
    GivenBack = 52,
    ShadowWanted = 53,
    /// Sequence of a commit that is prepared under a super-journal. See
    /// [`crate::connection::decided`].
    Several = 54,
    /// 1: there has been one since the first opener.
    HadSeveral = 58,
    /// The largest size of the database, if something was deleted that must be gone at rest
    /// ([`crate::connection::secure_delete`]); or 0.
    Deleted = 56,
    /// Position in the version store whose bytes lie at its beginning in the file.
    VersionsOrigin = 62,
    /// Position up to which its blocks have been given back.
    VersionsGivenBack = 63,
    /// Which cache all this is true of; 0: that can't be told. See [`crate::recovery::left`].
    CacheLife = 57,
}

/// Words that describe the state in one slot.
pub(crate) const SLOT_WORDS: usize = 8;

/// Among them, the tail's epoch.
const TAIL_EPOCH: usize = 5;

/// And the newest commit that may have begun to overwrite the copy while it was pinned.
const OVERWRITTEN: usize = 6;

/// And up to where the file holds anything, but for its tail; 0: that is not known.
const FILLED: usize = 7;

/// The two copies whose coordination file begins so.
pub(crate) fn databases(head: &Head) -> [Option<FileId>; 2] {
    let copy = |slot| named(head, Word::Device as usize, Word::Inode as usize + slot);
    [0, 1].map(|slot| copy(slot).filter(|_| head[Word::Magic as usize] == layout::MARK))
}

/// The mapped coordination file and this connection's reader entry.
pub struct Coordination<F: File> {
    pub(crate) file: F,
    pub(crate) memory: Arc<F::Memory>,
    pub(crate) entry: Option<usize>,
    /// It was empty when it was mapped: all its words are zero.
    fresh: bool,
}

impl<F: File> Coordination<F> {
    /// Maps the file. `fresh`: it has no bytes yet, and OPEN keeps others from giving it any.
    pub fn map(file: F, fresh: bool) -> Result<Self> {
        let memory = file.shared_memory(WORDS).during(Operation::Map, "the coordination file")?;
        Ok(Self { file, memory: Arc::new(memory), entry: None, fresh })
    }

    /// The file, for its locks.
    pub fn file(&self) -> &F {
        &self.file
    }

    pub(crate) fn word(&self, word: Word) -> &AtomicU64 {
        self.memory.word(word as usize)
    }

    /// Whether a first opener has filled it, and how.
    pub fn layout(&self) -> Layout {
        Layout::of(self.word(Word::Magic).load(SeqCst))
    }

    /// Empties it, but for what failed, what was deleted, and whose it is; only the first opener
    /// may. After a kill in the middle nothing else is believed.
    pub fn reset(&self) {
        if self.fresh {
            return;
        }
        self.cut_versions();
        self.word(Word::CacheLife).store(0, SeqCst);
        let slot_1 = Word::Inode as usize + 1;
        let whose = [Word::Magic, Word::Inode, Word::Device, Word::Failed, Word::Deleted];
        let kept = |&at: &usize| at == slot_1 || whose.iter().any(|&word| word as usize == at);
        for index in (0..self.memory.len()).filter(|index| !kept(index)) {
            if self.memory.word(index).load(SeqCst) != 0 {
                self.memory.word(index).store(0, SeqCst);
            }
        }
    }

    /// Marks it filled.
    pub fn validate(&self) {
        self.word(Word::Magic).store(layout::MARK, SeqCst);
    }

    /// The inodes of both slots; `None` where there is no file yet.
    pub fn inodes(&self) -> [Option<FileId>; 2] {
        let device = self.word(Word::Device).load(SeqCst);
        [0, 1].map(|slot| {
            let inode = self.memory.word(Word::Inode as usize + slot).load(SeqCst);
            (inode != 0).then_some(FileId { device, inode })
        })
    }

    /// Names the file of a slot, and tells every connection to look again.
    pub fn set_inode(&self, slot: usize, id: Option<FileId>) {
        if let Some(id) = id {
            self.word(Word::Device).store(id.device, SeqCst);
        }
        self.memory.word(Word::Inode as usize + slot).store(id.map_or(0, |id| id.inode), SeqCst);
        self.set_filled(slot, 0);
        self.word(Word::Generation).fetch_add(1, SeqCst);
    }

    /// Changes whenever the pair of inodes does.
    pub fn generation(&self) -> u64 {
        self.word(Word::Generation).load(SeqCst)
    }

    /// Pair id of the two files.
    pub fn pair(&self) -> u64 {
        self.word(Word::Pair).load(SeqCst)
    }

    /// Sets the pair id.
    pub fn set_pair(&self, pair: u64) {
        self.word(Word::Pair).store(pair, SeqCst);
    }

    /// The current copy.
    pub fn current(&self) -> Current {
        let word = self.word(Word::Current).load(SeqCst);
        Current { sequence: word >> 1, slot: usize::from(word & 1 == 1) }
    }

    /// Publishes a copy: from here on readers take it.
    pub fn set_current(&self, current: Current) {
        self.word(Word::Current).store(current.sequence << 1 | current.slot as u64, SeqCst);
    }

    /// What readers must know of the copy in `slot`. Right as long as it is pinned.
    pub fn snapshot(&self, slot: usize) -> Snapshot {
        let base = Word::Slot as usize + slot * SLOT_WORDS;
        let load = |i: usize| self.memory.word(base + i).load(SeqCst);
        let mut version = [0; 16];
        version[..8].copy_from_slice(&load(1).to_ne_bytes());
        version[8..].copy_from_slice(&load(2).to_ne_bytes());
        Snapshot {
            size: load(0),
            version,
            id: load(3),
            counter: u32::try_from(load(4)).unwrap_or(0),
        }
    }

    /// Describes the copy in `slot`, before it becomes current.
    pub fn set_snapshot(&self, slot: usize, snapshot: &Snapshot) {
        debug_assert_eq!(VERSION_BYTES.len(), snapshot.version.len());
        let base = Word::Slot as usize + slot * SLOT_WORDS;
        let half = |range: std::ops::Range<usize>| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&snapshot.version[range]);
            u64::from_ne_bytes(bytes)
        };
        let words =
            [snapshot.size, half(0..8), half(8..16), snapshot.id, u64::from(snapshot.counter)];
        for (i, word) in words.into_iter().enumerate() {
            self.memory.word(base + i).store(word, SeqCst);
        }
    }

    /// Changes whenever the tail in `slot` moves or its intent changes.
    pub fn tail_epoch(&self, slot: usize) -> u64 {
        self.memory.word(Word::Slot as usize + slot * SLOT_WORDS + TAIL_EPOCH).load(SeqCst)
    }

    /// Changes it, and returns the new value.
    pub fn next_tail_epoch(&self, slot: usize) -> u64 {
        let word = self.memory.word(Word::Slot as usize + slot * SLOT_WORDS + TAIL_EPOCH);
        word.fetch_add(1, SeqCst).wrapping_add(1)
    }

    /// Up to where the file in `slot` holds anything, but for its tail: behind that is a hole. 0:
    /// that is not known.
    pub fn filled(&self, slot: usize) -> u64 {
        self.memory.word(Word::Slot as usize + slot * SLOT_WORDS + FILLED).load(SeqCst)
    }

    /// Sets it.
    pub fn set_filled(&self, slot: usize, end: u64) {
        self.memory.word(Word::Slot as usize + slot * SLOT_WORDS + FILLED).store(end, SeqCst);
    }

    /// The file in `slot` is about to be written up to here.
    pub fn fill(&self, slot: usize, end: u64) {
        if (1..end).contains(&self.filled(slot)) {
            self.set_filled(slot, end);
        }
    }

    /// The newest commit that may have begun to overwrite the copy in `slot` while it was pinned.
    pub fn overwritten(&self, slot: usize) -> u64 {
        self.memory.word(Word::Slot as usize + slot * SLOT_WORDS + OVERWRITTEN).load(SeqCst)
    }

    /// Says that commit `label` is about to overwrite the copy in `slot`.
    pub fn announce_overwriting(&self, slot: usize, label: u64) {
        self.memory
            .word(Word::Slot as usize + slot * SLOT_WORDS + OVERWRITTEN)
            .store(label, SeqCst);
    }

    /// Sequence of the commit that is being written into the shadow, 0 if none. Not 0 under a
    /// fresh WRITER lock: the writer before died (or could not undo).
    pub fn in_flight(&self) -> u64 {
        self.word(Word::InFlight).load(SeqCst)
    }

    /// Says that the shadow is being written.
    pub fn set_in_flight(&self, sequence: u64) {
        self.word(Word::InFlight).store(sequence, SeqCst);
    }

    /// Whether slot `slot` may be named `app.db` on disk.
    pub fn may_be_named_on_disk(&self, slot: usize) -> bool {
        self.word(Word::NamesOnDisk).load(SeqCst) & 1 << slot != 0
    }

    /// Adds `slot` to those that may be named `app.db` on disk.
    pub fn add_name_on_disk(&self, slot: usize) {
        self.word(Word::NamesOnDisk).fetch_or(1 << slot, SeqCst);
    }

    /// The directory is durable: `slot` alone is named `app.db` on disk.
    pub fn set_name_on_disk(&self, slot: usize) {
        self.word(Word::NamesOnDisk).store(1 << slot, SeqCst);
    }

    /// Whether they were.
    pub fn names_changed(&self) -> bool {
        self.word(Word::NamesChanged).load(SeqCst) != 0
    }

    /// Says that they were, or are about to be.
    pub fn set_names_changed(&self) {
        self.word(Word::NamesChanged).store(1, SeqCst);
    }

    /// Whether the name fence stands and is durable.
    pub fn fence(&self) -> bool {
        self.word(Word::Fence).load(SeqCst) != 0
    }

    /// Remembers whether the name fence stands and is durable.
    pub fn set_fence(&self, stands: bool) {
        self.word(Word::Fence).store(u64::from(stands), SeqCst);
    }

    /// Whether the first opener found a name fence, durable or not.
    pub fn fence_found(&self) -> bool {
        self.word(Word::FenceFound).load(SeqCst) != 0
    }

    /// Remembers a name fence that was found.
    pub fn set_fence_found(&self, found: bool) {
        self.word(Word::FenceFound).store(u64::from(found), SeqCst);
    }

    /// How far the shadow can be trusted.
    pub fn condition(&self) -> ShadowCondition {
        match self.word(Word::Condition).load(SeqCst) {
            0 => ShadowCondition::Known,
            1 => ShadowCondition::Repair,
            _ => ShadowCondition::Rebuild,
        }
    }

    /// Says how far the shadow can be trusted.
    pub fn set_condition(&self, condition: ShadowCondition) {
        self.word(Word::Condition).store(condition as u64, SeqCst);
    }

    /// Whether the shadow equals the current copy in every page, so that nothing need be carried.
    pub fn is_settled(&self) -> bool {
        self.word(Word::Settled).load(SeqCst) == self.current().sequence
    }

    /// Says that it may not.
    pub fn clear_settled(&self) {
        self.word(Word::Settled).store(0, SeqCst);
    }

    /// Says that it does.
    pub fn set_settled(&self) {
        self.word(Word::Settled).store(self.current().sequence, SeqCst);
    }

    /// Commits since the first opener.
    pub fn commits(&self) -> u64 {
        self.word(Word::Commits).load(SeqCst)
    }

    /// Counts a commit.
    pub fn count_commit(&self) {
        self.word(Word::Commits).fetch_add(1, SeqCst);
    }
}
