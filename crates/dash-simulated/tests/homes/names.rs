//! Names and what they stand for.

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::path::Path;

use dash_storage::{Directory, File, FileKind, OpenMode, Storage};

use crate::{NEW, Place};

fn name(name: &str) -> &OsStr {
    OsStr::new(name)
}

fn kind<T>(result: io::Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

/// Makes a file that contains its own name.
fn file<S: Storage>(place: &Place<S>, name: &str) -> S::File {
    let file = place.open(name);
    file.write_at(name.as_bytes(), 0).unwrap();
    file
}

/// What a file contains, found by name.
fn read<S: Storage>(place: &Place<S>, found: &str) -> String {
    let mut bytes = [0; 64];
    let file = place.directory.open(name(found), OpenMode::Read).unwrap();
    let len = file.read_at(&mut bytes, 0).unwrap();
    String::from_utf8(bytes[..len].to_vec()).unwrap()
}

pub fn modes_open_and_make_as_documented<S: Storage>(place: Place<S>, _: &Path) {
    let open = |mode| place.directory.open(name("db"), mode);
    let make = OpenMode::CreateNew { permissions: 0o600 };
    assert_eq!(kind(open(OpenMode::Read)), Some(ErrorKind::NotFound));
    assert_eq!(kind(open(OpenMode::ReadWrite)), Some(ErrorKind::NotFound));
    open(make).unwrap().write_at(b"x", 0).unwrap();
    assert_eq!(kind(open(make)), Some(ErrorKind::AlreadyExists));
    for mode in [OpenMode::Read, OpenMode::ReadWrite, NEW] {
        let metadata = open(mode).unwrap().metadata().unwrap();
        assert_eq!((metadata.len, metadata.permissions), (1, 0o600));
    }
}

pub fn metadata_tells_kind_size_and_identity<S: Storage>(place: Place<S>, _: &Path) {
    let (a, b) = (file(&place, "a"), file(&place, "bb"));
    let found = place.directory.metadata(name("bb")).unwrap().unwrap();
    assert_eq!((found.kind, found.len, found.links), (FileKind::Regular, 2, 1));
    assert_eq!((found.id, found), (b.id(), b.metadata().unwrap()));
    assert_ne!(a.id(), b.id());
    assert_eq!(a.id().device, b.id().device);
    assert_eq!(place.directory.metadata(name("c")).unwrap(), None);
    place.directory.create_directory(name("d")).unwrap();
    let found = place.directory.metadata(name("d")).unwrap().unwrap();
    assert_eq!(found.kind, FileKind::Directory);
}

pub fn an_exchange_swaps_two_files<S: Storage>(place: Place<S>, _: &Path) {
    let (a, b) = (file(&place, "a"), file(&place, "b"));
    place.directory.exchange(name("a"), name("b")).unwrap();
    assert_eq!((read(&place, "a"), read(&place, "b")), ("b".into(), "a".into()));
    assert_eq!(place.directory.metadata(name("a")).unwrap().unwrap().id, b.id());
    place.directory.exchange(name("a"), name("b")).unwrap();
    assert_eq!(place.directory.metadata(name("a")).unwrap().unwrap().id, a.id());
}

pub fn an_exchange_needs_both_names<S: Storage>(place: Place<S>, _: &Path) {
    file(&place, "a");
    for (from, to) in [("a", "b"), ("b", "a"), ("b", "c")] {
        let result = place.directory.exchange(name(from), name(to));
        assert_eq!(kind(result), Some(ErrorKind::NotFound));
    }
    assert_eq!(read(&place, "a"), "a");
}

pub fn an_exchange_swaps_a_file_and_a_directory<S: Storage>(place: Place<S>, _: &Path) {
    file(&place, "a");
    place.directory.create_directory(name("d")).unwrap();
    place.directory.exchange(name("a"), name("d")).unwrap();
    assert_eq!(read(&place, "d"), "a");
    place.directory.remove_directory(name("a")).unwrap();
}

pub fn a_rename_replaces<S: Storage>(place: Place<S>, _: &Path) {
    file(&place, "a");
    file(&place, "b");
    place.directory.rename(name("a"), name("b")).unwrap();
    assert_eq!(read(&place, "b"), "a");
    assert_eq!(place.directory.metadata(name("a")).unwrap(), None);
    place.directory.rename(name("b"), name("b")).unwrap();
    assert_eq!(read(&place, "b"), "a");
    let gone = place.directory.rename(name("a"), name("b"));
    assert_eq!(kind(gone), Some(ErrorKind::NotFound));
    place.directory.create_directory(name("d")).unwrap();
    let onto = place.directory.rename(name("b"), name("d"));
    assert_eq!(kind(onto), Some(ErrorKind::IsADirectory));
    let onto = place.directory.rename(name("d"), name("b"));
    assert_eq!(kind(onto), Some(ErrorKind::NotADirectory));
}

pub fn a_link_is_a_second_name<S: Storage>(place: Place<S>, _: &Path) {
    let a = file(&place, "a");
    file(&place, "b");
    place.directory.link(name("a"), name("c")).unwrap();
    let found = place.directory.metadata(name("c")).unwrap().unwrap();
    assert_eq!((found.id, found.links), (a.id(), 2));
    let taken = place.directory.link(name("a"), name("b"));
    assert_eq!(kind(taken), Some(ErrorKind::AlreadyExists));
    // Two names of one file: nothing to do, and nothing is done.
    place.directory.rename(name("a"), name("c")).unwrap();
    assert_eq!((read(&place, "a"), read(&place, "c")), ("a".into(), "a".into()));
    place.directory.rename(name("b"), name("a")).unwrap();
    assert_eq!((read(&place, "a"), read(&place, "c")), ("b".into(), "a".into()));
    assert_eq!(place.directory.metadata(name("c")).unwrap().unwrap().links, 1);
    place.directory.unlink(name("c")).unwrap();
    let gone = place.directory.link(name("c"), name("d"));
    assert_eq!(kind(gone), Some(ErrorKind::NotFound));
}

pub fn a_file_without_a_name_lives_on<S: Storage>(place: Place<S>, _: &Path) {
    let old = file(&place, "a");
    place.directory.unlink(name("a")).unwrap();
    let new = file(&place, "a");
    old.write_at(b"old", 0).unwrap();
    assert_eq!((old.metadata().unwrap().links, new.metadata().unwrap().links), (0, 1));
    assert_ne!(old.id(), new.id());
    assert_eq!(read(&place, "a"), "a");
}

pub fn directories_are_made_and_removed_when_empty<S: Storage>(place: Place<S>, path: &Path) {
    let made = || place.directory.create_directory(name("d"));
    let removed = || place.directory.remove_directory(name("d"));
    made().unwrap();
    assert_eq!(kind(made()), Some(ErrorKind::AlreadyExists));
    let inner = place.storage.open_directory(&path.join("d")).unwrap();
    inner.open(name("x"), NEW).unwrap();
    assert_eq!(kind(removed()), Some(ErrorKind::DirectoryNotEmpty));
    inner.unlink(name("x")).unwrap();
    removed().unwrap();
    assert_eq!(kind(removed()), Some(ErrorKind::NotFound));
    place.directory.flush().unwrap();
}

pub fn unlink_is_for_files_and_remove_for_directories<S: Storage>(place: Place<S>, _: &Path) {
    file(&place, "a");
    place.directory.create_directory(name("d")).unwrap();
    assert_eq!(kind(place.directory.unlink(name("d"))), Some(ErrorKind::IsADirectory));
    let removed = place.directory.remove_directory(name("a"));
    assert_eq!(kind(removed), Some(ErrorKind::NotADirectory));
    assert_eq!(kind(place.directory.unlink(name("b"))), Some(ErrorKind::NotFound));
    let opened = place.directory.open(name("d"), OpenMode::ReadWrite);
    assert_eq!(kind(opened), Some(ErrorKind::IsADirectory));
}

pub fn names_are_single_components<S: Storage>(place: Place<S>, _: &Path) {
    file(&place, "a");
    for bad in ["", ".", "..", "./a", "/a", "a/"] {
        let (bad, good) = (name(bad), name("a"));
        let directory = &place.directory;
        let expected = Some(ErrorKind::InvalidInput);
        assert_eq!(kind(directory.open(bad, NEW)), expected);
        assert_eq!(kind(directory.metadata(bad)), expected);
        assert_eq!(kind(directory.exchange(good, bad)), expected);
        assert_eq!(kind(directory.rename(bad, good)), expected);
        assert_eq!(kind(directory.unlink(bad)), expected);
        assert_eq!(kind(directory.create_directory(bad)), expected);
        assert_eq!(kind(directory.remove_directory(bad)), expected);
    }
}

pub fn a_missing_directory_is_not_opened<S: Storage>(place: Place<S>, path: &Path) {
    let open = |name| place.storage.open_directory(&path.join(name));
    assert_eq!(kind(open("none")), Some(ErrorKind::NotFound));
    file(&place, "a");
    assert_eq!(kind(open("a")), Some(ErrorKind::NotADirectory));
}

pub fn a_handle_follows_its_directory<S: Storage>(place: Place<S>, path: &Path) {
    place.directory.create_directory(name("old")).unwrap();
    let inner = place.storage.open_directory(&path.join("old")).unwrap();
    place.directory.rename(name("old"), name("new")).unwrap();
    inner.open(name("x"), NEW).unwrap();
    let moved = place.storage.open_directory(&path.join("new")).unwrap();
    assert!(moved.metadata(name("x")).unwrap().is_some());
}

pub fn nothing_is_mounted_over_a_file_of_ours<S: Storage>(place: Place<S>, _: &Path) {
    file(&place, "a");
    place.directory.create_directory(name("d")).unwrap();
    for there in ["a", "d", "missing"] {
        assert_eq!(place.directory.is_mount_point(name(there)).ok(), Some(false), "{there}");
    }
}
