//! LOG-18: a number that a log holds counts only where it can be one. Whoever makes a log makes its
//! checksums right, too. SEC S2-7, SEC S2-11, SEC S2-12

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use std::ffi::OsStr;
use std::time::{Duration, Instant};

use super::common::{ID, compact, head, log, noise, record};
use dash_engine::error::Error;
use dash_log::file::LogFile;
use dash_log::format::{Form, Invalid};
use dash_log::head::{COUNT_MAX, Head, State};
use dash_log::heads::Heads;
use dash_log::images::Images;
use dash_log::record::{Entry, Record, WINDOW_START};
use dash_log::scan::{Condition, Scan, scan};
use dash_storage::Storage;
use dash_storage::real::Real;
use proptest::prelude::*;

const RING: usize = 32 << 10;

/// A head that says that the log is at rest, and where it goes on.
fn at_rest(next: u64) -> Head {
    Head { state: State::Clean, next: Some(next), ..head(ID, 3) }
}

/// What is found in a file that begins with a head, and has a record that counts.
fn found(head: &Head) -> (Condition, Vec<u64>) {
    let folder = tempfile::tempdir().unwrap();
    let bytes = log(Some(head), RING, &[(16 << 10, &record(ID, 4, WINDOW_START, 9))]);
    std::fs::write(folder.path().join("log"), bytes).unwrap();
    let directory = Real.open_directory(folder.path()).unwrap();
    let file = LogFile::open_to_read(&directory, OsStr::new("log")).unwrap().unwrap();
    let scan = scan(&file).unwrap();
    (scan.condition, scan.chain.iter().map(|place| place.sequence).collect())
}

#[test]
fn a_head_sends_nobody_where_no_record_can_be() {
    // It is there, and is looked for, behind it or elsewhere.
    assert_eq!(found(&at_rest(16 << 10)), (Condition::Whole, vec![4]));
    assert_eq!(found(&at_rest(24 << 10)), (Condition::Whole, vec![]), "no record is anywhere else");
    let ring = RING as u64;
    for next in
        [1, 700, (16 << 10) + 1, ring + 512, 1 << 40, (1 << 63) - 4096, 1 << 63, u64::MAX - 5000]
    {
        assert_eq!(found(&at_rest(next)), (Condition::Damaged, vec![4]), "{next:#x}");
    }
    assert_eq!(found(&at_rest(ring)), (Condition::Whole, vec![]), "it is the ring's end");
}

#[test]
fn what_is_said_of_a_file_that_was_cut_can_be() {
    for cut in [0, 400, 512, 700, 1024, 1500] {
        let mut bytes = log(Some(&head(ID, 0)), RING, &[(0, &record(ID, 1, WINDOW_START, 300))]);
        bytes.truncate(4096 + cut);
        let next = Scan::examine(bytes.clone(), "log").unwrap().end_position;
        bytes[..512].copy_from_slice(&at_rest(next).encode().unwrap());
        let heads = Heads::decode(&bytes).within(bytes.len() as u64);
        assert_eq!(heads.head, Ok(at_rest(next)), "cut to {cut}: {next}");
    }
}

#[test]
fn nobody_has_counted_up_to_a_number_that_none_follows() {
    for sequence in [COUNT_MAX, u64::MAX] {
        let head = head(ID, sequence).encode().unwrap();
        assert_eq!(Head::decode(&head), Err(Invalid::Malformed));
        let bytes = log(
            Some(&super::common::head(ID, 0)),
            RING,
            &[(0, &record(ID, sequence, WINDOW_START, 9))],
        );
        assert!(matches!(Scan::examine(bytes, "log"), Err(Error::Corrupt(_))));
        let compact = compact(ID, sequence, WINDOW_START, 9);
        assert_eq!(Record::decode(&compact), Err(Invalid::Malformed));
    }
    assert!(Head::decode(&head(ID, COUNT_MAX - 1).encode().unwrap()).is_ok());
    // The other head counts.
    let turns = |one, two| {
        let [one, two] =
            [(1, one), (2, two)].map(|(void, turn)| head(ID, void).encode_turn(turn).unwrap());
        let heads = Heads::decode(&[one, two].concat());
        (heads.head.map(|head| head.sequence), heads.turn)
    };
    assert_eq!(turns(COUNT_MAX, 7), (Ok(2), 7));
    assert_eq!(turns(7, u64::MAX), (Ok(1), 7));
    assert_eq!(turns(COUNT_MAX - 1, 7), (Ok(1), COUNT_MAX - 1));
}

