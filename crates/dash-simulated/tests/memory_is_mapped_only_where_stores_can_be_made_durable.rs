//! Byte-addressable memory: where it is granted, what it promises there, asked of every home that
//! has some; and where it is refused.

#![expect(clippy::unwrap_used, reason = "a check that fails should panic")]

use std::io::{self, ErrorKind};
use std::path::Path;

use dash_simulated::Machine;
use dash_storage::real::Real;
use dash_storage::{Directory, File, LINE, OpenMode, Persistence, PersistentMemory, Storage};
use dash_testing::mounts::folder_in_memory;
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

const NEW: OpenMode = OpenMode::Create { permissions: 0o644 };
const LEN: u64 = 64 << 10;

/// `STATX_ATTR_DAX`: the file is mapped as it lies in persistent memory.
const DAX: u64 = 0x0020_0000;

fn made<S: Storage>(storage: &S, path: &Path) -> (S::Directory, S::File) {
    let directory = storage.open_directory(path).unwrap();
    let file = directory.open("log".as_ref(), NEW).unwrap();
    file.initialize(0..LEN).unwrap();
    file.flush().unwrap();
    (directory, file)
}

fn errno<T>(done: io::Result<T>) -> Option<i32> {
    done.err().and_then(|error| error.raw_os_error())
}

fn keeps_its_promises<S: Storage>(storage: &S, path: &Path, persistence: Persistence) {
    let (directory, file) = made(storage, path);
    let memory = file.map_persistent(LEN).unwrap();
    assert_eq!((memory.persistence(), memory.len(), memory.is_empty()), (persistence, LEN, false));
    // What is stored is read in every way, by everybody; what is written is loaded.
    let bytes: Vec<u8> = (0..=199).collect();
    memory.store(&bytes, 4000).unwrap();
    memory.store(&[], 8).unwrap();
    let other = directory.open("log".as_ref(), OpenMode::ReadWrite).unwrap();
    let mut read = vec![9; 216];
    assert_eq!(other.read_at(&mut read, 3992).unwrap(), 216);
    assert_eq!(read, [&[0; 8][..], &bytes, &[0; 8]].concat());
    let shorter = other.map_persistent(4096).unwrap();
    let mut loaded = [9; 96];
    shorter.load(&mut loaded, 4000).unwrap();
    assert_eq!(loaded, bytes[..96]);
    other.write_at(b"written", 4001).unwrap();
    memory.load(&mut loaded[..8], 4000).unwrap();
    assert_eq!(&loaded[..8], b"\0written");
    // To write back changes nothing, in whatever part of lines, and with nothing to do.
    for range in [4000..4200, 4000..4008, 4056..4064, LEN - LINE..LEN, 0..LEN, 0..0, LEN..LEN] {
        memory.write_back(range).unwrap();
    }
    memory.fence().unwrap();
    memory.load(&mut loaded[..8], 4000).unwrap();
    assert_eq!(&loaded[..8], b"\0written");
    // No part of a word, and nothing outside.
    let invalid = Some(libc::EINVAL);
    for (offset, len) in [(4, 8), (0, 4), (LEN, 8), (LEN - 8, 16), (u64::MAX - 7, 8)] {
        assert_eq!(errno(memory.store(&vec![1; len], offset)), invalid, "{offset}");
        assert_eq!(errno(memory.load(&mut vec![1; len], offset)), invalid, "{offset}");
        let end = offset.saturating_add(len as u64);
        assert_eq!(errno(memory.write_back(offset..end)), invalid, "{offset}");
    }
    for len in [0, 4, 4095] {
        assert_eq!(errno(file.map_persistent(len)), invalid, "{len}");
    }
    // Nor what is not there, at first or any more.
    let missing = Some(libc::ENXIO);
    assert_eq!(errno(file.map_persistent(LEN + 4096)), missing);
    file.set_len(4096).unwrap();
    assert_eq!(errno(memory.store(&[1; 8], 4096)), missing);
    assert_eq!(errno(memory.load(&mut [1; 8], 4096)), missing);
    assert_eq!(errno(memory.write_back(4032..8192)), missing);
    memory.store(&[1; 8], 4088).unwrap();
    memory.write_back(4088..4096).unwrap();
    let reader = directory.open("log".as_ref(), OpenMode::Read).unwrap();
    assert!(reader.map_persistent(64).is_err());
}

#[test]
fn simulated_memory() {
    let machine = Machine::new(1);
    machine.set_byte_addressable();
    keeps_its_promises(&machine.process(), Path::new("/"), Persistence::Synchronous);
}

#[test]
fn memory_of_a_tmpfs() {
    let Some(folder) = folder_in_memory() else { return };
    keeps_its_promises(&Real, folder.path(), Persistence::Volatile);
}

#[test]
fn a_disk_is_refused_and_the_file_is_as_it_was() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (_directory, file) = made(&Real, folder.path());
    let path = folder.path().join("log");
    let found = statx(CWD, &path, AtFlags::empty(), StatxFlags::BASIC_STATS).unwrap();
    let mapped = file.map_persistent(LEN);
    if found.stx_attributes.bits() & DAX != 0 {
        assert_eq!(mapped.unwrap().persistence(), Persistence::Synchronous);
        return;
    }
    let volatile = mapped.as_ref().is_ok_and(|it| it.persistence() == Persistence::Volatile);
    if !volatile {
        let refused = mapped.err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::Unsupported, "{refused}");
    }
    let mut read = [9; 8];
    assert_eq!(file.read_at(&mut read, 0).unwrap(), 8);
    assert_eq!(read, [0; 8]);
}

#[test]
fn a_second_mapping_ends_and_leaves_the_first_one() {
    let Some(folder) = folder_in_memory() else { return };
    let (_directory, file) = made(&Real, folder.path());
    let first = file.map_persistent(LEN).unwrap();
    drop(file.map_persistent(4096).unwrap());
    let threads = 4;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let first = &first;
            scope.spawn(move || {
                for line in 0..64 {
                    let at = (line * threads + thread) * LINE;
                    first.store(&[1; 64], at).unwrap();
                    first.write_back(at..at + LINE).unwrap();
                    first.fence().unwrap();
                }
            });
        }
    });
    let mut read = vec![0; 64 * 4 * 64 + 1];
    file.read_at(&mut read, 0).unwrap();
    assert!(read.ends_with(&[1, 0]) && read.iter().filter(|&&byte| byte == 0).count() == 1);
}
