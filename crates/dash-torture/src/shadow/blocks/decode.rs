//! The decoders alone, on blocks of a database that were changed and sealed again, and on bytes
//! that never were blocks: each says what it reads or why not, whatever the bytes are.

use std::panic::{AssertUnwindSafe, catch_unwind};

use dash_shadow::format::{
    BLOCK, BLOCK_LEN, CommitBlock, IntentBlock, SECTOR_BYTES, TAIL_LEN, UNIT, Unit, decode_units,
    encode_units, first_page, layout,
};

use super::edge::change;
use super::forged::{FIELDS, seal};
use super::original::Original;
use crate::random::Dice;

/// Bytes that may be blocks: of an original's files, or of nobody's.
fn bytes(original: &Original, dice: &mut Dice) -> Vec<u8> {
    let path = if dice.one_in(2) { "/app.db" } else { "/app.db-shadow" };
    let file = original.machine.file_view(path).unwrap_or_default();
    let from_end = dice.pick(&[BLOCK_LEN, TAIL_LEN]).unwrap_or(BLOCK_LEN);
    let start = match dice.below(3) {
        0 => 0,
        _ => file.len().saturating_sub(usize::try_from(from_end).unwrap_or(0)),
    };
    let mut bytes = file.get(start..).unwrap_or_default().to_vec();
    bytes.resize(BLOCK, 0);
    if dice.one_in(16) {
        bytes.fill_with(|| dice.draw().to_le_bytes()[0]);
    }
    bytes
}

/// Changes bytes, and makes most of them look right again.
fn forge(bytes: &mut [u8], dice: &mut Dice) {
    let first_page = bytes[..4] != [0xFF; 4];
    for _ in 0..dice.below(6) {
        let start = if first_page { first_page::FIXED } else { 0 };
        match (dice.below(3), dice.pick(FIELDS)) {
            (0, Some((at, width))) if start + at + width <= BLOCK => {
                change(bytes, start + at, width, dice, BLOCK_LEN);
            }
            // Where SQLite says what of page 1 is free.
            (1, _) if first_page => change(bytes, 100 + dice.index(8), 1, dice, BLOCK_LEN),
            _ => change(bytes, dice.index(BLOCK - 8), 8, dice, BLOCK_LEN),
        }
    }
    match dice.below(4) {
        0 => {}
        _ if first_page => seal_first_page(bytes),
        _ => seal(bytes),
    }
}

/// The checksum of the block in page 1, over as much of its list as there is room for.
fn seal_first_page(page: &mut [u8]) {
    let Some(room) = first_page::room(page) else { return };
    let fixed = first_page::FIXED;
    let mut count = [0; 4];
    count.copy_from_slice(&page[fixed + layout::UNIT_COUNT..fixed + layout::UNIT_COUNT + 4]);
    let all = usize::try_from(u32::from_le_bytes(count)).unwrap_or(usize::MAX);
    let units = if page[fixed + layout::LIST_PLACE] == 1 { 0 } else { all.min(room) };
    let place = fixed + layout::CHECKSUM..fixed + layout::CHECKSUM + 4;
    page[place.clone()].fill(0);
    let checksum = crc32fast::hash(&page[fixed - units * UNIT..SECTOR_BYTES]);
    page[place].copy_from_slice(&checksum.to_le_bytes());
}

/// Places don't overflow.
fn ends(units: &[Unit]) -> Result<(), String> {
    let wrong = units.iter().find(|unit| unit.range().end < unit.offset);
    wrong.map_or(Ok(()), |unit| Err(format!("{unit:?} ends before it begins")))
}

/// Reads them in every way, and what was read as its users do.
fn decode(bytes: &[u8]) -> Result<(), String> {
    let commit = CommitBlock::decode(bytes);
    if let Ok(block) = &commit {
        ends(&block.units)?;
        let again = CommitBlock::decode(&*block.encode());
        if again.as_ref() != Ok(block) {
            return Err(format!("{block:?} is read back as {again:?}"));
        }
    }
    if let Ok(intent) = IntentBlock::decode(bytes) {
        let marked = intent.ranges().bytes();
        if marked != intent.bytes() {
            return Err(format!("{marked} bytes marked, of {}", intent.bytes()));
        }
    }
    if let Ok(block) = first_page::extract(bytes) {
        ends(&block.units)?;
    }
    let units = decode_units(bytes);
    if encode_units(&units).len() != bytes.len() / UNIT * UNIT {
        return Err("units are lost".into());
    }
    for len in [0, 1, 99, 107, 108, 431, SECTOR_BYTES - 1, SECTOR_BYTES, BLOCK - 1, BLOCK] {
        let mut page = bytes[..len].to_vec();
        drop((CommitBlock::decode(&page), IntentBlock::decode(&page), first_page::extract(&page)));
        first_page::blank(&mut page);
        first_page::clear(&mut page);
    }
    Ok(())
}

/// One case.
///
/// # Errors
///
/// What must never happen.
pub fn run(original: &Original, seed: u64) -> Result<(), String> {
    let mut dice = Dice::new(seed, 1);
    let mut bytes = bytes(original, &mut dice);
    forge(&mut bytes, &mut dice);
    catch_unwind(AssertUnwindSafe(|| decode(&bytes))).unwrap_or_else(|_| Err("a panic".into()))
}
