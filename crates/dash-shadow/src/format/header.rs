//! The few bytes of SQLite's own header (page 1, offsets 0–99) that the engine reads and marks.
//! Source: SQLite's "Database File Format", section 1.3.
//!
//! All marks are made in the page cache. Two are in the *shadow* only, never in the current copy:
//!
//! - **demoted** (byte 18 = 3, the top bits of the two counters at 24 and 92 inverted): the copy
//!   was current and is not any more. A stock connection that still has it open may read it but not
//!   write it ("attempt to write a readonly database"); the counters make it look at byte 18 again.
//! - **fenced** (bytes 18 and 19 = 3, bytes 24–39 XOR 0x55): the copy is being written. A stock
//!   connection that still has it open gets "file is not a database", also from its page cache,
//!   because the counter it compares has changed.
//!
//! One is in the *current* copy only, from a clean close to the next commit or clean close
//! (SHADOW-16):
//!
//! - **protected** (byte 18 = 4, the same bits inverted): other programs have the shadow open, as
//!   it was called before. Stock SQLite may read this file but not write it.

use std::ops::Range;

/// Bytes of the header that SQLite defines.
pub const HEADER_LEN: usize = 100;

/// What every database begins with.
pub const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Write and read version.
const VERSIONS: Range<usize> = 18..20;

/// File change counter.
const COUNTER: Range<usize> = 24..28;

/// Size of the database in pages.
const PAGES: Range<usize> = 28..32;

/// The bytes a pager compares to see whether its cache is still right (pager.c `dbFileVers`).
pub const VERSION_BYTES: Range<usize> = 24..40;

/// The counter value for which the size in bytes 28–31 is right.
const VALID_FOR: Range<usize> = 92..96;

/// Where the fence begins in the file.
pub const FENCE_OFFSET: u64 = 18;

/// The write version of a demoted copy. SQLite writes none above 2, and no file that has one.
const DEMOTED: u8 = 3;

/// That of a protected one.
const PROTECTED: u8 = 4;

/// The counter's bit that these marks invert, so that a stock connection looks at the write version
/// again.
const MARKED_BIT: u32 = 1 << 31;

/// How far the change counter of a commit that no name fence guards is ahead of the one it was made
/// on: further than whoever writes on that one, too, will count (SHADOW-19).
pub const LEAP: u32 = 1 << 20;

/// The bytes that these marks change.
const MARKED: Range<usize> = 18..93;

/// Bytes the fence changes, beginning at [`FENCE_OFFSET`].
pub const FENCE_LEN: usize = 22;

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

    /// The file change counter, as committed.
    pub fn counter(&self) -> u32 {
        self.u32(COUNTER) ^ if self.is_demoted() || self.is_protected() { MARKED_BIT } else { 0 }
    }

    /// The bytes a pager compares, as committed.
    pub fn version(&self) -> [u8; 16] {
        let mut version = [0; 16];
        version.copy_from_slice(&self.unmarked()[VERSION_BYTES]);
        version
    }

    /// What to write at [`FENCE_OFFSET`] to mark a copy with this header as demoted.
    pub fn demotion(&self) -> [u8; MARKED.end - MARKED.start] {
        self.marked(DEMOTED)
    }

    /// What to write there to protect it.
    pub fn protection(&self) -> [u8; MARKED.end - MARKED.start] {
        self.marked(PROTECTED)
    }

    /// What to write there to take either mark away again.
    pub fn promotion(&self) -> [u8; MARKED.end - MARKED.start] {
        let mut bytes = [0; MARKED.end - MARKED.start];
        bytes.copy_from_slice(&self.unmarked()[MARKED]);
        bytes
    }

    fn marked(&self, write_version: u8) -> [u8; MARKED.end - MARKED.start] {
        let mut marked = self.unmarked();
        mark(&mut marked, write_version);
        let mut bytes = [0; MARKED.end - MARKED.start];
        bytes.copy_from_slice(&marked[MARKED]);
        bytes
    }

    fn unmarked(&self) -> [u8; HEADER_LEN] {
        let mut bytes = self.0;
        unmark(&mut bytes);
        bytes
    }

    /// Size of the database in bytes by its header; `None` if the header does not vouch for it.
    pub fn size(&self) -> Option<u64> {
        let pages = self.u32(PAGES);
        (pages > 0 && self.u32(COUNTER) == self.u32(VALID_FOR))
            .then(|| u64::from(pages) * u64::from(self.page_size().unwrap_or(0)))
    }

    /// Whether the copy carries the mark of one that is being written.
    pub fn is_fenced(&self) -> bool {
        self.0[19] == 3
    }

    /// Whether the copy carries the mark of one that was current before.
    pub fn is_demoted(&self) -> bool {
        self.0[18] == DEMOTED && self.0[19] != 3
    }

    /// Whether stock SQLite is kept from writing the copy.
    pub fn is_protected(&self) -> bool {
        self.0[18] == PROTECTED && self.0[19] != 3
    }

    /// Whether the file is set to WAL mode.
    pub fn is_wal(&self) -> bool {
        self.0[18] == 2 || self.0[19] == 2
    }

    /// The 22 bytes to write at [`FENCE_OFFSET`] to fence this header.
    pub fn fence(&self) -> [u8; FENCE_LEN] {
        let mut bytes = [0; FENCE_LEN];
        bytes.copy_from_slice(&self.0[18..40]);
        bytes[0] = 3;
        bytes[1] = 3;
        for byte in &mut bytes[6..] {
            *byte ^= 0x55;
        }
        bytes
    }
}

