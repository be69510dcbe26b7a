//! The locks on one inode, with the rules of `fcntl`: conversion, splitting, no waiting.

use std::collections::BTreeSet;
use std::ops::Range;

use dash_storage::LockKind;

/// Who holds a lock: an open description, or a stock process with its POSIX locks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owner {
    Description(u64),
    Stock(i32),
}

/// All locks on an inode; those of one owner never overlap.
#[derive(Clone, Default)]
pub(crate) struct Locks(Vec<Lock>);

#[derive(Clone)]
struct Lock {
    owner: Owner,
    range: Range<u64>,
    kind: LockKind,
}

impl Locks {
    /// Takes or converts; `false` if somebody else's lock conflicts.
    pub(crate) fn try_lock(&mut self, owner: Owner, range: Range<u64>, kind: LockKind) -> bool {
        if self.conflict(owner, &range, kind).is_some() {
            return false;
        }
        self.unlock(owner, &range);
        if !range.is_empty() {
            self.0.push(Lock { owner, range, kind });
        }
        true
    }

    /// Releases what `owner` holds in `range`, keeping what sticks out.
    pub(crate) fn unlock(&mut self, owner: Owner, range: &Range<u64>) {
        let (held, others) = std::mem::take(&mut self.0)
            .into_iter()
            .partition::<Vec<_>, _>(|lock| lock.owner == owner && overlap(&lock.range, range));
        self.0 = others;
        for lock in held {
            let before = lock.range.start..range.start;
            let after = range.end..lock.range.end;
            for rest in [before, after] {
                if !rest.is_empty() {
                    self.0.push(Lock { range: rest, ..lock.clone() });
                }
            }
        }
    }

    /// Releases everything that `owner` holds.
    pub(crate) fn forget(&mut self, owner: Owner) {
        self.0.retain(|lock| lock.owner != owner);
    }

    /// Somebody else whose lock keeps `owner` from having this one.
    pub(crate) fn conflict(
        &self,
        owner: Owner,
        range: &Range<u64>,
        kind: LockKind,
    ) -> Option<Owner> {
        let conflicts = |lock: &&Lock| {
            lock.owner != owner
                && overlap(&lock.range, range)
                && (kind == LockKind::Exclusive || lock.kind == LockKind::Exclusive)
        };
        self.0.iter().find(conflicts).map(|lock| lock.owner)
    }

    /// The stock processes with locks in `range`, each once.
    pub(crate) fn posix_owners(&self, range: &Range<u64>) -> Vec<i32> {
        let held = self.0.iter().filter(|lock| overlap(&lock.range, range));
        let owners = held.filter_map(|lock| match lock.owner {
            Owner::Stock(process) => Some(process),
            Owner::Description(_) => None,
        });
        BTreeSet::from_iter(owners).into_iter().collect()
    }
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start.max(b.start) < a.end.min(b.end)
}
