//! The commit block in page 1: in the free middle of SQLite's b-tree page, between the end of the
//! cell pointer array and the cell content area, so that a small commit writes one place less.
//!
//! It ends where the first sector of the file ends, and the page list stands before it. So SQLite's
//! header, the b-tree header and the block are one sector, which a power loss leaves old or new and
//! never a mix, and the block's place does not depend on what the rest of the page says. Where the
//! sector has no room for the list, the block says that a commit block in the tail has it; where
//! there is no room for even that, the tail's stands alone.

use super::{
    BlockError, CommitBlock, FIRST_PAGE_MAGIC, FORMAT_VERSION, Place, SECTOR_BYTES, State, UNIT,
    Vouched, commit_block, decode_units, encode_units, layout, put_u32, put_u64, u32_at,
};
use crate::mutation::{Mutation, broken};
use std::ops::Range;

/// Where SQLite's header says how many bytes at the end of each page are not its own.
const RESERVED: usize = 20;

/// Where SQLite's b-tree header begins in page 1 ("Database File Format", section 1.6).
const BTREE: usize = 100;

/// Type of an interior and of a leaf table b-tree page: page 1 is one of both.
const INTERIOR: u8 = 5;

const LEAF: u8 = 13;

/// The block without its list is the end of the first sector, from here.
pub const FIXED: usize = SECTOR_BYTES - layout::FIRST_PAGE_LEN;

/// The free bytes of page 1's first sector, if they reach to its end and hold at least the block
/// without its list; `None` where page 1 is not a b-tree page as SQLite writes it, or where an
/// extension reserved bytes of each page: they may hold a checksum of all the others.
fn gap(page: &[u8]) -> Option<Range<usize>> {
    let sector = page.get(..SECTOR_BYTES)?;
    if sector[RESERVED] != 0 {
        return None;
    }
    let header = match sector[BTREE] {
        INTERIOR => 12,
        LEAF => 8,
        _ => return None,
    };
    let number =
        |at: usize| usize::from(sector[BTREE + at]) << 8 | usize::from(sector[BTREE + at + 1]);
    let (free_block, cells, content) = (number(1), number(3), number(5));
    // 0 stands for 65,536; a free block lies in the cell content area.
    let beyond = |at: usize| at == 0 || at >= SECTOR_BYTES;
    let start = BTREE + header + 2 * cells;
    (beyond(content) && beyond(free_block) && start <= FIXED).then_some(start..SECTOR_BYTES)
}

/// How many units fit into the first sector with the block; `None` if not even the block does.
pub fn room(page: &[u8]) -> Option<usize> {
    gap(page).map(|gap| (FIXED - gap.start) / UNIT)
}

/// Where a block is in page 1, torn or whole, as far as SQLite's own bytes leave it.
fn place(page: &[u8]) -> Option<Range<usize>> {
    let gap = gap(page)?;
    let fixed = &page[FIXED..SECTOR_BYTES];
    if fixed[..8] != FIRST_PAGE_MAGIC {
        return None;
    }
    let units = if fixed[layout::LIST_PLACE] == IN_THE_TAIL {
        0
    } else {
        u32_at(fixed, layout::UNIT_COUNT) as usize
    };
    Some(FIXED.saturating_sub(units.saturating_mul(UNIT)).max(gap.start)..SECTOR_BYTES)
}

/// Takes a block out of page 1: what is left is what SQLite wrote, with zeros in its free middle.
pub fn blank(page: &mut [u8]) {
    if let Some(place) = place(page) {
        page[place].fill(0);
    }
}

/// Takes everything out of where a block may be put, so that what is left does not depend on which
/// one is: SQLite leaves there what it used before, and reads none of it.
pub fn clear(page: &mut [u8]) {
    if let Some(gap) = gap(page) {
        page[gap].fill(0);
    }
}

/// The list is before the block.
const HERE: u8 = 0;

/// The list is in the commit block of the tail that has the same id.
const IN_THE_TAIL: u8 = 1;

