//! What was seen of a database's files.

use crate::names::Names;
use crate::options::Stock;
pub use crate::recovery::rows::{Action, WalIs as Relation};
pub use dash_log::session::{Strayed, Whose};
use dash_storage::{FileId, LockKind};
use std::ops::Range;
use std::path::PathBuf;

/// Everything that was seen.
#[derive(Debug, Clone)]
pub struct Report {
    /// The names.
    pub names: Names,
    /// `app.db`.
    pub database: Option<DatabaseSeen>,
    /// `app.db-wal`.
    pub wal: Option<WalSeen>,
    /// Bytes of `app.db-shm`.
    pub index: Option<u64>,
    /// `app.db-dashlog`; what is wrong with it where it can't be read.
    pub log: Option<std::result::Result<LogSeen, String>>,
    /// Where the log lies, if it is not `app.db-dashlog`, which says so then.
    pub elsewhere: Option<PathBuf>,
    /// How `-wal` stands to the generation that the log speaks of.
    pub relation: Option<Relation>,
    /// The name fence stands: a folder `app.db-journal`.
    pub fence: bool,
    /// A rollback journal of that name instead.
    pub journal: bool,
    /// The coordination file `app.db-dash`, if there is one.
    pub coordination: Option<CoordinationSeen>,
    /// `-wal` is in a process's memory, or was until that was killed: its file is behind.
    pub in_memory: Option<InMemorySeen>,
    /// What stock SQLite may do, while a connection of dash has it open.
    pub stock: Option<Stock>,
    /// Locks that somebody holds.
    pub locks: Vec<Lock>,
    /// Whether a connection of dash has it open.
    pub open: bool,
    /// What opening it would do.
    pub opening: Opening,
}

/// The database's file.
#[derive(Debug, Clone, Copy)]
pub struct DatabaseSeen {
    /// Device and inode number.
    pub id: FileId,
    /// Bytes.
    pub len: u64,
    /// Names the file has.
    pub links: u64,
    /// SQLite's own header; `None` if the file is shorter.
    pub header: Option<HeaderSeen>,
}

/// What SQLite's header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderSeen {
    /// Whether it is one.
    pub is_sqlite: bool,
    /// Set to WAL mode.
    pub is_wal: bool,
    /// Page size in bytes.
    pub page_size: Option<u32>,
    /// File change counter.
    pub counter: u32,
}

/// `-wal`.
#[derive(Debug, Clone, Copy)]
pub struct WalSeen {
    /// Bytes.
    pub len: u64,
    /// Its header, if it has a valid one; without, SQLite takes it for empty.
    pub header: Option<WalHeaderSeen>,
}

/// A valid header of `-wal`, and the frames behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalHeaderSeen {
    /// Bytes of a page.
    pub page_size: u32,
    /// SQLite's count of checkpoints, each connection's own.
    pub sequence: u32,
    /// Both salts.
    pub salts: [u32; 2],
    /// Frames that are valid.
    pub frames: u32,
    /// Number of the last one that ends a commit: what is behind it SQLite ignores.
    pub committed: u32,
    /// Commits among them.
    pub commits: u32,
    /// Size of the database in pages as of the last one.
    pub pages: u32,
}

/// The log.
#[derive(Debug, Clone)]
pub struct LogSeen {
    /// Bytes.
    pub len: u64,
    /// What became of its head.
    pub head: HeadIs,
    /// Its id; where the head is gone, that of its records.
    pub id: u64,
    /// Bytes that its records are padded to.
    pub block: u32,
    /// Bytes of its ring.
    pub ring: u64,
    /// Records with this sequence, or a lower one, are void.
    pub void: u64,
    /// The greatest sequence of any record.
    pub greatest: u64,
    /// Inode number of the database that it was last opened beside; 0: not known.
    pub owner: u64,
    /// The user and the group that its file belongs to.
    pub whose: Whose,
    /// The newest window of records that count.
    pub chain: Option<ChainSeen>,
    /// The generation up to which `-wal` is void, by its head.
    pub voids: Option<GenerationSeen>,
}

/// What became of a log's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadIs {
    /// It says that no record counts.
    Clean,
    /// It says that records may count.
    InUse,
    /// It was never written.
    Absent,
    /// It is damaged, so all records may count.
    Damaged,
}

