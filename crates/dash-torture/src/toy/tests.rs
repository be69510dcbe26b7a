//! The smallest engine passes the rings, and fails them where it is broken.

use super::*;
use crate::{Options, Summary, Watch, faults, sim};

impl Watch for Toy {
    fn progress(&self, _: u64, _: f64) -> bool {
        true
    }
}

fn options(seconds: u64) -> Options {
    Options {
        seed: 1,
        time: std::time::Duration::from_secs(seconds),
        folder: None,
        library: std::path::PathBuf::new(),
        engine: Some("toy".into()),
        case: None,
    }
}

fn sound(summaries: &[Summary]) {
    assert!(!summaries.is_empty());
    for summary in summaries {
        println!("{}: {} cases, {} states", summary.engine, summary.cases, summary.states);
        assert!(summary.failures.is_empty(), "{:#?}", summary.failures);
    }
}

#[test]
fn an_engine_is_a_file_and_a_line() {
    let summaries = sim::run(&options(10), &Toy::SOUND);
    assert_eq!(summaries.len(), 3, "one for each page size");
    sound(&summaries);
    assert!(summaries.iter().map(|summary| summary.states).sum::<u64>() > 2000);
    assert!(summaries.iter().map(|summary| summary.nested).sum::<u64>() > 100);
}

#[test]
fn its_calls_fail_like_anybodys() {
    sound(&[faults::run_calls_on(&Toy::SOUND, &options(8))]);
}

/// Otherwise passing would mean nothing.
#[test]
fn a_copy_that_is_not_flushed_is_caught() {
    let summaries = sim::run_on(&[&Toy { is_flushed: false }], &options(20), &Toy::SOUND);
    let failures: Vec<_> = summaries.iter().flat_map(|summary| &summary.failures).collect();
    assert!(!failures.is_empty(), "{summaries:#?}");
    assert!(failures[0].replay.contains("--engine toy/copy/"), "{:?}", failures[0]);
}
