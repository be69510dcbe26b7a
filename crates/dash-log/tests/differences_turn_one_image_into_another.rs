//! Whatever two images are, the difference makes the one of the other; whatever bytes are taken for
//! a difference, they are applied or refused. And the sizes that differences are made for.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::common::noise;
use dash_log::difference::{Copies, Damaged, apply, encode, longest};
use proptest::prelude::*;

const EACH: [Copies; 3] = [Copies::No, Copies::WhereTheyPay, Copies::Everywhere];

fn difference(old: Option<&[u8]>, new: &[u8], copies: Copies) -> Vec<u8> {
    let mut out = b"before".to_vec();
    encode(old, new, copies, &mut out).unwrap();
    out.split_off(6)
}

/// The length of the difference, which was tried.
fn length(old: Option<&[u8]>, new: &[u8], copies: Copies) -> usize {
    let difference = difference(old, new, copies);
    let mut image = vec![0xEE; new.len()];
    apply(&difference, old, &mut image).unwrap();
    assert!(image == new, "{copies:?}: {} bytes", difference.len());
    assert!(difference.len() <= longest(new.len()));
    difference.len()
}

/// Changes of an image: overwritten with bytes, or with another part of itself, or with zeros.
#[derive(Debug, Clone)]
enum Change {
    Bytes(usize, Vec<u8>),
    Move(usize, usize, usize),
    Zeros(usize, usize),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (any::<usize>(), prop::collection::vec(any::<u8>(), 0..300))
            .prop_map(|(at, bytes)| Change::Bytes(at, bytes)),
        (any::<usize>(), any::<usize>(), 0..2000_usize)
            .prop_map(|(from, to, len)| Change::Move(from, to, len)),
        (any::<usize>(), 0..500_usize).prop_map(|(at, len)| Change::Zeros(at, len)),
    ]
}

fn changed(old: &[u8], changes: &[Change]) -> Vec<u8> {
    let mut new = old.to_vec();
    let len = new.len().max(1);
    for change in changes {
        match change {
            Change::Bytes(at, bytes) => {
                let at = at % len;
                let part = bytes.len().min(new.len().saturating_sub(at));
                new[at..at + part].copy_from_slice(&bytes[..part]);
            }
            Change::Move(from, to, part) => {
                let (from, to) = (from % len, to % len);
                let part = (*part).min(new.len().saturating_sub(from.max(to)));
                new.copy_within(from..from + part, to);
            }
            Change::Zeros(at, part) => {
                let at = at % len;
                let end = (at + part).min(new.len());
                new[at.min(end)..end].fill(0);
            }
        }
    }
    new
}

/// Images of all lengths, those of pages more often.
fn image() -> impl Strategy<Value = Vec<u8>> {
    let lens = prop_oneof![0..200_usize, Just(512), Just(4096), Just(65_536), 0..70_000_usize];
    (any::<u64>(), lens, any::<bool>()).prop_map(|(seed, len, sparse)| {
        let mut bytes = noise(seed, len);
        if sparse {
            bytes.chunks_mut(97).step_by(2).for_each(|part| part.fill(0));
        }
        bytes
    })
}

