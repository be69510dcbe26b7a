//! Bytes, lengths, flushes.

use std::io::{ErrorKind, IoSlice};
use std::path::Path;

use dash_storage::{Directory, File, OpenMode, Storage};

use crate::Place;

pub fn content(file: &impl File) -> Vec<u8> {
    let len = usize::try_from(file.metadata().unwrap().len).unwrap();
    let mut bytes = vec![0xee; len];
    assert_eq!(file.read_at(&mut bytes, 0).unwrap(), len);
    bytes
}

pub fn bytes_written_are_read_back<S: Storage>(place: Place<S>, _: &Path) {
    let (file, other) = (place.open("db"), place.open("db"));
    let bytes: Vec<u8> = (0..20_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    file.write_at(&bytes, 0).unwrap();
    file.write_at(b"patch", 8190).unwrap();
    let expected = [&bytes[..8190], b"patch", &bytes[8195..]].concat();
    assert_eq!(content(&other), expected);
    file.write_at(b"", 50_000).unwrap();
    assert_eq!(content(&other), expected);
}

pub fn a_read_is_short_only_at_the_end<S: Storage>(place: Place<S>, _: &Path) {
    let file = place.open("db");
    file.write_at(&[1; 5000], 0).unwrap();
    let mut buffer = [9; 4096];
    assert_eq!(file.read_at(&mut buffer, 100).unwrap(), 4096);
    assert_eq!(file.read_at(&mut buffer, 4000).unwrap(), 1000);
    assert_eq!(file.read_at(&mut buffer, 5000).unwrap(), 0);
    assert_eq!(file.read_at(&mut buffer, 1 << 40).unwrap(), 0);
    assert_eq!(file.read_at(&mut [], 0).unwrap(), 0);
}

pub fn a_write_behind_the_end_leaves_zeros<S: Storage>(place: Place<S>, _: &Path) {
    let file = place.open("db");
    file.write_at(b"a", 0).unwrap();
    file.write_at(b"b", 9999).unwrap();
    let bytes = content(&file);
    assert_eq!((bytes.len(), bytes[0], bytes[9999]), (10_000, b'a', b'b'));
    assert!(bytes[1..9999].iter().all(|&byte| byte == 0));
}

pub fn buffers_are_written_one_behind_the_other<S: Storage>(place: Place<S>, _: &Path) {
    let file = place.open("db");
    let buffers = [&b"one"[..], b"", b"two", &[3; 5000]];
    let slices: Vec<IoSlice<'_>> = buffers.iter().map(|buffer| IoSlice::new(buffer)).collect();
    file.write_vectored_at(&slices, 10).unwrap();
    file.write_vectored_at(&[], 90_000).unwrap();
    assert_eq!(content(&file), [&[0; 10][..], &buffers.concat()].concat());
}

pub fn setting_the_length_cuts_and_extends_with_zeros<S: Storage>(place: Place<S>, _: &Path) {
    let file = place.open("db");
    file.write_at(&[7; 6000], 0).unwrap();
    file.set_len(5000).unwrap();
    file.set_len(7000).unwrap();
    assert_eq!(content(&file), [&[7; 5000][..], &[0; 2000]].concat());
    file.set_len(0).unwrap();
    assert_eq!(content(&file), b"");
}

pub fn allocating_extends_and_never_shrinks<S: Storage>(place: Place<S>, _: &Path) {
    let file = place.open("db");
    file.write_at(b"keep", 0).unwrap();
    file.allocate(10_000).unwrap();
    file.allocate(100).unwrap();
    file.allocate(0).unwrap();
    let bytes = content(&file);
    assert_eq!((&bytes[..5], bytes.len()), (&b"keep\0"[..], 10_000));
}

pub fn making_room_leaves_the_length<S: Storage>(place: Place<S>, _: &Path) {
    let file = place.open("db");
    file.write_at(b"keep", 0).unwrap();
    for len in [10_000, 100, 0] {
        match file.make_room(0..len) {
            Err(error) if error.kind() == std::io::ErrorKind::Unsupported => return,
            made => made.unwrap(),
        }
    }
    assert_eq!(content(&file), b"keep");
    file.write_at(b"more", 9_000).unwrap();
    assert_eq!(content(&file).len(), 9_004);
}

pub fn going_around_holes_misses_nothing<S: Storage>(place: Place<S>, _: &Path) {
    let file = place.open("db");
    assert_eq!(file.data_from(0).unwrap(), None);
    file.set_len(4 << 20).unwrap();
    for at in [5, 1 << 20, (3 << 20) + 77] {
        file.write_at(&[7; 1000], at).unwrap();
    }
    let (mut at, mut seen) = (0, 0);
    while let Some(found) = file.data_from(at).unwrap() {
        assert!(found.start >= at && found.end > found.start && found.end <= 4 << 20);
        let mut bytes = vec![0; usize::try_from(found.end - found.start).unwrap()];
        assert_eq!(file.read_at(&mut bytes, found.start).unwrap(), bytes.len());
        seen += bytes.iter().filter(|&&byte| byte == 7).count();
        at = found.end;
    }
    assert_eq!(seen, 3000);
    assert_eq!(file.data_from(4 << 20).unwrap(), None);
    assert_eq!(file.data_from(1 << 62).unwrap(), None);
}

pub fn a_flush_succeeds_in_every_mode<S: Storage>(place: Place<S>, _: &Path) {
    let file = place.open("db");
    file.write_at(b"x", 0).unwrap();
    file.flush().unwrap();
    file.flush().unwrap();
    place.directory.open("db".as_ref(), OpenMode::Read).unwrap().flush().unwrap();
    place.directory.flush().unwrap();
}

pub fn who_else_has_a_file_open_is_told<S: Storage>(place: Place<S>, _: &Path) {
    let a = place.open("db");
    assert!(!a.open_elsewhere().unwrap());
    for mode in [OpenMode::Read, OpenMode::ReadWrite] {
        let b = place.directory.open("db".as_ref(), mode).unwrap();
        for _ in 0..2 {
            assert!(a.open_elsewhere().unwrap(), "{mode:?}");
        }
        drop(b);
        for _ in 0..2 {
            assert!(!a.open_elsewhere().unwrap(), "{mode:?}");
        }
    }
    let _other = place.open("other");
    assert!(!a.open_elsewhere().unwrap());
}

pub fn a_file_open_for_reading_is_not_written<S: Storage>(place: Place<S>, _: &Path) {
    place.open("db").write_at(b"x", 0).unwrap();
    let file = place.directory.open("db".as_ref(), OpenMode::Read).unwrap();
    assert!(file.write_at(b"y", 0).is_err());
    assert!(file.write_vectored_at(&[IoSlice::new(b"y")], 0).is_err());
    assert!(file.set_len(0).is_err());
    assert!(file.allocate(10).is_err());
    assert_eq!(content(&file), b"x");
}

pub fn offsets_beyond_the_largest_are_errors<S: Storage>(place: Place<S>, _: &Path) {
    let file = place.open("db");
    assert!(file.write_at(b"x", u64::MAX).is_err());
    assert!(file.write_vectored_at(&[IoSlice::new(b"x")], 1 << 63).is_err());
    assert!(file.read_at(&mut [0], 1 << 63).is_err());
    assert!(file.set_len(1 << 63).is_err());
    assert!(file.allocate(1 << 63).is_err());
    assert_eq!(content(&file), b"");
}

pub fn a_clone_is_a_copy_or_unsupported<S: Storage>(place: Place<S>, _: &Path) {
    let (source, target) = (place.open("a"), place.open("b"));
    source.write_at(&[5; 8192], 0).unwrap();
    match target.clone_range(&source, 4096..8192) {
        Ok(()) => assert_eq!(content(&target), [[0; 4096], [5; 4096]].concat()),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Unsupported),
    }
}
