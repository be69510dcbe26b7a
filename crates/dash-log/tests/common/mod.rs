//! What the tests of the log share: images, records, a log's bytes.

#![allow(dead_code, reason = "each test file uses a part of this")]
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use dash_engine::error::{Error, Operation, Result};
use dash_log::file::LogFile;
use dash_log::format::{Form, RING_START};
use dash_log::head::{Head, State};
use dash_log::record::Builder;
use dash_storage::Directory;
use std::ffi::OsStr;
use std::io::ErrorKind;

pub const ID: u64 = 0x1122_3344_5566_7788;

/// Bytes of an image in most tests.
pub const UNIT: usize = 512;

/// Bytes that look like nothing, the same for the same seed.
pub fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let step = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..len).map(step).collect()
}

/// A head in use, of no context.
pub fn head(id: u64, sequence: u64) -> Head {
    Head {
        id,
        state: State::InUse,
        block: 512,
        sequence,
        ring: 0,
        owner: 5,
        next: None,
        context: Vec::new(),
    }
}

/// A record whose one image is noise of so many bytes, that is nothing but these.
pub fn record(id: u64, sequence: u64, flags: u16, content: usize) -> Vec<u8> {
    let mut builder = Builder::new();
    builder.begin(id, sequence, flags, content as u32, 3, b"ctx").unwrap();
    let image: Vec<u8> = noise(sequence, content).iter().map(|byte| byte | 1).collect();
    builder.push(sequence as u32, b"abc", None, &image).unwrap();
    builder.finish(512).unwrap().to_vec()
}

/// The same, as a log of lines has it.
pub fn compact(id: u64, sequence: u64, flags: u16, content: usize) -> Vec<u8> {
    let mut builder = Builder::new();
    builder.set_form(Form::Lines);
    builder.begin(id, sequence, flags, content as u32, 3, b"ctx").unwrap();
    let image: Vec<u8> = noise(sequence, content).iter().map(|byte| byte | 1).collect();
    builder.push(sequence as u32, b"abc", None, &image).unwrap();
    builder.finish(64).unwrap().to_vec()
}

/// The bytes of a compact record with a right checksum.
pub fn resealed_compact(mut bytes: Vec<u8>, length: usize) -> Vec<u8> {
    bytes[4..8].fill(0);
    let sum = crc32fast::hash(&bytes[..length]);
    bytes[4..8].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// A head of a log of lines of the version before compact records.
pub fn former(head: &Head, turn: u64) -> Vec<u8> {
    let mut bytes = head.encode_turn(turn).unwrap().to_vec();
    bytes[8] = 2;
    bytes[12..16].fill(0);
    let sum = crc32fast::hash(&bytes);
    bytes[12..16].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// A log of this head with records at positions of its ring.
pub fn log(head: Option<&Head>, ring: usize, records: &[(usize, &[u8])]) -> Vec<u8> {
    let start = RING_START as usize;
    let mut bytes = vec![0; start + ring];
    if let Some(head) = head {
        bytes[..512].copy_from_slice(&head.encode().unwrap());
    }
    for (position, record) in records {
        bytes[start + position..start + position + record.len()].copy_from_slice(record);
    }
    bytes
}

/// Makes a log of lines; `None`, and no file, where there is no memory for that.
pub fn create_mapped<D: Directory>(
    directory: &D,
    name: &OsStr,
    permissions: u32,
    ring: u64,
) -> Result<Option<LogFile<D::File>>> {
    match LogFile::create(directory, name, permissions, ring, Form::Lines) {
        Err(Error::Io { operation: Operation::Map, source, .. })
            if source.kind() == ErrorKind::Unsupported =>
        {
            Ok(None)
        }
        made => made.map(Some),
    }
}
