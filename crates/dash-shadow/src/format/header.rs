//! The marks that this engine makes in SQLite's own header.
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

use dash_engine::header::{COUNTER, VALID_FOR, VERSIONS};
pub use dash_engine::header::{HEADER_LEN, Header, VERSION_BYTES, seal};
use std::ops::Range;

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

/// A mark to be written at [`FENCE_OFFSET`].
pub type Mark = [u8; MARKED.end - MARKED.start];

/// What the marks in a header say, and what they are made of.
pub trait Marks {
    /// The file change counter, as committed.
    fn counter(&self) -> u32;

    /// The bytes a pager compares, as committed.
    fn version(&self) -> [u8; 16];

    /// What to write at [`FENCE_OFFSET`] to mark a copy with this header as demoted.
    fn demotion(&self) -> Mark;

    /// What to write there to protect it.
    fn protection(&self) -> Mark;

    /// What to write there to take either mark away again.
    fn promotion(&self) -> Mark;

    /// Whether the copy carries the mark of one that is being written.
    fn is_fenced(&self) -> bool;

    /// Whether the copy carries the mark of one that was current before.
    fn is_demoted(&self) -> bool;

    /// Whether stock SQLite is kept from writing the copy.
    fn is_protected(&self) -> bool;

    /// The 22 bytes to write at [`FENCE_OFFSET`] to fence this header.
    fn fence(&self) -> [u8; FENCE_LEN];
}

impl Marks for Header {
    fn counter(&self) -> u32 {
        self.change_counter()
            ^ if self.is_demoted() || self.is_protected() { MARKED_BIT } else { 0 }
    }

    fn version(&self) -> [u8; 16] {
        let mut version = [0; 16];
        version.copy_from_slice(&unmarked(self)[VERSION_BYTES]);
        version
    }

    fn demotion(&self) -> Mark {
        marked(self, DEMOTED)
    }

    fn protection(&self) -> Mark {
        marked(self, PROTECTED)
    }

    fn promotion(&self) -> Mark {
        let mut bytes = [0; MARKED.end - MARKED.start];
        bytes.copy_from_slice(&unmarked(self)[MARKED]);
        bytes
    }

    fn is_fenced(&self) -> bool {
        self.0[19] == 3
    }

    fn is_demoted(&self) -> bool {
        self.0[18] == DEMOTED && self.0[19] != 3
    }

    fn is_protected(&self) -> bool {
        self.0[18] == PROTECTED && self.0[19] != 3
    }

    fn fence(&self) -> [u8; FENCE_LEN] {
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

/// A header with one of the two marks of the write version.
fn marked(header: &Header, write_version: u8) -> Mark {
    let mut marked = unmarked(header);
    mark(&mut marked, write_version);
    let mut bytes = [0; MARKED.end - MARKED.start];
    bytes.copy_from_slice(&marked[MARKED]);
    bytes
}

fn unmarked(header: &Header) -> [u8; HEADER_LEN] {
    let mut bytes = header.0;
    unmark(&mut bytes);
    bytes
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

#[cfg(test)]
mod tests {
    use super::*;
    use dash_engine::header::{MAGIC, PAGES};

    fn header() -> Header {
        let mut bytes = [0; HEADER_LEN];
        bytes[..16].copy_from_slice(MAGIC);
        bytes[16..20].copy_from_slice(&[0x10, 0, 1, 1]);
        seal(&mut bytes, 7);
        bytes[PAGES].copy_from_slice(&3u32.to_be_bytes());
        Header(bytes)
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
