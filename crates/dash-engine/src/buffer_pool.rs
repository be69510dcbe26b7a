//! Buffers to go through files with, kept for the next time: a program that opens its database for
//! every change needs two of 64 KiB each time, and asking the allocator for them costs as much as
//! the reading (it takes fresh pages from the kernel, and gives them back).

use crate::error::{Error, Result};
use crate::memory::zeros;
use std::ops::{Deref, DerefMut};
use std::sync::Mutex;

/// Bytes of a buffer. Below 128 KiB, so that the allocator does not map each one.
pub const BUFFER: usize = 64 << 10;

/// Buffers kept: what comparing two files needs.
const KEPT: usize = 2;

/// Smaller buffers are not worth keeping.
const SMALL: usize = 16 << 10;

static SPARE: Mutex<Vec<Box<[u8; BUFFER]>>> = Mutex::new(Vec::new());

/// Bytes of no certain content.
pub enum Buffer {
    /// A small one.
    Small(Vec<u8>),
    /// One to be kept; `None` only while it is dropped.
    Large(Option<Box<[u8; BUFFER]>>),
}

/// A buffer to go through `len` bytes with.
pub fn buffer_for(len: u64) -> Result<Buffer> {
    let len = part_of(len);
    if len <= SMALL {
        return Ok(Buffer::Small(zeros(len as u64)?));
    }
    // A lock that somebody holds (in a forked child: for ever) is not waited for.
    let spare = SPARE.try_lock().ok().and_then(|mut spare| spare.pop());
    let buffer = match spare {
        Some(spare) => spare,
        None => zeros(BUFFER as u64)?.try_into().map_err(|_| Error::OutOfMemory)?,
    };
    Ok(Buffer::Large(Some(buffer)))
}

/// How many of the `len` bytes that are left fit into such a buffer.
pub fn part_of(len: u64) -> usize {
    usize::try_from(len).unwrap_or(BUFFER).min(BUFFER)
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Small(bytes) => bytes,
            Self::Large(bytes) => bytes.as_ref().map_or(&[], |bytes| &bytes[..]),
        }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Small(bytes) => bytes,
            Self::Large(bytes) => bytes.as_mut().map_or(&mut [], |bytes| &mut bytes[..]),
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Self::Large(bytes) = self
            && let Ok(mut spare) = SPARE.try_lock()
            && spare.len() < KEPT
        {
            spare.extend(bytes.take());
        }
    }
}
