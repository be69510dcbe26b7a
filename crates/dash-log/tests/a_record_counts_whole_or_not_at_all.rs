//! What was pushed into a record is read from it, and of a record that is torn or damaged nothing
//! is (LOG-1). No bytes, whatever they are, make the reader panic.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use super::common::{ID, UNIT, compact, head, noise, record, resealed_compact};
use dash_engine::error::Error;
use dash_log::format::{Form, Invalid};
use dash_log::head::Head;
use dash_log::images::Images;
use dash_log::record::{Builder, Record, WINDOW_START};
use proptest::prelude::*;

/// Pages that change step by step, and a record of all the steps.
fn filled(builder: &mut Builder, seed: u64, steps: usize, unit: usize, block: u32) -> Vec<Vec<u8>> {
    let mut window = Images::new(unit as u32);
    builder.begin(ID, 9, WINDOW_START, unit as u32, 24, b"context").unwrap();
    let mut made = Vec::new();
    for step in 0..steps {
        let page = (noise(seed + step as u64, 1)[0] % 3).into();
        let old = window.image_of(page).unwrap().map(<[u8]>::to_vec);
        let mut new = old.clone().unwrap_or_else(|| vec![0; unit]);
        let drawn = noise(seed ^ (step as u64) << 7, 60);
        let at = usize::from(drawn[0]) * 16 % (unit - 200);
        new[at..at + 50].copy_from_slice(&drawn[10..]);
        if step % 3 == 2 {
            new.copy_within(100..200, at);
        }
        builder.push(page, &noise(step as u64, 24), old.as_deref(), &new).unwrap();
        window.set(page, &new).unwrap();
        made.push(new);
    }
    builder.finish(block).unwrap();
    made
}