/// A window: records that follow each other without a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainSeen {
    /// Sequences of the first and of the last record.
    pub sequences: (u64, u64),
    /// Where in the ring the first one begins, and the last one ends.
    pub place: (u64, u64),
    /// Bytes of them on the disk.
    pub bytes: u64,
    /// The generation of `-wal` that they speak of.
    pub generation: GenerationSeen,
    /// Its first frame here.
    pub first_frame: u32,
    /// How many frames there are.
    pub frames: u32,
    /// How many commits there are.
    pub commits: u32,
    /// How many of these are carried by their statements, without a frame.
    pub carried: u32,
}

/// A generation of `-wal`: the life of one header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GenerationSeen {
    /// dash's own count.
    pub number: u64,
    /// The header's salts.
    pub salts: [u32; 2],
    /// The first salt1 of a header that may still be on the device instead.
    pub first: u32,
}

/// The coordination file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoordinationSeen {
    /// Filled by mode wal of this version.
    pub is_ours: bool,
    /// The page cache is still that of those who filled it.
    pub same_cache: bool,
}

/// A `-wal` in the memory of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InMemorySeen {
    /// Which one, if it is known.
    pub process: Option<u32>,
}

/// A lock that somebody holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lock {
    /// In which file.
    pub file: LockedFile,
    /// Which place.
    pub place: LockedPlace,
    /// Its bytes.
    pub range: Range<u64>,
    /// Shared or exclusive.
    pub kind: LockKind,
    /// The process, where the kernel knows one: open-file-description locks have none.
    pub process: Option<i32>,
}

/// A file that locks are taken on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockedFile {
    /// `app.db`.
    Database,
    /// `app.db-shm`.
    Index,
    /// `app.db-dash`.
    Coordination,
}

/// What a locked byte is for; see the engine's table of locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockedPlace {
    /// SQLite's PENDING byte.
    Pending,
    /// SQLite's RESERVED byte.
    Reserved,
    /// SQLite's SHARED range.
    Shared,
    /// SQLite's WRITE, CKPT and RECOVER in the wal-index: shared by dash, exclusive by stock.
    Stock,
    /// Readers of `-wal`.
    Readers,
    /// Whoever opens, closes or recovers.
    Open,
    /// The write transaction.
    Writer,
    /// Every connection of dash.
    Alive,
    /// A checkpoint.
    Checkpoint,
    /// SQLite's recovery of the wal-index.
    Recovery,
    /// Whoever writes the log.
    Log,
}

/// What opening through this engine would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opening {
    /// Join the connections that have it open.
    Join,
    /// Refuse, but to this process, which has `-wal` in its memory.
    Held(InMemorySeen),
    /// Make an empty database.
    Create,
    /// Nothing of this engine's: the database is not in WAL mode, and no log counts.
    OtherMode,
    /// Refuse: the file has this many names.
    HardLinks(u64),
    /// Refuse, for this reason.
    Refuse(Refusal, String),
    /// What a row of the recovery table says, and the story it tells.
    Row(Action, &'static str),
}

/// Why opening is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// A newer dash wrote the log.
    Newer,
    /// The log is damaged as no crash damages it.
    Damaged,
    /// The database is missing, and the log holds commits of it.
    DatabaseMissing,
    /// The log was removed, and may have held commits that are nowhere else.
    LogMissing,
    /// Something else is in the log's place, and may have been written over commits that are
    /// nowhere else.
    LogWiped,
    /// `-wal` was removed, and held commits that the database lacks.
    WalRemoved,
    /// The log, or `-wal`, is not of this database, or not of this state of it.
    Another,
    /// `-wal` lacks frames that come before those in the log, or that killed processes had seen.
    WalCut,
    /// The log has statements to be run again, by the SQLite that ran them: a program that has it
    /// may open the database.
    Statements,
    /// The log has statements to be run again, and belongs to somebody who may not write the
    /// database.
    Stranger,
    /// `-wal` or the log has other names, under which it would be written, too.
    Linked,
    /// The log lies elsewhere, and is not what its sign says.
    Strayed(Strayed),
    /// Others have a file open that has lost its name.
    Others,
}
