//! What a power loss leaves, how much there is to choose, and what tells two machines apart.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;

use super::mix;
use super::names::Names;
use super::state::{Body, Inode, Key, ROOT, State};
use super::survivors::{Asking, Question, Survivors};

/// The state after the power is back, and the answers that made it.
pub(super) fn lose(state: &State, survivors: &mut dyn Survivors) -> (State, Vec<usize>) {
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
    let mut children = Vec::new();
    let body = match body {
        Body::File(data) => Body::File(data.survive(*number, asking)),
        Body::Directory(names) => {
            let all = names.unflushed();
            let count = asking.ask(Question::Operations { inode: *number }, all + 1, all);
            let names = names.prefix(count);
            children.extend(names.values().copied());
            Body::Directory(Names::durable(names))
        }
    };
    left.insert(key, Inode::new(*number, *permissions, body));
    for child in children {
        if !left.contains_key(&child) {
            survive(state, child, asking, left);
        }
    }
}

/// How many different sequences of answers [`lose`] can be given.
pub(super) fn count(state: &State) -> u128 {
    count_below(state, ROOT)
}

fn count_below(state: &State, key: Key) -> u128 {
    match state.inodes.get(&key).map(|inode| &inode.body) {
        None => 1,
        Some(Body::File(data)) => data.survivor_count(),
        Some(Body::Directory(names)) => {
            let prefixes = (0..=names.unflushed()).map(|count| names.prefix(count));
            let counts = prefixes.map(|names| {
                let children = names.values().map(|&child| count_below(state, child));
                children.fold(1, u128::saturating_mul)
            });
            counts.fold(0, u128::saturating_add)
        }
    }
}

/// A hash of all that [`lose`] and readers can see.
pub(super) fn hash(state: &State) -> u64 {
    let references = state.references();
    let mut inodes: Vec<_> = references.iter().filter_map(|key| state.inodes.get(key)).collect();
    inodes.sort_by_key(|inode| inode.number);
    inodes.into_iter().fold(0, |hash, inode| {
        let body = match &inode.body {
            Body::File(data) => data.hash(),
            Body::Directory(names) => hash_names(state, names),
        };
        mix(mix(mix(hash ^ inode.number) ^ u64::from(inode.permissions)) ^ body)
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
pub(super) fn view(state: &State, key: Key) -> Option<Vec<u8>> {
    let data = state.data(key).ok()?;
    let mut bytes = vec![0; usize::try_from(data.len()).ok()?];
    data.read(&mut bytes, 0);
    Some(bytes)
}
