//! What a block says of sizes, lists and places counts only as far as the file reaches that it is
//! in: a file whose blocks lie opens as fast as any other, and as what SQLite's own header says, or
//! is refused. Sparse files, which are large for nothing, take neither time nor memory nor space
//! (SEC6).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::common;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::common::{commit, read};
use dash_shadow::format::{
    BLOCK_LEN, COMMIT_MAGIC, CommitBlock, Place, SECTOR_BYTES, State, TAIL_LEN, Unit, encode_units,
    first_page, list_len,
};
use dash_shadow::{Connection, ReadOnly, inspect};
use dash_storage::real::Real;

/// What the databases here hold.
const CONTENT: [u8; 3] = [4, 2, 3];
/// How long the files claim to be.
const SPARSE: u64 = 256 << 30;
/// Against a hang. Reading so long a file takes longer than this.
const PATIENCE: Duration = Duration::from_secs(15);
/// Bytes that all files of a small database take on the disk, with room for what file systems add.
const SMALL: u64 = 64 << 20;

fn open_file(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).open(path).unwrap()
}

/// A closed database of three pages, its block in page 1.
fn database() -> (tempfile::TempDir, PathBuf) {
    let (folder, path) = common::real();
    let mut connection = Connection::open(&Real, &path, &common::sim::tiny()).unwrap();
    commit(&mut connection, &CONTENT[..1]).unwrap();
    commit(&mut connection, &CONTENT).unwrap();
    connection.close().unwrap();
    (folder, path)
}

/// The block that counts in a file.
fn block_of(path: &Path) -> CommitBlock {
    first_page::extract(&fs::read(path).unwrap()).unwrap()
}

/// Takes the blocks of a file out, makes it `len` bytes long and puts this block into its tail.
fn forge(path: &Path, len: u64, block: &CommitBlock) {
    let file = open_file(path);
    let mut sector = [0; SECTOR_BYTES];
    file.read_exact_at(&mut sector, 0).unwrap();
    first_page::blank(&mut sector);
    file.write_all_at(&sector, 0).unwrap();
    let old = file.metadata().unwrap().len();
    file.write_all_at(&[0; 8192], old - TAIL_LEN).unwrap();
    file.set_len(len).unwrap();
    let block =
        CommitBlock { place: Place::Tail, inode: file.metadata().unwrap().ino(), ..block.clone() };
    let bytes = block.encode();
    assert!(bytes.starts_with(&COMMIT_MAGIC));
    file.write_all_at(&*bytes, len - BLOCK_LEN).unwrap();
}

/// Puts a list of its own before the tail; the block's checksum of it is right.
fn put_list(path: &Path, len: u64, block: &mut CommitBlock, units: &[Unit]) {
    let list = encode_units(units);
    block.unit_count = u32::try_from(units.len()).unwrap();
    block.list_checksum = crc32fast::hash(&list);
    block.units = Vec::new();
    let file = open_file(path);
    file.set_len(len).unwrap();
    file.write_all_at(&list, len - TAIL_LEN - list_len(units.len())).unwrap();
}

fn on_disk(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).unwrap();
    files.map(|file| file.unwrap().metadata().unwrap().blocks() * 512).sum()
}

