//! Kills: where one cuts a write off, and who is dead. Linux looks for a deadly signal between two
//! pages of its cache.

use std::path::Path;

use dash_simulated::{Operation, OperationKind, Simulated};
use dash_storage::Storage as _;

use crate::random::Dice;

/// Bytes of a page of the system's cache.
const CACHE_PAGE: u64 = 4096;

/// Whether a process was killed.
pub fn is_dead(process: &Simulated) -> bool {
    process.open_directory(Path::new("/")).is_err()
}

/// After how many of its bytes a write may be cut off; `None`: it is no write, or all of it goes
/// into one page.
pub fn cut(operation: &Operation, dice: &mut Dice) -> Option<usize> {
    let range = operation.range.clone().filter(|_| operation.kind == OperationKind::Write)?;
    let first = range.start - range.start % CACHE_PAGE;
    let inside = (range.end - first).div_ceil(CACHE_PAGE) - 1;
    let cut = (inside > 0).then(|| 1 + dice.below(inside))?;
    usize::try_from(first + cut * CACHE_PAGE - range.start).ok()
}
