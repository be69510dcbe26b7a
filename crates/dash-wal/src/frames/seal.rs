//! A header of `-wal` that keeps stock SQLite out (WAL-45): all of it is as SQLite wrote it, but
//! the format, and the checksum of that.
//!
//! SQLite looks at the format when it has to make a wal-index anew, behind the checksum, and opens
//! nothing of one that it doesn't know (wal.c `walIndexRecover`). Frames continue the checksum of
//! the header as SQLite wrote it.

use super::sums::{ByteOrder, FORMAT, HEADER, MAGIC, checksum, number};

/// The format of a sealed one: "dash".
pub(super) const SEALED: u32 = 0x6461_7368;

/// Where the checkpoint sequence is, and the salt that every reset raises.
const SEQUENCE: usize = 12;
const SALT: usize = 16;

/// A valid header, sealed.
pub(crate) fn sealed(header: &[u8; HEADER]) -> [u8; HEADER] {
    with_format(header, SEALED)
}

/// A header as SQLite wrote it. One that is not sealed is what it is.
pub(crate) fn opened(header: &[u8; HEADER]) -> [u8; HEADER] {
    if number(header, 4) == SEALED { with_format(header, FORMAT) } else { *header }
}

fn with_format(header: &[u8; HEADER], format: u32) -> [u8; HEADER] {
    let mut bytes = *header;
    bytes[4..8].copy_from_slice(&format.to_be_bytes());
    summed_up(bytes)
}

/// The header of the generation behind that of a valid one, as SQLite begins it (wal.c
/// `walRestartHdr`, `sqlite3WalFrames`), but with the same random salt.
pub(crate) fn next(header: &[u8; HEADER]) -> [u8; HEADER] {
    let mut bytes = *header;
    for at in [SEQUENCE, SALT] {
        bytes[at..at + 4].copy_from_slice(&number(header, at).wrapping_add(1).to_be_bytes());
    }
    summed_up(bytes)
}

fn summed_up(mut bytes: [u8; HEADER]) -> [u8; HEADER] {
    let order = if number(&bytes, 0) == MAGIC { ByteOrder::Little } else { ByteOrder::Big };
    let [one, two] = checksum(order, &bytes[..24], [0, 0]);
    bytes[24..28].copy_from_slice(&one.to_be_bytes());
    bytes[28..].copy_from_slice(&two.to_be_bytes());
    bytes
}
