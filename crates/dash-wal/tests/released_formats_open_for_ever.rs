//! A stored sample of each released format opens, for ever: a log that begins within a
//! generation of `-wal`, one that begins with it, and one at rest. Whatever a power loss leaves
//! of `-wal`, recovery makes it byte for byte what SQLite had written. And logs in memory, from
//! before their records were compact and since. The files were made by `make_the_samples` of
//! `crates/dash-cli/tests/wal.rs`, and by its like in `wal_elsewhere.rs` (run with `--ignored`
//! when a format is released, never again for the same one); zeros at the log's end are left
//! out.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use dash_storage::real::Real;
use dash_wal::inspect::{Action, ChainSeen, HeadIs, Opening};
use dash_wal::{Choice, Report, inspect, recover};

/// Bytes of the log's file, zeros at its end included.
const LOG: usize = 4096 + (256 << 10);
/// Bytes of a frame of the samples.
const FRAME: usize = 24 + 512;

/// A file of a sample.
fn sample(of: &str, name: &str) -> Vec<u8> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
    fs::read(home.join(of).join(name)).unwrap()
}

/// A folder with the database and the log of a sample, and with this `-wal`, if with one.
fn folder(of: &str, wal: Option<&[u8]>) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let mut log = sample(of, "app.db-dashlog");
    log.resize(LOG, 0);
    fs::write(&path, sample(of, "app.db")).unwrap();
    fs::write(folder.path().join("app.db-dashlog"), log).unwrap();
    if let Some(wal) = wal {
        fs::write(folder.path().join("app.db-wal"), wal).unwrap();
    }
    (folder, path)
}

/// `-wal` after recovery, and what was said before it.
fn recovered(of: &str, wal: &[u8]) -> (Vec<u8>, Report) {
    let (folder, path) = folder(of, Some(wal));
    let said = inspect(&Real, &path).unwrap();
    recover(&Real, &path, Choice::Ask).unwrap();
    let after = inspect(&Real, &path).unwrap();
    assert_eq!(after.log.unwrap().unwrap().head, HeadIs::Clean);
    assert!(matches!(after.opening, Opening::Row(Action::Leave, _)), "{:?}", after.opening);
    (fs::read(folder.path().join("app.db-wal")).unwrap(), said)
}

fn chain(report: &Report) -> ChainSeen {
    report.log.as_ref().unwrap().as_ref().unwrap().chain.unwrap()
}

/// The first commit of a session needs no log: that begins with what came after it.
#[test]
fn version_1_within_a_generation() {
    is_made_whole("v1/within");
}

/// The same of a log in memory from before there were compact records.
#[test]
fn version_2_in_memory() {
    is_made_whole("v2/memory");
}

/// And of one whose records leave out the headers of their frames (WAL-31).
#[test]
fn version_3_in_memory() {
    is_made_whole("v3/memory");
}

fn is_made_whole(of: &str) {
    let whole = sample(of, "app.db-wal");
    let frames = (whole.len() - 32) / FRAME;
    let (_folder, path) = folder(of, Some(&whole));
    let first = chain(&inspect(&Real, &path).unwrap()).first_frame;
    let kept = usize::try_from(first).unwrap() - 1;
    assert!(kept > 0 && frames > kept + 5, "{frames} frames, of which the log lacks {kept}");
    for there in kept..=frames {
        let (wal, said) = recovered(of, &whole[..32 + there * FRAME]);
        assert!(wal == whole, "{there} of {frames} frames were there");
        assert_eq!(chain(&said).commits, 8);
        assert!(matches!(said.opening, Opening::Row(Action::Replay, _)), "{:?}", said.opening);
    }
}

