//! The coordination file `app.db-dash`: words of memory shared by the connections of all processes
//! that have the database open. It exists while somebody does, is made anew by the first opener and
//! holds nothing that recovery needs, but whether the page cache of its writers is still there.

use crate::context::LeftGeneration;
use crate::options::Stock;
use dash_engine::coordination::{DASH, Head, LAYOUT, WAL_LAYOUTS, named};
use dash_engine::copied::Copied;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::io::read_padded;
use dash_engine::totals;
use dash_log::session::{self, Words};
use dash_storage::{File, FileId, SharedMemory};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

/// Words of the head and the entries.
const HEAD: usize = 4096;

/// Where the ring of the last commits begins.
pub(crate) const COMMITS: usize = HEAD;

/// Words of a commit there: one cache line.
pub(crate) const COMMIT: usize = 8;

/// Commits that have a place there.
pub(crate) const MAX_COMMITS: usize = 1024;

/// Words of the file.
const WORDS: usize = COMMITS + MAX_COMMITS * COMMIT;

/// Words of an entry: one cache line.
pub(crate) const ENTRY: usize = 8;

/// Where the counters of all connections begin: in the page that the head is in, which everybody
/// has touched by then. A page that is touched for the first time after its device has failed ends
/// the process (SIGBUS).
pub(crate) const TOTALS: usize = 64;

/// Where the entries begin.
pub(crate) const ENTRIES: usize = TOTALS + totals::WORDS;

/// How many connections have an entry of their own.
pub(crate) const MAX_ENTRIES: usize = (HEAD - ENTRIES) / ENTRY;

/// Raise it whenever a word gets another meaning, or who joins must know another format of the log.
const NUMBER: u64 = WAL_LAYOUTS + 7;

/// First word of one that is laid out as here.
const MARK: u64 = DASH | NUMBER;

/// Words of the head. Of those without a word [`session::Word`] says what they tell of the log, and
/// when they are written (WAL-7).
#[derive(Debug, Clone, Copy)]
pub(crate) enum Word {
    Magic = 0,
    /// Which cache all this is true of; 0: that can't be told.
    CacheLife = 1,
    /// `-wal`'s generation, in dash's own count; 0: it has no header yet.
    Generation = 2,
    /// The salts of `-wal`'s header.
    Salts = 3,
    /// A [`DurableEnd`](crate::shared::generation::DurableEnd).
    Durable = 4,
    /// The first salt1 of a header of `-wal` that may still be on the device.
    FirstSalt = 5,
    Session = 6,
    Position = 7,
    Sequence = 8,
    Window = 9,
    /// First frame that is in the window.
    WindowFrame = 10,
    /// 1: pages were copied into the database and not flushed since.
    DatabaseDirty = 11,
    /// 1: a flush failed, and so did the way round it: nothing is written any more.
    Poisoned = 12,
    /// Commits that became durable in stock fashion since the first opener.
    StockCommits = 13,
    /// 1: the name of `-wal` is durable.
    WalNamed = 14,
    Rounds = 15,
    Awaited = 16,
    /// 1: a name fence stands, or may.
    Fence = 17,
    /// The salt1 before the newest one, if that does not follow it; see [`crate::context`].
    Predecessor = 18,
    WithoutLog = 19,
    /// 1: somebody holds WRITER and will look whether others wait. See
    /// [`crate::shared::entries`] for these.
    Writing = 20,
    /// Connections that wait for WRITER, or died of it.
    Waiting = 21,
    /// Tickets drawn.
    Tickets = 22,
    /// 1 + the entry that WRITER is being handed to; 0: none.
    HandedTo = 23,
    /// Entries ever used.
    EntryHigh = 24,
    /// Until when new readers are held back, in nanoseconds of the clock; 0: they are not.
    HeldBack = 25,
    /// When a checkpoint last did so, likewise.
    Drained = 26,
    Ring = 27,
    LogUnflushed = 28,
    /// 1: a header was written over an older one, and neither the log nor a flush tells yet.
    HeaderNew = 29,
    Writes = 30,
    /// The database's file.
    Device = 31,
    Inode = 32,
    LogId = 33,
    /// When a writer last held readers back to begin `-wal` anew, in nanoseconds of the clock.
    Restarted = 34,
    /// 1: the log's head calls a `-wal` void, and no record was written since.
    HeadVoid = 35,
    /// 1: commits may be in `-wal` that are to survive a power loss.
    Promised = 36,
    /// So many commits become durable in stock fashion before the log is begun.
    StockFirst = 37,
    FirstSequence = 38,
    /// The [`Stamp`](crate::stamp::Stamp) of the database before anything of this generation was
    /// copied there, its first half; 0: not known.
    Stamp = 39,
    /// Its second half.
    StampPage = 40,
    /// 1: no log is to stay at rest.
    NoLog = 41,
    /// Commits ever put into the ring of the last ones: see `commits`.
    Commits = 42,
    /// First and last frame of the newest record.
    RecordFrames = 43,
    /// What it holds.
    Record = 44,
    /// Inode number of this file; another one says that it is a copy.
    Own = 45,
    Elsewhere = 46,
    /// First frame of a transaction that was written in part without checksums; 0: none was. Its
    /// writer has WRITER, or died. See [`crate::connection::sums`].
    Unsummed = 47,
    /// 1: somebody brings the database to rest; see the lock REST.
    Resting = 48,
    /// How often somebody has tried to.
    Rested = 49,
    /// When a commit was last made durable while no session was, in nanoseconds of the clock.
    StockAt = 50,
    /// 1: statements were recorded in the log since the first opener.
    Said = 51,
    /// Commits in the window, if there is one, that their statements carry: see
    /// [`crate::connection::statements`].
    Carried = 52,
    /// Which memory of a process has `-wal` and the wal-index; 0: they are in files. See
    /// [`crate::memory`].
    InMemory = 53,
    /// That process.
    InMemoryOf = 54,
    /// What runs again what statements carry ([`crate::execute::Runner::word`]), where the window
    /// has such.
    CarriedBy = 55,
    /// 1: a flush of the database has failed since the first opener. What was written before looks
    /// clean, and may be on no device, whatever later ones say.
    FlushFailed = 56,
    /// The salts of the last header of `-wal` that is durable by its writer's doing, or a flush
    /// since.
    Settled = 57,
    /// The checksum of the wal-index's header, as the last writer of dash has left it.
    OwnIndex = 58,
    /// What stock SQLite may do while the database is open: see [`Stock`].
    Stock = 59,
    /// Where it may: the last frame of which it is known that all up to it have their checksums, as
    /// a [`DurableEnd`](crate::shared::generation::DurableEnd).
    Summed = 60,
    /// When the log was last written by its users, in nanoseconds of the clock, where recovery has
    /// begun to write it again; 0: it has not.
    LogWritten = 61,
    /// The `-shm` of those who hold [`ATTACHED`](crate::shared::locks::ATTACHED): see
    /// [`crate::connection::same_files`].
    IndexFile = 62,
    /// Their `-wal`.
    WalFile = 63,
}