proptest! {
    #[test]
    fn what_was_pushed_is_read(seed in any::<u64>(), steps in 0..20_usize, block in 0..3_usize, lines in any::<bool>()) {
        let block = [512, 4096, 64][block];
        let form = if lines { Form::Lines } else { Form::Sectors };
        let mut builder = Builder::new();
        builder.set_form(form);
        // The second time in the memory of the first.
        filled(&mut builder, seed ^ 1, 25, 2048, 4096);
        let made = filled(&mut builder, seed, steps, UNIT, block);
        let length = builder.len();
        let bytes = builder.finish(block).unwrap();
        prop_assert_eq!(bytes.len(), length.next_multiple_of(block as usize));
        prop_assert_eq!(bytes.as_ptr().addr() % 4096, 0);
        prop_assert!(bytes[length..].iter().all(|&byte| byte == 0));
        let record = Record::decode(bytes).unwrap();
        prop_assert_eq!((record.id, record.sequence, record.context), (ID, 9, &b"context"[..]));
        prop_assert_eq!(record.count as usize, steps);
        prop_assert_eq!((record.length(), record.padded as usize), (length, bytes.len()));
        prop_assert_eq!((record.is_window_start(), record.form), (true, form));
        let mut images = Images::new(record.unit_bytes);
        for ((step, entry), made) in record.entries().enumerate().zip(&made) {
            prop_assert_eq!(entry.meta, &noise(step as u64, 24)[..]);
            prop_assert_eq!(images.feed(&entry).unwrap(), &made[..]);
        }
        prop_assert_eq!(record.entries().count(), steps);
    }

    #[test]
    fn any_change_of_a_byte_is_noticed(at in any::<prop::sample::Index>(), flip in 1..=255_u8) {
        let mut bytes = record(ID, 3, 0, 700);
        let length = Record::decode(&bytes).unwrap().length();
        let at = at.index(length);
        bytes[at] ^= flip;
        prop_assert!(Record::decode(&bytes).is_err());
        let mut bytes = compact(ID, 3, 0, 700);
        let at = at % Record::decode(&bytes).unwrap().length();
        bytes[at] ^= flip;
        prop_assert!(Record::decode(&bytes).is_err());
        let mut bytes = head(ID, 3).encode().unwrap();
        let at = at % 512;
        bytes[at] ^= flip;
        prop_assert!(Head::decode(&bytes).is_err());
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(
        tail in prop::collection::vec(any::<u8>(), 0..400), keep in 0..60_usize, len in 0..600_u32,
    ) {
        // Behind a beginning that is right, and with a checksum that is.
        let mut bytes = record(ID, 3, 0, 10)[..keep].to_vec();
        bytes.extend(tail);
        if bytes.len() > 41 {
            bytes[32..36].copy_from_slice(&len.to_le_bytes());
            bytes[40] &= 1;
            bytes[41] = 0;
        }
        bytes[..].iter_mut().skip(12).take(4).for_each(|byte| *byte = 0);
        let summed = bytes.get(..len as usize).unwrap_or(&bytes);
        let sum = crc32fast::hash(summed).to_le_bytes();
        bytes.iter_mut().skip(12).zip(sum).for_each(|(byte, sum)| *byte = sum);
        if let Ok(record) = Record::decode(&bytes) {
            let mut images = Images::new(64);
            for entry in record.entries() {
                let _ = images.feed(&entry);
            }
        }
        let _ = Head::decode(&bytes);
    }

    #[test]
    fn any_bytes_of_a_compact_one_are_read_without_a_panic(
        tail in prop::collection::vec(any::<u8>(), 0..400), keep in 0..60_usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut bytes = compact(ID, 3, 0, 10)[..keep].to_vec();
        bytes.extend(tail);
        let whole = bytes.len();
        for (at, value) in changes {
            bytes.get_mut(at.index(whole.max(1))).into_iter().for_each(|byte| *byte = value);
        }
        // Whatever length it says.
        for length in 17..whole {
            let bytes = resealed_compact(bytes.clone(), length);
            if let Ok(record) = Record::decode(&bytes) {
                let mut images = Images::new(64);
                for entry in record.entries() {
                    let _ = images.feed(&entry);
                }
            }
        }
    }

    #[test]
    fn changes_that_the_checksum_does_not_tell_are_read_without_a_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        steps in 1..8_usize,
    ) {
        let mut builder = Builder::new();
        filled(&mut builder, 5, steps, UNIT, 512);
        let length = builder.len();
        let mut bytes = builder.finish(512).unwrap().to_vec();
        for (at, value) in changes {
            // All but the length, by which the checksum is made.
            let at = at.index(length);
            if !(32..36).contains(&at) {
                bytes[at] = value;
            }
        }
        let bytes = resealed(bytes, 0, b"\xFF");
        let Ok(record) = Record::decode(&bytes) else {
            return Ok(());
        };
        let mut images = Images::new(record.unit_bytes.min(70_000));
        for entry in record.entries() {
            let _ = images.feed(&entry);
        }
    }

    #[test]
    fn a_torn_record_is_none(lost in prop::collection::vec(any::<bool>(), 8), seed in any::<u64>()) {
        // Over what was there before: nothing, or another record of the same log.
        let new = record(ID, 8, 0, 4000);
        prop_assume!(lost.iter().any(|&lost| lost));
        for old in [vec![0; new.len()], record(ID, 7, 0, 4000), noise(seed, new.len())] {
            let mut torn = new.clone();
            for (sector, _) in lost.iter().enumerate().filter(|(_, lost)| **lost) {
                let place = sector * 512..(sector * 512 + 512).min(new.len());
                torn[place.clone()].copy_from_slice(&old[place]);
            }
            let found = Record::decode(&torn).map(|record| record.sequence);
            prop_assert!(found != Ok(8), "{found:?}");
        }
    }
}

#[test]
fn copies_are_used_where_they_save_a_block() {
    let old = noise(1, 4096);
    let mut new = old.clone();
    new.copy_within(104..604, 100);
    let mut builder = Builder::new();
    let mut length = |images: usize, block| {
        builder.begin(ID, 1, 0, 4096, 0, &[]).unwrap();
        for _ in 0..images {
            builder.push(1, &[], Some(&old), &new).unwrap();
        }
        let bytes = builder.finish(block).unwrap();
        let record = Record::decode(bytes).unwrap();
        let mut images = Images::new(4096);
        images.set(1, &old).unwrap();
        for entry in record.entries() {
            assert_eq!(images.feed(&entry).unwrap(), new);
            images.set(1, &old).unwrap();
        }
        record.length()
    };
    // All in one block as it is.
    assert!(length(1, 4096) > 500);
    assert!(length(7, 4096) > 3500);
    // One block, where it would be two.
    assert!(length(1, 512) < 100);
    assert!(length(9, 4096) < 400);
}

