//! Named ways to break the protocol: see [`dash_engine::mutation`]. What each breaks is told by the
//! engine that is tried with it.

dash_engine::mutations! {
    AlienLogTaken, BeginningNotKept, CommitFailsForLog, CopiedSignTaken, DirectoryNotFlushed,
    FirstRecordNotFlushed, ForeignLogTaken, HalfMadeTaken, HeadNotDurable, JoinsWithoutLog,
    LogNotNamed, LostPlaceEmpty, MadeUnasked, MovedBehindFence, PlantedSignFollowed,
    RecordNotFlushed, RetiredEarly, SequenceReused, SessionBeginsElsewhere, SignNotChecked,
    SignNotMade, StoredNotFenced, WordsBeforeFlush, WrapWithoutFlush, WrapsOverWindow,
}