/// Puts a block into page 1, with its list or (`Place::Announced`) as the announcement of the same
/// block in the tail. [`room`] must have said that it fits.
pub fn insert(block: &CommitBlock, page: &mut [u8]) {
    let here = block.place != Place::Announced;
    let list = if here { encode_units(&block.units) } else { Vec::new() };
    let mut b = [0; layout::FIRST_PAGE_LEN];
    b[..8].copy_from_slice(&FIRST_PAGE_MAGIC);
    commit_block::put_head(&mut b, block);
    b[layout::LIST_PLACE] = if here { HERE } else { IN_THE_TAIL };
    if let Some(vouched) = block.vouched {
        put_u64(&mut b, layout::ID, vouched.id);
        put_u64(&mut b, layout::PARENT, u64::from(vouched.counter));
    }
    put_u32(&mut b, layout::VERSION, FORMAT_VERSION);
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&list);
    hasher.update(&b);
    put_u32(&mut b, layout::CHECKSUM, hasher.finalize());
    page[FIXED - list.len()..FIXED].copy_from_slice(&list);
    page[FIXED..SECTOR_BYTES].copy_from_slice(&b);
}

/// Reads the block in page 1, given at least its first sector.
pub fn extract(page: &[u8]) -> Result<CommitBlock, BlockError> {
    let place = place(page).ok_or(BlockError::Absent)?;
    let list = &page[place.start..FIXED];
    let mut fixed = [0; layout::FIRST_PAGE_LEN];
    fixed.copy_from_slice(&page[FIXED..SECTOR_BYTES]);
    let checksum = u32_at(&fixed, layout::CHECKSUM);
    put_u32(&mut fixed, layout::CHECKSUM, 0);
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(list);
    hasher.update(&fixed);
    if hasher.finalize() != checksum && !broken(Mutation::BlockChecksumIgnored) {
        return Err(BlockError::Damaged);
    }
    match u32_at(&fixed, layout::VERSION) {
        FORMAT_VERSION => {}
        0 => return Err(BlockError::Damaged),
        other => return Err(BlockError::OtherFormat(other)),
    }
    let mut block = commit_block::head(&fixed)?;
    block.place =
        if fixed[layout::LIST_PLACE] == IN_THE_TAIL { Place::Announced } else { Place::FirstPage };
    block.units = decode_units(list);
    if block.place == Place::FirstPage && block.units.len() != block.unit_count as usize {
        return Err(BlockError::Damaged);
    }
    if matches!(block.state, State::Settled | State::Superseded) {
        let counter = u32::try_from(block.parent).map_err(|_| BlockError::Damaged)?;
        block.vouched = Some(Vouched {
            sequence: block.sequence,
            id: block.id,
            counter,
            names_durable: false,
            held: false,
            changed: 0,
        });
        (block.id, block.parent) = (0, 0);
    }
    Ok(block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Protocol, Unit};

    /// A page 1 with a header, `cells` pointers and cells from `content` on.
    fn page(kind: u8, cells: u16, content: u16) -> Vec<u8> {
        let mut page = vec![0xAB; 4096];
        page[RESERVED] = 0;
        page[BTREE..BTREE + 3].copy_from_slice(&[kind, 0, 0]);
        page[BTREE + 3..BTREE + 5].copy_from_slice(&cells.to_be_bytes());
        page[BTREE + 5..BTREE + 7].copy_from_slice(&content.to_be_bytes());
        if let Some(gap) = gap(&page) {
            page[gap].fill(0);
        }
        page
    }

    fn block(units: usize, place: Place) -> CommitBlock {
        let unit = Unit { offset: 4096, len: 8192, checksum: 7, carried: true };
        CommitBlock {
            place,
            pair: 1,
            inode: 2,
            slot: 1,
            state: State::Whole,
            protocol: Protocol::Single,
            sequence: 3,
            id: 4,
            parent: 5,
            counter: 6,
            page_size: 4096,
            size: 8192,
            vouched: None,
            super_journal: Vec::new(),
            unit_count: u32::try_from(units).unwrap(),
            list_checksum: 0,
            units: vec![unit; units],
        }
    }

    #[test]
    fn what_was_put_in_is_taken_out_and_leaves_what_sqlite_wrote() {
        for (kind, cells) in [(LEAF, 0), (LEAF, 5), (INTERIOR, 1), (LEAF, 162)] {
            let before = page(kind, cells, 700);
            for units in 0..=room(&before).unwrap() {
                let mut with = before.clone();
                insert(&block(units, Place::FirstPage), &mut with);
                assert_eq!(extract(&with), Ok(block(units, Place::FirstPage)));
                blank(&mut with);
                assert_eq!(with, before);
            }
        }
        assert_eq!(room(&page(LEAF, 5, 700)), Some(19));
    }

    #[test]
    fn an_announcement_and_a_mark_come_back_as_such() {
        let mut page = page(LEAF, 162, 0);
        insert(&block(300, Place::Announced), &mut page);
        let announced = extract(&page).unwrap();
        assert_eq!(
            (announced.place, announced.unit_count, announced.id),
            (Place::Announced, 300, 4)
        );
        let vouched = Some(Vouched {
            sequence: 3,
            id: 9,
            counter: 5,
            names_durable: false,
            held: false,
            changed: 0,
        });
        for state in [State::Settled, State::Superseded] {
            let mark =
                CommitBlock { state, id: 0, parent: 0, vouched, ..block(0, Place::FirstPage) };
            insert(&mark, &mut page);
            assert_eq!(extract(&page), Ok(mark));
        }
    }

    #[test]
    fn a_page_1_without_room_is_left_alone() {
        let full = [
            page(LEAF, 163, 700), // pointers reach into the block
            page(LEAF, 5, 511),   // so do the cells
            page(10, 5, 700),     // not a table
            page(0, 0, 0),
            vec![LEAF; 300],
        ];
        for mut page in full {
            assert_eq!(room(&page), None);
            if page.len() >= SECTOR_BYTES {
                page[FIXED..FIXED + 8].copy_from_slice(&FIRST_PAGE_MAGIC);
            }
            let before = page.clone();
            blank(&mut page);
            assert_eq!((extract(&page), page), (Err(BlockError::Absent), before));
        }
        let mut free_block = page(LEAF, 5, 700);
        free_block[BTREE + 1..BTREE + 3].copy_from_slice(&400u16.to_be_bytes());
        assert_eq!(room(&free_block), None);
        let mut reserved = page(LEAF, 5, 700);
        reserved[RESERVED] = 8;
        assert_eq!(room(&reserved), None);
    }

    /// SQLite uses the free middle for more cell pointers without asking: they stay, and the block
    /// they lie on is none.
    #[test]
    fn what_sqlite_wrote_over_a_block_stays() {
        let mut page = page(LEAF, 5, 700);
        insert(&block(19, Place::FirstPage), &mut page);
        page[BTREE + 3..BTREE + 5].copy_from_slice(&13u16.to_be_bytes());
        page[118..134].fill(0xCC);
        assert_eq!(extract(&page), Err(BlockError::Damaged));
        blank(&mut page);
        assert!(page[118..134].iter().all(|&byte| byte == 0xCC));
        assert!(page[134..SECTOR_BYTES].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn what_is_cleared_is_what_sqlite_does_not_use() {
        for (kind, start) in [(LEAF, 118), (INTERIOR, 122)] {
            let mut page = page(kind, 5, 700);
            let before = page.clone();
            page[start..700].fill(0xCC);
            clear(&mut page);
            assert!(page[start..SECTOR_BYTES].iter().all(|&byte| byte == 0));
            assert_eq!(page[..start], before[..start]);
            assert!(page[SECTOR_BYTES..700].iter().all(|&byte| byte == 0xCC));
        }
    }

    #[test]
    fn a_bit_that_changed_is_noticed() {
        let mut page = page(LEAF, 5, 700);
        insert(&block(3, Place::FirstPage), &mut page);
        for at in FIXED - 3 * UNIT..SECTOR_BYTES {
            for bit in 0..8 {
                page[at] ^= 1 << bit;
                assert!(extract(&page).is_err(), "byte {at} bit {bit}");
                page[at] ^= 1 << bit;
            }
        }
    }
}
