//! What mode wal sets itself, beside stock WAL: bytes and flushes first, which are exact, then
//! times. `--only wal` measures all of it.

mod counts;
mod cycles;
mod doubt;
mod overlap;
pub(super) mod recovery;
mod tail;
mod time;
mod traces;
mod writers;

use super::bench::Measure;

/// Every section of it.
pub const SECTIONS: [Measure; 9] = [
    ("wal-counts", counts::measure),
    ("wal-cycles", cycles::measure),
    ("wal-traces", traces::measure),
    ("wal-time", time::measure),
    ("wal-tail", tail::measure),
    ("wal-threads", writers::threads),
    ("wal-processes", writers::processes),
    ("wal-overlap", overlap::measure),
    ("wal-recovery", recovery::measure),
];
