//! Which locks are held on a database's files, and by whom.

use super::report::{Lock, LockedFile, LockedPlace};
use crate::shared::locks;
use dash_engine::error::{Context, Operation, Result};
use dash_engine::locks::{PENDING, RESERVED, SHARED};
use dash_storage::{File, LockKind};
use std::ops::Range;

fn places(file: LockedFile) -> Vec<(LockedPlace, Range<u64>)> {
    use LockedPlace as P;
    match file {
        LockedFile::Database => {
            vec![(P::Pending, PENDING), (P::Reserved, RESERVED), (P::Shared, SHARED)]
        }
        LockedFile::Index => vec![(P::Stock, 120..123), (P::Readers, 123..128)],
        LockedFile::Coordination => vec![
            (P::Open, locks::OPEN),
            (P::Writer, locks::WRITER),
            (P::Alive, locks::ALIVE),
            (P::Checkpoint, locks::CKPT),
            (P::Recovery, locks::RECOVER),
            (P::Log, locks::LOG),
        ],
    }
}

pub(super) fn locks_in<F: File>(
    files: [(LockedFile, Option<&F>); 3],
    name: &str,
) -> Result<Vec<Lock>> {
    let mut held = Vec::new();
    for (file, opened) in files {
        if let Some(opened) = opened {
            held.extend(locks_of(opened, file, name)?);
        }
    }
    Ok(held)
}

fn locks_of<F: File>(opened: &F, file: LockedFile, name: &str) -> Result<Vec<Lock>> {
    let ask = |range, kind| opened.lock_conflict(range, kind).during(Operation::Lock, name);
    let mut held = Vec::new();
    for (place, range) in places(file) {
        // An exclusive lock stands in the way of a shared one, any lock in that of an exclusive
        // one.
        let (kind, process) = match ask(range.clone(), LockKind::Shared)? {
            Some(process) => (LockKind::Exclusive, process),
            None => match ask(range.clone(), LockKind::Exclusive)? {
                Some(process) => (LockKind::Shared, process),
                None => continue,
            },
        };
        let process = (process > 0).then_some(process);
        held.push(Lock { file, place, range, kind, process });
    }
    Ok(held)
}
