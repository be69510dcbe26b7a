//! Counters of one connection, exact, for `dash_stats`.

use dash_engine::totals;

/// What a connection has done since it was opened. Bytes are bytes handed to the storage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Transactions that SQLite has committed.
    pub commits: u64,
    /// Of these, those that were durable by somebody else's flush.
    pub helped: u64,
    /// Of these, those that returned without a flush: a power loss may take them.
    pub unflushed_commits: u64,
    /// Records written to the log.
    pub records: u64,
    /// Frames in them.
    pub frames: u64,
    /// Transactions in them that their statements carry, in the place of frames.
    pub carried: u64,
    /// Bytes of them, padding included.
    pub log_bytes: u64,
    /// Flushes of the log.
    pub log_flushes: u64,
    /// Flushes of `-wal`.
    pub wal_flushes: u64,
    /// Flushes of the database.
    pub database_flushes: u64,
    /// Flushes of the directory.
    pub directory_flushes: u64,
    /// Bytes written to `-wal`'s page cache.
    pub wal_bytes: u64,
    /// Bytes of it written to its file: all of them, where it is not in memory.
    pub wal_file_bytes: u64,
    /// Bytes written to the database.
    pub database_bytes: u64,
    /// Generations of `-wal` begun.
    pub generations: u64,
    /// Times the log was full within a generation.
    pub wraps: u64,
    /// Times the log was made longer.
    pub growths: u64,
    /// Checkpoints begun.
    pub checkpoints: u64,
    /// Flushes of the log that failed and were made good by one of `-wal`.
    pub failed_flushes: u64,
    /// Lock attempts on WRITER that found somebody in the way.
    pub busy: u64,
    /// Checkpoints that held readers and writers back, as `-wal` had grown too long.
    pub drains: u64,
    /// Reads that were held back for one.
    pub held_back: u64,
    /// Times everything visible was made durable before a checkpoint.
    pub barriers: u64,
    /// Times the session of the log was ended because nobody committed any more.
    pub rests: u64,
    /// Transactions that went on to write though others had committed since they began.
    pub upgrades: u64,
    /// Refused ones: others had written what they have read.
    pub upgrades_refused: u64,
    /// Bytes of the log's ring; 0: the log is not in use.
    pub log_size: u64,
    /// Bytes of it that a recovery would read.
    pub window: u64,
    /// 1: the log is in use; 0: commits become durable in stock fashion.
    pub log: u64,
    /// 1: it is written past the page cache.
    pub direct: u64,
}

/// Of the rows, those that count; the others tell of the log as it is.
const COUNTERS: usize = 26;
const _: () = assert!(COUNTERS <= totals::WORDS);

impl Statistics {
    /// The counters, in the order of the fields.
    pub(crate) fn counters(&self) -> [u64; COUNTERS] {
        let rows = self.rows();
        std::array::from_fn(|index| rows[index].1)
    }

    /// Names and values, in the order of the fields.
    #[must_use]
    pub fn rows(&self) -> [(&'static str, u64); 30] {
        [
            ("commits", self.commits),
            ("helped", self.helped),
            ("unflushed_commits", self.unflushed_commits),
            ("records", self.records),
            ("frames", self.frames),
            ("carried", self.carried),
            ("log_bytes", self.log_bytes),
            ("log_flushes", self.log_flushes),
            ("wal_flushes", self.wal_flushes),
            ("database_flushes", self.database_flushes),
            ("directory_flushes", self.directory_flushes),
            ("wal_bytes", self.wal_bytes),
            ("wal_file_bytes", self.wal_file_bytes),
            ("database_bytes", self.database_bytes),
            ("generations", self.generations),
            ("wraps", self.wraps),
            ("growths", self.growths),
            ("checkpoints", self.checkpoints),
            ("failed_flushes", self.failed_flushes),
            ("busy", self.busy),
            ("drains", self.drains),
            ("held_back", self.held_back),
            ("barriers", self.barriers),
            ("rests", self.rests),
            ("upgrades", self.upgrades),
            ("upgrades_refused", self.upgrades_refused),
            ("log_size", self.log_size),
            ("window", self.window),
            ("log", self.log),
            ("direct", self.direct),
        ]
    }
}