proptest! {
    #[test]
    fn a_changed_image(old in image(), changes in prop::collection::vec(change(), 0..12)) {
        let new = changed(&old, &changes);
        let plain = length(Some(&old), &new, Copies::No);
        prop_assert!(length(Some(&old), &new, Copies::WhereTheyPay) <= plain);
        prop_assert!(length(Some(&old), &new, Copies::Everywhere) <= plain);
        for copies in EACH {
            length(None, &new, copies);
        }
    }

    #[test]
    fn images_that_have_nothing_in_common(old in image(), new in image()) {
        for copies in EACH {
            length(Some(&old), &new, copies);
        }
    }

    #[test]
    fn any_bytes_are_applied_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        old in prop::option::of(prop::collection::vec(any::<u8>(), 0..700)),
        len in 0..700_usize,
    ) {
        let mut image = vec![0; len];
        let _ = apply(&bytes, old.as_deref(), &mut image);
    }

    #[test]
    fn a_damaged_difference_is_applied_or_refused(
        old in image(), changes in prop::collection::vec(change(), 1..6),
        at in any::<prop::sample::Index>(), flip in 1..=255_u8, cut in any::<prop::sample::Index>(),
    ) {
        let new = changed(&old, &changes);
        for copies in EACH {
            let mut bytes = difference(Some(&old), &new, copies);
            if bytes.is_empty() {
                continue;
            }
            let mut image = vec![0; new.len()];
            let _ = apply(&bytes[..cut.index(bytes.len())], Some(&old), &mut image);
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            let _ = apply(&bytes, Some(&old), &mut image);
            // Another image's length: what does not fit is refused.
            let _ = apply(&bytes, Some(&old), &mut image[..new.len() / 2]);
            let _ = apply(&bytes, Some(&old[..old.len() / 2]), &mut image);
        }
    }
}

#[test]
fn what_no_operation_may_say_is_refused() {
    let old = [7; 100];
    let refused = |bytes: &[u8]| apply(bytes, Some(&old), &mut [0; 100]) == Err(Damaged);
    // A copy with a length in its tag; lengths of no form.
    assert!(refused(&[0b1000_0001, 0, 0, 0, 0]));
    assert!(refused(&[0b1100_0000 | 62, 0, 0, 0]));
    assert!(refused(&[62]) && refused(&[0b0100_0000 | 63, 0, 0, 0]));
    // Behind the end of the image, of the old image, of the difference.
    assert!(refused(&[60, 40]) && !refused(&[60, 39]));
    assert!(refused(&[0x80, 90, 0, 10, 0]) && !refused(&[0x80, 90, 0, 9, 0]));
    assert!(refused(&[0x80, 90, 0, 9]) && refused(&[0x40]) && refused(&[61, 0]));
    // A copy from everywhere: from behind the old image's end, over the end of both, from where
    // nothing is made yet, without an offset.
    assert!(refused(&[0xC0 | 10, 90, 0]) && !refused(&[0xC0 | 9, 90, 0]));
    assert!(
        refused(&[0xC0, 100, 0]) && refused(&[0, 0xC0, 101, 0]) && !refused(&[0, 0xC0, 100, 0])
    );
    assert!(refused(&[60, 38, 0xC0 | 1, 100, 0]) && !refused(&[60, 38, 0xC0, 100, 0]));
    assert!(refused(&[0xC0]) && refused(&[0xC0, 0]));
}

#[test]
fn what_is_alike_in_one_image_is_said_once() {
    let rows: Vec<u8> = (0..40_u32)
        .flat_map(|row| format!("the row with the number {row:06} and its text, ").into_bytes())
        .collect();
    let mut page = vec![0; 4096];
    page[2000..2000 + rows.len()].copy_from_slice(&rows);
    let of = |copies| length(None, &page, copies);
    assert!(of(Copies::WhereTheyPay) > rows.len());
    assert!(of(Copies::Everywhere) * 3 < rows.len(), "{}", of(Copies::Everywhere));
    // Of a pattern once, and the rest from what was made of it just before.
    let mut filled = vec![0; 4096];
    filled[1000..3000].copy_from_slice(&b"0123456789".repeat(200));
    assert!(length(None, &filled, Copies::Everywhere) < 40);
    // A new row beside those that are there.
    let mut more = page.clone();
    more[1000..1049].copy_from_slice(b"the row with the number 000077 and its text, over");
    assert!(length(Some(&page), &more, Copies::Everywhere) < 25);
    // An image whose old one is as long as offsets go has copies from that alone.
    let (long, mut longer) = (noise(1, 65_536), noise(1, 65_536));
    longer.copy_within(1000..2000, 30_000);
    let of = |copies| length(Some(&long), &longer, copies);
    assert_eq!(of(Copies::Everywhere), of(Copies::WhereTheyPay));
}

