//! Blocks: written beforehand, around the cache, durably.

use std::io::IoSlice;
use std::path::Path;

use dash_storage::{Blocks, Directory, File, OpenMode, Storage};

use crate::Place;
use crate::homes::files::content;

const RING: u64 = 256 * 1024;

/// A file of written blocks, opened twice: usual, and direct, with its block. Where it can't be
/// direct both are usual, and the block is 4096.
fn opened<S: Storage>(place: &Place<S>) -> (S::File, S::File, usize) {
    let usual = place.open("log");
    usual.initialize(0..RING).unwrap();
    usual.flush().unwrap();
    let direct = place.directory.open("log".as_ref(), OpenMode::ReadWrite).unwrap();
    let block = direct.make_direct().unwrap().unwrap_or(4096);
    assert!(block.is_power_of_two() && (512..=4096).contains(&block), "{block}");
    assert!(direct.make_direct().unwrap().is_none_or(|again| again == block));
    (usual, direct, usize::try_from(block).unwrap())
}

fn blocks(len: usize, byte: u8) -> Blocks {
    let mut blocks = Blocks::try_new(len).unwrap();
    blocks.fill(byte);
    blocks
}

pub fn what_is_written_around_the_cache_is_read_through_it<S: Storage>(place: Place<S>, _: &Path) {
    let (usual, direct, block) = opened(&place);
    // Cached, so that a reader who is not told would see it.
    assert_eq!(content(&usual), vec![0; 256 * 1024]);
    direct.write_at(&blocks(3 * block, 1), block as u64).unwrap();
    let two = [blocks(block, 2), blocks(2 * block, 3)];
    let slices: Vec<_> = two.iter().map(|blocks| IoSlice::new(blocks)).collect();
    direct.write_vectored_at(&slices, 2 * block as u64).unwrap();
    let read = content(&usual);
    let blocks: Vec<u8> = read.chunks(block).take(6).map(|block| block[0]).collect();
    assert_eq!((blocks, read[block - 1], read[5 * block - 1]), (vec![0, 1, 2, 3, 3, 0], 0, 3));
}

pub fn what_is_written_through_the_cache_is_read_around_it<S: Storage>(place: Place<S>, _: &Path) {
    let (usual, direct, block) = opened(&place);
    usual.write_at(b"cached", block as u64 - 3).unwrap();
    let mut read = blocks(2 * block, 9);
    assert_eq!(direct.read_at(&mut read, 0).unwrap(), 2 * block);
    assert_eq!(&read[block - 4..block + 4], b"\0cached\0");
}

pub fn a_direct_read_is_short_only_at_the_end<S: Storage>(place: Place<S>, _: &Path) {
    let (usual, direct, block) = opened(&place);
    usual.set_len(2 * block as u64 + 100).unwrap();
    usual.write_at(b"end", 2 * block as u64).unwrap();
    usual.flush().unwrap();
    let mut read = blocks(8 * block, 9);
    assert_eq!(direct.read_at(&mut read, 0).unwrap(), 2 * block + 100);
    assert_eq!(&read[2 * block..2 * block + 3], b"end");
    assert_eq!(direct.read_at(&mut read, 2 * block as u64).unwrap(), 100);
    assert_eq!(direct.read_at(&mut read, 4 * block as u64).unwrap(), 0);
    assert_eq!(direct.read_at(&mut [], 0).unwrap(), 0);
}

pub fn initializing_extends_and_leaves_zeros<S: Storage>(place: Place<S>, _: &Path) {
    let file = place.open("log");
    file.initialize(0..0).unwrap();
    assert_eq!(content(&file), b"");
    file.write_at(&[7; 10_000], 0).unwrap();
    file.initialize(4096..8192).unwrap();
    let expected = [&[7; 4096][..], &[0; 4096], &[7; 10_000 - 8192]].concat();
    assert_eq!(content(&file), expected);
    // Parts of blocks, and behind the end.
    file.initialize(9000..20_001).unwrap();
    let expected = [&expected[..9000], &[0; 11_001]].concat();
    assert_eq!(content(&file), expected);
    file.initialize((3 << 20) + 4096..(5 << 20) + 4096).unwrap();
    assert_eq!(file.metadata().unwrap().len, (5 << 20) + 4096);
    assert_eq!(content(&file)[..20_001], expected);
    assert!(content(&file)[20_001..].iter().all(|&byte| byte == 0));
    file.flush().unwrap();
}

pub fn a_direct_file_is_initialized_in_blocks<S: Storage>(place: Place<S>, _: &Path) {
    let (usual, direct, block) = opened(&place);
    usual.write_at(&[7; 256 * 1024], 0).unwrap();
    let end = RING + 3 * block as u64;
    direct.initialize(block as u64..end).unwrap();
    let read = content(&usual);
    assert_eq!((read.len() as u64, read[block - 1], read[block]), (end, 7, 0));
    assert!(read[block..].iter().all(|&byte| byte == 0));
}

pub fn durable_writes_are_read_back<S: Storage>(place: Place<S>, _: &Path) {
    let (usual, direct, block) = opened(&place);
    for file in [&usual, &direct] {
        file.write_durable_at(&blocks(2 * block, 5), RING - block as u64).unwrap();
        file.write_durable_at(&[], 0).unwrap();
        let read = content(&usual);
        assert_eq!(read.len() as u64, RING + block as u64);
        assert!(read[read.len() - 2 * block..].iter().all(|&byte| byte == 5));
        usual.set_len(RING).unwrap();
    }
    usual.write_durable_at(b"any", 1001).unwrap();
    assert_eq!(&content(&usual)[1000..1005], b"\0any\0");
}

pub fn a_file_open_for_reading_takes_none_of_these<S: Storage>(place: Place<S>, _: &Path) {
    place.open("log").write_at(b"x", 0).unwrap();
    let file = place.directory.open("log".as_ref(), OpenMode::Read).unwrap();
    assert!(file.initialize(0..4096).is_err());
    assert!(file.write_durable_at(b"y", 0).is_err());
    assert!(file.shared_region(0, 8).is_err());
    assert_eq!(content(&file), b"x");
    let file = place.open("log");
    assert!(file.initialize(0..u64::MAX).is_err());
    assert!(file.initialize((1 << 63)..(1 << 63) + 1).is_err());
    assert!(file.write_durable_at(b"y", u64::MAX).is_err());
    assert_eq!(content(&file), b"x");
}
