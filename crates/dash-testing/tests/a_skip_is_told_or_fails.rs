//! A test that calls `skip` passes, leaves a line in the file of skips, or fails: as the
//! environment says.

use std::fs;
use std::path::Path;
use std::process::Command;

use dash_testing::roles::{again, role};
use dash_testing::{Need, skip};

#[test]
#[ignore = "a role of the tests below"]
fn a_test_without_btrfs() {
    if role("a_test_without_btrfs").is_some() {
        skip(Need::Btrfs, "there are no mountains here");
    }
}

/// Whether that test passes with these variables, and what it printed.
fn passes(variables: &[(&str, &str)], skips: &Path) -> (bool, String) {
    let mut command: Command = again("a_test_without_btrfs", "");
    command.env_remove("DASH_MUST_RUN").env_remove("DASH_MAY_SKIP");
    command.env("DASH_SKIPS", skips).envs(variables.iter().copied());
    let output = command.output().expect("runs");
    let said = [&output.stdout[..], &output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

const LINE: &str = "skipped for want of btrfs: a_test_without_btrfs: there are no mountains here";

#[test]
fn a_skip_passes_where_it_may_and_leaves_a_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let skips = folder.path().join("skips");
    let may_skip = [("DASH_MUST_RUN", "1"), ("DASH_MAY_SKIP", "overlay,btrfs")];
    for (before, variables) in [&[][..], &may_skip].into_iter().enumerate() {
        let (passed, said) = passes(variables, &skips);
        assert!(passed && said.contains(LINE), "{variables:?}: {said}");
        let lines = fs::read_to_string(&skips).expect("written");
        assert_eq!(lines, format!("{LINE}\n").repeat(before + 1));
    }
}

#[test]
fn a_skip_fails_where_it_must_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let skips = folder.path().join("skips");
    for (may_skip, why) in [("", "it must run"), ("overlay", "it must run"), ("fog", "known are")] {
        let variables = [("DASH_MUST_RUN", "1"), ("DASH_MAY_SKIP", may_skip)];
        let (passed, said) = passes(&variables, &skips);
        assert!(!passed && said.contains(why), "{may_skip}: {said}");
    }
    assert!(!skips.exists());
}