/// Makes page 1 what SQLite wrote: without our marks and without our block.
pub fn plain(page: &mut [u8]) {
    unmark(page);
    crate::format::first_page::blank(page);
}

/// Takes our marks out of the start of page 1.
pub fn unmark(page: &mut [u8]) {
    if let Some([.., DEMOTED | PROTECTED, read]) = page.get(..VERSIONS.end)
        && *read != 3
    {
        page[VERSIONS.start] = *read;
        invert_counters(page);
    }
}

/// Marks the start of page 1 as that of a copy that was current before.
pub fn mark_demoted(page: &mut [u8]) {
    mark(page, DEMOTED);
}

fn mark(page: &mut [u8], write_version: u8) {
    if page.len() >= HEADER_LEN {
        page[VERSIONS.start] = write_version;
        invert_counters(page);
    }
}

fn invert_counters(page: &mut [u8]) {
    for at in [COUNTER.start, VALID_FOR.start] {
        if let Some(byte) = page.get_mut(at) {
            *byte ^= 0x80;
        }
    }
}

/// Prepares page 1 for a commit: a counter that every cached page 1 must differ from, and the
/// rollback-mode versions.
pub fn seal(page: &mut [u8], counter: u32) {
    page[VERSIONS].fill(1);
    page[COUNTER].copy_from_slice(&counter.to_be_bytes());
    page[VALID_FOR].copy_from_slice(&counter.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        let mut bytes = [0; HEADER_LEN];
        bytes[..16].copy_from_slice(MAGIC);
        bytes[16..20].copy_from_slice(&[0x10, 0, 1, 1]);
        seal(&mut bytes, 7);
        bytes[PAGES].copy_from_slice(&3u32.to_be_bytes());
        Header(bytes)
    }

    #[test]
    fn the_size_counts_only_while_the_counters_agree() {
        assert_eq!(header().size(), Some(3 * 4096));
        let mut stale = header();
        stale.0[27] += 1;
        assert_eq!(stale.size(), None);
    }

    #[test]
    fn a_fence_changes_the_versions_and_every_byte_a_pager_compares() {
        let mut fenced = header();
        let fence = fenced.fence();
        fenced.0[18..40].copy_from_slice(&fence);
        assert!(fenced.is_fenced() && !fenced.is_demoted());
        assert!(VERSION_BYTES.into_iter().all(|i| fenced.0[i] != header().0[i]));
    }

    #[test]
    fn a_demoted_or_protected_header_is_shown_to_sqlite_unmarked() {
        for (mark, demoted) in [(header().demotion(), true), (header().protection(), false)] {
            let mut marked = header();
            marked.0[18..93].copy_from_slice(&mark);
            assert_eq!((marked.is_demoted(), marked.is_protected()), (demoted, !demoted));
            assert!(!marked.is_fenced() && marked.is_sqlite());
            assert_ne!(marked.0[VERSION_BYTES], header().0[VERSION_BYTES]);
            assert_eq!(marked.counter(), header().counter());
            assert_eq!(marked.size(), header().size());
            assert_eq!(marked.promotion(), header().0[18..93]);
            assert_eq!(marked.protection(), header().protection());
            unmark(&mut marked.0);
            assert_eq!(marked, header());
        }
    }
}
