//! The test of the tests: each named way to break an engine is caught by the explorer, by a case
//! that the unbroken engine passes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

extern crate dash_shadow_mutants as dash_shadow;

// The same subject, over the engine with the ways to break it.
use dash_torture::sim::subject;
#[path = "../src/sim/shadow.rs"]
mod shadow;

use std::sync::{Arc, Mutex};

use dash_shadow_mutants::mutation::{self, Mutation};
use dash_torture::sim::plan::{Kind, Plan};
use dash_torture::sim::{Seen, Violation, run_case};
use shadow::Shadow;
use subject::Subject;

fn run(mutation: Option<Mutation>, variant: &'static str, plan: &Plan) -> Result<(), Violation> {
    let subject: Arc<dyn Subject> = Arc::new(Shadow);
    mutation::set(mutation);
    let result = run_case(&subject, variant, plan, &Arc::new(Mutex::new(Seen::default())));
    mutation::set(None);
    result
}

/// Looks for a case for each way, and prints the table.
#[test]
#[ignore = "how the table was made: MUTATION=a,b SEEDS=64 FATES=8 KIND=pair, --ignored --nocapture"]
fn find_cases() {
    let only = std::env::var("MUTATION").unwrap_or_default();
    let seeds = std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(64);
    std::panic::set_hook(Box::new(|_| {}));
    let next =
        Mutex::new(Mutation::ALL.iter().filter(|(m, _)| {
            only.is_empty() || only.split(',').any(|name| name == format!("{m:?}"))
        }));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some((mutation, _)) = next.lock().unwrap().next() else {
                        break;
                    };
                    println!("{}", find(*mutation, seeds));
                }
            });
        }
    });
}

fn find(mutation: Mutation, seeds: u64) -> String {
    let began = std::time::Instant::now();
    let only = std::env::var("KIND").unwrap_or_default();
    let fates = std::env::var("FATES").ok().and_then(|fates| fates.parse().ok()).unwrap_or(8);
    for seed in 0..seeds {
        for kind in Kind::ALL.into_iter().filter(|kind| kind.name().contains(&only)) {
            for (variant, page) in
                [("single", 512), ("single", 4096), ("renames", 512), ("paper", 512)]
            {
                let plan = Plan { fates, ..Plan::new(kind, seed, page) };
                if let Err(violation) = run(Some(mutation), variant, &plan) {
                    let what = violation.0.lines().next().unwrap_or_default().to_owned();
                    let took = began.elapsed();
                    return format!(
                        "({mutation:?}, \"{variant}\", {seed}, \"{plan}\"), // {took:?} {what}"
                    );
                }
            }
        }
    }
    format!("    SURVIVED {mutation:?} {:?}", began.elapsed())
}
