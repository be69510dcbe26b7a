//! Blocks in page 1 that are well-formed and lie: fields and page lists changed, blocks of the tail
//! put there, blocks of the other file, announcements of what is not there.

use dash_shadow::format::{CommitBlock, INLINE_UNITS, Place, UNIT, first_page, layout};
use dash_simulated::Machine;

use super::edge::change;
use super::original::put;
use crate::random::Dice;

/// Fields of a block in page 1, by offset and length.
const FIELDS: &[(usize, usize)] = &[
    (layout::VERSION, 4),
    (layout::PAIR, 8),
    (layout::INODE, 8),
    (layout::SLOT, 1),
    (layout::STATE, 1),
    (layout::PROTOCOL, 1),
    (layout::LIST_PLACE, 1),
    (layout::UNIT_COUNT, 4),
    (layout::SEQUENCE, 8),
    (layout::ID, 8),
    (layout::PARENT, 8),
    (layout::COUNTER, 4),
    (layout::PAGE_SIZE, 4),
    (layout::SIZE, 8),
];

/// Bytes of the sector the block ends with.
const SECTOR: usize = 512;

/// A block that may be put into page 1: the one that is there, or the tail's, of this file or of
/// the other one.
fn block(machine: &Machine, dice: &mut Dice) -> Option<CommitBlock> {
    let path = dice.pick(&["/app.db", "/app.db-shadow"])?;
    let bytes = machine.file_view(path)?;
    let tail = CommitBlock::decode(&bytes[bytes.len().checked_sub(dash_shadow::format::BLOCK)?..]);
    let first = first_page::extract(&bytes);
    if dice.below(2) == 0 { first.or(tail) } else { tail.or(first) }.ok()
}

/// Forges the block in page 1, if page 1 has room for one. Returns whether it has.
pub fn forge(machine: &Machine, path: &str, dice: &mut Dice) -> std::io::Result<bool> {
    let mut bytes = machine.file_view(path).unwrap_or_default();
    let len = bytes.len() as u64;
    let Some(room) = first_page::room(&bytes) else {
        return Ok(false);
    };
    let absent = first_page::extract(&bytes).is_err();
    if absent || dice.below(4) == 0 {
        let Some(mut block) = block(machine, dice) else {
            return Ok(false);
        };
        if dice.below(2) == 0 {
            // As if it had been written here.
            let here = machine.file_view(path).unwrap_or_default();
            let tail = here.len().checked_sub(dash_shadow::format::BLOCK);
            if let Some(Ok(own)) = tail.map(|at| CommitBlock::decode(&here[at..])) {
                (block.pair, block.inode, block.slot) = (own.pair, own.inode, own.slot);
            }
        }
        let fits = block.units.len() <= room && dice.below(4) > 0;
        block.place = if fits { Place::FirstPage } else { Place::Announced };
        if fits {
            block.unit_count = u32::try_from(block.units.len()).unwrap_or(0);
        } else if dice.below(4) == 0 {
            block.unit_count = u32::try_from(INLINE_UNITS).unwrap_or(0) + 1;
        }
        first_page::blank(&mut bytes);
        first_page::insert(&block, &mut bytes);
    }
    for _ in 0..dice.below(3) {
        let listed = dice.below(3) == 0 && room > 0;
        let (at, width) = if listed {
            let unit = SECTOR
                - layout::FIRST_PAGE_LEN
                - (1 + usize::try_from(dice.below(room as u64)).unwrap_or(0)) * UNIT;
            let (at, width) = dice.pick(&[(0, 8), (8, 4), (12, 4), (6, 2)]).unwrap_or((0, 8));
            (unit + at, width)
        } else {
            let (at, width) = dice.pick(FIELDS).unwrap_or((layout::SEQUENCE, 8));
            (first_page::FIXED + at, width)
        };
        change(&mut bytes, at, width, dice, len);
    }
    seal(&mut bytes[..SECTOR], room);
    drop(first_page::extract(&bytes));
    put(machine, path, 0, &bytes[..SECTOR])?;
    Ok(true)
}

/// CRC-32 (IEEE) of the list and the block, as in FORMAT.md. A list that is longer than the room
/// for it is what is there of it.
fn seal(sector: &mut [u8], room: usize) {
    let fixed = first_page::FIXED;
    let number = |at: usize| {
        u32::from_le_bytes(sector[fixed + at..fixed + at + 4].try_into().unwrap_or([0; 4]))
    };
    let all = usize::try_from(number(layout::UNIT_COUNT)).unwrap_or(usize::MAX);
    let units = if sector[fixed + layout::LIST_PLACE] == 1 { 0 } else { all.min(room) };
    sector[fixed + layout::CHECKSUM..fixed + layout::CHECKSUM + 4].fill(0);
    let checksum = crc32fast::hash(&sector[fixed - units * UNIT..]);
    sector[fixed + layout::CHECKSUM..fixed + layout::CHECKSUM + 4]
        .copy_from_slice(&checksum.to_le_bytes());
}
