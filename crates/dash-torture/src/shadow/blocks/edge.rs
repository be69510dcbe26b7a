//! Numbers at an edge of something, and fields that get one.

use dash_shadow::format::{INLINE_UNITS, SUPER_NAME_MAX, TAIL_LEN};

use crate::random::Dice;

/// A number that is at the edge of something.
pub fn edge(dice: &mut Dice, old: u64, len: u64) -> u64 {
    let edges = [
        0,
        1,
        2,
        3,
        4,
        511,
        512,
        4095,
        4096,
        65_536,
        len,
        len - 1,
        len + 1,
        len.saturating_sub(TAIL_LEN),
        INLINE_UNITS as u64,
        INLINE_UNITS as u64 + 1,
        SUPER_NAME_MAX as u64,
        SUPER_NAME_MAX as u64 + 1,
        u64::from(u32::MAX),
        1 << 31,
        1 << 40,
        1 << 47,
        1 << 62,
        1 << 63,
        u64::MAX,
        u64::MAX - 1,
        old.wrapping_add(1),
        old.wrapping_sub(1),
        old ^ 1,
        !old,
    ];
    match dice.below(4) {
        0 => dice.draw(),
        1 => old ^ 1 << dice.below(64),
        _ => dice.pick(&edges).unwrap_or_default(),
    }
}

/// Gives a field of a block another number.
pub fn change(block: &mut [u8], at: usize, width: usize, dice: &mut Dice, len: u64) {
    let mut bytes = [0; 8];
    bytes[..width].copy_from_slice(&block[at..at + width]);
    let new = edge(dice, u64::from_le_bytes(bytes), len);
    block[at..at + width].copy_from_slice(&new.to_le_bytes()[..width]);
}
