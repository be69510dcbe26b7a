//! What the tests of the rings share.

#![allow(dead_code, clippy::unwrap_used, reason = "each test uses a part, and fails by panicking")]

use std::path::PathBuf;
use std::time::Duration;

use dash_torture::{Options, Summary, Watch};

/// Nobody looks.
pub struct Quiet;

impl Watch for Quiet {
    fn progress(&self, _cases: u64, _done: f64) -> bool {
        true
    }
}

/// `libdash.so`, built as a dependency of this test and lying beside it.
pub fn library() -> PathBuf {
    let library = std::env::current_exe().unwrap().with_file_name("libdash.so");
    assert!(library.exists(), "{} was not built", library.display());
    library
}

/// A number from the environment, so that a test can be run for longer or with another seed.
fn asked(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Options for a run of so long; `DASH_TORTURE_SECONDS`, `DASH_TORTURE_TRY` (the seed) and
/// `DASH_TORTURE_CASE` change them.
pub fn options(time: Duration) -> Options {
    Options {
        seed: asked("DASH_TORTURE_TRY").unwrap_or(1),
        time: asked("DASH_TORTURE_SECONDS").map_or(time, Duration::from_secs),
        folder: None,
        library: library(),
        engine: std::env::var("DASH_TORTURE_ENGINE").ok(),
        case: std::env::var("DASH_TORTURE_CASE").ok(),
    }
}

/// This process is a worker, and does what it was started for.
pub fn worker() {
    if let Some(code) = dash_torture::worker::run() {
        std::process::exit(code.into());
    }
}

/// Says what was found.
pub fn report(summary: &Summary) {
    let Summary { engine, cases, states, nested, nested_twice, .. } = summary;
    println!("{engine}: {cases} cases, {states} states, {nested} nested, {nested_twice} twice");
    for line in summary.notes.iter().chain(&summary.skipped) {
        println!("    {line}");
    }
}

/// Panics at failures.
pub fn none_failed(summaries: &[Summary]) {
    for failure in summaries.iter().flat_map(|summary| &summary.failures) {
        println!("{}\n    again: {}", failure.what, failure.replay);
    }
    assert!(summaries.iter().all(|summary| summary.failures.is_empty()));
}