/// Where the log's words are.
fn of_log(word: session::Word) -> usize {
    use session::Word as Of;
    let word = match word {
        Of::Session => Word::Session,
        Of::Id => Word::LogId,
        Of::Elsewhere => Word::Elsewhere,
        Of::Without => Word::WithoutLog,
        Of::FirstSequence => Word::FirstSequence,
        Of::Position => Word::Position,
        Of::Sequence => Word::Sequence,
        Of::Window => Word::Window,
        Of::Ring => Word::Ring,
        Of::Unflushed => Word::LogUnflushed,
        Of::Rounds => Word::Rounds,
        Of::Awaited => Word::Awaited,
        Of::Writes => Word::Writes,
    };
    word as usize
}

/// The database whose coordination file begins so.
pub(crate) fn databases(head: &Head) -> [Option<FileId>; 2] {
    match head[Word::Magic as usize] == MARK {
        true => [named(head, Word::Device as usize, Word::Inode as usize), None],
        false => [None; 2],
    }
}

/// Why a connection can't join those who have filled one in another way, by its first word.
pub(crate) fn refusal(magic: u64, db: &str) -> Option<Error> {
    if magic == MARK {
        return None;
    }
    let text = match magic & LAYOUT {
        _ if magic & !LAYOUT != DASH => {
            format!("{db} is being opened by a process that was stopped in it; end that first")
        }
        other if other < WAL_LAYOUTS => {
            return Some(Error::Held(format!("{db} is open in mode shadow: close it there first")));
        }
        other => format!(
            "{db} is open in another version of dash (layout {other}; this one has layout {NUMBER}): close it there \
             first, or use that version here, too"
        ),
    };
    Some(Error::CantOpen(text))
}

/// What one tells of the files beside it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Beside {
    /// The id of the log that was in use when all files were copied, the coordination file among
    /// them: that log is of the database beside it.
    pub(crate) copied_with: Option<u64>,
    /// See [`Word::LogWritten`].
    pub(crate) log_written: u64,
    /// `-wal`'s generation, where it has one.
    pub(crate) left: Option<LeftGeneration>,
    /// [`Word::Unsummed`].
    pub(crate) unsummed: u64,
}

/// What one tells whoever only reads it.
pub(crate) struct Left {
    /// A first opener has filled it as here.
    pub(crate) is_ours: bool,
    /// The cache that all this is true of, where that can be told.
    pub(crate) cache_life: Option<u64>,
    pub(crate) beside: Beside,
    /// What was in `-wal` was in this process's memory alone; 0: which one is not known.
    pub(crate) in_memory_of: Option<u64>,
    /// What stock SQLite may do while the database is open.
    pub(crate) stock: Stock,
    /// The database's file.
    pub(crate) database: FileId,
    /// [`Word::IndexFile`] and [`Word::WalFile`].
    pub(crate) files: [u64; 2],
}

