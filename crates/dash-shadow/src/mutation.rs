//! Named ways to break the protocol, for the test of the tests: each must be caught.
//!
//! Without the cargo feature `mutations`, which only the unpublished package `dash-shadow-mutants`
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
    CommitNotFlushed = "a commit is not flushed",
    PreparedAgain = "a transaction that was prepared is written to while its block is in the shadow",
    ExchangeBeforeFlush = "names are exchanged before the commit is flushed",
    FailedFlushNotUndone = "a commit whose flush failed is not undone",
    FailedFlushRetried = "a flush that failed is tried again, and believed",
    UnlockingFailsCommit = "a commit that stands answers with the error of the lock that could not be given back",
    NothingCarried = "the Global Page List is forgotten: no page is carried",
    SpilledPagesNotListed = "pages written before the commit are not in its list",
    FirstPageFirst = "page 1, which takes the fence away, is written first",
    FirstPageWithOthers = "page 1 is written in one go with the pages that follow it",
    FirstPageNotCleared = "page 1 keeps what SQLite left where its block goes",
    TailAlwaysCounts = "the block in the tail counts, whatever page 1 says",
    NoParent = "a commit does not say what it was made on",
    PagesNotPutAside = "pages that a reader needs are not put into the version store",
    OldRecordsCount = "what was put aside for older snapshots is not put aside again for newer ones",
    KeptForgotten = "what is kept is given back while somebody needs it",
    TrimmedTooFar = "of what is kept, what the oldest reader needs first is given back",
    OverwritingNotAnnounced = "readers are not told that their copy is overwritten",
    PinnedReadersIgnored = "nobody looks whether a copy is pinned before it is overwritten",
    StockReadersIgnored = "a copy is overwritten under the lock of a stock reader",
    NotDemoted = "the copy that was replaced is not marked",
    NoNameFence = "no name fence is made",
    NameFenceNotFlushed = "the name fence is not made durable",
    FenceInodeNotFlushed = "of the name fence the name is made durable, not what it names",
    EmptyFileNotFlushed = "the file of a new database is not flushed before its first commit",
    NamesLeftBehind = "a clean close leaves names that are not durable",
    NamesBelievedDurable = "a closed database's names are taken for durable whatever its close said",
    FirstNameNotFlushed = "the first commit of a database is acknowledged under a name that is not durable",
    NamesTakenBackNotFlushed = "names of a first commit that failed are exchanged back, and that is not made durable before it is undone",
    NoLeap = "the change counter of a commit that no name fence guards does not leap",
    FoundBelievedDurable = "a copy that was found is built on as if it were on the disk, whatever was done to it since the last close",
    CoordinationOutlivesPower = "what a coordination file of before a power loss says of a commit in flight is believed",
    UnpublishedTaken = "a commit that nobody was told of is not told from one that was",
    StaleBlockCounts = "a block in page 1 counts where the shadow is of another pair",
    CounterIgnored = "a file of somebody else is kept, whichever commit its change counter can't have known",
    ModifiedTakenForTorn = "a copy that somebody else has written is taken for one that was cut off",
    InodesBelieved = "files that were copied together are told from strangers by both inode numbers",
    ShadowRemovedBesideFence = "a shadow is removed beside a name fence before there is a new one",
    NoHeaderFence = "a copy that is written is not fenced",
    PageChecksumsIgnored = "the checksums of the pages in a list are not looked at",
    LongListBelieved = "the checksums of a long page list of app.db are never looked at",
    FirstUnitOnlyChecked = "of a page list the first checksum only is looked at",
    ListChecksumIgnored = "the checksum of a list area is not looked at",
    BlockChecksumIgnored = "the checksum of a block is not looked at",
    NoIntent = "pages are written that no intent covers",
    IntentNotFlushed = "an intent is not flushed before what it covers is written",
    IntentNotRewritten = "mending does not write the intent again",
    StaleIntentTrusted = "an intent in the cache is taken for the durable one",
    NarrowedToMore = "an intent is narrowed, without a flush, to regions that it did not have",
    NarrowedUnflushed = "a copy that was not flushed is left so at a clean close, and its intent narrowed",
    UnflushedBuiltOn = "a commit is flushed on top of one that was not",
    RepairIgnoresIntent = "mending looks at the page list only",
    GrowthNotFlushed = "a tail that moved is not flushed before its old place is used",
    MoveNotFlushed = "an undo uses the old place of a tail whose move failed to be flushed",
    NoUndo = "a rollback leaves in the shadow what it wrote",
    UndoneInPart = "a rollback undoes what was changed, not what was carried",
    RestoreNotFlushed = "a mended shadow is not flushed before it is used",
    SupersededBeforeFlush = "a shadow is declared mended in the flush that mends it",
    SettledBelieved = "a shadow that was declared mended in the cache is believed",
    BuriedBelieved = "a shadow on which a commit was buried is believed where it looks right",
    SettledWithoutCopying = "settling copies nothing",
    FencedBesideWriter = "settling puts up the name fence without WRITER",
    SettledNotFlushed = "a shadow is declared settled before that is durable",
    SettledForAnother = "a shadow is declared settled, whatever was committed meanwhile",
    SettlerKeepsNobodyOff = "nobody is kept off a shadow that is being settled",
    GrowthTakenOver = "a tail that is being moved is taken over without a flush",
    CutBeforeTail = "a file is cut before the tail at its new end is durable",
    CutNotFlushed = "a file that was cut is declared whole before the cut is durable",
    CutNotRepeated = "mending a file whose cut failed to be flushed does not cut it again",
    CutWhileOpen = "a file is cut that somebody else has open",
    PunchedUnderReader = "what lies behind the end is given back though a reader of an older state needs it",
    ListPunched = "the page list is given back with what lies behind the end",
    NaiveListReset = "SHADOW-X as printed: the list of the current copy is emptied in place",
    PaperLiteral = "Algorithm 1 as printed: a commit that begins is numbered like one that is done",
    CutOffCommitNotForgotten = "a commit that was cut off keeps its block while it is undone",
    BuriedNotFlushed = "what buries a commit that was cut off is not flushed",
    WinnerNotMadeDurable = "the winner of a recovery is believed to be durable",
    WinnerNotRewritten = "the winner of a recovery is flushed, but not written again",
    WinnerNotFlushed = "the winner of a recovery is written again, but not flushed",
    UndoneByNames = "a recovery goes by the names: what was not exchanged is undone",
    DeadWriterIgnored = "the next writer does not look for what a dead one left",
    DeadWriterUndone = "what a dead writer left is undone, even a whole commit",
    WriterLockLost = "two writers at a time",
    StaleSnapshotMayWrite = "a transaction writes on top of an old snapshot",
    LifeIgnored = "an opener believes that it is alone",
    NewShadowNotFlushed = "a new shadow is not flushed before it is used",
    NewShadowNameNotFlushed = "the name of a new shadow is not made durable",
    NamedFileRemoved = "an old shadow is removed that may be called app.db on the disk",
    NameKeptFromStock = "nobody looks who has the shadow open when the database is closed",
    NotProtected = "stock processes may write app.db while others have the shadow open, and nobody of dash lives",
    ReaderMayWrite = "no name fence is left where stock SQLite reads what it must not write",
    HeldShadowReplaced = "a shadow that others have open is replaced by another file, and forgotten",
    UnchangedTakenForChange = "a commit that changes nothing is no other than one that does",
    WrittenBehindIgnored = "a former copy that a stock connection wrote, and that has no block in page 1, is mended by its intent",
    FoundFenceBelieved = "a name fence that was found is taken for a durable one",
    ReplacedNotFenced = "a first commit replaces a copy that stock processes have open, and no fence is put up",
    HiddenCopyIgnored = "a copy that has only the temporary name, beside an app.db of somebody else, is left alone",
    TemporaryNameIgnored = "a reader does not look for the newest copy between two renames",
    SuperJournalIgnored = "a prepared commit counts while its super-journal is there",
    SuperJournalRemovedEarly = "a super-journal is removed while another database depends on it",
    DecidedNotRead = "who reads does not look whether a transaction over several databases was decided",
    GoneSuperJournalNotFlushed = "a super-journal is believed gone before that is durable",
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