#[test]
fn version_1_from_the_first_frame() {
    let whole = sample("v1/generation", "app.db-wal");
    let (_folder, path) = folder("v1/generation", Some(&whole));
    let said = inspect(&Real, &path).unwrap();
    let ChainSeen { first_frame, frames, commits, generation, .. } = chain(&said);
    assert_eq!((first_frame, commits, generation.number), (1, 7, 2));
    let end = 32 + usize::try_from(frames).unwrap() * FRAME;
    // A torn part of it; behind the last frame lie remains of the former generation.
    for there in [32, 32 + 30, 32 + FRAME, end - FRAME - 1, end] {
        let (wal, _) = recovered("v1/generation", &whole[..there]);
        assert!(wal == whole[..end], "{there} bytes were there");
    }
    // A header of such a generation lies over an older one: without any it was emptied since. This
    // is a copy, another file than the log is of, and has nothing of what was in it.
    for there in [0, 20] {
        let (_folder, path) = folder("v1/generation", Some(&whole[..there]));
        let refused = recover(&Real, &path, Choice::Ask).unwrap_err().to_string();
        assert!(refused.contains("don't belong"), "{there} bytes were there: {refused}");
        recover(&Real, &path, Choice::Discard).unwrap();
        recover(&Real, &path, Choice::Ask).unwrap();
    }
    let (wal, _) = recovered("v1/generation", &whole);
    assert!(wal == whole);
}

#[test]
fn version_1_at_rest() {
    let (folder, path) = folder("v1/rest", None);
    let log = folder.path().join("app.db-dashlog");
    let before = fs::read(&log).unwrap();
    let said = inspect(&Real, &path).unwrap();
    let seen = said.log.unwrap().unwrap();
    assert_eq!((seen.head, seen.chain), (HeadIs::Clean, None));
    assert!(seen.voids.is_none() && seen.greatest > 0, "{seen:?}");
    recover(&Real, &path, Choice::Ask).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    assert_eq!(fs::read(&path).unwrap(), sample("v1/rest", "app.db"));
    // The same but for the head: that no record counts is said once more at most.
    assert!(before[512..] == fs::read(&log).unwrap()[512..]);
}

/// Of two processes that wrote the same frame the first was killed before anybody saw its commit,
/// and the device kept that one: it is valid, and it ends a commit (WAL-13).
#[test]
fn a_valid_frame_gives_way_to_what_the_log_says() {
    let whole = sample("v1/within", "app.db-wal");
    let frames = (whole.len() - 32) / FRAME;
    for changed in 2..=frames {
        let mut wal = whole[..32 + changed * FRAME].to_vec();
        let at = 32 + (changed - 1) * FRAME;
        wal[at + 24 + 300] ^= 0x55;
        let before: [u8; 8] = wal[at - FRAME + 16..at - FRAME + 24].try_into().unwrap();
        let mut sums = [0, 4].map(|at| u32::from_be_bytes(before[at..at + 4].try_into().unwrap()));
        sums = checksum(&wal[at + 24..], checksum(&wal[at..at + 8], sums));
        wal[at + 16..at + 20].copy_from_slice(&sums[0].to_be_bytes());
        wal[at + 20..at + 24].copy_from_slice(&sums[1].to_be_bytes());
        let (_folder, path) = folder("v1/within", Some(&wal));
        let valid = inspect(&Real, &path).unwrap().wal.unwrap().header.unwrap().frames;
        assert_eq!(usize::try_from(valid).unwrap(), changed, "the forged frame is valid");
        let (recovered, _) = recovered("v1/within", &wal);
        assert!(recovered == whole, "frame {changed} was another one");
    }
}

/// SQLite's, of little-endian words (wal.c `walChecksumBytes`).
fn checksum(data: &[u8], [mut one, mut two]: [u32; 2]) -> [u32; 2] {
    for pair in data.chunks_exact(8) {
        let word = |at: usize| u32::from_le_bytes(pair[at..at + 4].try_into().unwrap());
        one = one.wrapping_add(word(0)).wrapping_add(two);
        two = two.wrapping_add(word(4)).wrapping_add(one);
    }
    [one, two]
}

/// So that the tests above can tell.
#[test]
fn a_record_that_is_damaged_ends_the_chain() {
    let whole = sample("v1/within", "app.db-wal");
    let (folder, path) = folder("v1/within", Some(&whole[..32 + FRAME]));
    let commits = chain(&inspect(&Real, &path).unwrap()).commits;
    let log = folder.path().join("app.db-dashlog");
    let mut bytes = fs::read(&log).unwrap();
    let last = bytes.iter().rposition(|&byte| byte != 0).unwrap();
    bytes[last] ^= 1;
    fs::write(&log, bytes).unwrap();
    assert_eq!(chain(&inspect(&Real, &path).unwrap()).commits, commits - 1);
    recover(&Real, &path, Choice::Ask).unwrap();
    assert!(fs::read(folder.path().join("app.db-wal")).unwrap() != whole);
}
