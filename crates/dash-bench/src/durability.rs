//! What a commit that returned survives, in a few words and in a sentence.

/// What is left after a power loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Durability {
    /// For a column, under the heading "power loss".
    pub word: &'static str,
    /// The whole of it.
    pub sentence: &'static str,
}

/// Nothing is lost.
pub const KEEPS: Durability = Durability {
    word: "keeps every commit",
    sentence: "a commit that returned survives process kill, kernel crash and power loss",
};
/// As DELETE does it.
pub const LAST: Durability = Durability {
    word: "may lose the last",
    sentence: "power loss may take the last commit back: the journal's deletion is not flushed (synchronous=EXTRA flushes it)",
};
/// As WAL does it with `synchronous=NORMAL`.
pub const RECENT: Durability = Durability {
    word: "may lose recent ones",
    sentence: "survives process kill; power loss takes the commits since the last checkpoint; the database stays whole",
};
/// Flushed, not atomic.
pub const TORN: Durability = Durability {
    word: "may be destroyed",
    sentence: "flushed when it returns, but a crash in the middle of a commit destroys the database",
};
/// Nothing at all.
pub const NONE: Durability = Durability {
    word: "likely destroyed",
    sentence: "nothing is flushed and nothing is atomic: what SQLite's own work costs, no engine can be faster",
};
/// Of what is no database.
pub const LIMIT: Durability = Durability {
    word: "no database at all",
    sentence: "4 KiB direct overwrite in a file made before, and a flush: no commit on this disk can be faster",
};
