//! The ring `fs` in short: real file systems on a recording device. Skipped, with a line that says
//! why, where there is no root, no FUSE, no loop device or no mkfs.

use std::path::PathBuf;
use std::time::Duration;

use dash_testing::crew::each;
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
    images_recover("shadow", moment(12, 16));
}

#[test]
fn every_image_of_mode_wal_recovers_a_committed_prefix() {
    images_recover("wal", moment(6, 12));
}

fn images_recover(engine: &str, seconds: u64) {
    let seconds = std::env::var("DASH_TORTURE_SECONDS")
        .map_or(seconds, |seconds| seconds.parse().expect("a number"));
    let options = Options { engine: Some(engine.to_owned()), ..options(seconds) };
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
    let shadow = ["ext4", "ext4-writeback", "ext4-nojournal", "ext4-1k", "btrfs", "xfs"]
        .map(|kind| format!("shadow/single:{kind}"));
    let wal = ["wal/alone:btrfs", "wal/alone:ext4", "wal/log:btrfs", "wal/log:ext4"];
    // The longest ones first.
    each(wal.map(String::from).into_iter().chain(shadow), |of| {
        let case = Some(format!("{of}:{}", options(0).seed));
        for summary in fs::run(&Options { case, ..options(25) }, &Quiet) {
            println!("{}: {} cases", summary.engine, summary.cases);
            for reason in &summary.skipped {
                left_out(reason);
            }
            assert!(summary.failures.is_empty(), "{:#?}", summary.failures);
        }
    });
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

/// A stock process had removed its journal and not flushed the folder, as it does with NORMAL. Then
/// dash put the database into WAL mode and committed. After a power loss on Btrfs both were there,
/// journal and `-wal`, and SQLite rolled the one back and replayed the other. Now the folder is
/// flushed before there is a `-wal`.
#[test]
fn a_journal_that_was_removed_does_not_come_back_beside_a_log() {
    let case = Some("wal/guests:btrfs:3145777:60".to_owned());
    for summary in fs::run(&Options { case, ..options(60) }, &Quiet) {
        println!("{}: {} states", summary.engine, summary.states);
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
