//! The test of the tests, for the ring `faults`: an engine that believes a flush after one that
//! failed, or does not look at checksums, is caught.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

extern crate dash_shadow_mutants as dash_shadow;

mod common;

// The same subject, over the engine with the ways to break it.
use dash_torture::{sim, variant};
#[path = "../src/shadow/subject.rs"]
mod shadow;

use std::time::Duration;

use dash_shadow_mutants::mutation::{self, Mutation};
use dash_torture::{Summary, faults};
use shadow::Simulation;

/// Runs a part until it finds something, over the engine broken like this.
fn failures(
    mutation: Option<Mutation>,
    seconds: u64,
    case: Option<&str>,
    part: fn(&dyn sim::subject::Subject, &dash_torture::Options) -> Summary,
) -> usize {
    let mut options = common::options(Duration::from_secs(seconds));
    options.case = case.map(str::to_owned);
    mutation::set(mutation);
    let summary = part(&Simulation, &options);
    mutation::set(None);
    println!("{mutation:?}: {} cases, {} failures", summary.cases, summary.failures.len());
    summary.failures.iter().take(2).for_each(|failure| println!("{failure:?}"));
    summary.failures.len()
}

#[test]
fn flushes_that_are_left_out_or_believed() {
    let part = faults::run_calls_on;
    for (mutation, case) in [
        (Mutation::CommitNotFlushed, "calls/commit/single/3/eio"),
        (Mutation::NoUndo, "calls/rollbackflushed/single/3/eio"),
        (Mutation::FailedFlushRetried, "calls/commit/single/3/lost-flush/once"),
        (Mutation::NamesTakenBackNotFlushed, "calls/commitbeside-0/single/0/eio/once"),
        (Mutation::UnlockingFailsCommit, "calls/commit/single/3/eio"),
    ] {
        assert_eq!(failures(None, 20, Some(case), part), 0);
        assert!(failures(Some(mutation), 20, Some(case), part) > 0, "{mutation:?} goes unseen");
    }
}

#[test]
fn checksums_that_nobody_looks_at() {
    let part = dash_torture::shadow::damage_on;
    assert_eq!(failures(None, 3, None, part), 0);
    let mutation = Mutation::BlockChecksumIgnored;
    assert!(failures(Some(mutation), 60, None, part) > 0, "{mutation:?} goes unseen");
}
