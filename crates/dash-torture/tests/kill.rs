//! Ring `kill` for a moment: processes killed and stopped lose nothing that was acknowledged.

mod common;

use std::time::Duration;

use dash_testing::long::moment;
use dash_torture::kill;
use dash_torture::worker::Again;

#[test]
#[ignore = "the part of a worker process"]
fn worker() {
    common::worker();
}

#[test]
fn processes_killed_and_stopped_lose_nothing() {
    let again = Again::this(&["--exact", "worker", "--nocapture", "--ignored"]).unwrap();
    let options = common::options(Duration::from_secs(moment(30, 100)));
    let summaries = kill::run(&options, &common::Quiet, &again);
    assert!(summaries.len() >= 6);
    summaries.iter().for_each(common::report);
    common::none_failed(&summaries);
    // On a busy machine a round takes seconds.
    let least = moment(0, 6);
    for summary in &summaries {
        assert!(summary.cases > least, "{}: only {} rounds", summary.engine, summary.cases);
        assert!(summary.states > least, "{}: {} states", summary.engine, summary.states);
    }
    assert!(summaries.iter().map(|summary| summary.nested).sum::<u64>() > 0, "inside a recovery");
}
