//! What tells one state of a database from another: a few bytes about SQLite's header on page 1.
//!
//! A generation is tied to the database by two things that are looked at before anything of the
//! generation is copied there: SQLite's header, and the page that the generation before wrote last.
//! From then on the database has that header, or one that a frame of page 1 has put in its place:
//! any other one is of another database, or of another state of this one (WAL-18). So it is with
//! the page; whole pages may be torn, so one that the generation writes, too, tells nothing. The
//! inode number says less, as copying and restoring change it.

use crate::frames::{ByteOrder, checksum, pack, unpack};
use dash_engine::error::{Context, Operation, Result};
use dash_engine::header::COUNTER;
use dash_engine::io::read_padded;
use dash_storage::File;

/// Bytes of the header that are looked at: all that tells of the content. The SQLite version that
/// wrote it is behind them.
const LEN: usize = 96;

/// The header, in short. All zeros: it is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// The file change counter. It never falls, and rises with most changes of the header: a
    /// connection that commits several times in WAL mode raises it once.
    pub counter: u32,
    /// A checksum of the header's first 96 bytes.
    pub sum: u32,
    /// The page that the generation before wrote last; 0: not known.
    pub page: u32,
    /// A checksum of it.
    pub page_sum: u32,
}

impl Stamp {
    /// Of a page 1, or of its beginning.
    pub fn of(page: &[u8]) -> Self {
        let mut header = [0; LEN];
        let len = page.len().min(LEN);
        header[..len].copy_from_slice(&page[..len]);
        let counter = header[COUNTER].iter().fold(0, |value, &byte| value << 8 | u32::from(byte));
        Self { counter, sum: sum_of(&header), ..Self::default() }
    }

    /// Of a database's file.
    pub fn read<F: File>(database: &F, name: &str) -> Result<Self> {
        let mut header = [0; LEN];
        read_padded(database, &mut header, 0).during(Operation::Read, name)?;
        Ok(Self::of(&header))
    }

    /// The same, with a page.
    pub fn with_page(self, page: u32, bytes: &[u8]) -> Self {
        Self { page, page_sum: sum_of(bytes), ..self }
    }

    /// As words of shared memory.
    pub fn words(self) -> [u64; 2] {
        [pack([self.counter, self.sum]), pack([self.page, self.page_sum])]
    }

    /// And back.
    pub fn of_words([header, last]: [u64; 2]) -> Self {
        let ([counter, sum], [page, page_sum]) = (unpack(header), unpack(last));
        Self { counter, sum, page, page_sum }
    }

    /// Appends its four numbers, u32 each.
    pub fn put(self, bytes: &mut Vec<u8>) {
        let Self { counter, sum, page, page_sum } = self;
        bytes.extend([counter, sum, page, page_sum].into_iter().flat_map(u32::to_le_bytes));
    }

    /// Whether the header is known.
    pub fn is_known(self) -> bool {
        (self.counter, self.sum) != (0, 0)
    }

    /// Whether a page 1 begins with this header.
    pub fn is_header_of(self, page: &[u8]) -> bool {
        self.is_same_header(Self::of(page))
    }

    /// Whether the headers are the same.
    pub fn is_same_header(self, other: Self) -> bool {
        (self.counter, self.sum) == (other.counter, other.sum)
    }

    /// Whether this is the page.
    pub fn is_page(self, bytes: &[u8]) -> bool {
        self.page_sum == sum_of(bytes)
    }

    /// Whether it is of a state before `other`'s, by the counter.
    pub fn is_before(self, other: Self) -> bool {
        let behind = other.counter.wrapping_sub(self.counter);
        behind != 0 && behind < 1 << 31
    }
}

fn sum_of(bytes: &[u8]) -> u32 {
    let [_, sum] = checksum(ByteOrder::Big, bytes, [0, 0]);
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_tells_headers_apart() {
        let mut page = [7; 512];
        page[24..28].copy_from_slice(&5_u32.to_be_bytes());
        let stamp = Stamp::of(&page).with_page(3, &[8; 512]);
        assert_eq!(stamp.counter, 5);
        assert_eq!(Stamp::of_words(stamp.words()), stamp);
        assert!(stamp.is_page(&[8; 512]) && !stamp.is_page(&page));
        for (byte, tells) in [(0, true), (30, true), (95, true), (96, false), (200, false)] {
            let mut other = page;
            other[byte] ^= 1;
            assert_eq!(stamp.is_header_of(&other), !tells, "byte {byte}");
        }
        assert!(stamp.is_known() && !Stamp::of(&[]).is_known());
    }

    #[test]
    fn a_state_is_before_another_by_its_counter() {
        let of = |counter| Stamp { counter, ..Stamp::of(&[1]) };
        assert!(of(4).is_before(of(5)) && of(u32::MAX).is_before(of(2)));
        assert!(
            !of(5).is_before(of(5)) && !of(6).is_before(of(5)) && !of(2).is_before(of(u32::MAX))
        );
    }
}
