//! The test of the tests for the engine `wal`: ways to break it are caught by cases of the
//! explorer, which the unbroken engine passes. All ways are told as stories in `tests/wal`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

extern crate dash_wal_mutants as dash_wal;

// The same subject, over the engine with the ways to break it.
use dash_torture::{sim, variant};
#[path = "../src/wal/subject/mod.rs"]
mod wal;

use std::sync::{Arc, Mutex};

use dash_torture::sim::plan::Plan;
use dash_torture::sim::{Seen, Violation, run_case};
use dash_wal_mutants::mutation::{self, Mutation};
use wal::Simulation;

/// A way, the variant and the case that catch it, and the seed. The seed was found by trying one
/// after the other from 0; where a change of the engine has moved it, the next ones are tried.
type Row = (Mutation, &'static str, &'static str, u64);

const TABLE: &[Row] = &[
    (Mutation::RecordNotFlushed, "log", "wal/page=4096/depth=1", 3),
    (Mutation::NoBarrier, "log", "wal/page=4096/depth=1", 0),
    (Mutation::NoForcedBarrier, "log", "wal/page=4096/depth=1", 289),
    (Mutation::DatabaseNotFlushed, "log", "wal/page=4096/depth=1", 19),
    (Mutation::BaseBeforeWindow, "log", "wal/page=4096/depth=1", 0),
    (Mutation::HeaderNotFlushed, "log", "wal/page=4096/depth=1", 0),
    (Mutation::FoundUnsummed, "log", "wal/page=4096/depth=1", 57),
    (Mutation::ResetUnseen, "log", "wal/page=512/depth=1", 11),
];

/// Seeds tried after the one in the table.
const MORE: u64 = 24;

fn run(mutation: Option<Mutation>, variant: &'static str, plan: &Plan) -> Result<(), Violation> {
    mutation::set(mutation);
    let result = run_case(&Simulation, variant, plan, &Arc::new(Mutex::new(Seen::default())));
    mutation::set(None);
    result
}

/// The first of some seeds that catches it, and what was wrong then.
fn catch(row: &Row, seeds: impl Iterator<Item = u64>) -> Option<(u64, String)> {
    let (mutation, variant, case, _) = row;
    let mut reached = 0;
    let caught = seeds.into_iter().find_map(|seed| {
        let plan = Plan::read(case, seed).unwrap();
        let broken = run(Some(*mutation), variant, &plan);
        reached += mutation::hits();
        // An overflow that debug builds notice is nobody's check.
        let Violation(what) = broken.err().filter(|error| !error.0.starts_with("a panic"))?;
        // Not because the engine is broken anyway.
        if let Err(Violation(what)) = run(None, variant, &plan) {
            panic!("the unbroken engine fails {case}, seed {seed}: {what}");
        }
        Some((seed, what.lines().next().unwrap_or_default().chars().take(120).collect()))
    });
    if caught.is_none() {
        println!("    {mutation:?} goes unseen in {variant} {case}; reached {reached} times");
    }
    caught
}

/// Catches rows on two threads; answers those that nothing catches.
fn catch_all(rows: &[Row], seeds: u64) -> Vec<Mutation> {
    let (next, missed) = (Mutex::new(rows.iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(row) = next.lock().unwrap().next() else {
                        break;
                    };
                    let (mutation, variant, case, seed) = row;
                    let began = std::time::Instant::now();
                    match catch(row, *seed..=seed + seeds) {
                        Some((seed, what)) => println!(
                            "    (Mutation::{mutation:?}, \"{variant}\", \"{case}\", {seed}), // {:.1?}: {what}",
                            began.elapsed()
                        ),
                        None => missed.lock().unwrap().push(*mutation),
                    }
                }
            });
        }
    });
    missed.into_inner().unwrap()
}

#[test]
fn every_way_in_the_table() {
    let missed = catch_all(TABLE, MORE);
    assert!(missed.is_empty(), "nothing catches {missed:?}");
}

/// For a new row: `DASH_MUTATION=a,b` names ways (none: all), `DASH_CASES` cases, such as
/// wal/page=512,wal/page=4096, `DASH_SEEDS` how many seeds are tried, from `DASH_FIRST` on,
/// `DASH_VARIANT` the variant.
#[test]
#[ignore = "how the table is made"]
fn look_for_rows() {
    let wanted = std::env::var("DASH_MUTATION").unwrap_or_default();
    let cases = std::env::var("DASH_CASES").unwrap_or_else(|_| "wal/page=4096".to_owned());
    let cases: &'static str = cases.leak();
    let variant = std::env::var("DASH_VARIANT").unwrap_or_else(|_| "log".to_owned());
    let variant: &'static str = variant.leak();
    let seeds = std::env::var("DASH_SEEDS").map_or(MORE, |seeds| seeds.parse().unwrap());
    let first = std::env::var("DASH_FIRST").map_or(0, |first| first.parse().unwrap());
    let mut rows = Vec::new();
    for (mutation, _) in Mutation::ALL {
        if wanted.is_empty() || wanted.split(',').any(|name| name == format!("{mutation:?}")) {
            rows.extend(cases.split(',').map(|case| (*mutation, variant, case, first)));
        }
    }
    println!("missed: {:?}", catch_all(&rows, seeds));
}