#[test]
fn every_length_around_the_forms_of_a_tag() {
    let new = noise(1, 66_000);
    for len in [1, 2, 59, 60, 61, 62, 315, 316, 317, 318, 65_535, 65_536, 65_537, 66_000] {
        // So many new bytes, then so many that are kept before them.
        for start in [0, 66_000 - len] {
            let mut old = new.clone();
            old[start..start + len].iter_mut().for_each(|byte| *byte ^= 0x55);
            for copies in EACH {
                length(Some(&old), &new, copies);
            }
        }
    }
}

#[test]
fn short_changes_take_few_bytes() {
    let old = noise(2, 4096);
    assert_eq!(length(Some(&old), &old, Copies::WhereTheyPay), 0);
    let mut new = old.clone();
    new[1000] ^= 1;
    assert_eq!(length(Some(&old), &new, Copies::No), 3 + 2);
    // A gap of two equal bytes is no reason for a new run, one of three is.
    new[1003] ^= 1;
    assert_eq!(length(Some(&old), &new, Copies::No), 3 + 1 + 4);
    new[1003] ^= 1;
    new[1004] ^= 1;
    assert_eq!(length(Some(&old), &new, Copies::No), 3 + 2 + 1 + 2);
    // Zeros are no bytes of a first image.
    let mut first = vec![0; 4096];
    first[100..130].fill(3);
    first[4000..].fill(4);
    assert_eq!(length(None, &first, Copies::No), 2 + 31 + 3 + 2 + 96);
}

#[test]
fn what_moved_within_the_page_is_copied() {
    // A row grows by four bytes: those that lie before it in the page move down.
    let old = noise(3, 4096);
    let mut new = old.clone();
    new.copy_within(1004..3000, 1000);
    new[2996..3000].copy_from_slice(b"more");
    assert!(length(Some(&old), &new, Copies::No) > 1900);
    let with_copies = length(Some(&old), &new, Copies::WhereTheyPay);
    assert!(with_copies < 24, "{with_copies}");
    // Two rows change places.
    let mut new = old.clone();
    new[1000..1100].copy_from_slice(&old[2000..2100]);
    new[2000..2100].copy_from_slice(&old[1000..1100]);
    let with_copies = length(Some(&old), &new, Copies::WhereTheyPay);
    assert!(with_copies < 24, "{with_copies}");
    // A pointer is put before others of two bytes each: they move by two.
    let pointers: Vec<u8> = (0..200_u16).flat_map(|n| (4000 - 15 * n).to_be_bytes()).collect();
    let mut old = old;
    old[12..412].copy_from_slice(&pointers);
    old[412..500].fill(0);
    let mut new = old.clone();
    new.copy_within(100..412, 102);
    new[100..102].copy_from_slice(&[1, 2]);
    let with_copies = length(Some(&old), &new, Copies::WhereTheyPay);
    assert!(with_copies < 24, "{with_copies}");
}

#[test]
fn a_copy_of_what_is_there_already_is_none() {
    // The same bytes again and again: nearly all of what changed stands elsewhere, too.
    let mut old: Vec<u8> = noise(6, 32).into_iter().cycle().take(4096).collect();
    let mut new = old.clone();
    new[100..160].copy_from_slice(&noise(8, 60));
    new[1000..3000].iter_mut().step_by(12).for_each(|byte| *byte ^= 0x55);
    let plain = length(Some(&old), &new, Copies::No);
    assert_eq!(length(Some(&old), &new, Copies::WhereTheyPay), plain);
    // A copy that pays is not lost for that.
    new[3500..3700].copy_from_slice(&noise(10, 200));
    old[200..400].copy_from_slice(&noise(10, 200));
    new[200..400].copy_from_slice(&noise(10, 200));
    let plain = length(Some(&old), &new, Copies::No);
    assert_eq!(length(Some(&old), &new, Copies::WhereTheyPay), plain - 200 - 2 + 5);
}
