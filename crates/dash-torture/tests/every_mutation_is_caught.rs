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
use dash_torture::sim::plan::Plan;
use dash_torture::sim::{Seen, Violation, run_case};
use shadow::Shadow;
use subject::Subject;

/// A way, the variant and the case that catch it, and the seed. The seed was found by trying one
/// after the other from 0; where a change of the engine has moved it, the next ones are tried.
type Row = (Mutation, &'static str, &'static str, u64);

const TABLE: &[Row] = &[
    (Mutation::CommitNotFlushed, "single", "pair/page=512", 0),
    (Mutation::ExchangeBeforeFlush, "single", "pair/page=512", 0),
    (Mutation::FailedFlushRetried, "paper", "crowd/page=512", 1),
    (Mutation::FailedFlushNotUndone, "single", "crowd/page=512", 4),
    (Mutation::NothingCarried, "single", "pair/page=512", 0),
    (Mutation::SpilledPagesNotListed, "single", "pair/page=512", 0),
    (Mutation::NoParent, "single", "pair/page=512", 0),
    (Mutation::PagesNotPutAside, "single", "crowd/page=512", 0),
    (Mutation::OverwritingNotAnnounced, "single", "crowd/page=512", 0),
    (Mutation::PinnedReadersIgnored, "single", "crowd/page=512", 0),
    (Mutation::StockReadersIgnored, "single", "crowd/page=512", 0),
    (Mutation::NotDemoted, "single", "pair/page=512", 0),
    (Mutation::NoNameFence, "single", "pair/page=512", 0),
    (Mutation::NameFenceNotFlushed, "single", "pair/page=512", 0),
    (Mutation::NoHeaderFence, "single", "crowd/page=512", 0),
    (Mutation::PageChecksumsIgnored, "single", "pair/page=512", 0),
    (Mutation::FirstUnitOnlyChecked, "single", "pair/page=4096", 0),
    (Mutation::BlockChecksumIgnored, "single", "pair/page=512", 9),
    (Mutation::NoIntent, "single", "sql/page=4096", 1),
    (Mutation::IntentNotFlushed, "renames", "sql/page=512", 1),
    (Mutation::IntentNotRewritten, "single", "pair/page=4096", 7),
    (Mutation::RepairIgnoresIntent, "single", "pair/page=512", 0),
    (Mutation::GrowthNotFlushed, "single", "pair/page=4096", 1),
    (Mutation::NoUndo, "single", "pair/page=512", 0),
    (Mutation::UndoneInPart, "single", "crowd/page=512", 4),
    (Mutation::RestoreNotFlushed, "single", "pair/page=512", 1),
    (Mutation::SettledWithoutCopying, "single", "pair/page=512", 0),
    (Mutation::PaperLiteral, "paper", "pair/page=512", 0),
    (Mutation::WinnerNotRewritten, "paper", "crowd/page=512", 3),
    (Mutation::WriterLockLost, "single", "crowd/page=512", 6),
    (Mutation::StaleSnapshotMayWrite, "single", "crowd/page=512", 19),
    (Mutation::FirstPageFirst, "paper", "crowd/page=1024", 14),
    (Mutation::WinnerNotMadeDurable, "single", "pair/page=512", 2),
    (Mutation::WinnerNotFlushed, "single", "pair/page=512", 2),
    (Mutation::UndoneByNames, "single", "pair/page=512", 0),
    (Mutation::DeadWriterIgnored, "single", "pair/page=4096", 0),
    (Mutation::LifeIgnored, "single", "pair/page=512", 0),
    (Mutation::NewShadowNotFlushed, "single", "pair/page=4096", 5),
    (Mutation::NewShadowNameNotFlushed, "single", "pair/page=512", 0),
    (Mutation::GoneSuperJournalNotFlushed, "single", "attached/page=512", 16),
    (Mutation::SuperJournalIgnored, "single", "attached/page=512", 0),
    (Mutation::SuperJournalRemovedEarly, "single", "attached/page=512", 0),
];

/// Ways that no case has been found for: either nothing follows from them, or the programs do not
/// go where it does. What is known of each:
const OPEN: &[(Mutation, &str)] = &[
    (Mutation::ListChecksumIgnored, "a torn list names units whose own checksums fail, too"),
    (Mutation::StaleIntentTrusted, "needs a flush of an intent that fails, and a power loss later"),
    (Mutation::SupersededBeforeFlush, "the same, while a shadow is mended"),
    (Mutation::SettledBelieved, "the same; the proof of the intent is looked at besides"),
    (Mutation::NaiveListReset, "the reset block is torn only while the other copy is written"),
    (Mutation::CutOffCommitNotForgotten, "needs two cuts that leave few and certain sectors"),
    (Mutation::BuriedNotFlushed, "the same"),
    (Mutation::DeadWriterUndone, "a live process may undo what a dead one did not acknowledge"),
];

/// Seeds tried after the one in the table.
const MORE: u64 = 24;

fn run(mutation: Option<Mutation>, variant: &'static str, plan: &Plan) -> Result<(), Violation> {
    let subject: Arc<dyn Subject> = Arc::new(Shadow);
    mutation::set(mutation);
    let result = run_case(&subject, variant, plan, &Arc::new(Mutex::new(Seen::default())));
    mutation::set(None);
    result
}

/// The first of some seeds that catches it, and what was wrong then.
fn catch(row: &Row, seeds: impl Iterator<Item = u64>) -> Option<(u64, String)> {
    let (mutation, variant, case, _) = row;
    seeds.into_iter().find_map(|seed| {
        let plan = Plan::read(case, seed).unwrap();
        let Violation(what) = run(Some(*mutation), variant, &plan).err()?;
        // Not because the engine is broken anyway.
        if let Err(Violation(what)) = run(None, variant, &plan) {
            panic!("the unbroken engine fails {case}, seed {seed}: {what}");
        }
        Some((seed, what.lines().next().unwrap_or_default().to_owned()))
    })
}

/// Catches rows on two threads; answers those that nothing catches.
fn catch_all(rows: &[Row]) -> Vec<Mutation> {
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
                    match catch(row, *seed..=seed + MORE) {
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
    let missed = catch_all(TABLE);
    assert!(missed.is_empty(), "nothing catches {missed:?}");
}

#[test]
fn every_way_is_in_a_table() {
    let caught = TABLE.iter().map(|(mutation, ..)| mutation);
    let all: Vec<_> = caught.chain(OPEN.iter().map(|(mutation, _)| mutation)).collect();
    let listed = |mutation: &Mutation| all.contains(&mutation);
    let absent: Vec<_> =
        Mutation::ALL.iter().map(|(mutation, _)| *mutation).filter(|m| !listed(m)).collect();
    assert!(absent.is_empty(), "no case for {absent:?}");
}

/// For a new row: DASH_MUTATION=a,b names ways, DASH_CASES=pair/page=512,crowd/page=512 cases.
#[test]
#[ignore = "how the table is made"]
fn look_for_rows() {
    let wanted = std::env::var("DASH_MUTATION").unwrap_or_default();
    let cases = std::env::var("DASH_CASES").unwrap_or_else(|_| "pair/page=512".to_owned());
    let cases: &'static str = cases.leak();
    let mut rows = Vec::new();
    for (mutation, _) in Mutation::ALL {
        if wanted.split(',').any(|name| name == format!("{mutation:?}")) {
            for variant in ["single", "paper", "renames"] {
                rows.extend(cases.split(',').map(|case| (*mutation, variant, case, 0)));
            }
        }
    }
    println!("missed: {:?}", catch_all(&rows));
}
