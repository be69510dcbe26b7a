//! One opened database: what a connection knows and holds.

use crate::connection::last_commit::LastCommit;
use crate::connection::transaction::Transaction;
use crate::file::tail::Tail;
use crate::format::header::Header;
use crate::format::{IntentBlock, Protocol};
use crate::memory::Reserve;
use crate::names::Names;
use crate::options::OpenOptions;
use crate::ranges::RangeSet;
use crate::shared::coordination::Coordination;
use crate::shared::locks::LockLevel;
use crate::shared::state::{Current, Snapshot};
use crate::shared::versions::{Keeping, Kept};
use crate::statistics::Statistics;
use crate::tuning::Tuning;
use dash_storage::Storage;
use std::cell::Cell;
use std::sync::Arc;

/// What this connection remembers of the tail it wrote last into a slot.
#[derive(Debug, Clone)]
pub(crate) struct KnownTail {
    /// The tail's epoch: it counts as long as that is the same.
    pub epoch: u64,
    /// Length of the file.
    pub len: u64,
    /// The durable intent.
    pub intent: Arc<IntentBlock>,
}

/// A connection that may read and write.
pub struct Connection<S: Storage> {
    pub(crate) storage: S,
    pub(crate) directory: Arc<S::Directory>,
    pub(crate) directory_path: std::path::PathBuf,
    pub(crate) names: Names,
    pub(crate) coordination: Coordination<S::File>,
    pub(crate) files: [Option<Arc<S::File>>; 2],
    pub(crate) generation: u64,
    pub(crate) protocol: Protocol,
    pub(crate) tuning: Tuning,
    pub(crate) level: LockLevel,
    /// What this connection reads.
    pub(crate) current: Current,
    pub(crate) snapshot: Snapshot,
    pub(crate) transaction: Option<Transaction>,
    /// Slots on which SQLite's SHARED range is held exclusively.
    pub(crate) excluded: [bool; 2],
    /// Slots on which PENDING is held.
    pub(crate) pending: [bool; 2],
    /// Slot whose SHARED range is held for want of a reader entry.
    pub(crate) shared_lock: Option<usize>,
    pub(crate) known_tails: [Option<KnownTail>; 2],
    /// The shadow's tail as the first opener found it, beside which copy, and its epoch.
    pub(crate) found_shadow: Option<(Current, u64, Tail)>,
    /// The current copy's, likewise.
    pub(crate) found_current: Option<(Current, u64, Tail)>,
    /// Global Page List of the current copy, with the sequence it belongs to.
    pub(crate) page_list: Option<(u64, RangeSet)>,
    /// What this connection's last commit wrote.
    pub(crate) last_commit: Option<LastCommit>,
    /// Header of the current copy as this connection committed it, with its sequence.
    pub(crate) header: Option<(u64, Header)>,
    /// Who may use the two copies, where they differ and nobody is locked out: permission bits,
    /// owner, group.
    pub(crate) access_seen: Option<[(u32, u32, u32); 2]>,
    /// The shadow lets somebody in who has no right to the current copy, as it was found.
    pub(crate) exposed: bool,
    /// What its transactions delete must be gone at rest.
    pub(crate) secure_delete: bool,
    pub(crate) poisoned: Option<String>,
    /// Sequence of a commit over several databases that could not be published.
    pub(crate) unpublished: Option<u64>,
    /// Super-journal of a transaction that was cut off, to be removed once it is undone here.
    pub(crate) cut_off: Option<Vec<u8>>,
    /// Whether whoever had the database open last did not close it.
    pub(crate) takes_over: bool,
    /// Whether it shares WRITER, so that nobody else writes while it reads.
    pub(crate) holds_off: bool,
    pub(crate) statistics: Statistics,
    /// For undoing what a transaction wrote.
    pub(crate) reserve: Reserve,
    /// What the version store holds for this connection's snapshot.
    pub(crate) kept: Kept,
    /// What this connection's transaction has put there.
    pub(crate) keeping: Keeping,
    pub(crate) checked_at: u64,
    /// When it last waited for housekeeping in vain.
    pub(crate) gave_up_at: Cell<Option<u64>>,
    /// The header as read without a lock, when, and of which copy.
    pub(crate) opening_header: Option<(u64, Current, Header)>,
    /// Random; commit ids are made from it and the sequence.
    pub(crate) seed: u64,
}

impl<S: Storage> Connection<S> {
    pub(crate) fn new(
        storage: S,
        directory: Arc<S::Directory>,
        directory_path: std::path::PathBuf,
        names: Names,
        coordination: Coordination<S::File>,
        (files, generation): ([Option<Arc<S::File>>; 2], u64),
        options: &OpenOptions,
    ) -> Self {
        let seed = storage.random();
        Self {
            storage,
            directory,
            directory_path,
            names,
            generation,
            current: coordination.current(),
            coordination,
            files,
            protocol: options.protocol,
            tuning: options.tuning,
            level: LockLevel::None,
            snapshot: Snapshot::default(),
            transaction: None,
            excluded: [false; 2],
            pending: [false; 2],
            shared_lock: None,
            known_tails: [None, None],
            found_shadow: None,
            found_current: None,
            page_list: None,
            last_commit: None,
            header: None,
            access_seen: None,
            exposed: false,
            secure_delete: false,
            poisoned: None,
            unpublished: None,
            cut_off: None,
            takes_over: false,
            holds_off: false,
            statistics: Statistics::default(),
            reserve: Reserve::default(),
            kept: Kept::default(),
            keeping: Keeping::default(),
            checked_at: 0,
            gave_up_at: Cell::new(None),
            opening_header: None,
            seed,
        }
    }

    /// Whether this connection was the first to open the database after somebody who did not close
    /// it.
    pub fn takes_over(&self) -> bool {
        self.takes_over
    }

    /// The lock held.
    pub fn level(&self) -> LockLevel {
        self.level
    }

    /// Counters of this connection.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Whether, when it was opened, the shadow gave somebody rights that `app.db` does not give,
    /// and this process could not take them away.
    pub fn is_exposed(&self) -> bool {
        self.exposed
    }

    /// Flushes a commit makes.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Chooses the flushes of the next commits.
    pub fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    /// Sequence of the newest commit of any connection.
    pub fn sequence(&self) -> u64 {
        self.coordination.current().sequence
    }

    /// An id for the next commit that nobody else draws: splitmix64 of a random number of this
    /// connection and the sequence, because asking the system costs a call a commit.
    pub(crate) fn commit_id(&mut self) -> u64 {
        self.seed = self.seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.seed ^ self.current.sequence;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ z >> 31).clamp(1, u64::MAX - 1)
    }

    /// Says that the current copy has just been written by this connection.
    pub(crate) fn saw_current(&mut self) {
        self.checked_at = self.storage.monotonic_nanos();
    }
}
