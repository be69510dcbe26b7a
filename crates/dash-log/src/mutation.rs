//! Named ways to break the protocol: see [`dash_engine::mutation`]. What each breaks is told by the
//! engine that is tried with it.

dash_engine::mutations! {
    BeginningNotKept, FirstRecordNotFlushed, RecordNotFlushed, SequenceReused, WordsBeforeFlush,
}
