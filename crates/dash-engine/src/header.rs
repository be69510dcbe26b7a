//! The few bytes of SQLite's own header (page 1, offsets 0–99) that engines read and seal. Source:
//! SQLite's "Database File Format", section 1.3.

use crate::error::Error;
use std::ops::Range;

/// Bytes of the header that SQLite defines.
pub const HEADER_LEN: usize = 100;

/// What every database begins with.
pub const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Write and read version.
pub const VERSIONS: Range<usize> = 18..20;

/// Bytes reserved at the end of each page, a number.
const RESERVED: usize = 20;

/// File change counter.
pub const COUNTER: Range<usize> = 24..28;

/// Size of the database in pages.
pub const PAGES: Range<usize> = 28..32;

/// The bytes a pager compares to see whether its cache is still right (pager.c `dbFileVers`).
pub const VERSION_BYTES: Range<usize> = 24..40;

/// The counter value for which the size in bytes 28–31 is right.
pub const VALID_FOR: Range<usize> = 92..96;

/// Why a database is not kept that begins otherwise than SQLite's do; `shown` is its name.
pub fn not_sqlites(shown: &str) -> Error {
    Error::NotADatabase(format!(
        "{shown}: page 1 does not begin with SQLite's header, which dash reads: is all of it encrypted? Leave the header as it is \
         (SQLCipher: PRAGMA cipher_plaintext_header_size=32), or open the database with vfs=unix"
    ))
}

/// A copy of the first 100 bytes of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header(pub [u8; HEADER_LEN]);

impl Header {
    /// The header at the start of `page`, if it is long enough.
    pub fn of(page: &[u8]) -> Option<Self> {
        Some(Self(page.get(..HEADER_LEN)?.try_into().ok()?))
    }

    fn u32(&self, range: Range<usize>) -> u32 {
        self.0[range].iter().fold(0, |value, &byte| value << 8 | u32::from(byte))
    }

    /// Whether this begins an SQLite database with a sensible page size.
    pub fn is_sqlite(&self) -> bool {
        self.0.starts_with(MAGIC) && self.page_size().is_some()
    }

    /// Page size in bytes (512 to 65,536), if it is one.
    pub fn page_size(&self) -> Option<u32> {
        match u32::from(self.0[16]) << 8 | u32::from(self.0[17]) {
            1 => Some(65_536),
            size if size >= 512 && size.is_power_of_two() => Some(size),
            _ => None,
        }
    }

    /// The file change counter, as it stands there.
    pub fn change_counter(&self) -> u32 {
        self.u32(COUNTER)
    }

    /// The write version: 1 for a rollback journal, 2 for WAL; SQLite writes no file with another.
    pub fn write_version(&self) -> u8 {
        self.0[VERSIONS.start]
    }

    /// The read version, likewise; SQLite reads no file with another.
    pub fn read_version(&self) -> u8 {
        self.0[VERSIONS.start + 1]
    }

    /// Bytes at the end of each page that are an extension's.
    pub fn reserved(&self) -> u8 {
        self.0[20]
    }

    /// Size of the database in bytes by its header; `None` if the header does not vouch for it.
    pub fn size(&self) -> Option<u64> {
        let pages = self.u32(PAGES);
        (pages > 0 && self.u32(COUNTER) == self.u32(VALID_FOR))
            .then(|| u64::from(pages) * u64::from(self.page_size().unwrap_or(0)))
    }

    /// Whether the file is set to WAL mode.
    pub fn is_wal(&self) -> bool {
        self.write_version() == 2 || self.read_version() == 2
    }
}

/// Prepares page 1 for a commit: a counter that every cached page 1 must differ from, and the
/// rollback-mode versions.
pub fn seal(page: &mut [u8], counter: u32) {
    page[VERSIONS].fill(1);
    page[COUNTER].copy_from_slice(&counter.to_be_bytes());
    page[VALID_FOR].copy_from_slice(&counter.to_be_bytes());
}

/// Whether a page ends with the checksum that SQLite's extension `cksumvfs` keeps there, in 8
/// reserved bytes. What changes such a page below that extension makes it unreadable.
#[must_use]
pub fn is_summed(first: &[u8]) -> bool {
    sum(first).is_some_and(|sum| first.ends_with(&sum))
}

/// Makes that checksum of page 1 right again.
pub fn sum_again(first: &mut [u8]) {
    if let Some(sum) = sum(first)
        && let Some(place) = first.last_chunk_mut()
    {
        *place = sum;
    }
}

/// The checksum of all before it (`cksmCompute` in `ext/misc/cksumvfs.c`). `None`: nobody keeps one
/// in the page.
fn sum(first: &[u8]) -> Option<[u8; 8]> {
    let (body, _) = first.split_last_chunk::<8>()?;
    if first.get(RESERVED) != Some(&8) {
        return None;
    }
    let words = body.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
    let mut sums = [0_u32; 2];
    for (at, word) in words.enumerate() {
        let [one, other] = [sums[at % 2], sums[(at + 1) % 2]];
        sums[at % 2] = one.wrapping_add(word).wrapping_add(other);
    }
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&sums[0].to_le_bytes());
    bytes[4..].copy_from_slice(&sums[1].to_le_bytes());
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_counts_only_while_the_counters_agree() {
        let mut bytes = [0; HEADER_LEN];
        bytes[..16].copy_from_slice(MAGIC);
        bytes[16..20].copy_from_slice(&[0x10, 0, 1, 1]);
        seal(&mut bytes, 7);
        bytes[PAGES].copy_from_slice(&3u32.to_be_bytes());
        assert_eq!(Header(bytes).size(), Some(3 * 4096));
        bytes[27] += 1;
        assert_eq!(Header(bytes).size(), None);
    }

    /// The extension's own `verify_checksum()` of SQLite 3.53.4 takes this page for right.
    #[test]
    fn a_page_with_a_checksum_is_known_and_stays_right() {
        let mut page = vec![0; 512];
        page[..24].copy_from_slice(b"SQLite format 3\0\x02\0\x01\x01\x08\x40\x20\x20");
        assert!(!is_summed(&page));
        sum_again(&mut page);
        assert!(is_summed(&page) && page.ends_with(b"\x7f\x95\xc1\xd9\xeb\xa7\x01\x78"));
        page[24] = 1;
        assert!(!is_summed(&page));
        page[RESERVED] = 0;
        let before = page.clone();
        sum_again(&mut page);
        assert_eq!(page, before, "nobody keeps one there");
    }
}