/// Opens it in every way, and writes it. What is found is the content, or nothing: a refusal.
fn opens_as_sqlite_has_it(folder: &Path, path: &Path, what: &str) {
    let begun = Instant::now();
    inspect(&Real, path).unwrap();
    assert!(begun.elapsed() < PATIENCE, "{what}: looking took {:?}", begun.elapsed());
    if let Ok(mut reader) = ReadOnly::open(&Real, path, false) {
        reader.lock(dash_shadow::LockLevel::Shared).unwrap();
        assert_eq!(reader.size(), 3 * common::PAGE as u64, "{what}");
        reader.close().unwrap();
    }
    assert!(begun.elapsed() < PATIENCE, "{what}: opening to read took {:?}", begun.elapsed());
    let mut connection = Connection::open(&Real, path, &common::sim::tiny()).unwrap();
    assert!(begun.elapsed() < PATIENCE, "{what}: opening took {:?}", begun.elapsed());
    assert_eq!(connection.size(), 3 * common::PAGE as u64, "{what}");
    assert_eq!(read(&mut connection).unwrap(), CONTENT, "{what}");
    commit(&mut connection, &[5, 5, 5]).unwrap();
    assert_eq!(read(&mut connection).unwrap(), [5, 5, 5], "{what}");
    connection.close().unwrap();
    assert!(begun.elapsed() < PATIENCE, "{what}: writing took {:?}", begun.elapsed());
    assert!(on_disk(folder) < SMALL, "{what}: {} bytes on the disk", on_disk(folder));
}

#[test]
fn a_list_longer_than_the_file_is_none() {
    for (count, len) in [(u32::MAX, SPARSE), (u32::MAX, 1 << 20), (300_000, 2 << 20)] {
        let (folder, path) = database();
        let shadow = folder.path().join("app.db-shadow");
        let block = block_of(&path);
        fs::remove_file(&shadow).unwrap();
        forge(&path, len, &CommitBlock { unit_count: count, units: Vec::new(), ..block });
        opens_as_sqlite_has_it(folder.path(), &path, &format!("{count} units in {len} bytes"));
    }
}

#[test]
fn a_size_beyond_the_file_is_none() {
    let len = 1 << 16;
    for size in [len, len - TAIL_LEN + 512, 1 << 40, u64::MAX, u64::MAX - 4096] {
        let (folder, path) = database();
        let block = block_of(&path);
        fs::remove_file(folder.path().join("app.db-shadow")).unwrap();
        forge(&path, len, &CommitBlock { size, unit_count: 0, units: Vec::new(), ..block });
        opens_as_sqlite_has_it(folder.path(), &path, &format!("a size of {size}"));
    }
}

#[test]
fn a_place_beyond_the_file_is_none() {
    let unit = |offset, len| Unit { offset, len, checksum: 0, carried: false };
    let len = 1 << 20;
    for units in [
        vec![unit(1 << 56, 512)],
        vec![unit(0, 1 << 40)],
        vec![unit(len - 512, 1024)],
        vec![unit(0, 0)],
        // Each in the file, all of them longer than it.
        vec![unit(0, 1 << 19); 200],
    ] {
        let what = format!("{} units as {:?}", units.len(), units[0]);
        for in_an_area in [false, true] {
            let (folder, path) = database();
            let shadow = folder.path().join("app.db-shadow");
            let mut block = block_of(&path);
            let units = if in_an_area { units.repeat(300) } else { units.clone() };
            block.unit_count = u32::try_from(units.len()).unwrap();
            block.units = units.clone();
            let path_of_it = if in_an_area { &shadow } else { &path };
            forge(path_of_it, len, &block);
            if in_an_area {
                put_list(&shadow, len, &mut block, &units);
                let inode = fs::metadata(&shadow).unwrap().ino();
                let child = CommitBlock {
                    inode,
                    slot: 1 - block.slot,
                    sequence: block.sequence + 1,
                    parent: block.id,
                    id: 99,
                    place: Place::Tail,
                    ..block.clone()
                };
                open_file(&shadow).write_all_at(&*child.encode(), len - BLOCK_LEN).unwrap();
            } else {
                fs::remove_file(&shadow).unwrap();
            }
            opens_as_sqlite_has_it(folder.path(), &path, &what);
        }
    }
}

