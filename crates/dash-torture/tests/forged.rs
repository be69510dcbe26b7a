//! Forged files, and texts that a judge has to tell apart, for a moment. `dash-torture
//! --ring faults --engine wal/forged` looks for longer.

mod common;

use std::time::Duration;

use dash_testing::long::moment;
use dash_torture::worker::Again;
use dash_torture::{Summary, faults};

fn summary(part: &str, short: u64, long: u64) -> Summary {
    let again = Again::this(&["--exact", "worker", "--nocapture", "--ignored"]);
    let mut options = common::options(Duration::from_secs(moment(short, long)));
    options.engine = Some(format!("wal/{part}"));
    let summaries = faults::run(&options, &common::Quiet, &again.expect("a path"));
    summaries.iter().for_each(common::report);
    common::none_failed(&summaries);
    summaries.into_iter().next().expect("there is such a part")
}

/// How many were of a kind.
fn count(summary: &Summary, kind: &str) -> u64 {
    let words: Vec<_> = summary.notes.iter().flat_map(|note| note.split([' ', ','])).collect();
    let found = words.windows(2).find(|pair| pair[1] == kind);
    found.and_then(|pair| pair[0].parse().ok()).unwrap_or(0)
}

#[test]
#[ignore = "the part of a worker process"]
fn worker() {
    common::worker();
}

/// Nothing crashes, nothing else is touched, nothing takes long. SEC S2-1, S2-6, S2-7, S2-12
#[test]
fn whatever_lies_in_the_files_of_a_database_stays_there() {
    let summary = summary("forged", 8, 40);
    let [opened, refused] = ["opened", "refused"].map(|kind| count(&summary, kind));
    assert!(opened > 50 && refused > 50, "{summary:?}");
}

/// What is called provable by its text is that to SQLite. SEC S2-1
#[test]
fn the_judge_lets_nothing_pass_that_reaches_further_than_rows() {
    let summary = summary("judge", 4, 20);
    let of = |kind: &str| count(&summary, kind);
    assert!(of("asked-of-sqlite") * 5 > of("texts"), "too few are statements: {summary:?}");
}
