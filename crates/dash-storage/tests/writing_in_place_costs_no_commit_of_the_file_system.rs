//! What blocks that were written beforehand are for, counted where real file systems meet a device;
//! and what these say to direct I/O.

#![expect(clippy::unwrap_used, reason = "a check that fails should panic")]

use std::fs;
use std::ops::RangeInclusive;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use dash_storage::real::{File, Real};
use dash_storage::{Blocks, Directory, File as _, OpenMode, Storage};
use dash_testing::mounts::{Kind, Mount};

const NEW: OpenMode = OpenMode::Create { permissions: 0o644 };
const RING: u64 = 1 << 20;
/// Commits counted at a time.
const COMMITS: u64 = 40;

/// ext4 that does nothing of its own accord while a test counts.
const QUIET: &[&str] = &["-q", "-E", "lazy_itable_init=0,lazy_journal_init=0"];
const SELDOM: &str = "noatime,commit=600";

fn open(folder: &Path, name: &str) -> File {
    Real.open_directory(folder).unwrap().open(name.as_ref(), NEW).unwrap()
}

/// A file that is there, durably, with as many blocks as a ring has.
fn initialized(folder: &Path, name: &str) -> File {
    let file = open(folder, name);
    file.initialize(0..RING).unwrap();
    settled(folder, file)
}

/// The same, direct.
fn direct(folder: &Path, name: &str) -> File {
    let file = initialized(folder, name);
    file.make_direct().unwrap().unwrap();
    file
}

/// The file, when all of it is durable.
fn settled(folder: &Path, file: File) -> File {
    file.flush().unwrap();
    Real.open_directory(folder).unwrap().flush().unwrap();
    file
}

fn blocks(len: usize, byte: u8) -> Blocks {
    let mut blocks = Blocks::try_new(len).unwrap();
    blocks.fill(byte);
    blocks
}

/// What a device was told to do.
#[derive(Debug)]
struct Cost {
    /// Requests to write; Linux counts those that only flush among them.
    writes: u64,
    sectors: u64,
    flushes: u64,
}

/// What it was told so far (Linux `Documentation/block/stat.rst`).
fn counts(folder: &Path) -> [u64; 3] {
    let device = fs::metadata(folder).unwrap().dev();
    let (major, minor) = (libc::major(device), libc::minor(device));
    let text = fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat")).unwrap();
    let numbers: Vec<u64> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
    [numbers[4], numbers[6], numbers[15]]
}

/// A commit that writes its bytes, and then flushes.
fn write_and_flush(file: &File, data: &[u8], at: u64) {
    file.write_at(data, at).unwrap();
    file.flush().unwrap();
}

/// What so many commits, each of `len` bytes behind the one before, cost the device.
fn cost(folder: &Path, len: usize, commit: impl Fn(&[u8], u64)) -> Cost {
    // Whatever is still to be written of what was before.
    nix::unistd::syncfs(fs::File::open(folder).unwrap()).unwrap();
    let before = counts(folder);
    for number in 0..COMMITS {
        commit(&blocks(len, u8::try_from(number + 1).unwrap()), number * len as u64);
    }
    let after = counts(folder);
    let [writes, sectors, flushes] = [0, 1, 2].map(|at| after[at] - before[at]);
    Cost { writes, sectors, flushes }
}

/// Each commit is one write of its bytes, and there are so many flushes. Tried a few times, each on
/// a file of its own that `make` makes, as a `sync` of anybody's writes what is not the commit's.
fn costs_its_bytes(
    folder: &Path,
    len: usize,
    flushes: RangeInclusive<u64>,
    make: impl Fn(&Path, &str) -> File,
    commit: impl Fn(&File, &[u8], u64),
) {
    let mut tries: Vec<Cost> = Vec::new();
    while tries.len() < 5 {
        let name = format!("log-{len}-{}", tries.len());
        let file = make(folder, &name);
        let found = cost(folder, len, |data, at| commit(&file, data, at));
        Real.open_directory(folder).unwrap().unlink(name.as_ref()).unwrap();
        if found.sectors == COMMITS * len as u64 / 512
            && flushes.contains(&found.flushes)
            && (COMMITS..=COMMITS + found.flushes).contains(&found.writes)
        {
            return;
        }
        tries.push(found);
    }
    panic!("{COMMITS} commits of {len} bytes: {tries:?}");
}

#[test]
fn a_direct_commit_is_one_write_and_one_flush() {
    let ext4 = |block| (Kind::Ext4, 64, [QUIET, &["-b", block]].concat(), SELDOM);
    let xfs = || (Kind::Xfs, 320, vec!["-q"], "noatime");
    for (sector, (kind, size, options, mount)) in [
        (512, ext4("1024")),
        (512, ext4("4096")),
        (4096, ext4("4096")),
        (512, xfs()),
        (4096, xfs()),
    ] {
        let Some(mount) = Mount::device(kind, size, sector, &options, mount) else { continue };
        for len in [usize::try_from(sector).unwrap(), 8192] {
            println!("{kind:?}, {options:?}, {len} bytes");
            let commits = COMMITS..=COMMITS;
            costs_its_bytes(mount.path(), len, commits, direct, write_and_flush);
        }
    }
}

