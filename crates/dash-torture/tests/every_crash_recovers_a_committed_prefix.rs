//! The crash explorer in short: random programs, a power loss before every step, recovered, some
//! recoveries cut again, and the recoveries of those.
//!
//! What is looked at on every image attacks SHADOW-4 (a stock reader of the name), SHADOW-6 and
//! SHADOW-8 (what was recovered, and what a commit after it leaves after another cut); on the
//! running machine SHADOW-5 and SHADOW-7 (stock descriptors opened long ago).
//!
//! F1 (what a stock reader sees after a power loss), F2 and F11 (a killed writer's
//! whole commit), F4 and F5 (intents and mending), F8 and T9 (long-lived stock descriptors and a
//! killed writer), F10 (super-journals), F13 (tails that move), T10 (a spilled rollback), F9
//! (`paper` and `exclusive` with our blocks).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};

use dash_torture::shadow::Simulation;
use dash_torture::sim::plan::{Kind, Plan};
use dash_torture::sim::{Seen, run_case};

fn explore(variant: &'static str) {
    for page in [512, 4096, 65_536] {
        let seen = Arc::new(Mutex::new(Seen::default()));
        for seed in 0..8 {
            let plan = Plan::new(Kind::of(seed), seed, page);
            if let Err(violation) = run_case(&Simulation, variant, &plan, &seen) {
                panic!("seed {seed}, {plan}: {}", violation.0);
            }
        }
        let seen = seen.lock().unwrap();
        let counts = [&seen.states, &seen.nested, &seen.nested_twice].map(|set| set.len());
        println!("{variant}/{page}: {counts:?} distinct states, nested, nested twice");
        assert!(counts[0] > 1000 && counts[1] > 300 && counts[2] > 50, "{counts:?} states only");
    }
}

#[test]
fn single() {
    explore("single");
}

#[test]
fn paper() {
    explore("paper");
}

#[test]
fn exclusive() {
    explore("exclusive");
}

#[test]
fn links() {
    explore("links");
}

#[test]
fn three_renames() {
    explore("renames");
}
