//! Sizes that trade space, memory and flushes; none of them is part of the format. The defaults
//! are what was measured best; small values let a crash explorer reach every path with a small
//! database.

/// Sizes in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuning {
    /// A transaction larger than this in memory writes pages into the shadow before its commit.
    pub spill: usize,
    /// Files grow by a quarter of the database, but at least this.
    pub chunk_min: u64,
    /// And at most this.
    pub chunk_max: u64,
    /// How much an intent is widened at once, so that a growing table seldom needs it.
    pub intent_stride: u64,
    /// Smallest region of an intent; a power of two.
    pub intent_region: u64,
    /// Up to this size an intent covers the whole database once it has to be widened.
    pub intent_all: u64,
    /// Up to this size it is left as it is when the database is closed.
    pub intent_rest: u64,
    /// Up to this size what was kept for readers keeps its space while the database is open.
    pub kept_always: u64,
    /// Of what a smaller database leaves behind its end, up to this much stays.
    pub space_least: u64,
    /// Up to this size the checksums of `app.db`'s page list are looked at even where no name fence
    /// stands.
    pub list_verified: u64,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            spill: 8 << 20,
            chunk_min: 64 << 10,
            chunk_max: 4 << 20,
            intent_stride: 256 << 10,
            intent_region: 64 << 10,
            intent_all: 64 << 20,
            intent_rest: 256 << 10,
            kept_always: 1 << 20,
            space_least: 256 << 10,
            list_verified: 1 << 20,
        }
    }
}

impl Tuning {
    /// The smallest sizes that work: for explorers.
    pub fn tiny() -> Self {
        Self {
            spill: 2048,
            chunk_min: 4096,
            chunk_max: 4096,
            intent_stride: 4096,
            intent_region: 4096,
            intent_all: 4096,
            intent_rest: 4096,
            kept_always: 2048,
            space_least: 4096,
            list_verified: 4096,
        }
    }
}