#[test]
fn a_record_is_full_before_it_is_too_long() {
    let mut builder = Builder::new();
    builder.begin(ID, 1, 0, 4096, 24, b"0123456789").unwrap();
    assert!(!builder.is_full(1), "a record has at least one image");
    let mut seed = 1;
    while !builder.is_full(1 << 20) {
        builder.push(1, &[0; 24], Some(&noise(seed, 4096)), &noise(seed + 1, 4096)).unwrap();
        seed += 1;
        assert!(builder.len() <= 1 << 20);
    }
    assert!(builder.len() > (1 << 20) - 5000, "{}", builder.len());
}

#[test]
fn lengths_that_are_not_as_begun_are_refused() {
    let mut builder = Builder::new();
    builder.begin(ID, 1, 0, 512, 2, &[]).unwrap();
    let refused = |result: Result<(), Error>| matches!(result, Err(Error::Refused(_)));
    assert!(refused(builder.push(1, &[0; 3], None, &[0; 512])));
    assert!(refused(builder.push(1, &[0; 2], None, &[0; 513])));
    assert!(refused(builder.push(1, &[0; 2], Some(&[0; 511]), &[0; 512])));
    assert!(refused(builder.begin(ID, 1, 0, 512, 2, &[0; 65_536])));
    assert!(head(ID, 1).encode().is_ok());
    assert!(Head { context: vec![1; 257], ..head(ID, 1) }.encode().is_err());
}

/// `bytes` of a record with a right checksum after a change.
fn resealed(mut bytes: Vec<u8>, at: usize, value: &[u8]) -> Vec<u8> {
    bytes[at..at + value.len()].copy_from_slice(value);
    let length = u32::from_le_bytes(bytes[32..36].try_into().unwrap()) as usize;
    bytes[12..16].fill(0);
    let sum = crc32fast::hash(&bytes[..length]);
    bytes[12..16].copy_from_slice(&sum.to_le_bytes());
    bytes
}

#[test]
fn a_record_that_contradicts_itself_is_told_from_a_torn_one() {
    let whole = record(ID, 3, 0, 700);
    let said = |at, value: &[u8]| Record::decode(&resealed(whole.clone(), at, value)).map(|_| ());
    assert_eq!(said(24, &[3]), Ok(()));
    // Fewer and more entries, a longer context, more meta, less padding, another base.
    assert_eq!(said(44, &[0]), Err(Invalid::Malformed));
    assert_eq!(said(44, &[2]), Err(Invalid::Malformed));
    assert_eq!(said(52, &[255, 255]), Err(Invalid::Malformed));
    assert_eq!(said(42, &[4]), Err(Invalid::Malformed));
    assert_eq!(said(36, &[0, 0]), Err(Invalid::Malformed));
    assert_eq!(said(56 + 3 + 4, &[2]), Err(Invalid::Malformed));
    // LOG-8: flags and versions of the future.
    assert!(matches!(said(40, &[4]), Err(Invalid::Newer(_))));
    // LOG-17: it has entries, and nothing that would carry.
    assert_eq!(said(40, &[32]), Err(Invalid::Malformed));
    assert_eq!(said(40, &[34]), Err(Invalid::Malformed));
    // LOG-14: an annotation that takes a part of the entries, or more than there is.
    assert_eq!(said(40, &[2]), Ok(()));
    for more in [[1, 0], [255, 255]] {
        let mut annotated = resealed(whole.clone(), 40, &[2]);
        annotated[54..56].copy_from_slice(&more);
        let damaged = Record::decode(&resealed(annotated, 24, &[3])).map(|_| ());
        assert_eq!(damaged, Err(Invalid::Malformed));
    }
    assert_eq!(said(8, &[2]), Err(Invalid::Newer(2)));
    let mut torn = whole.clone();
    torn[8] = 2;
    assert_eq!(Record::decode(&torn), Err(Invalid::Newer(2)));
    torn[8] = 0;
    assert_eq!(Record::decode(&torn), Err(Invalid::Damaged));
    assert_eq!(Record::decode(&whole[..whole.len() - 512]), Err(Invalid::Damaged));
    assert_eq!(Record::decode(&[]), Err(Invalid::Absent));
}

