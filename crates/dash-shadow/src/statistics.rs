//! Counters of one connection, exact, for `dash_stats`.

use dash_engine::totals;

/// What a connection has done since it was opened. Bytes are bytes handed to the storage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Transactions published.
    pub commits: u64,
    /// Flushes of a file.
    pub flushes: u64,
    /// Flushes of the directory.
    pub directory_flushes: u64,
    /// Bytes of pages written because the transaction changed them.
    pub page_bytes: u64,
    /// Bytes of pages written because the commit before changed them (aggregate update).
    pub carried_bytes: u64,
    /// Bytes of commit blocks, intent blocks and page lists.
    pub tail_bytes: u64,
    /// Exchanges of the two names.
    pub exchanges: u64,
    /// Times a file was made longer.
    pub growths: u64,
    /// Bytes behind the end of the database that were given back, by a hole or a cut.
    pub given_back_bytes: u64,
    /// Times the intent had to be widened first, at one flush each.
    pub intent_widenings: u64,
    /// Times pages went to the shadow before the commit because the transaction was large.
    pub spills: u64,
    /// Transactions undone after they had reached the shadow.
    pub undone: u64,
    /// Shadows compared with the current copy and mended.
    pub repairs: u64,
    /// Shadows made anew.
    pub rebuilds: u64,
    /// Times the shadow was brought up to the current copy between commits.
    pub settled: u64,
    /// Commits of a dead writer that were completed.
    pub rolled_forward: u64,
    /// Lock attempts that found somebody in the way.
    pub busy: u64,
    /// Times the write lock was handed to a connection that waited for it, of any process.
    pub handovers: u64,
    /// Times the one that waited did not come in time.
    pub missed_handovers: u64,
}

/// All of the rows count.
const COUNTERS: usize = 19;
const _: () = assert!(COUNTERS <= totals::WORDS);

impl Statistics {
    /// The counters, in the order of the fields.
    pub(crate) fn counters(&self) -> [u64; COUNTERS] {
        self.rows().map(|(_, value)| value)
    }

    /// Names and values, in the order of the fields.
    pub fn rows(&self) -> [(&'static str, u64); COUNTERS] {
        [
            ("commits", self.commits),
            ("flushes", self.flushes),
            ("directory_flushes", self.directory_flushes),
            ("page_bytes", self.page_bytes),
            ("carried_bytes", self.carried_bytes),
            ("tail_bytes", self.tail_bytes),
            ("exchanges", self.exchanges),
            ("growths", self.growths),
            ("given_back_bytes", self.given_back_bytes),
            ("intent_widenings", self.intent_widenings),
            ("spills", self.spills),
            ("undone", self.undone),
            ("repairs", self.repairs),
            ("rebuilds", self.rebuilds),
            ("settled", self.settled),
            ("rolled_forward", self.rolled_forward),
            ("busy", self.busy),
            ("handovers", self.handovers),
            ("missed_handovers", self.missed_handovers),
        ]
    }
}