#[test]
fn a_durable_write_is_one_write_and_at_most_one_flush() {
    let Some(mount) = Mount::device(Kind::Ext4, 64, 512, QUIET, SELDOM) else { return };
    for make in [direct, initialized] {
        costs_its_bytes(mount.path(), 4096, 0..=COMMITS, make, |file, data, at| {
            file.write_durable_at(data, at).unwrap();
        });
    }
}

/// That counting would show it: blocks that are only allocated make the file system commit.
#[test]
fn blocks_that_were_never_written_cost_more() {
    let Some(mount) = Mount::device(Kind::Ext4, 64, 512, QUIET, SELDOM) else { return };
    let file = open(mount.path(), "log");
    file.allocate(RING).unwrap();
    let file = settled(mount.path(), file);
    file.make_direct().unwrap().unwrap();
    let found = cost(mount.path(), 4096, |data, at| write_and_flush(&file, data, at));
    assert!(found.sectors >= COMMITS * (8 + 1) && found.flushes >= COMMITS, "{found:?}");
}

/// Neither a hole nor an end within a block leaves one that is only allocated.
#[test]
fn every_block_of_a_range_is_written() {
    let Some(mount) = Mount::device(Kind::Ext4, 64, 512, QUIET, SELDOM) else { return };
    let make = |folder: &Path, name: &str| {
        let file = initialized(folder, name);
        file.initialize(2 * RING + 100..3 * RING + 100).unwrap();
        file.initialize(RING..2 * RING + 100).unwrap();
        let file = settled(folder, file);
        file.make_direct().unwrap().unwrap();
        file
    };
    costs_its_bytes(mount.path(), 4096, COMMITS..=COMMITS, make, |file, data, at| {
        let place = match at / 4096 {
            0 => 2 * RING,
            1 => 2 * RING - 4096,
            2 => 3 * RING - 4096,
            number => number * 17 * 4096,
        };
        write_and_flush(file, data, place);
    });
}

/// What a file system says, and that it means it.
fn block(folder: &Path) -> Option<u32> {
    let usual = initialized(folder, "block");
    let file = open(folder, "block");
    let block = file.make_direct().unwrap();
    if let Some(block) = block {
        let len = usize::try_from(block).unwrap();
        file.write_at(&blocks(len, 7), u64::from(block)).unwrap();
        file.write_durable_at(&blocks(2 * len, 8), 2 * u64::from(block)).unwrap();
        file.flush().unwrap();
        let mut read = blocks(4 * len, 9);
        assert_eq!(file.read_at(&mut read, 0).unwrap(), 4 * len);
        let bytes: Vec<u8> = read.chunks(len).map(|block| block[0]).collect();
        assert_eq!(bytes, [0, 7, 8, 8]);
        let mut cached = vec![9; 4 * len];
        assert_eq!(usual.read_at(&mut cached, 0).unwrap(), 4 * len);
        assert_eq!(cached[..], read[..]);
    } else {
        // As it was.
        file.write_durable_at(b"any", 1001).unwrap();
        let mut read = [9; 5];
        assert_eq!(usual.read_at(&mut read, 1000).unwrap(), 5);
        assert_eq!(&read, b"\0any\0");
    }
    block
}

#[test]
fn the_block_is_what_the_device_has() {
    for sector in [512, 4096] {
        if let Some(mount) = Mount::device(Kind::Ext4, 64, sector, QUIET, SELDOM) {
            assert_eq!(block(mount.path()), Some(sector), "ext4");
        }
        if let Some(mount) = Mount::device(Kind::Xfs, 320, sector, &["-q"], "noatime") {
            assert_eq!(block(mount.path()), Some(sector), "xfs");
        }
    }
}

#[test]
fn the_block_is_the_largest_where_the_device_is_not_told() {
    if let Some(mount) = Mount::image(Kind::Btrfs, 128, &["-q"]) {
        assert_eq!(block(mount.path()), Some(4096), "btrfs");
    }
}

#[test]
fn memory_has_nothing_around_which_to_write() {
    let Some(mount) = Mount::tmpfs("8m") else { return };
    assert_eq!(block(mount.path()), None);
    let lower = tempfile::tempdir().unwrap();
    if let Some(mount) = Mount::overlay(lower.path()) {
        // It says what it likes, and keeps it.
        block(mount.path());
    }
}

#[test]
fn a_file_system_that_journals_data_goes_through_the_cache() {
    let options = [QUIET, &["-b", "4096"]].concat();
    let journaled = Mount::device(Kind::Ext4, 64, 512, &options, "data=journal");
    let Some(mount) = journaled else { return };
    assert_eq!(block(mount.path()), None);
}
