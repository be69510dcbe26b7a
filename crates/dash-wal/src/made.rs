//! `Made`: what a record's commits made of their pages, of which statements carry the record. Who
//! runs them again compares that: on a database that is not as it was before, as where a stock
//! SQLite has copied frames into it that a power loss then took from `-wal`, or where something
//! that nobody foresaw makes them do otherwise, they would do harm, and nobody would notice.

use crate::frames::{ByteOrder, Checksum, FRAME_HEADER, FrameHeader, checksum};
use dash_log::number;
use std::collections::BTreeMap;
use std::ops::Range;

/// So many pages of a record at most.
const MOST: usize = 1024;

/// On page 1 what SQLite counts and notes of itself, which depends on who commits.
const COUNTERS: [Range<usize>; 2] = [24..28, 92..100];
/// What these are within: whole pairs of words.
const HEADER: usize = 104;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Made {
    /// The pages, ascending.
    pub pages: Vec<u32>,
    /// Of what is on them.
    pub sum: Checksum,
}

impl Made {
    /// Of whole frames of `size` bytes. `None`: there are too many, or a transaction has written
    /// pages before its end, to make room, and may have thrown some away.
    pub(crate) fn of(frames: &[u8], size: usize) -> Option<Self> {
        let (mut pages, mut last) = (BTreeMap::new(), 0);
        for frame in frames.chunks_exact(size) {
            let (header, image) = frame.split_at(FRAME_HEADER);
            let header = FrameHeader::decode(header.try_into().ok()?);
            // At its end SQLite writes pages in their order.
            if header.page <= last {
                return None;
            }
            last = if header.is_commit() { 0 } else { header.page };
            pages.insert(header.page, image);
            if header.is_commit() {
                // What it has cut off the database is of no account any more.
                pages.retain(|page, _| *page <= header.commit);
            }
            if pages.len() > MOST {
                return None;
            }
        }
        let sum = pages.iter().fold([0; 2], |sum, (number, image)| add(sum, *number, image));
        Some(Self { pages: pages.into_keys().collect(), sum })
    }

    /// Whether the pages are so; `page` answers them.
    pub(crate) fn is<E>(&self, mut page: impl FnMut(u32) -> Result<Vec<u8>, E>) -> Result<bool, E> {
        let mut sum = [0; 2];
        for number in &self.pages {
            sum = add(sum, *number, &page(*number)?);
        }
        Ok(sum == self.sum)
    }

    /// The checksum, u32 twice; how many pages there are, and each one as its distance from the one
    /// before, as numbers of the log's.
    pub(crate) fn put(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.sum.into_iter().flat_map(u32::to_le_bytes));
        number::put(self.pages.len() as u64, bytes);
        let mut before = 0;
        for page in &self.pages {
            number::put((page - before).into(), bytes);
            before = *page;
        }
    }

    /// And back, with what is behind it; `None`: that can't be read.
    pub(crate) fn take(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (one, rest) = bytes.split_first_chunk()?;
        let (two, rest) = rest.split_first_chunk()?;
        let sum = [*one, *two].map(u32::from_le_bytes);
        let (count, mut rest) = number::take(rest)?;
        let count = usize::try_from(count).ok().filter(|count| *count <= MOST)?;
        let (mut pages, mut before) = (Vec::with_capacity(count), 0_u32);
        for _ in 0..count {
            let (more, behind) = number::take(rest)?;
            before = before.checked_add(u32::try_from(more).ok().filter(|more| *more > 0)?)?;
            pages.push(before);
            rest = behind;
        }
        Some((Self { pages, sum }, rest))
    }
}

fn add(sum: Checksum, number: u32, image: &[u8]) -> Checksum {
    let order = ByteOrder::Little;
    let sum = checksum(order, &u64::from(number).to_le_bytes(), sum);
    match image.split_first_chunk::<HEADER>() {
        Some((header, rest)) if number == 1 => {
            let mut header = *header;
            COUNTERS.into_iter().for_each(|range| header[range].fill(0));
            checksum(order, rest, checksum(order, &header, sum))
        }
        _ => checksum(order, image, sum),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(pages: &[(u32, u32, u8)]) -> Vec<u8> {
        let frame = |&(page, commit, byte): &(u32, u32, u8)| {
            let numbers = [page, commit].into_iter().flat_map(u32::to_be_bytes);
            numbers.chain([0; FRAME_HEADER - 8]).chain([byte; 512]).collect::<Vec<_>>()
        };
        pages.iter().flat_map(frame).collect()
    }

    fn of(pages: &[(u32, u32, u8)]) -> Option<Made> {
        Made::of(&frames(pages), FRAME_HEADER + 512)
    }

    #[test]
    fn the_last_image_of_each_page_counts() {
        let made = of(&[(1, 0, 1), (7, 9, 2), (3, 0, 3), (7, 9, 4)]).expect("in order");
        assert_eq!(made.pages, [1, 3, 7]);
        let is = |change: fn(u32, &mut [u8])| {
            let page = |number: u32| {
                let mut page = vec![[0, 1, 0, 3, 0, 0, 0, 4][number as usize]; 512];
                change(number, &mut page);
                Ok::<_, ()>(page)
            };
            made.is(page).expect("answers")
        };
        assert!(is(|_, _| ()));
        assert!(is(|number, page| if number == 1 {
            page[24..28].fill(9)
        }));
        assert!(is(|number, page| if number == 1 {
            page[92..100].fill(9)
        }));
        assert!(!is(|number, page| if number == 1 {
            page[28] = 9
        }));
        assert!(!is(|number, page| if number == 3 {
            page[24] = 9
        }));
        let mut bytes = Vec::new();
        made.put(&mut bytes);
        bytes.push(5);
        assert_eq!(Made::take(&bytes), Some((made, &[5][..])));
        (0..bytes.len() - 1).for_each(|end| assert_eq!(Made::take(&bytes[..end]), None));
    }

    #[test]
    fn nor_do_pages_that_a_later_commit_has_cut_off() {
        let made = of(&[(1, 0, 1), (5, 5, 2), (1, 4, 3)]).expect("in order");
        assert_eq!(made.pages, [1]);
        let made = of(&[(1, 0, 1), (5, 5, 2), (1, 4, 3), (1, 0, 1), (6, 6, 3)]).expect("in order");
        assert_eq!(made.pages, [1, 6]);
    }

    #[test]
    fn not_where_pages_were_written_before_the_end() {
        assert_eq!(of(&[(3, 0, 1), (2, 9, 1)]), None);
        assert_eq!(of(&[(3, 0, 1), (3, 9, 1)]), None);
        let many: Vec<_> = (1..=1025).map(|page| (page, 0, 1)).collect();
        assert_eq!(of(&many), None);
        assert!(of(&many[..1024]).is_some());
    }
}
