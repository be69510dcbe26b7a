//! What the last session left beside the two files: a name fence, and what its coordination file
//! says.
//!
//! A coordination file that lies there after a power loss is of any time before it, as nobody
//! flushes it. What it says of the page cache therefore counts only as long as that is the same one
//! ([`File::cache_life`]).

use crate::mutation::{Mutation, broken};
use crate::names::Names;
use crate::shared::coordination::{Coordination, SLOT_WORDS, Word, databases};
use crate::shared::layout::Layout;
use dash_engine::coordination::{HEAD, read_coordination};
use dash_engine::error::{Context, Operation, Result};
use dash_engine::io::read_padded;
use dash_storage::{File, FileId, SharedMemory, Storage};
use std::sync::atomic::Ordering::SeqCst;

/// What else the last session left.
#[derive(Debug, Clone, Copy, Default)]
pub struct Left {
    /// The name fence stands, so `app.db` may have been in the middle of a write of ours; without
    /// it a difference is somebody else's write (SHADOW-4).
    pub fence: bool,
    /// A coordination file is there: whoever had the database open did not close it.
    pub open: bool,
    /// A coordination file says that the shadow was being written.
    pub in_flight: bool,
    /// A coordination file says that somebody committed in that session and nothing was being
    /// written, and the page cache is still the one of then: the shadow is what was the current
    /// copy before, as it was left.
    pub committed: bool,
    /// The newest commit that was shown to anybody, if one was made in that session, and the page
    /// cache is still the one of then.
    pub newest: Option<Newest>,
    /// Pair and sequence of a commit that nobody was told of, nor was shown: its writer died before
    /// it exchanged the names, and the page cache is still the one of then.
    pub unpublished: Option<(u64, u64)>,
    /// Id of a commit that was reported as failed (SHADOW-13); 0: none.
    pub failed: u64,
    /// The asker may only read, and so can't publish it: it is not shown.
    pub only_read: bool,
}

/// A commit, as a coordination file has it.
#[derive(Debug, Clone, Copy)]
pub struct Newest {
    /// Its id.
    pub id: u64,
    /// SQLite's change counter.
    pub counter: u32,
    /// The two copies.
    pub files: [Option<FileId>; 2],
}

impl Left {
    /// From the words of a coordination file.
    fn of_words(file: &impl File, at: impl Fn(usize) -> Result<u64>) -> Result<Self> {
        let word = |word: Word| at(word as usize);
        let layout = Layout::of(word(Word::Magic)?);
        let ours = layout == Layout::Ours;
        let in_flight = if ours { word(Word::InFlight)? } else { 0 };
        let of_then = word(Word::CacheLife)?;
        let alive = ours && file.cache_life() == Some(of_then);
        let same = in_flight != 0 && (alive || broken(Mutation::CoordinationOutlivesPower));
        let unpublished = if same { Some((word(Word::Pair)?, in_flight)) } else { None };
        let commits = word(Word::Commits)?;
        let [id, counter] = of_snapshot(word(Word::Current)?).map(&at);
        let mut head = [0; HEAD];
        for place in [Word::Magic as usize, Word::Device as usize] {
            head[place] = at(place)?;
        }
        for slot in 0..2 {
            head[Word::Inode as usize + slot] = at(Word::Inode as usize + slot)?;
        }
        let counter = u32::try_from(counter?).unwrap_or(0);
        let newest = Newest { id: id?, counter, files: databases(&head) };
        Ok(Self {
            fence: false,
            open: layout != Layout::None,
            in_flight: in_flight != 0,
            committed: alive && in_flight == 0 && commits > 0,
            newest: (alive && commits > 0).then_some(newest),
            unpublished,
            failed: word(Word::Failed)?,
            only_read: false,
        })
    }
}

/// The words that have id and change counter of the current copy, by [`Word::Current`].
fn of_snapshot(current: u64) -> [usize; 2] {
    let slot = Word::Slot as usize + if current & 1 == 0 { 0 } else { SLOT_WORDS };
    [slot + 3, slot + 4]
}

impl<F: File> Coordination<F> {
    /// What it says of the last session; for the first opener, before anything is changed.
    pub(crate) fn left(&self) -> Result<Left> {
        Left::of_words(&self.file, |word| Ok(self.memory.word(word).load(SeqCst)))
    }

    /// Says which cache what it says is true of.
    pub(crate) fn set_cache_life(&self) {
        self.word(Word::CacheLife).store(self.file.cache_life().unwrap_or(0), SeqCst);
    }
}

/// What a coordination file tells whoever may only read of the last session.
pub(crate) fn left_in_coordination<S: Storage>(
    directory: &S::Directory,
    names: &Names,
) -> Result<Left> {
    let Some(file) = read_coordination::<S>(directory, names.coordination_file())? else {
        return Ok(Left::default());
    };
    let word = |word: usize| {
        let mut bytes = [0; size_of::<u64>()];
        let place = (word * size_of::<u64>()) as u64;
        read_padded(&file, &mut bytes, place)
            .during(Operation::Read, names.shown_coordination())?;
        Ok(u64::from_ne_bytes(bytes))
    };
    Left::of_words(&file, word)
}
