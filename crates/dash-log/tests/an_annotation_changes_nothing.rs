//! LOG-14, LOG-15: what is said beside the entries changes neither them nor what is written.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use super::common::{ID, UNIT, noise};
use dash_engine::error::Error;
use dash_log::format::{Form, Invalid};
use dash_log::images::Images;
use dash_log::record::{ANNOTATION_MAX, Builder, CARRYING, Record};
use proptest::prelude::*;

/// A record of an image and its successors, each of which copies may make shorter.
fn begin(builder: &mut Builder, seed: u64, images: u8) {
    let old = noise(seed, UNIT);
    let mut new = old.clone();
    new.copy_within(54..304, 50);
    builder.begin(ID, 7, 0, UNIT as u32, 2, b"ctx").unwrap();
    builder.push(1, b"ab", None, &old).unwrap();
    for turn in 0..images {
        let (from, to) = if turn % 2 == 0 { (&old, &new) } else { (&new, &old) };
        builder.push(1, &[turn, turn], Some(from), to).unwrap();
    }
}

fn images_of(bytes: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let record = Record::decode(bytes).unwrap();
    let mut images = Images::new(UNIT as u32);
    let image = |entry: dash_log::record::Entry<'_>| {
        (entry.meta.to_vec(), images.feed(&entry).unwrap().to_vec())
    };
    record.entries().map(image).collect()
}

proptest! {
    #[test]
    fn in_the_slack_it_costs_nothing(
        seed in any::<u64>(),
        images in 0..12_u8,
        block in 0..3_usize,
        part in 0..=100_usize,
    ) {
        let block = [512, 4096, 64][block];
        let mut builder = Builder::new();
        begin(&mut builder, seed, images);
        let without = builder.finish(block).unwrap().to_vec();
        begin(&mut builder, seed, images);
        let slack = builder.slack(block).unwrap();
        let said = noise(seed ^ 9, slack * part / 100);
        builder.annotate(&said).unwrap();
        let bytes = builder.finish(block).unwrap();
        prop_assert_eq!(bytes.len(), without.len());
        let record = Record::decode(bytes).unwrap();
        prop_assert_eq!(record.annotation, Some(&said[..]));
        prop_assert_eq!(record.padded as usize, without.len());
        prop_assert_eq!(Record::decode(&without).unwrap().annotation, None);
        prop_assert_eq!(images_of(bytes), images_of(&without));
    }

    #[test]
    fn damage_in_it_is_damage_of_the_record(seed in any::<u64>(), at in any::<prop::sample::Index>()) {
        let mut builder = Builder::new();
        begin(&mut builder, seed, 1);
        builder.slack(512).unwrap();
        let start = builder.len();
        builder.annotate(&noise(seed, 200)).unwrap();
        let mut bytes = builder.finish(512).unwrap().to_vec();
        bytes[start + at.index(200)] ^= 1 << (seed % 8);
        prop_assert_eq!(Record::decode(&bytes), Err(Invalid::Damaged));
    }
}

#[test]
fn the_slack_is_what_copies_leave() {
    let mut builder = Builder::new();
    begin(&mut builder, 1, 3);
    let length = builder.len();
    let slack = builder.slack(512).unwrap();
    assert!(builder.len() + 512 < length, "copies saved no block: {length}");
    assert_eq!(slack, builder.len().next_multiple_of(512) - builder.len());
    builder.annotate(&vec![7; slack + 1]).unwrap();
    let longer = builder.finish(512).unwrap().len();
    begin(&mut builder, 1, 3);
    assert_eq!(builder.finish(512).unwrap().len() + 512, longer);
}

#[test]
fn one_of_no_bytes_says_that_there_was_no_room() {
    let mut builder = Builder::new();
    begin(&mut builder, 1, 0);
    builder.annotate(&[]).unwrap();
    let bytes = builder.finish(512).unwrap();
    assert_eq!(Record::decode(bytes).unwrap().annotation, Some(&[][..]));
    begin(&mut builder, 1, 0);
    let too_long = builder.annotate(&vec![0; ANNOTATION_MAX + 1]);
    assert!(matches!(too_long, Err(Error::Refused(_))));
    assert_eq!(Record::decode(builder.finish(512).unwrap()).unwrap().annotation, None);
}

/// LOG-17: in both forms.
#[test]
fn one_that_carries_says_so_and_has_no_entry() {
    for form in [Form::Sectors, Form::Lines] {
        let begun = || {
            let mut builder = Builder::new();
            builder.set_form(form);
            builder.begin(ID, 7, CARRYING, UNIT as u32, 0, b"ctx").unwrap();
            builder
        };
        let mut builder = begun();
        builder.annotate(b"what was done").unwrap();
        let bytes = builder.finish(512).unwrap();
        let record = Record::decode(bytes).unwrap();
        assert!(record.carries() && !record.is_window_start() && record.count == 0);
        assert_eq!(record.annotation, Some(&b"what was done"[..]));
        let decoded = |mut builder: Builder| Record::decode(builder.finish(512).unwrap()).map(drop);
        assert_eq!(decoded(begun()), Err(Invalid::Malformed), "nothing is said");
        let mut builder = begun();
        builder.annotate(b"").unwrap();
        assert_eq!(decoded(builder), Err(Invalid::Malformed), "nothing is said");
        let mut builder = begun();
        builder.push(1, b"", None, &noise(1, UNIT)).unwrap();
        builder.annotate(b"what was done").unwrap();
        assert_eq!(decoded(builder), Err(Invalid::Malformed), "it has an entry");
    }
}