#[test]
fn a_compact_record_that_contradicts_itself_is_told_from_a_torn_one() {
    let whole = compact(ID, 3, 0, 40);
    let length = Record::decode(&whole).unwrap().length();
    let said = |at: usize, value: u8| {
        let mut bytes = whole.clone();
        bytes[at] = value;
        Record::decode(&resealed_compact(bytes, length)).map(|record| record.padded)
    };
    // Sequence, length, entries, unit bytes, meta length, context length.
    assert_eq!((&whole[17..23], length), (&[3, 49, 1, 40, 3, 3][..], 72));
    assert_eq!((said(17, 9), said(16, 0b100)), (Ok(128), Ok(128)));
    assert_eq!(said(16, 0b1100), Ok(512));
    for (at, value) in [(19, 0), (19, 2), (21, 4), (22, 90)] {
        assert!(
            matches!(said(at, value), Err(Invalid::Malformed | Invalid::Damaged)),
            "{at} {value}"
        );
    }
    assert_eq!(said(19, 2), Err(Invalid::Malformed));
    // Of another length it is another record.
    assert_eq!(said(18, 48), Err(Invalid::Damaged));
    // LOG-8; LOG-17: it has entries, and nothing that would carry.
    assert!(matches!(said(16, 0b100_0000), Err(Invalid::Newer(_))));
    assert_eq!(said(16, 0b10_0000), Err(Invalid::Malformed));
    assert_eq!(Record::decode(&whole[..length - 1]), Err(Invalid::Damaged));
    for len in 4..23 {
        assert_eq!(Record::decode(&whole[..len]), Err(Invalid::Damaged));
    }
    assert_eq!(Record::decode(&whole[..3]), Err(Invalid::Absent));
}

#[test]
fn compact_records_are_of_lines() {
    let mut builder = Builder::new();
    builder.set_form(Form::Lines);
    builder.begin(ID, 1, 0, 512, 0, &[]).unwrap();
    for block in [0, 1, 32, 63, 96, 64 << 8] {
        assert!(matches!(builder.finish(block), Err(Error::Refused(_))), "{block}");
    }
    for block in [64, 128, 512, 4096, 8192] {
        let bytes = builder.finish(block).unwrap();
        assert_eq!(Record::decode(bytes).unwrap().padded, block);
    }
}

#[test]
fn an_image_without_its_base_is_refused() {
    // LOG-10: the reader has no image that the window doesn't begin with.
    let mut builder = Builder::new();
    builder.begin(ID, 1, 0, UNIT as u32, 0, &[]).unwrap();
    builder.push(4, &[], Some(&[1; UNIT]), &[2; UNIT]).unwrap();
    let bytes = builder.finish(512).unwrap();
    let entry = Record::decode(bytes).unwrap().entries().next().unwrap();
    let mut images = Images::new(UNIT as u32);
    assert!(matches!(images.feed(&entry), Err(Error::Corrupt(_))));
    assert!(images.is_empty());
    images.set(4, &[1; UNIT]).unwrap();
    assert_eq!(images.feed(&entry).unwrap(), [2; UNIT]);
    images.clear();
    assert!(matches!(images.feed(&entry), Err(Error::Corrupt(_))));
    // And one that it has is no base of an image that was made of zeros.
    images.set(4, &[1; UNIT]).unwrap();
    let mut first = [0; UNIT];
    first[7] = 7;
    builder.begin(ID, 1, 0, UNIT as u32, 0, &[]).unwrap();
    builder.push(4, &[], None, &first).unwrap();
    let bytes = builder.finish(512).unwrap();
    let entry = Record::decode(bytes).unwrap().entries().next().unwrap();
    assert_eq!(images.feed(&entry).unwrap(), first);
}
