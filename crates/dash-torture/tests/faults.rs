//! Ring `faults` for a moment: whatever fails, there is an error that says so, and a sound
//! database.

mod common;

use std::time::Duration;

use dash_testing::long::moment;
use dash_torture::faults;
use dash_torture::worker::Again;

fn again() -> Again {
    Again::this(&["--exact", "worker", "--nocapture", "--ignored"])
        .expect("this program has a path")
}

#[test]
#[ignore = "the part of a worker process"]
fn worker() {
    common::worker();
}

/// While a database comes to rest all calls fail from one on, for a moment: it does later.
#[test]
fn what_could_not_come_to_rest_does_later() {
    let mut options = common::options(Duration::from_secs(moment(20, 40)));
    options.engine = Some("shadow/rest".into());
    options.case = Some("rest/idle/single/eio/ever".into());
    let summaries = faults::run(&options, &common::Quiet, &again());
    summaries.iter().for_each(common::report);
    common::none_failed(&summaries);
}

/// The log of a database on a tmpfs is mapped, and a signal may come in between.
#[test]
fn an_interrupted_call_is_made_again() {
    let mut options = common::options(Duration::from_secs(20));
    options.engine = Some("wal/sql".into());
    options.case = Some("sql/open/alone/eintr".into());
    let summaries = faults::run(&options, &common::Quiet, &again());
    summaries.iter().for_each(common::report);
    common::none_failed(&summaries);
}

#[test]
fn failing_calls_are_errors_and_nothing_more() {
    let options = common::options(Duration::from_secs(moment(30, 36)));
    let summaries = faults::run(&options, &common::Quiet, &again());
    summaries.iter().for_each(common::report);
    common::none_failed(&summaries);
    for summary in &summaries {
        // Some containers let nobody watch system calls; and the users' program lies elsewhere.
        let is_left_out = |reason: &String| {
            reason.contains("seccomp") || reason.contains("no sqlite-dash lies beside")
        };
        let is_left_out = summary.skipped.iter().any(is_left_out);
        assert!(summary.cases > 20 || is_left_out || options.case.is_some(), "{summary:?}");
    }
}
