//! One opened database: what a connection knows and holds.

use crate::connection::last_commit::LastCommit;
use crate::connection::transaction::Transaction;
use crate::file::tail::Tail;
use crate::format::header::Header;
use crate::format::{IntentBlock, Protocol};
use crate::names::Names;
use crate::options::OpenOptions;
use crate::shared::coordination::{Coordination, TOTALS};
use crate::shared::locks::LockLevel;
use crate::shared::state::{Current, Snapshot};
use crate::shared::versions::{VersionsRead, VersionsWritten};
use crate::statistics::Statistics;
use crate::tuning::Tuning;
use dash_engine::memory::Reserve;
use dash_engine::ranges::RangeSet;
use dash_engine::totals::Told;
use dash_storage::{File, FileId, Storage};
use std::cell::Cell;
use std::path::PathBuf;
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

/// The two files, their names, and what the connections of all processes share of them.
pub(crate) struct Pair<S: Storage> {
    pub storage: S,
    pub directory: Arc<S::Directory>,
    pub directory_path: PathBuf,
    pub names: Names,
    pub coordination: Coordination<S::File>,
    /// By slot.
    pub files: [Option<Arc<S::File>>; 2],
    /// Of the pair of inodes that these are.
    pub generation: u64,
}

/// What is read.
pub(crate) struct View {
    pub level: LockLevel,
    /// The copy, and what its readers must know of it.
    pub current: Current,
    pub snapshot: Snapshot,
    /// What the version store holds for the snapshot.
    pub versions: VersionsRead,
    /// Slot whose SHARED range is held for want of a reader entry.
    pub shared_lock: Option<usize>,
    /// When it was last seen that nobody has written the file past the locks; nanoseconds.
    pub checked_at: u64,
    /// The header as read without a lock, when, and of which copy.
    pub opening_header: Option<(u64, Current, Header)>,
}

/// The shadow, as what is being written.
#[derive(Default)]
pub(crate) struct Target {
    /// By slot.
    pub known_tails: [Option<KnownTail>; 2],
    /// The shadow's tail as the first opener found it, beside which copy, and its epoch.
    pub shadow_at_open: Option<(Current, u64, Tail)>,
    /// The current copy's, likewise.
    pub current_at_open: Option<(Current, u64, Tail)>,
    /// Slots on which SQLite's SHARED range is held exclusively.
    pub excluded: [bool; 2],
    /// Slots on which PENDING is held.
    pub pending: [bool; 2],
    /// What the transaction has put into the version store.
    pub put_aside: VersionsWritten,
}

/// What need not be looked up again.
#[derive(Default)]
pub(crate) struct Memo {
    /// Global Page List of the current copy, with the sequence it belongs to.
    pub page_list: Option<(u64, RangeSet)>,
    /// What this connection's last commit wrote.
    pub last_commit: Option<LastCommit>,
    /// Header of the current copy as this connection committed it, with its sequence.
    pub header: Option<(u64, Header)>,
    /// Who may use the two copies, where they differ and nobody is locked out: permission bits,
    /// owner, group.
    pub access_seen: Option<[(u32, u32, u32); 2]>,
}

/// What went wrong and is still to be put right, or can't be any more.
#[derive(Default)]
pub(crate) struct Debts {
    /// Why nothing is written here any more.
    pub poisoned: Option<String>,
    /// Sequence of a commit over several databases that could not be published.
    pub unpublished: Option<u64>,
    /// Super-journal of a transaction that was cut off, to be removed once it is undone here.
    pub cut_off: Option<Vec<u8>>,
    /// Locks that could not be given back.
    pub locks: bool,
}

/// What a connection remembers of what is kept.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// See [`Connection::set_kept_limit`].
    pub limit: Option<u64>,
    /// To be told.
    pub notice: Option<String>,
    /// That half of the limit is reached has been told.
    pub warned: bool,
}