/// One whose turn has no next one is written over, and the new one counts.
#[test]
fn a_head_follows_also_the_last_turn() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    for place in [0, 512] {
        let mut bytes = log(None, RING, &[]);
        let forged = head(ID, 1).encode_turn(COUNT_MAX - 1).unwrap();
        bytes[place..place + 512].copy_from_slice(&forged);
        std::fs::write(&path, bytes).unwrap();
        let directory = Real.open_directory(folder.path()).unwrap();
        let file = LogFile::open(&directory, OsStr::new("log")).unwrap().unwrap();
        for void in [5, 6, 7] {
            file.write_head(&head(ID, void)).unwrap();
            assert_eq!(file.read_head().unwrap().map(|head| head.sequence), Ok(void));
        }
    }
}

/// A record says how long it is on the disk, so much is written where it is written again.
#[test]
fn a_record_is_padded_to_no_more_than_a_block() {
    let whole = record(ID, 4, WINDOW_START, 300);
    let length = u32::from_le_bytes(*whole[32..].first_chunk().unwrap());
    let padded = |padded: u32| {
        let mut bytes = whole.clone();
        bytes[36..40].copy_from_slice(&padded.to_le_bytes());
        bytes[12..16].fill(0);
        let sum = crc32fast::hash(&bytes[..length as usize]);
        bytes[12..16].copy_from_slice(&sum.to_le_bytes());
        bytes
    };
    for (size, is_one) in [(512, true), (4096, true), (513, false), (16 << 10, false)] {
        assert_eq!(Record::decode(&padded(size)).is_ok(), is_one, "{size}");
    }
    for size in [0, 256, 1 << 20, 0xffff_f000, u32::MAX] {
        let bytes = log(Some(&head(ID, 0)), RING, &[(0, &padded(size))]);
        let refused = Scan::examine(bytes, "log").err();
        assert!(matches!(refused, Some(Error::Corrupt(_))), "{size}: {refused:?}");
    }
}

/// Each beginning of a record has its checksum made over all that it claims. Many of them, which
/// all claim the rest of the file, would be looked at for ever.
#[test]
fn what_is_no_record_takes_no_time() {
    for (form, step, len) in [(Form::Lines, 64, 8 << 20), (Form::Sectors, 512, 32 << 20)] {
        let mut bytes = vec![0; 4096 + len];
        let head = match form {
            Form::Lines => head(ID, 0).encode_turn(1).unwrap(),
            Form::Sectors => head(ID, 0).encode().unwrap(),
        };
        bytes[..512].copy_from_slice(&head);
        let small = match form {
            Form::Lines => compact(ID, 5, WINDOW_START, 3),
            Form::Sectors => record(ID, 5, WINDOW_START, 3),
        };
        for at in (4096..bytes.len()).step_by(step) {
            bytes[at..at + 32].copy_from_slice(&small[..32]);
            let most = (bytes.len() - at - 64).min(4 << 20) as u32;
            match form {
                // Behind the sequence, which takes a byte.
                Form::Lines => {
                    let number = [most | 0x80, most >> 7 | 0x80, most >> 14 | 0x80, most >> 21];
                    let number = number.map(|part| part.to_le_bytes()[0]);
                    bytes[at + 18..at + 22].copy_from_slice(&number);
                    bytes[at + 22..at + 27].fill(1);
                }
                Form::Sectors => {
                    bytes[at + 32..at + 36].copy_from_slice(&(most & !63).to_le_bytes());
                }
            }
        }
        let begun = Instant::now();
        let refused = Scan::examine(bytes, "log").err();
        assert!(matches!(refused, Some(Error::Corrupt(_))), "{form:?}: {refused:?}");
        assert!(begun.elapsed() < Duration::from_secs(20), "{form:?}: {:?}", begun.elapsed());
    }
    // What is left of older ones under newer ones is no such thing.
    let mut bytes = log(Some(&head(ID, 0)), 1 << 20, &[]);
    for at in (4096..bytes.len() - (64 << 10)).step_by(4096) {
        let torn = record(ID, 2, 0, 60_000);
        bytes[at..at + 512].copy_from_slice(&torn[..512]);
    }
    let whole = record(ID, 9, WINDOW_START, 9);
    bytes[8192..8192 + whole.len()].copy_from_slice(&whole);
    let found = Scan::examine(bytes, "log").unwrap().chain;
    assert_eq!(found.iter().map(|place| place.sequence).collect::<Vec<_>>(), [9]);
}

