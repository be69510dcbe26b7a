//! What a record and a scan cost in time: figures to look at, in a release build.
//!
//! `cargo test --release -p dash-log what_it_costs -- --ignored --nocapture`

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use super::common::{ID, create_mapped, head, noise};
use dash_log::difference::{Copies, Differ, apply};
use dash_log::file::LogFile;
use dash_log::format::Form;
use dash_log::images::Images;
use dash_log::record::{Builder, WINDOW_START};
use dash_log::scan::scan;
use dash_storage::{Storage, real::Real};
use std::ffi::OsStr;
use std::hint::black_box;
use std::time::Instant;

const PAGE: usize = 4096;

/// The median and the fastest of many rounds, in nanoseconds.
fn nanos(mut act: impl FnMut()) -> String {
    let mut times: Vec<u128> = Vec::new();
    for _ in 0..2000 {
        let begun = Instant::now();
        for _ in 0..10 {
            act();
        }
        times.push(begun.elapsed().as_nanos() / 10);
    }
    times.sort_unstable();
    format!("{:>6} ns (fastest {})", times[times.len() / 2], times[0])
}

/// A name, the page before, if there was one, and the page after.
type Case = (&'static str, Option<Vec<u8>>, Vec<u8>);

/// What SQLite does to a leaf of a table.
fn cases() -> Vec<Case> {
    let mut leaf = noise(1, PAGE);
    leaf[300..2500].fill(0);
    let mut inserted = leaf.clone();
    inserted[3..7].copy_from_slice(&[1, 2, 3, 4]);
    inserted[298..300].copy_from_slice(&[9, 9]);
    inserted[2390..2500].copy_from_slice(&noise(2, 110));
    let mut updated = leaf.clone();
    updated[3000..3100].copy_from_slice(&noise(3, 100));
    let mut moved = leaf.clone();
    moved.copy_within(2600..4000, 2596);
    let full = noise(4, PAGE);
    vec![
        ("nothing changed", Some(leaf.clone()), leaf.clone()),
        ("insert of 100 bytes", Some(leaf.clone()), inserted),
        ("update of 100 bytes", Some(leaf.clone()), updated),
        ("rows moved by 4", Some(leaf.clone()), moved),
        ("nothing in common", Some(leaf.clone()), full.clone()),
        ("first image, half zeros", None, leaf),
        ("first image, full", None, full),
    ]
}

#[test]
#[ignore = "measures"]
fn a_difference() {
    for (name, old, new) in cases() {
        for copies in [Copies::No, Copies::WhereTheyPay, Copies::Everywhere] {
            let mut out = Vec::with_capacity(3 * PAGE);
            let mut differ = Differ::default();
            let encoded = nanos(|| {
                out.clear();
                let (old, new) = (black_box(old.as_deref()), black_box(&new));
                differ.encode(old, new, copies, &mut out).unwrap();
            });
            let mut image = vec![0; PAGE];
            let applied = nanos(|| apply(black_box(&out), old.as_deref(), &mut image).unwrap());
            println!("{name:24} {copies:?}: {:5} B, encode {encoded}, apply {applied}", out.len());
        }
    }
}

#[test]
#[ignore = "measures"]
fn a_record() {
    for (name, old, new) in cases() {
        for frames in [1, 5] {
            let mut builder = Builder::new();
            let mut bytes = 0;
            let time = nanos(|| {
                builder.begin(ID, 7, 0, PAGE as u32, 24, &[7; 40]).unwrap();
                for unit in 0..frames {
                    builder.push(unit, &[3; 24], black_box(old.as_deref()), &new).unwrap();
                }
                bytes = builder.finish(4096).unwrap().len();
            });
            println!("{name:24} {frames} frames: {bytes:6} B, {time}");
        }
    }
}

#[test]
#[ignore = "measures"]
fn a_record_in_memory() {
    let Some(folder) = dash_testing::mounts::folder_in_memory() else { return };
    let directory = Real.open_directory(folder.path()).unwrap();
    let log = create_mapped(&directory, OsStr::new("log"), 0o600, 1 << 20).unwrap();
    let log = log.unwrap();
    for lines in [1_usize, 3, 64] {
        let (bytes, mut at) = (noise(7, lines * 64), 0);
        let time = nanos(|| {
            log.write_durable(black_box(&bytes), at).unwrap();
            at = (at + bytes.len() as u64) % (512 << 10);
        });
        println!("{:5} B on {:?}: {time}", bytes.len(), log.persistence());
    }
}

#[test]
#[ignore = "measures"]
fn a_scan_of_a_full_log() {
    for (name, old, new) in cases() {
        let folder = tempfile::tempdir().unwrap();
        let directory = Real.open_directory(folder.path()).unwrap();
        let ring = 16 << 20;
        let begun = Instant::now();
        let log =
            LogFile::create(&directory, OsStr::new("log"), 0o600, ring, Form::Sectors).unwrap();
        let made = begun.elapsed();
        log.write_head(&head(ID, 0)).unwrap();
        let mut builder = Builder::new();
        let (mut position, mut sequence) = (0, 0_u64);
        loop {
            let flags = if sequence == 0 { WINDOW_START } else { 0 };
            builder.begin(ID, sequence + 1, flags, PAGE as u32, 24, &[7; 40]).unwrap();
            let unit = (sequence % 1000) as u32;
            builder.push(unit, &[3; 24], None, old.as_deref().unwrap_or(&new)).unwrap();
            builder.push(unit, &[3; 24], old.as_deref(), &new).unwrap();
            let blocks = builder.finish(log.block()).unwrap();
            if position + blocks.len() as u64 > ring {
                break;
            }
            log.write(blocks, position).unwrap();
            position += blocks.len() as u64;
            sequence += 1;
        }
        log.flush().unwrap();
        for round in ["first", "again"] {
            let begun = Instant::now();
            let found = scan(&log).unwrap();
            let scanned = begun.elapsed();
            let mut images = Images::new(PAGE as u32);
            let mut entries = 0;
            for record in found.records() {
                for entry in record.unwrap().entries() {
                    black_box(images.feed(&entry).unwrap());
                    entries += 1;
                }
            }
            println!(
                "{name:24} {round}: direct {}, block {}, made in {made:?}; {} records scanned in {scanned:?}, {entries} images rebuilt after {:?}",
                log.is_direct(),
                log.block(),
                found.chain.len(),
                begun.elapsed()
            );
        }
    }
}
