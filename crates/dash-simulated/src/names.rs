//! One directory: the names it has, those it durably has, and the operations in between.
//!
//! Upholds rule 6. An operation is what it assigns to names, so replaying a prefix of them is
//! assigning again, and what one entry may be is every value that was assigned to it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};

use crate::key::Key;

/// The names of a directory.
#[derive(Clone, Default)]
pub(crate) struct Names {
    now: BTreeMap<OsString, Key>,
    durable: BTreeMap<OsString, Key>,
    log: Vec<Change>,
}

/// What one operation did: up to two names, each with what it stands for afterwards.
type Change = Vec<(OsString, Option<Key>)>;

impl Names {
    /// A directory whose names are all durable.
    pub(crate) fn durable(names: BTreeMap<OsString, Key>) -> Self {
        Self { now: names.clone(), durable: names, log: Vec::new() }
    }

    pub(crate) fn get(&self, name: &OsStr) -> Option<Key> {
        self.now.get(name).copied()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.now.is_empty()
    }

    /// The names now.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&OsString, Key)> {
        self.now.iter().map(|(name, &key)| (name, key))
    }

    /// One operation.
    pub(crate) fn change<const N: usize>(&mut self, change: [(&OsStr, Option<Key>); N]) {
        let change = change.map(|(name, key)| (name.to_owned(), key)).to_vec();
        apply(&mut self.now, &change);
        self.log.push(change);
    }

    pub(crate) fn flush(&mut self) {
        self.log.clear();
        self.durable.clone_from(&self.now);
    }

    /// Number of operations since the last flush.
    pub(crate) fn unflushed(&self) -> usize {
        self.log.len()
    }

    /// The names if only the first `count` operations survive.
    pub(crate) fn prefix(&self, count: usize) -> BTreeMap<OsString, Key> {
        let mut names = self.durable.clone();
        self.log.iter().take(count).for_each(|change| apply(&mut names, change));
        names
    }

    /// The names that operations since the last flush changed, in order, each with the values that
    /// it may have if it survives apart from the others: the durable one first, each once; and
    /// where among them the present one is.
    pub(crate) fn choices(&self) -> Vec<(&OsString, Vec<Option<Key>>, usize)> {
        let changed: BTreeSet<_> = self.log.iter().flatten().map(|(name, _)| name).collect();
        let choice = |name| {
            let mut values = vec![self.durable.get(name).copied()];
            let assigned = self.log.iter().flatten().filter(|(of, _)| of == name);
            for &(_, value) in assigned {
                if !values.contains(&value) {
                    values.push(value);
                }
            }
            let now = self.now.get(name).copied();
            let newest = values.iter().position(|value| *value == now).unwrap_or_default();
            (name, values, newest)
        };
        changed.into_iter().map(choice).filter(|(_, values, _)| values.len() > 1).collect()
    }

    /// The names if each of [`choices`](Self::choices) has the value of this number.
    pub(crate) fn chosen(&self, numbers: &[usize]) -> BTreeMap<OsString, Key> {
        let mut names = self.durable.clone();
        for ((name, values, _), &number) in self.choices().into_iter().zip(numbers) {
            apply(&mut names, &vec![(name.clone(), values.get(number).copied().flatten())]);
        }
        names
    }

    /// Every inode that a name stands for, or may stand for after a power loss.
    pub(crate) fn references(&self) -> impl Iterator<Item = Key> {
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