/// Reads it without mapping it.
pub(crate) fn left_in<F: File>(file: &F, name: &str) -> Result<Left> {
    let word = |word: Word| {
        let mut bytes = [0; size_of::<u64>()];
        let place = (word as usize * size_of::<u64>()) as u64;
        read_padded(file, &mut bytes, place).during(Operation::Read, name)?;
        Ok(u64::from_ne_bytes(bytes))
    };
    let (life, is_ours) = (word(Word::CacheLife)?, word(Word::Magic)? == MARK);
    let beside = Beside::of(file, is_ours, word)?;
    let (in_memory, of) = (word(Word::InMemory)? != 0, word(Word::InMemoryOf)?);
    let in_memory_of = (is_ours && in_memory).then_some(of);
    let (cache_life, stock) = ((life != 0).then_some(life), Stock::of(word(Word::Stock)?));
    let database = FileId { device: word(Word::Device)?, inode: word(Word::Inode)? };
    let files = [word(Word::IndexFile)?, word(Word::WalFile)?];
    Ok(Left { is_ours, cache_life, beside, in_memory_of, stock, database, files })
}

impl Beside {
    /// By what its words say.
    fn of<F: File>(file: &F, is_ours: bool, word: impl Fn(Word) -> Result<u64>) -> Result<Self> {
        if !is_ours {
            return Ok(Self::default());
        }
        let (own, log) = (word(Word::Own)?, word(Word::LogId)?);
        let is_copied = own != 0 && own != file.id().inode && log != 0;
        let stamp = [word(Word::Stamp)?, word(Word::StampPage)?];
        Ok(Self {
            copied_with: is_copied.then_some(log),
            log_written: word(Word::LogWritten)?,
            left: LeftGeneration::of_words(word(Word::Salts)?, stamp),
            unsummed: word(Word::Unsummed)?,
        })
    }
}

/// What is in it, for whoever looks from outside.
pub(crate) struct Copy {
    pub(crate) words: Copied,
}

impl Copy {
    /// Copies it; `None` if no first opener has filled it as here.
    pub(crate) fn of<F: File>(file: &F) -> std::io::Result<Option<Self>> {
        let copy = Self { words: Copied::of(file, WORDS)? };
        Ok((copy.get(Word::Magic) == MARK).then_some(copy))
    }

    pub(crate) fn get(&self, word: Word) -> u64 {
        self.words.word(word as usize).load(SeqCst)
    }
}

/// The mapped coordination file and this connection's entry.
pub(crate) struct Coordination<F: File> {
    pub(crate) file: F,
    pub(crate) memory: Arc<F::Memory>,
    pub(crate) entry: Option<usize>,
    /// This process, which is asked for once: a connection is good in one process only.
    pub(crate) process: u32,
}

impl<F: File> Coordination<F> {
    /// Maps the file.
    pub fn map(file: F) -> Result<Self> {
        let memory = file.shared_memory(WORDS).during(Operation::Map, "the coordination file")?;
        Ok(Self { file, memory: Arc::new(memory), entry: None, process: std::process::id() })
    }

    /// What it tells of the log.
    pub fn words(&self) -> Words<F::Memory> {
        Words::new(Arc::clone(&self.memory), of_log)
    }

    pub fn word(&self, word: Word) -> &AtomicU64 {
        self.memory.word(word as usize)
    }

    pub fn get(&self, word: Word) -> u64 {
        self.word(word).load(SeqCst)
    }

    pub fn set(&self, word: Word, value: u64) {
        self.word(word).store(value, SeqCst);
    }

    /// Whether a first opener has filled it as here.
    pub fn is_ours(&self) -> bool {
        self.get(Word::Magic) == MARK
    }

    /// What it tells of the files beside it.
    pub fn beside(&self) -> Beside {
        Beside::of(&self.file, self.is_ours(), |word| Ok(self.get(word))).unwrap_or_default()
    }

    /// See [`refusal`].
    pub fn refusal(&self, db: &str) -> Option<Error> {
        refusal(self.get(Word::Magic), db)
    }

    /// Empties it; only the first opener may.
    pub fn reset(&self) {
        for index in 0..self.memory.len() {
            if self.memory.word(index).load(SeqCst) != 0 {
                self.memory.word(index).store(0, SeqCst);
            }
        }
    }

    /// Marks it filled, by connections in the cache `life`.
    pub fn validate(&self, life: Option<u64>) {
        self.set(Word::CacheLife, life.unwrap_or(0));
        self.set(Word::Magic, MARK);
    }

    /// Says that recovery has written into the cache `life`, and perhaps flushed none of it. What
    /// those before have left said stays.
    pub fn claim_cache(&self, life: Option<u64>) {
        if !self.is_ours() {
            self.reset();
        }
        self.validate(life);
    }

    /// Whether a flag is set.
    pub fn is(&self, word: Word) -> bool {
        self.get(word) != 0
    }
}
