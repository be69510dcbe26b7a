//! Which processes hold locks on a file, as the program shows them.

use std::ops::Range;

use dash_storage::FileId;
use dash_storage::real::holders;

/// A lock as the kernel lists it with a descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Process id.
    pub process: u32,
    /// Its command, as it is shown.
    pub command: String,
    /// Exclusive or shared.
    pub exclusive: bool,
    /// First byte.
    pub first: u64,
    /// Last byte.
    pub last: u64,
}

impl Held {
    /// Whether it is on one of these bytes.
    pub fn meets(&self, range: &Range<u64>) -> bool {
        self.first < range.end && range.start <= self.last
    }
}

/// `17 (python3), 18 (node)`, each process once; nothing where none is known.
pub fn shown<'a>(held: impl Iterator<Item = &'a Held>) -> Option<String> {
    let mut processes: Vec<_> =
        held.map(|held| format!("{} ({})", held.process, held.command)).collect();
    processes.dedup();
    (!processes.is_empty()).then(|| processes.join(", "))
}

/// What is said of a lock that nobody here has.
pub const UNSEEN: &str = "by whom can't be seen from here, as it is another user's or in another container: run this as root, on the host";

/// Locks on a file, of every process whose descriptors this user may look at.
pub fn of(file: FileId) -> Vec<Held> {
    let shown = |held: holders::Held| Held {
        process: held.process.id,
        command: dash_statement::shown(&held.process.command),
        exclusive: held.exclusive,
        first: held.first,
        last: held.last,
    };
    let mut held: Vec<_> = holders::of(&[file]).into_iter().map(shown).collect();
    held.dedup();
    held
}