/// Four thousand images of 64 KiB each, of a byte or two.
#[test]
fn images_take_memory_by_what_is_said_of_them() {
    let mut images = Images::new(65_536);
    for unit in 0..4000_u32 {
        // Data, one byte; and everything behind it is a copy of that.
        let difference = [0b0100_0000, unit.to_le_bytes()[0], 0b1100_0000 | 61, 254, 255, 0, 0];
        let difference: &[u8] = if unit % 2 == 0 { &[] } else { &difference };
        let image = images.feed(&Entry { unit, meta: &[], based: false, difference }).unwrap();
        let byte = if unit % 2 == 0 { 0 } else { unit.to_le_bytes()[0] };
        assert!(image.len() == 65_536 && image.iter().all(|it| *it == byte));
    }
    assert!(images.bytes() < 65 << 20, "{} bytes", images.bytes());
    for unit in (0..4000_u32).rev() {
        let byte = if unit % 2 == 0 { 0 } else { unit.to_le_bytes()[0] };
        let image = images.image_of(unit).unwrap().unwrap();
        assert!(image.iter().all(|it| *it == byte), "{unit}");
    }
}

proptest! {
    /// However few are kept as they are.
    #[test]
    fn images_are_the_same_with_whatever_room(
        room in 0..3_usize,
        steps in prop::collection::vec((0..6_u32, any::<bool>(), 0..400_usize, any::<u64>()), 1..60),
    ) {
        const UNIT: usize = 1024;
        let mut small = Images::with_room(UNIT as u32, room * UNIT);
        let mut large = Images::new(UNIT as u32);
        for (unit, based, len, seed) in steps {
            let mut new = large.image_of(unit).unwrap().map_or(vec![0; UNIT], <[u8]>::to_vec);
            let at = (seed % 500) as usize;
            new[at..at + len].copy_from_slice(&noise(seed, len));
            let old = large.image_of(unit).unwrap().map(<[u8]>::to_vec);
            let old = old.filter(|_| based);
            let mut difference = Vec::new();
            let copies = dash_log::difference::Copies::Everywhere;
            dash_log::difference::encode(old.as_deref(), &new, copies, &mut difference).unwrap();
            let entry = Entry { unit, meta: &[], based: old.is_some(), difference: &difference };
            prop_assert_eq!(small.feed(&entry).unwrap(), &new[..]);
            prop_assert_eq!(large.feed(&entry).unwrap(), &new[..]);
        }
        for unit in 0..6 {
            let large = large.image_of(unit).unwrap();
            prop_assert_eq!(small.image_of(unit).unwrap(), large);
        }
        prop_assert_eq!(small.is_empty(), large.is_empty());
    }
}
