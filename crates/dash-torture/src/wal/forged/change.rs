//! What is forged in a set: fields of heads, records, contexts, entries and statements, frames of
//! `-wal`, words of `-dash`. Checksums and what says whose a file is are right mostly, so that what
//! lies is believed.

use dash_log::record::{ANNOTATED, CARRYING, WINDOW_START};
use dash_statement::{decode, encode};

use super::record::{Log, Record};
use super::set::{DASH, FILES, LOG, SHM, Set, WAL};
use crate::random::Dice;
use crate::wal::texts;

/// Bytes of an annotation before its statements.
const SAID: usize = 26;
/// Where a record's context has `-wal`'s header, and in that the size of a page.
const HEADER: usize = 12;
const PAGE: usize = HEADER + 8;

/// A number at which something ends, or nearly what was there.
fn other(old: u64, dice: &mut Dice) -> u64 {
    let edges =
        [0, 1 << dice.below(64), 1 << 32, 3_000_000_000, u64::MAX, (1 << 63) - 4095, 65_537];
    match dice.one_in(2) {
        true => edges[dice.index(edges.len())].wrapping_sub(dice.below(3)),
        false => old.wrapping_add(dice.below(5)).wrapping_sub(2),
    }
}

fn other_u32(old: u32, dice: &mut Dice) -> u32 {
    u32::try_from(other(old.into(), dice) & u64::from(u32::MAX)).unwrap_or(0)
}

/// Another number of 1 to 8 bytes at a place, in either order.
fn number(bytes: &mut [u8], at: usize, dice: &mut Dice) {
    let width = 1 << dice.below(4);
    let Some(place) = bytes.get_mut(at..at + width) else { return };
    let mut whole = [0; 8];
    whole[..width].copy_from_slice(place);
    let little = other(u64::from_le_bytes(whole), dice).to_le_bytes();
    place.copy_from_slice(&little[..width]);
    if dice.one_in(3) {
        place.reverse();
    }
}

/// Spoils bytes at a few places.
fn spoil(bytes: &mut [u8], dice: &mut Dice) {
    for _ in 0..=dice.below(4) {
        let (at, from, len) = (dice.index(bytes.len()), dice.index(bytes.len()), dice.index(32));
        match dice.below(4) {
            _ if bytes.is_empty() => return,
            0 => bytes[at] ^= 1 << dice.below(8),
            1 if from + len <= bytes.len() && at + len <= bytes.len() => {
                bytes.copy_within(from..from + len, at);
            }
            _ => number(bytes, at, dice),
        }
    }
}

/// Fields of a head that begin with `FF FF FF FF`.
fn head(log: &mut Log, dice: &mut Dice) {
    const FIELDS: [usize; 17] =
        [8, 16, 24, 28, 32, 40, 48, 56, 56, 56, 64, 66, 74, 78, 110, 114, 328];
    let place = 512 * dice.index(2);
    let at = FIELDS[dice.index(FIELDS.len())];
    match dice.one_in(2) {
        true => number(&mut log.heads, place + at, dice),
        false => spoil(&mut log.heads[place + 8..place + 336], dice),
    }
}

fn field(record: &mut Record, dice: &mut Dice) {
    match dice.below(9) {
        0 => record.sequence = other(record.sequence, dice),
        1 => record.flags ^= [WINDOW_START, ANNOTATED, CARRYING, 4, 1 << 9][dice.index(5)],
        2 => record.entries = other_u32(record.entries, dice),
        3 => record.unit_bytes = other_u32(record.unit_bytes, dice),
        4 => record.meta_len ^= 1 << dice.below(16),
        5 => {
            let lie = &mut record.lies[dice.index(3)];
            *lie = [-1, 1, 8, -8, 4096, i32::MAX, i32::MIN][dice.index(7)];
        }
        6 => record.sealed = false,
        _ => number(&mut record.context, [0, 8, HEADER, PAGE, 24, 28, 44, 48][dice.index(8)], dice),
    }
}

/// Many entries of a few bytes each, as frames of the record's generation.
fn many_entries(record: &mut Record, dice: &mut Dice) {
    let Some(salts) = record.context.get(HEADER + 16..HEADER + 24) else { return };
    record.entries = [10, 300, 20_000][dice.index(3)];
    record.flags &= !(ANNOTATED | CARRYING);
    record.annotation.clear();
    (record.meta_len, record.body) = (24, Vec::new());
    for page in 2..record.entries + 2 {
        let commit = if page == record.entries + 1 { page } else { 0 };
        let frame = [page.to_be_bytes(), commit.to_be_bytes()].concat();
        let start = [&page.to_le_bytes()[..], &[0, 0]].concat();
        record.body.extend([&start[..], &frame, salts, &[0; 8]].concat());
    }
}

/// Records that are there twice, no more, or in another order.
fn order(log: &mut Log, dice: &mut Dice) {
    let (one, other) = (dice.index(log.records.len()), dice.index(log.records.len()));
    match dice.below(3) {
        0 => drop(log.records.remove(one)),
        1 => log.records.push(log.records[one].clone()),
        _ => {
            let sequence = log.records[one].sequence;
            log.records[one] = Record { sequence, ..log.records[other].clone() };
        }
    }
}

/// What a record's annotation says that its commit ran.
fn said(record: &mut Record, dice: &mut Dice, folder: &str) {
    if let Some((head, statements)) = record.annotation.split_at_checked(SAID)
        && let Some(Ok(mut ran)) = statements.get(4..).map(decode)
    {
        texts::forge(&mut ran, dice, folder);
        let statements = encode(&ran);
        let len = u32::try_from(statements.len()).unwrap_or(0).to_le_bytes();
        record.annotation = [head, &len, &statements].concat();
        record.annotation.truncate(65_535);
    }
}

