//! The crash explorer in short, for the engine below SQLite's WAL mode: connections in several
//! processes, all levels of `synchronous`, checkpoints, spills, stock neighbours, kills, flushes
//! that fail; the power cut at every step, and in the recovery, and in the recovery of that.
//!
//! It attacks WAL-1 to WAL-18 together: what is found is always all commits up to one.
//! `DASH_TORTURE_TRY` and `DASH_SEEDS` name other seeds, `DASH_TORTURE_CASE` the rest of a case.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dash_torture::sim::plan::Plan;
use dash_torture::sim::{self, Seen, Violation, run_case};
use dash_torture::wal::Simulation;

fn asked(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn explore(variant: &'static str, page: usize) {
    let seen = Arc::new(Mutex::new(Seen::default()));
    // One program with small pages, which has many of them, and not the longest.
    let (first, seeds) = if page == 512 { (3, 1) } else { (0, 2) };
    let from = asked("DASH_TORTURE_TRY").unwrap_or(first);
    let mut failed = Vec::new();
    for seed in from..from + asked("DASH_SEEDS").unwrap_or(seeds) {
        let case = std::env::var("DASH_TORTURE_CASE").unwrap_or_else(|_| "wal".to_owned());
        let plan = Plan::read(&format!("{case}/page={page}"), seed).unwrap();
        if let Err(Violation(what)) = run_case(&Simulation, variant, &plan, &seen) {
            println!("{variant}/{page} seed {seed}: {what}\n");
            failed.push((seed, plan));
        }
    }
    let counts = {
        let seen = seen.lock().unwrap();
        [&seen.states, &seen.nested, &seen.nested_twice].map(|set| set.len())
    };
    println!("{variant}/{page}: {counts:?} distinct states, nested, nested twice");
    if let Some((seed, plan)) = failed.first() {
        // Again, and smaller.
        let engine = Some(format!("wal/{variant}/{page}"));
        let case = Some(plan.to_string());
        let options = sim_options(*seed, engine, case);
        for failure in sim::run(&options, &common::Quiet).iter().flat_map(|found| &found.failures) {
            println!("{}\n    again: {}", failure.what, failure.replay);
        }
    }
    assert!(failed.is_empty(), "{variant}/{page}: {failed:?}");
}

fn sim_options(seed: u64, engine: Option<String>, case: Option<String>) -> dash_torture::Options {
    let (folder, library) = (None, std::path::PathBuf::new());
    dash_torture::Options { seed, time: Duration::from_secs(60), folder, library, engine, case }
}

#[test]
fn log_512() {
    explore("log", 512);
}

#[test]
fn log_1024() {
    explore("log", 1024);
}

#[test]
fn log_4096() {
    explore("log", 4096);
}

/// With stock SQLite that writes along (WAL-50 to WAL-52).
#[test]
fn beside_512() {
    explore("beside", 512);
}

#[test]
fn beside_4096() {
    explore("beside", 4096);
}

/// With stock SQLite that checkpoints, and begins `-wal` anew, too (WAL-53).
#[test]
fn checkpointed_512() {
    explore("checkpointed", 512);
}

#[test]
fn checkpointed_4096() {
    explore("checkpointed", 4096);
}

/// With `-wal` in the memory of one process (WAL-35 to WAL-38).
#[test]
fn alone_512() {
    explore("alone", 512);
}

#[test]
fn alone_4096() {
    explore("alone", 4096);
}

/// With a log elsewhere (WAL-25 to WAL-27).
#[test]
fn elsewhere_4096() {
    explore("elsewhere", 4096);
}

/// With a log in memory, whose lines tear (WAL-28).
#[test]
fn memory_512() {
    explore("memory", 512);
}

#[test]
fn memory_4096() {
    explore("memory", 4096);
}

#[test]
fn barrier_512() {
    explore("barrier", 512);
}

#[test]
fn barrier_4096() {
    explore("barrier", 4096);
}
