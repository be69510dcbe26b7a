//! Sessions of dash and of stock SQLite in turn, beside each other and from before, killed and cut
//! off: the kind of program `neighbours` in short. It is what would have found FT1, FT3 and FT5;
//! the file systems without a journal of the simulated machine would have found FT2.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};

use dash_torture::shadow::Simulation;
use dash_torture::sim::plan::Plan;
use dash_torture::sim::{Seen, run_case};

fn explore(variant: &'static str, case: &str, seeds: impl IntoIterator<Item = u64>) {
    let seen = Arc::new(Mutex::new(Seen::default()));
    for seed in seeds {
        let plan = Plan::read(case, seed).unwrap();
        if let Err(violation) = run_case(&Simulation, variant, &plan, &seen) {
            panic!("seed {seed}, {plan}: {}", violation.0);
        }
    }
    let states = seen.lock().unwrap().states.len();
    println!("{variant}/{case}: {states} distinct states");
    assert!(states > 150, "{states} states only");
}

#[test]
fn neither_by_dash_nor_by_stock_sqlite() {
    explore("single", "neighbours/page=4096", 0..8);
}

/// Seed 48 closes dash while stock connections have both copies open: `app.db` is protected then.
#[test]
fn beside_stock_connections_that_have_both_copies_open() {
    explore("single", "neighbours/page=512", 46..52);
}

/// SHADOW-25: what SQLite has cached is right after a rest, whoever has written meanwhile.
#[test]
fn where_it_comes_to_rest_while_it_is_open() {
    explore("single", "neighbours/page=4096", (31..32 * 12).step_by(32));
}

#[test]
fn where_names_take_three_renames() {
    explore("renames", "neighbours/page=4096", 8..12);
}

#[test]
fn sessions_without_a_journal_of_the_file_system() {
    explore("single", "sessions/page=512/names=sector/depth=1", 0..4);
}

#[test]
fn attached_databases_without_a_journal_of_the_file_system() {
    explore("single", "attached/page=512/names=sector/depth=1", 0..4);
}
