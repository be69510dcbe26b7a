//! What a power loss leaves, how much there is to choose, and what tells two machines apart.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use crate::inode::{Body, Inode};
use crate::key::{Key, ROOT};
use crate::mix;
use crate::names::Names;
use crate::settings::Metadata;
use crate::state::State;
use crate::survivors::{Asking, Question, Survivors};

/// The state after the power is back, and the answers that made it.
pub(crate) fn lose(state: &State, survivors: &mut dyn Survivors) -> (State, Vec<usize>) {
    let mut asking = Asking::new(survivors);
    let mut left = BTreeMap::new();
    survive(state, ROOT, &mut asking, &mut left);
    (state.successor(left), asking.answers)
}

/// What is left of an inode and of all that can be reached from it.
fn survive(state: &State, key: Key, asking: &mut Asking<'_>, left: &mut BTreeMap<Key, Inode>) {
    let Some(Inode { number, permissions, body, .. }) = state.inodes.get(&key) else {
        return;
    };
    let (number, permissions) = (*number, *permissions);
    let names = match body {
        Body::File(data) => {
            let flushed = data.is_flushed();
            let times = if flushed { state.inodes[&key].times() } else { (0, 0) };
            let data = Body::File(data.survive(number, asking));
            left.insert(key, Inode::durable(number, permissions, data).unchanged_since(times));
            return;
        }
        Body::Directory(names) => survive_names(state, number, names, asking),
    };
    // It can't be below itself.
    left.insert(key, Inode::durable(number, permissions, Body::Directory(Names::default())));
    let mut lost = BTreeSet::new();
    let mut kept = BTreeMap::new();
    for (name, child) in names {
        let again = left.contains_key(&child);
        if again && state.names(child).is_ok() || lost.contains(&child) {
            continue; // a directory has one name
        }
        if !again {
            let number = state.inodes.get(&child).map_or(0, |inode| inode.number);
            if state.is_uncertain(child) && !is_there(state, child, number, asking) {
                lost.insert(child);
                continue;
            }
            survive(state, child, asking, left);
        }
        kept.insert(name, child);
    }
    left.insert(key, Inode::durable(number, permissions, Body::Directory(Names::durable(kept))));
}

/// The names that a directory is left with, whatever became of what they stand for.
fn survive_names(
    state: &State,
    inode: u64,
    names: &Names,
    asking: &mut Asking<'_>,
) -> BTreeMap<OsString, Key> {
    if state.settings.metadata == Metadata::Apart {
        let choices = names.choices().into_iter().enumerate();
        let numbers = choices.map(|(place, (_, values, newest))| {
            asking.ask(Question::Entry { inode, place }, values.len(), newest)
        });
        names.chosen(&numbers.collect::<Vec<_>>())
    } else {
        let all = names.unflushed();
        names.prefix(asking.ask(Question::Operations { inode }, all + 1, all))
    }
}

/// Whether the device has an inode that is new, or that nothing names any more.
fn is_there(state: &State, key: Key, inode: u64, asking: &mut Asking<'_>) -> bool {
    let (was, is) =
        (state.inodes.get(&key).is_some_and(|inode| inode.durable), state.links(key) > 0);
    let newest = usize::from(was != is);
    let answer = asking.ask(Question::Inode { inode }, 2, newest);
    // Of one that was made and taken back since, 1 is the time in between.
    if answer == 0 { was } else { !was }
}

/// How many different sequences of answers [`lose`] can be given.
pub(crate) fn count(state: &State) -> u128 {
    count_below(state, ROOT)
}

/// More ways for a directory's entries to survive apart than these are not counted.
const MOST_WAYS: usize = 4096;

fn count_below(state: &State, key: Key) -> u128 {
    match state.inodes.get(&key).map(|inode| &inode.body) {
        None => 1,
        Some(Body::File(data)) => data.survivor_count(),
        Some(Body::Directory(names)) if state.settings.metadata == Metadata::Apart => {
            let bases: Vec<_> = names.choices().iter().map(|(_, values, _)| values.len()).collect();
            let ways = bases.iter().try_fold(1_usize, |all, &base| all.checked_mul(base));
            let Some(ways) = ways.filter(|&ways| ways <= MOST_WAYS) else {
                return u128::MAX;
            };
            let way = |number: usize| {
                let mut rest = number;
                let mut digits = Vec::with_capacity(bases.len());
                for base in &bases {
                    digits.push(rest % base);
                    rest /= base;
                }
                names.chosen(&digits)
            };
            (0..ways)
                .map(|number| count_children(state, &way(number)))
                .fold(0, u128::saturating_add)
        }
        Some(Body::Directory(names)) => {
            let prefixes = (0..=names.unflushed()).map(|count| names.prefix(count));
            let counts = prefixes.map(|names| count_children(state, &names));
            counts.fold(0, u128::saturating_add)
        }
    }
}

/// The same of all that names stand for, each once.
fn count_children(state: &State, names: &BTreeMap<OsString, Key>) -> u128 {
    let children: BTreeSet<_> = names.values().copied().collect();
    let counts = children.into_iter().map(|child| {
        let there = count_below(state, child);
        if state.is_uncertain(child) { there.saturating_add(1) } else { there }
    });
    counts.fold(1, u128::saturating_mul)
}

/// A hash of all that [`lose`] and readers can see.
pub(crate) fn hash(state: &State) -> u64 {
    let references = state.references();
    let mut inodes: Vec<_> = references.iter().filter_map(|key| state.inodes.get(key)).collect();
    inodes.sort_by_key(|inode| inode.number);
    inodes.into_iter().fold(0, |hash, inode| {
        let body = match &inode.body {
            Body::File(data) => data.hash(),
            Body::Directory(names) => hash_names(state, names),
        };
        // Where metadata is journaled an inode is durable with its name.
        let durable = inode.durable || state.settings.metadata == Metadata::Journaled;
        let durable = u64::from(!durable) << 32;
        mix(mix(mix(hash ^ inode.number) ^ u64::from(inode.permissions) ^ durable) ^ body)
    })
}

fn hash_names(state: &State, names: &Names) -> u64 {
    let mut hash = 2;
    for count in 0..=names.unflushed() {
        hash = mix(hash);
        for (name, key) in names.prefix(count) {
            let number = state.inodes.get(&key).map_or(0, |inode| inode.number);
            let bytes = name.as_bytes().iter();
            hash = bytes.fold(mix(hash ^ number), |hash, &byte| mix(hash ^ u64::from(byte)));
        }
    }
    hash
}

/// What readers see of a file.
pub(crate) fn view(state: &State, key: Key) -> Option<Vec<u8>> {
    let data = state.data(key).ok()?;
    let mut bytes = vec![0; usize::try_from(data.len()).ok()?];
    data.read(&mut bytes, 0);
    Some(bytes)
}
