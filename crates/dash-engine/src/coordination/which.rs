//! What a coordination file is called, what it begins with, and the bytes of it that are locked.

use crate::error::Error;
use dash_storage::FileId;
use std::ffi::OsStr;
use std::ops::Range;
use std::time::Duration;

/// How often an opener looks that waits for another one.
pub(super) const OPEN_PAUSE: Duration = Duration::from_micros(500);

/// Words of the head, in every layout.
pub const HEAD: usize = 64;

/// The head of a coordination file.
pub type Head = [u64; HEAD];

/// Held while opening, closing or recovering.
pub const OPEN: Range<u64> = 0..1;

/// Held by the write transaction.
pub const WRITER: Range<u64> = 1..2;

/// Held, shared, by every connection of dash for its life; exclusive: the first and the last one.
pub const ALIVE: Range<u64> = 2..3;

/// First word of a coordination file, with the layout's number in its lowest bits.
pub const DASH: u64 = 0x0001_6873_6164_0000;

/// Those bits.
pub const LAYOUT: u64 = 0xFFFF;

/// Layouts from this number on are those of mode wal.
pub const WAL_LAYOUTS: u64 = 0x4000;

/// The file's name, and what it and the database are called in messages.
#[derive(Debug, Clone, Copy)]
pub struct CoordinationFile<'a> {
    /// Its name in the database's folder.
    pub name: &'a OsStr,
    /// The same, for messages.
    pub shown: &'a str,
    /// The database's name there.
    pub named: &'a OsStr,
    /// The database, for messages.
    pub db: &'a str,
    /// Which files the head of one says that it is shared of.
    pub databases: fn(&Head) -> [Option<FileId>; 2],
    /// The word of the head that tells a file from a copy of it, by its own inode number.
    pub own: Option<usize>,
    /// Why nobody joins those who have filled one in another way, by its first word.
    pub refusal: fn(u64, &str) -> Option<Error>,
}