/// Other statements in a record that carries, if there is one, and nothing else that has its pages.
fn statements(set: &mut Set, dice: &mut Dice, folder: &str) {
    let Some(log) = &mut set.log else { return };
    let carries = |at: &usize| log.records[*at].flags & CARRYING != 0;
    let carrying: Vec<_> = (0..log.records.len()).filter(carries).collect();
    let Some(at) = dice.pick(&carrying) else {
        let at = dice.index(log.records.len());
        return log.records.get_mut(at).into_iter().for_each(|it| said(it, dice, folder));
    };
    log.records.truncate(at + 1);
    said(&mut log.records[at], dice, folder);
    let first = log.records[at].context.get(8..12).and_then(|it| it.try_into().ok());
    let first = u32::from_le_bytes(first.unwrap_or_default());
    set.cut(usize::try_from(first.saturating_sub(1)).unwrap_or(0));
    (set.files[SHM], set.files[DASH]) = (None, None);
}

/// Header and frames of `-wal`; with all checksums mended, as a rule.
fn wal(set: &mut Set, dice: &mut Dice) {
    let (Some(page), Some(wal)) = (set.page(), &mut set.files[WAL]) else { return };
    let frames = wal.len().saturating_sub(32) / (24 + page);
    match dice.one_in(2) {
        true => number(wal, [0, 4, 8, 12, 16, 20][dice.index(6)], dice),
        false => number(wal, 32 + dice.index(frames) * (24 + page) + 4 * dice.index(4), dice),
    }
    if dice.one_in(4) {
        return;
    }
    let is_big = wal.get(3).is_some_and(|byte| byte & 1 == 1);
    let mut sums = [0_u32; 2];
    let mut sum = |bytes: &[u8]| {
        for pair in bytes.chunks_exact(8) {
            let word = |at: usize| {
                let word = [pair[at], pair[at + 1], pair[at + 2], pair[at + 3]];
                if is_big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
            };
            sums[0] = sums[0].wrapping_add(word(0)).wrapping_add(sums[1]);
            sums[1] = sums[1].wrapping_add(word(4)).wrapping_add(sums[0]);
        }
        sums.map(u32::to_be_bytes).concat()
    };
    let Some((header, rest)) = wal.split_at_mut_checked(32) else { return };
    let summed = sum(&header[..24]);
    header[24..].copy_from_slice(&summed);
    for frame in rest.chunks_exact_mut(24 + page) {
        frame[8..16].copy_from_slice(&header[16..24]);
        sum(&frame[..8]);
        let summed = sum(&frame[24..]);
        frame[16..24].copy_from_slice(&summed);
    }
}

/// Changes a set in one way.
fn change(set: &mut Set, others: &[Set], dice: &mut Dice, folder: &str) {
    let records = set.log.as_ref().map_or(0, |log| log.records.len());
    let at = dice.index(records);
    match (dice.below(16), &mut set.log) {
        (0 | 1, Some(log)) => head(log, dice),
        (2..5, Some(log)) if records > 0 => field(&mut log.records[at], dice),
        (5, Some(log)) if records > 0 => spoil(&mut log.records[at].context, dice),
        (6, Some(log)) if records > 0 => spoil(&mut log.records[at].body, dice),
        (7, Some(log)) if records > 0 => spoil(&mut log.records[at].annotation, dice),
        (8, Some(log)) if records > 0 && dice.one_in(2) => many_entries(&mut log.records[at], dice),
        (8, Some(log)) if records > 0 => order(log, dice),
        (9..12, Some(_)) if records > 0 => statements(set, dice, folder),
        (12, _) => wal(set, dice),
        (13, _) => {
            let Some(dash) = &mut set.files[DASH] else { return };
            for _ in 0..=dice.below(8) {
                let words = if dice.one_in(2) { 64 } else { dash.len() / 8 };
                number(dash, 8 * dice.index(words), dice);
            }
        }
        (14, _) => {
            let file = dice.index(FILES.len());
            let other = &others[dice.index(others.len())];
            set.files[file].clone_from(&other.files[file]);
            if file == LOG {
                set.log.clone_from(&other.log);
            }
        }
        _ => {
            let file = dice.index(FILES.len());
            if file == LOG {
                set.log = None;
            }
            let Some(bytes) = &mut set.files[file] else { return };
            let end = dice.index(bytes.len() + 1);
            match dice.below(3) {
                0 => bytes.truncate(end),
                1 => spoil(&mut bytes[..end.min(512)], dice),
                _ => spoil(bytes, dice),
            }
        }
    }
}

/// A set that was forged. What its statements name is in `folder`.
pub fn forged(sets: &[Set], dice: &mut Dice, folder: &str) -> Set {
    let mut set = sets[dice.index(sets.len())].clone();
    // What a power loss takes.
    if dice.one_in(3)
        && let (Some(page), Some(wal)) = (set.page(), &set.files[WAL])
    {
        let frames = wal.len() / (24 + page);
        set.cut(dice.index(frames + 1));
    }
    for file in [SHM, DASH] {
        if dice.one_in(2) {
            set.files[file] = None;
        }
    }
    for _ in 0..=dice.below(3) {
        change(&mut set, sets, dice, folder);
    }
    set.is_its_own = !dice.one_in(8);
    set.fence ^= dice.one_in(12);
    set
}
