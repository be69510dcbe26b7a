//! What the kernel must be told in the right words: links, modes, mappings, the clock.

#![expect(unsafe_code, reason = "reads a mapping")]

use std::ffi::OsStr;
use std::io::{ErrorKind, IoSlice};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::sync::atomic::Ordering;

use super::{NEW, fixture, open};
use crate::real::Real;
use crate::{Directory as _, File as _, FileKind, OpenMode, ReadMap, SharedMemory, Storage as _};

#[test]
fn a_symbolic_link_is_seen_and_not_followed() {
    let (place, directory) = fixture();
    open(&directory, "db");
    symlink("db", place.path().join("link")).unwrap();
    let link = OsStr::new("link");
    assert_eq!(directory.metadata(link).unwrap().unwrap().kind, FileKind::Other);
    for mode in [OpenMode::Read, OpenMode::ReadWrite, NEW] {
        let error = directory.open(link, mode).err().unwrap();
        assert!(error.to_string().contains("it is a symbolic link"), "{error}");
    }
}

/// SEC9: a pipe was waited for.
#[test]
fn a_pipe_a_socket_and_a_device_are_refused_at_once() {
    let (place, directory) = fixture();
    nix::unistd::mkfifo(&place.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(place.path().join("socket")).unwrap();
    for (name, what) in [("pipe", "a named pipe"), ("socket", "a socket")] {
        for mode in [OpenMode::Read, OpenMode::ReadWrite] {
            let error = directory.open(OsStr::new(name), mode).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}: {error}");
            assert!(error.to_string().contains(what), "{name}: {error}");
        }
    }
    let devices = Real.open_directory(Path::new("/dev")).unwrap();
    let error = devices.open(OsStr::new("null"), OpenMode::Read).err().unwrap();
    assert!(error.to_string().contains("a device"), "{error}");
}

#[test]
fn metadata_is_what_stat_says() {
    let (place, directory) = fixture();
    let file =
        directory.open(OsStr::new("db"), OpenMode::CreateNew { permissions: 0o600 }).unwrap();
    file.write_at(b"12345", 0).unwrap();
    let expected = std::fs::metadata(place.path().join("db")).unwrap();
    for found in [file.metadata().unwrap(), directory.metadata("db".as_ref()).unwrap().unwrap()] {
        assert_eq!((found.id.device, found.id.inode), (expected.dev(), expected.ino()));
        assert_eq!((found.len, found.links, found.permissions), (5, 1, 0o600));
        assert_eq!(found.kind, FileKind::Regular);
        assert_eq!(found.id, file.id());
    }
}

#[test]
fn descriptors_are_closed_on_exec() {
    let (place, directory) = fixture();
    let _file = open(&directory, "db");
    let place = place.path().canonicalize().unwrap();
    let mut ours = 0;
    for entry in std::fs::read_dir("/proc/self/fd").unwrap().flatten() {
        let target = std::fs::read_link(entry.path()).unwrap_or_default();
        if target.starts_with(&place) {
            let number = entry.file_name().into_string().unwrap();
            let info = std::fs::read_to_string(Path::new("/proc/self/fdinfo").join(number));
            let info = info.unwrap();
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap();
            let flags = i32::from_str_radix(flags.trim(), 8).unwrap();
            assert_ne!(flags & libc::O_CLOEXEC, 0);
            ours += 1;
        }
    }
    assert_eq!(ours, 2);
}

#[test]
fn a_mapping_shows_later_writes() {
    let (_place, directory) = fixture();
    let file = open(&directory, "db");
    file.write_at(&[1; 4096], 0).unwrap();
    let map = file.map(4096).unwrap();
    file.write_at(b"seen", 100).unwrap();
    assert_eq!(map.len(), 4096);
    // SAFETY: the mapping is 4096 bytes long, and nobody writes while the slice is used.
    let bytes = unsafe { std::slice::from_raw_parts(map.as_ptr(), 4096) };
    assert_eq!(&bytes[100..104], b"seen");
    assert!(file.map(0).unwrap().is_empty());
}

#[test]
fn shared_memory_never_shortens_the_file() {
    let (_place, directory) = fixture();
    let file = open(&directory, "shm");
    let large = file.shared_memory(4096).unwrap();
    let small = open(&directory, "shm").shared_memory(1).unwrap();
    small.word(0).store(5, Ordering::SeqCst);
    assert_eq!(large.word(0).load(Ordering::SeqCst), 5);
    assert_eq!(file.metadata().unwrap().len, 4096 * 8);
    assert_eq!((large.len(), small.len()), (4096, 1));
}

#[test]
fn more_buffers_than_one_call_takes_are_written() {
    let (_place, directory) = fixture();
    let file = open(&directory, "db");
    let bytes: Vec<u8> = (0..3000_u32).map(|n| n.to_le_bytes()[0]).collect();
    let buffers: Vec<IoSlice<'_>> = bytes.chunks(1).map(IoSlice::new).collect();
    file.write_vectored_at(&buffers, 7).unwrap();
    let mut read = vec![0; 4000];
    assert_eq!(file.read_at(&mut read, 7).unwrap(), 3000);
    assert_eq!(read[..3000], bytes);
}

#[test]
fn what_the_file_system_cannot_do_is_unsupported() {
    let (_place, directory) = fixture();
    let (a, b) = (open(&directory, "a"), open(&directory, "b"));
    a.write_at(&[1; 8192], 0).unwrap();
    match b.clone_range(&a, 0..8192) {
        Ok(()) => assert_eq!(b.metadata().unwrap().len, 8192),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Unsupported),
    }
    // Cloning a range onto itself no file system does.
    let error = a.clone_range(&a, 0..4096).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[test]
fn the_clock_goes_on_and_numbers_differ() {
    let before = Real.monotonic_nanos();
    Real.sleep(std::time::Duration::from_millis(2));
    assert!(Real.monotonic_nanos() >= before + 2_000_000);
    let (a, b) = (Real.random(), Real.random());
    assert!(a != 0 && b != 0 && a != b);
}

#[test]
fn an_empty_path_is_the_working_directory() {
    let directory = Real.open_directory(Path::new("")).unwrap();
    assert!(directory.metadata("Cargo.toml".as_ref()).unwrap().is_some());
    assert!(Real.open_directory(Path::new("Cargo.toml")).is_err());
}
