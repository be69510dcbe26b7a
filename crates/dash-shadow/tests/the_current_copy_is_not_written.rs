//! SHADOW-7. SHADOW-X of the paper empties the Global Page List of the current copy once the other
//! one has its pages. Done in place, as printed, a power loss can tear the one copy's block while
//! it tears the other copy (F7): here it is the other copy that remembers.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::common::sim::{start, tiny};
use super::common::{Content, commit, read, write};
use dash_simulated::{Enumerate, Machine, Random};

/// All fates are tried if there are not more.
const ALL: u64 = 512;

fn recovers(machine: &Machine, allowed: &[&Content], story: &str) {
    let mut all = Enumerate::new(ALL);
    let few = machine.survivor_count() <= u128::from(ALL);
    for seed in 0..ALL {
        let after = if !few {
            machine.power_loss(&mut Random::new(seed))
        } else if all.advance() {
            machine.power_loss(&mut all)
        } else {
            break;
        };
        let found = read(&mut start(&after, &tiny()).1).unwrap();
        assert!(allowed.contains(&&found), "{story}: {found:?}");
    }
}

/// Settling after a commit of more places than a sector of its block has units.
#[test]
pub(crate) fn not_by_settling() {
    let machine = Machine::new(1);
    let (_p, mut a) = start(&machine, &tiny());
    let mut content: Content = (1..=64).collect();
    for first in 100..104 {
        content.iter_mut().step_by(2).for_each(|page| *page = first);
        commit(&mut a, &content).unwrap();
    }
    let before = machine.file_view("/app.db").unwrap();
    assert!(a.settle(1).unwrap());
    let written = before != machine.file_view("/app.db").unwrap();
    recovers(&machine, &[&content], "settled");
    let mut next = content.clone();
    (next[0], next[40]) = (110, 110);
    write(&mut a, &next).unwrap();
    a.prepare(None).unwrap();
    recovers(&machine, &[&content, &next], "settled, in the next commit");
    assert!(!written, "the current copy was written");
}
