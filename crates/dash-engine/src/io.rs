//! Positioned reads and writes, whole, in pieces, with zeros where a file ends before.

use crate::buffer_pool::part_of;
use crate::error::{Context, Operation, Result};
use crate::header::{HEADER_LEN, Header};
use crate::memory::zeros;
use dash_storage::File;
use std::io::ErrorKind;
use std::ops::Range;

/// What a file has in `range`; zeros where it ends before.
pub fn bytes_of<F: File>(file: &F, range: &Range<u64>, name: &str) -> Result<Vec<u8>> {
    let mut bytes = zeros(range.end - range.start)?;
    read_padded(file, &mut bytes, range.start).during(Operation::Read, name)?;
    Ok(bytes)
}

/// The longest unit of a page list, and what is read at once where a whole file is gone through.
pub const STRIDE: u64 = 1 << 20;

/// Bytes written at once. A large write makes a large folio of the page cache, and every later
/// write and flush of one page in it costs the kernel a walk over all its blocks: measured 40 µs a
/// place for folios of 1 MiB, nothing up to 32 KiB (Linux 6.18, ext4).
pub const PIECE: usize = 16 << 10;

/// Reads exactly `buffer.len()` bytes; `false` if the file ends before.
pub fn read_exact<F: File>(file: &F, buffer: &mut [u8], offset: u64) -> std::io::Result<bool> {
    Ok(read_some(file, buffer, offset)? == buffer.len())
}

/// Reads `buffer.len()` bytes, with zeros where the file ends before.
pub fn read_padded<F: File>(file: &F, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
    let done = read_some(file, buffer, offset)?;
    buffer[done..].fill(0);
    Ok(())
}

/// Reads `buffer.len()` bytes or up to the end of the file; returns how many.
pub fn read_some<F: File>(file: &F, buffer: &mut [u8], offset: u64) -> std::io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// The header, or `None` if the file is shorter.
pub fn read_header<F: File>(file: &F, name: &str) -> Result<Option<Header>> {
    let mut bytes = [0; HEADER_LEN];
    let whole = read_exact(file, &mut bytes, 0).during(Operation::Read, name)?;
    Ok(whole.then_some(Header(bytes)))
}

/// Makes a file `len` bytes long, with zeros written from `from` on. Blocks that are only reserved
/// would add a journal commit of the file system to the flush of every commit that first writes
/// one.
pub fn extend<F: File>(file: &F, from: u64, len: u64, name: &str) -> Result<()> {
    file.allocate(len).during(Operation::Resize, name)?;
    write_zeros(file, from, len, name)
}

/// Writes zeros from `from` to `len`.
pub fn write_zeros<F: File>(file: &F, from: u64, len: u64, name: &str) -> Result<()> {
    let zeros = zeros(len.saturating_sub(from).min(PIECE as u64))?;
    let mut at = from;
    while at < len {
        let part = part_of(len - at).min(PIECE);
        file.write_at(&zeros[..part], at).during(Operation::Write, name)?;
        at += part as u64;
    }
    Ok(())
}

/// Writes `bytes` in pieces that don't make large folios.
pub fn write_pieces<F: File>(file: &F, bytes: &[u8], at: u64, name: &str) -> Result<()> {
    let mut place = at;
    for piece in bytes.chunks(PIECE) {
        file.write_at(piece, place).during(Operation::Write, name)?;
        place += piece.len() as u64;
    }
    Ok(())
}
