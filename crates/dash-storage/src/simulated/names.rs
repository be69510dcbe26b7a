//! One directory: the names it has, those it durably has, and the operations in between.
//!
//! Upholds rule 6. An operation is what it assigns to names, so replaying a prefix of them is
//! assigning again.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use super::state::Key;

/// The names of a directory.
#[derive(Clone, Default)]
pub(super) struct Names {
    now: BTreeMap<OsString, Key>,
    durable: BTreeMap<OsString, Key>,
    log: Vec<Change>,
}

/// What one operation did: up to two names, each with what it stands for afterwards.
type Change = Vec<(OsString, Option<Key>)>;

impl Names {
    /// A directory whose names are all durable.
    pub(super) fn durable(names: BTreeMap<OsString, Key>) -> Self {
        Self { now: names.clone(), durable: names, log: Vec::new() }
    }

    pub(super) fn get(&self, name: &OsStr) -> Option<Key> {
        self.now.get(name).copied()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.now.is_empty()
    }

    /// The names now.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&OsString, Key)> {
        self.now.iter().map(|(name, &key)| (name, key))
    }

    /// One operation.
    pub(super) fn change<const N: usize>(&mut self, change: [(&OsStr, Option<Key>); N]) {
        let change = change.map(|(name, key)| (name.to_owned(), key)).to_vec();
        apply(&mut self.now, &change);
        self.log.push(change);
    }

    pub(super) fn flush(&mut self) {
        self.log.clear();
        self.durable.clone_from(&self.now);
    }

    /// Number of operations since the last flush.
    pub(super) fn unflushed(&self) -> usize {
        self.log.len()
    }

    /// The names if only the first `count` operations survive.
    pub(super) fn prefix(&self, count: usize) -> BTreeMap<OsString, Key> {
        let mut names = self.durable.clone();
        self.log.iter().take(count).for_each(|change| apply(&mut names, change));
        names
    }

    /// Every inode that a name stands for, or may stand for after a power loss.
    pub(super) fn references(&self) -> impl Iterator<Item = Key> {
        let logged = self.log.iter().flatten().filter_map(|(_, key)| *key);
        self.now.values().chain(self.durable.values()).copied().chain(logged)
    }
}

fn apply(names: &mut BTreeMap<OsString, Key>, change: &Change) {
    for (name, key) in change {
        match key {
            Some(key) => drop(names.insert(name.clone(), *key)),
            None => drop(names.remove(name)),
        }
    }
}
