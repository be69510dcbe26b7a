//! The crash explorer in short: random programs of two processes, a power loss before every step,
//! recovered, sometimes cut again inside the recovery.
//!
//! What is looked at on every image attacks SHADOW-4 (a stock reader of the name), SHADOW-6 and
//! SHADOW-8 (what was recovered, and what a commit after it leaves after another cut); on the
//! running machine SHADOW-5 and SHADOW-7 (stock descriptors opened long ago).
//!
//! Of protocols.md: F1 (what a stock reader sees after a power loss), F2 and F11 (a killed writer's
//! whole commit), F4 and F5 (intents and mending), F8 and T9 (long-lived stock descriptors and a
//! killed writer), F13 (tails that move), T10 (a spilled rollback), F9 (`paper` and `exclusive` with
//! our blocks).

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

mod common;
#[path = "common/explore.rs"]
mod explore;
#[path = "common/program.rs"]
mod program;

use std::sync::{Arc, Mutex};

use dash_shadow::Protocol;
use explore::{Plan, Seen};
use program::Run;

fn explore(protocol: Protocol, seeds: std::ops::Range<u64>, kills: bool, exchange: bool) {
    let seen = Arc::new(Mutex::new(Seen::default()));
    // DASH_EXPLORE=20 runs twenty times as many programs.
    let times =
        std::env::var("DASH_EXPLORE").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    let count = (seeds.end - seeds.start) * times;
    for seed in (seeds.start * times..).take(usize::try_from(count).unwrap()) {
        let plan = Plan { seed, protocol, transactions: 12, fates: 6, depth: 2, kills, exchange };
        Run::all(plan, &seen);
    }
    let seen = seen.lock().unwrap();
    println!(
        "{protocol:?}: {} distinct states, {} cut inside a recovery",
        seen.states.len(),
        seen.nested.len()
    );
    assert!(seen.states.len() > 500);
    assert!(seen.nested.len() > 500);
}

#[test]
fn single() {
    explore(Protocol::Single, 0..10, false, true);
}

#[test]
fn single_with_processes_killed() {
    explore(Protocol::Single, 100..110, true, true);
}

#[test]
fn paper() {
    explore(Protocol::Paper, 200..206, true, true);
}

#[test]
fn exclusive() {
    explore(Protocol::Exclusive, 300..306, true, true);
}

#[test]
fn three_renames() {
    explore(Protocol::Single, 400..406, false, false);
}
