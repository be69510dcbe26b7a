//! What the kernel says of an open file.

use std::fs;
use std::io::{self, ErrorKind};

use super::retry::uninterrupted;

pub(super) fn stat(file: &fs::File) -> io::Result<fs::Metadata> {
    uninterrupted(|| file.metadata())
}

/// A time of day since 1970.
pub(super) fn nanos(seconds: i64, nanos: i64) -> u64 {
    let seconds = u64::try_from(seconds).unwrap_or(0);
    seconds.wrapping_mul(1_000_000_000).wrapping_add(u64::try_from(nanos).unwrap_or(0))
}

/// The refusal of what is no regular file.
pub(super) fn not_regular(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("it is {what}, not a file; remove it"))
}
