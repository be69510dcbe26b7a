//! The ring `fs` in short: real file systems on a recording device. Skipped, with a line that says
//! why, where there is no root, no FUSE, no loop device or no mkfs.

use std::path::PathBuf;
use std::time::Duration;

use dash_testing::long::moment;
use dash_testing::{Need, skip};
use dash_torture::{Options, Watch, fs};

struct Quiet;

impl Watch for Quiet {
    fn progress(&self, _cases: u64, _done: f64) -> bool {
        true
    }
}

/// The ring's workers and devices are this program once more.
#[test]
fn another_process_plays_its_part() {
    fs::play_part();
}

fn options(seconds: u64) -> Options {
    let test = std::env::current_exe().expect("a test has a path");
    let library: PathBuf = test.with_file_name("libdash.so");
    assert!(library.exists(), "{} was not built", library.display());
    Options {
        seed: std::env::var("DASH_TORTURE_SEED").map_or(1, |seed| seed.parse().expect("a number")),
        time: Duration::from_secs(seconds),
        folder: None,
        library,
        engine: None,
        case: None,
    }
}

/// What the ring can't do here, such as `xfs: mkfs.xfs is not installed`.
fn left_out(reason: &str) {
    let need = match reason {
        _ if reason.contains("takes root") => Need::Root,
        _ if reason.contains("fuse") => Need::Fuse,
        _ if reason.starts_with("xfs") => Need::Xfs,
        _ if reason.starts_with("btrfs") => Need::Btrfs,
        _ => Need::Ext4,
    };
    skip(need, reason);
}

#[test]
fn every_image_recovers_a_committed_prefix() {
    let seconds = std::env::var("DASH_TORTURE_SECONDS")
        .map_or(moment(12, 16), |seconds| seconds.parse().expect("a number"));
    let options = Options { engine: Some("shadow".to_owned()), ..options(seconds) };
    let mut failures = Vec::new();
    for summary in fs::run(&options, &Quiet) {
        println!(
            "{}: {} states, {} cut inside a recovery",
            summary.engine, summary.states, summary.nested
        );
        for reason in &summary.skipped {
            left_out(reason);
        }
        failures.extend(summary.failures);
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn a_device_that_fails_or_fills_up_loses_nothing() {
    for kind in ["ext4", "ext4-writeback", "ext4-nojournal", "ext4-1k", "btrfs", "xfs"] {
        let case = Some(format!("shadow/single:{kind}:{}", options(0).seed));
        for summary in fs::run(&Options { case, ..options(60) }, &Quiet) {
            println!("{}: {} cases", summary.engine, summary.cases);
            for reason in &summary.skipped {
                left_out(reason);
            }
            assert!(summary.failures.is_empty(), "{:#?}", summary.failures);
        }
    }
}

/// A database was made on Btrfs and the power went. The flush of the new shadow had made its own
/// name durable, as Btrfs does with a new file, but not the older name `app.db`. Nothing had been
/// acknowledged, and yet every later open was refused: "app.db is missing but app.db-shadow
/// exists". Now the directory is flushed before the shadow.
#[test]
fn a_database_that_was_being_made_can_be_made_again() {
    let case = Some("shadow/single:btrfs:1048577:40".to_owned());
    for summary in fs::run(&Options { case, ..options(60) }, &Quiet) {
        assert!(summary.failures.is_empty(), "{:#?}", summary.failures);
    }
}

/// With a rollback journal and FULL stock SQLite shortens a file before the journal's unlink is
/// durable, and ext4 writes zeroes over the page cut off before either: its VACUUM damaged the
/// database here, and the rig was called over-strict.
#[test]
fn what_stock_sqlite_does_when_it_shrinks_is_not_held_against_the_rig() {
    let case = Some("stock/delete-full:ext4:5242919:200".to_owned());
    for summary in fs::run(&Options { case, ..options(60) }, &Quiet) {
        println!("{}: {} states", summary.engine, summary.states);
        assert!(summary.failures.is_empty(), "{:#?}", summary.failures);
    }
}

/// Otherwise finding nothing would mean nothing.
#[test]
fn the_rig_is_neither_blind_nor_over_strict() {
    match fs::calibrate(&options(600), 240, &Quiet) {
        Err(why) => left_out(&why),
        Ok(all) => {
            assert_eq!(all.len(), 5);
            for mode in all {
                println!("{mode:?}");
                assert_eq!(mode.verdict(), None, "{mode:?}");
            }
        }
    }
}
