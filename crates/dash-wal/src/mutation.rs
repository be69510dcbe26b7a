//! Named ways to break the protocol, for the test of the tests: each must be caught.
//!
//! Without the cargo feature `mutations`, which only the unpublished package `dash-wal-mutants`
//! has, nothing is ever broken, and the compiler leaves the ways out.

#[cfg(feature = "mutations")]
pub(crate) use active::broken;
#[cfg(feature = "mutations")]
pub use active::{hits, set};

macro_rules! mutations {
    ($($name:ident = $what:literal,)*) => {
        /// A way to break the protocol.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Mutation {
            $(#[doc = $what] $name,)*
        }

        #[cfg(feature = "mutations")]
        impl Mutation {
            /// All of them, with what is broken.
            pub const ALL: &[(Self, &str)] = &[$((Self::$name, $what),)*];
        }
    };
}

mutations! {
    EndsUnsaid = "a record without the headers of its frames does not say which of them end a commit",
    RecordNotFlushed = "a record is written, and the log not flushed",
    BarrierTakenForCommit = "a checkpoint's flush is taken for that of a commit whose flush was never asked for",
    NoBarrier = "a checkpoint copies pages that are durable nowhere else",
    NoForcedBarrier = "a checkpoint under synchronous=OFF copies pages that are durable nowhere else",
    ResetUnseen = "a checkpoint goes on though -wal was begun anew since it read the index's header",
    BarrierOutlivesFrames = "a barrier counts for frames that were written after it",
    JournalPromisesNothing = "what was committed in a rollback mode is no reason to flush a checkpoint under synchronous=OFF",
    DatabaseNotFlushed = "a generation begins, or the log is given up, while pages of a checkpoint are not flushed",
    OwnFramesOnly = "whoever flushes logs its own frames, not those before",
    SaltsNotChecked = "frames of another generation are logged under the numbers of this one",
    BaseBeforeWindow = "a difference is made against an image that the window does not hold",
    FrameBefore = "the page of a frame in the window is taken for that of the frame before it",
    SpoiltFramesLogged = "frames of one's own are logged as they were first written, though they were written again",
    OwnFramesOutlive = "frames of one's own that were rolled back are logged for those that others wrote in their place",
    WordsBeforeFlush = "the log's end moves in shared memory before the record is flushed",
    WrapsOverWindow = "a record overwrites the window that it belongs to",
    WrapWithoutFlush = "the log goes round within a generation without a flush of -wal",
    GenerationOverFullRing = "the record of a new generation overwrites the window of the one before",
    NoGenerationRecord = "a generation begins without a record",
    GenerationNotFlushed = "a header of -wal is written before the record of its generation is durable",
    TruncationEndsGeneration = "journal_size_limit ends the generation whose first commit it comes in",
    UndeferredInLog = "a transaction that may be rolled back is put into the log",
    NoNameFence = "no name fence is made",
    FenceRemovedEarly = "the name fence goes before the log says that -wal is void",
    DirectoryNotFlushed = "names are not made durable",
    NoEnd = "a closed database's log does not say that -wal is void",
    DeletedFull = "a -wal is deleted with what is in it",
    DeletedUncopied = "a -wal is deleted, or cut to nothing, whose commits are not all in the database",
    EndIgnored = "a -wal that the log calls void is read",
    MovedEnded = "a session ends whose database was replaced while it was open",
    KeptNotFlushed = "a -wal that stays behind is not flushed",
    PrefixByNumber = "frames of -wal are believed where their headers differ from the log's",
    SumsBegunAnew = "recovery sums up each frame that the log has without its header as if it were the first",
    RecoveredNotFlushed = "what recovery wrote into -wal is not flushed before the log is used again",
    HeadUnclaimed = "a killed recovery leaves no word of the head that it has written",
    FailedFlushForgotten = "what a checkpoint wrote whose flush failed is taken for durable when all have closed",
    FailedRecoveryForgotten = "what a recovery wrote whose flush failed is taken for durable by the next one",
    LogTrustedAfterKill = "records that a killed process left in the cache are taken for durable",
    WalNotRewritten = "frames that a killed process left in the cache are flushed without being written again",
    OlderLogReplayed = "a log is replayed over a -wal that is newer",
    OrderBySequence = "generations are ordered by SQLite's checkpoint sequence",
    SuccessorOnly = "only the header before is older than a generation's",
    HeaderLeftOld = "a generation whose header was never written is not given it",
    LogNotNamed = "the name fence is put up before the name of a new log is durable",
    HeadNotDurable = "the name fence is put up before the head of a new log is durable",
    WipedLogTaken = "what is in the place of a log behind a name fence is taken for an empty one",
    LostLogIgnored = "a session whose log is gone after a power loss is taken for none",
    AbsentRefused = "a log without a -wal is refused",
    CheckpointTaken = "recovery gives a log up for a checkpoint of stock SQLite that may not have flushed",
    AbsentBelieved = "a log without a -wal is discarded, whatever the database holds",
    UnsharedBelieved = "a log without a -wal is discarded, though the database has no page as in its last image",
    SessionBeginsElsewhere = "a session's first record goes elsewhere than the head of the log at rest says",
    FirstRecordNotFlushed = "a record is written behind a session's first one that no flush has made durable",
    RecoversBesideExclusive = "recovery takes no lock of the database's file",
    DeletionUndone = "a -wal that recovery found deleted is not durably so before the log is void",
    StoppedBelieved = "what a stopped process was about to flush is taken for durable",
    HeaderNotFlushed = "a header of -wal is not durable before frames of its generation are in the log",
    StampNotFlushed = "the log says what the database is like where that is not durable",
    AnotherTaken = "a log is applied to another database, or dropped beside an older state of its own",
    BeginningNotKept = "the ring has grown, and its beginning counts as free while the window is there",
    CopyForgotten = "all files are copied, and the log is taken for another database's",
    SequenceReused = "an opener uses a sequence again",
    NoLife = "what a killed process left is treated as what a power loss left",
    DeadLeftUnsummed = "what an older SQLite left without checksums stays so after its writer's death",
    UnseenTaken = "frames of a killed writer that were never visible are taken for durable ones in the wal-index",
    StoppedWaitedForAgain = "each attempt waits anew for a process that was stopped as it came to rest",
    IndexRemovedEarly = "-shm is removed while a stock process may be opening it",
    UnusedTrusted = "the head of a log that was never used is taken for durable when all have closed",
    UnsealedEarly = "recovery lets stock SQLite read before -wal has what was in memory",
    LeftUnsummed = "the last connection closes, and leaves frames without checksums to stock SQLite",
    FoundUnsummed = "frames without checksums, visible in a wal-index that stock SQLite has kept, are left so",
    UnsummedTaken = "frames that lack their checksums count for what they will be",
    AnnotationAddsBlocks = "what is said of commits makes a record longer",
    RolledBackNoteKept = "what a rolled-back transaction ran is said of the one that others wrote in its place",
    NoteOfAnother = "what one commit ran is said of another one of the same record",
    HalfMadeTaken = "a log is used whose maker was killed before it was durable, and its sign, if it has one, said so",
    JoinsWithoutLog = "a connection joins others without looking for the log that they use",
    SignNotMade = "a record is written to a log elsewhere whose sign says that it may be missing",
    SignNotChecked = "what a sign speaks of is not looked at",
    ForeignLogTaken = "another log is taken in the place of the one that a sign speaks of",
    LostPlaceEmpty = "a log elsewhere that is lost is begun empty",
    CopiedSignTaken = "a copy of a database uses the original's log",
    PlantedSignFollowed = "a sign is followed whoever has put it there",
    AlienLogTaken = "what lies at a sign's path is used whosever it is",
    MadeUnasked = "a log elsewhere is made by a connection that was not told of it",
    RetiredEarly = "a log elsewhere is removed while its sign says that it must be there",
    MovedBehindFence = "a log is moved while a name fence says that there is one",
    StoredNotFenced = "what was stored to memory is left to a flush of another process",
    RestsUnfenced = "the name fence goes while the database comes to rest, before -wal is flushed",
    RestsUnflushed = "the database comes to rest, and -wal is not flushed",
    RestsAfterFailedFlush = "the database comes to rest, though the flush of -wal for that has failed",
    RestsUnsaid = "records are written behind a head that somebody who died coming to rest has called clean",
    FenceForgotten = "the word that says that a name fence stands is cleared before that is gone",
    RestsUnseen = "whoever comes to rest does not look again whether somebody has committed",
    FramesBehindStatements = "a record of frames follows statements in a window",
    CarriedNotFlushed = "a checkpoint copies pages of commits that only their statements carry",
    EndForgotten = "a record does not say which frame its statements ended with",
    ExecutedOnTop = "statements are run again behind what a power loss has left of their frames",
    NotExecuted = "statements whose frames are lost are not run again",
    OthersExecute = "statements are run again by another SQLite than ran them",
    GoneTaken = "a -wal that is gone is taken for checkpointed where statements carry what was in it",
    TwoRunners = "statements of two SQLites carry commits of one window",
    OtherwiseTaken = "what statements come to is not compared with what they came to",
    CommitFailsForLog = "a commit answers an error where the log can't be begun, though it is visible",
    MemoryWithoutRoom = "the file of a -wal in memory has no room for what is to be written back",
    OthersLetIn = "another process joins one that has -wal in memory",
    WalNotSealed = "the file of a -wal in memory has a header that stock SQLite knows",
    LeftToUnread = "the last connection that has read closes, and leaves its session to those that have not",
    StockLetIn = "stock SQLite is let in beside a -wal in memory",
    MemoryOutlivesProcess = "what was in a killed process's memory is taken for being in the page cache",
    LeftInMemory = "a connection leaves what is in memory alone, and the guard goes",
    MemoryNotWritten = "a flush of -wal writes nothing back that is in memory alone",
    FullForgotten = "a record follows a flush of a -wal in memory that found no space",
    HeaderInMemory = "a header of -wal that is to be durable stays in memory",
    GoesOnPoisoned = "the engine goes on after both flushes failed",
}

#[cfg(feature = "mutations")]
mod active {
    use super::Mutation;
    use std::cell::Cell;

    thread_local! {
        static ACTIVE: Cell<Option<Mutation>> = const { Cell::new(None) };
        static HITS: Cell<u64> = const { Cell::new(0) };
    }

    /// Breaks the protocol in this thread from now on; `None` mends it.
    pub fn set(mutation: Option<Mutation>) {
        if mutation.is_some() {
            HITS.set(0);
        }
        ACTIVE.set(mutation);
    }

    /// Whether the protocol is to be broken so.
    pub(crate) fn broken(mutation: Mutation) -> bool {
        let broken = ACTIVE.get() == Some(mutation);
        HITS.set(HITS.get() + u64::from(broken));
        broken
    }

    /// How often this thread came to a place that was broken, since the last mutation was set.
    pub fn hits() -> u64 {
        HITS.get()
    }
}

/// Never.
#[cfg(not(feature = "mutations"))]
pub(crate) const fn broken(_: Mutation) -> bool {
    false
}