/// The shadow says that it is the next commit, of a database of holes, with checksums that are
/// right.
#[test]
fn a_commit_of_holes_takes_no_time() {
    let (folder, path) = database();
    let shadow = folder.path().join("app.db-shadow");
    let mut block = block_of(&path);
    let stride = 1 << 20;
    let zeros = crc32fast::hash(&vec![0; 1 << 20]);
    let count = SPARSE / stride - 64;
    let mut units: Vec<Unit> = (1..count)
        .map(|i| Unit { offset: i * stride, len: stride, checksum: zeros, carried: false })
        .collect();
    let first = common::page(1, CONTENT[0], CONTENT.len(), block.counter + 1);
    units.push(Unit { offset: 0, len: 1024, checksum: crc32fast::hash(&first), carried: false });
    forge(&shadow, SPARSE, &block);
    open_file(&shadow).write_all_at(&first, 0).unwrap();
    put_list(&shadow, SPARSE, &mut block, &units);
    let child = CommitBlock {
        place: Place::Tail,
        inode: fs::metadata(&shadow).unwrap().ino(),
        slot: 1 - block.slot,
        sequence: block.sequence + 1,
        parent: block.id,
        counter: block.counter + 1,
        id: 99,
        state: State::Whole,
        size: count * stride,
        ..block
    };
    open_file(&shadow).write_all_at(&*child.encode(), SPARSE - BLOCK_LEN).unwrap();
    let begun = Instant::now();
    inspect(&Real, &path).unwrap();
    drop(ReadOnly::open(&Real, &path, false));
    let connection = Connection::open(&Real, &path, &common::sim::tiny()).unwrap();
    // It is what it says: a state that was committed. SQLite will have something to say of its
    // pages.
    assert_eq!(connection.size(), count * stride);
    connection.close().unwrap();
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    assert!(on_disk(folder.path()) < SMALL, "{} bytes on the disk", on_disk(folder.path()));
}

/// Beside the name fence a tail is looked for in all of a file that has none at its end.
#[test]
fn a_tail_is_not_looked_for_in_holes() {
    let (folder, path) = database();
    // A shadow that is none: a missing one would be missed beside the fence.
    fs::write(folder.path().join("app.db-shadow"), []).unwrap();
    let file = open_file(&path);
    let mut sector = [0; SECTOR_BYTES];
    file.read_exact_at(&mut sector, 0).unwrap();
    first_page::blank(&mut sector);
    file.write_all_at(&sector, 0).unwrap();
    file.write_all_at(&[0; 8192], file.metadata().unwrap().len() - TAIL_LEN).unwrap();
    file.set_len(SPARSE).unwrap();
    fs::create_dir(folder.path().join("app.db-journal")).unwrap();
    opens_as_sqlite_has_it(folder.path(), &path, "a fence beside a sparse file");
}

/// A plain database that is all holes: stock SQLite opens it, and so does dash; its copy is sparse,
/// too.
#[test]
fn a_copy_of_holes_is_holes() {
    let (folder, path) = database();
    fs::remove_file(folder.path().join("app.db-shadow")).unwrap();
    let file = open_file(&path);
    let pages = u32::try_from(SPARSE / common::PAGE as u64).unwrap() - 64;
    let mut first = common::page(1, CONTENT[0], 3, 9);
    first[28..32].copy_from_slice(&pages.to_be_bytes());
    file.write_all_at(&first, 0).unwrap();
    file.set_len(SPARSE).unwrap();
    let begun = Instant::now();
    let mut connection = Connection::open(&Real, &path, &common::sim::tiny()).unwrap();
    connection.lock(dash_shadow::LockLevel::Reserved).unwrap();
    connection.lock(dash_shadow::LockLevel::Exclusive).unwrap();
    first[24..28].copy_from_slice(&10u32.to_be_bytes());
    first[92..96].copy_from_slice(&10u32.to_be_bytes());
    connection.write(&first, 0).unwrap();
    connection.prepare(None).unwrap();
    connection.flush().unwrap();
    connection.publish().unwrap();
    connection.close().unwrap();
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    assert!(on_disk(folder.path()) < SMALL, "{} bytes on the disk", on_disk(folder.path()));
}