/// A connection that may read and write.
pub struct Connection<S: Storage> {
    pub(crate) pair: Pair<S>,
    pub(crate) view: View,
    pub(crate) target: Target,
    pub(crate) memo: Memo,
    pub(crate) debts: Debts,
    pub(crate) transaction: Option<Transaction>,
    pub(crate) protocol: Protocol,
    pub(crate) tuning: Tuning,
    /// What its transactions delete must be gone at rest.
    pub(crate) secure_delete: bool,
    /// The shadow lets somebody in who has no right to the current copy, as it was found.
    pub(crate) exposed: bool,
    /// See [`Connection::has_put_aside`].
    pub(crate) put_aside: bool,
    /// Whoever had the database open last did not close it.
    pub(crate) takes_over: bool,
    /// It shares WRITER, so that nobody else writes while it reads.
    pub(crate) holds_off: bool,
    pub(crate) statistics: Statistics,
    /// What of them is among those of all connections.
    pub(crate) told: Told,
    pub(crate) kept: Kept,
    /// For undoing what a transaction wrote.
    pub(crate) reserve: Reserve,
    /// When it last waited for housekeeping in vain.
    pub(crate) gave_up_at: Cell<Option<u64>>,
    /// Random; commit ids are made from it and the sequence.
    seed: u64,
}

impl<S: Storage> Connection<S> {
    pub(crate) fn new(pair: Pair<S>, options: &OpenOptions) -> Self {
        let seed = pair.storage.random();
        let view = View {
            level: LockLevel::None,
            current: pair.coordination.current(),
            snapshot: Snapshot::default(),
            versions: VersionsRead::default(),
            shared_lock: None,
            checked_at: 0,
            opening_header: None,
        };
        Self {
            pair,
            view,
            target: Target::default(),
            memo: Memo::default(),
            debts: Debts::default(),
            transaction: None,
            protocol: options.protocol,
            tuning: options.tuning,
            secure_delete: false,
            exposed: false,
            put_aside: false,
            takes_over: false,
            holds_off: false,
            statistics: Statistics::default(),
            told: Told::default(),
            kept: Kept::default(),
            reserve: Reserve::default(),
            gave_up_at: Cell::new(None),
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
        self.view.level
    }

    /// The files of the pair, as far as it has both. Good in a forked child, too.
    pub fn files(&self) -> impl Iterator<Item = FileId> {
        self.pair.files.iter().flatten().map(|file| file.id())
    }

    /// Counters of this connection.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// The counters of all connections, of any process, since the first of the present ones opened
    /// the database, in the order of [`Statistics::rows`]; those of others up to their last commit.
    pub fn totals(&self) -> Vec<u64> {
        let memory = &*self.pair.coordination.memory;
        self.told.total(memory, TOTALS, &self.statistics.counters())
    }

    /// Adds this connection's to them.
    pub(crate) fn tell_totals(&mut self) {
        let memory = &*self.pair.coordination.memory;
        self.told.tell(memory, TOTALS, &self.statistics.counters());
    }

    /// Whether, when it was opened, the shadow gave somebody rights that `app.db` does not give,
    /// and this process could not take them away.
    pub fn is_exposed(&self) -> bool {
        self.exposed
    }

    /// Whether, when it was opened, `app.db` was gone, and its shadow was put aside.
    pub fn has_put_aside(&self) -> bool {
        self.put_aside
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
        self.pair.coordination.current().sequence
    }

    /// An id for the next commit that nobody else draws: splitmix64 of a random number of this
    /// connection and the sequence, because asking the system costs a call a commit.
    pub(crate) fn commit_id(&mut self) -> u64 {
        self.seed = self.seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.seed ^ self.view.current.sequence;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ z >> 31).clamp(1, u64::MAX - 1)
    }

    /// Says that the current copy has just been written by this connection.
    pub(crate) fn saw_current(&mut self) {
        self.view.checked_at = self.pair.storage.monotonic_nanos();
    }
}
