//! Which records of a log count: those of the newest window, as far as none is missing; none that
//! the head has made void, none of another log, none that are part of an image.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use super::common;
use super::common::{ID, compact, former, head, log, noise, record};
use dash_engine::error::Error;
use dash_log::format::LINES_VERSION;
use dash_log::head::{Head, State};
use dash_log::record::{Builder, Record, WINDOW_START};
use dash_log::scan::{Condition, Scan};
use proptest::prelude::*;

const RING: usize = 32 << 10;

fn examined(bytes: Vec<u8>) -> Scan {
    Scan::examine(bytes, "app.db-dashlog").unwrap()
}

fn refused(bytes: Vec<u8>) -> Error {
    Scan::examine(bytes, "app.db-dashlog").err().unwrap()
}

/// The sequences of the chain, which were read.
fn chain(scan: &Scan) -> Vec<u64> {
    let read: Vec<_> = scan.records().map(|record| record.unwrap().sequence).collect();
    assert_eq!(read, scan.chain.iter().map(|place| place.sequence).collect::<Vec<_>>());
    read
}

/// A log of records of a sector each, in order, at these positions and of these sequences and
/// flags.
fn small(void: u64, records: &[(usize, u64, u16)]) -> Vec<u8> {
    let made: Vec<_> =
        records.iter().map(|&(at, sequence, flags)| (at, record(ID, sequence, flags, 9))).collect();
    let placed: Vec<_> = made.iter().map(|(at, bytes)| (*at, &bytes[..])).collect();
    log(Some(&head(ID, void)), RING, &placed)
}

const START: u16 = WINDOW_START;

#[test]
fn an_empty_log_has_no_chain() {
    for (bytes, condition) in [
        (Vec::new(), Condition::Absent),
        (vec![0; 100], Condition::Absent),
        (vec![0; 4096 + RING], Condition::Absent),
        (noise(1, 4096 + RING), Condition::Damaged),
    ] {
        let scan = examined(bytes);
        assert_eq!((scan.condition, scan.head.state), (condition, State::Clean));
        assert_eq!((scan.chain.len(), scan.greatest, scan.end_position), (0, 0, 0));
    }
    let scan = examined(small(7, &[]));
    assert_eq!((scan.condition, scan.head), (Condition::Whole, head(ID, 7)));
    assert_eq!((scan.chain.len(), scan.greatest, scan.end_position), (0, 7, 0));
}

#[test]
fn the_chain_begins_with_the_newest_window_and_ends_at_a_gap() {
    let scan = examined(small(0, &[(0, 1, START), (512, 2, 0), (1024, 3, START), (1536, 4, 0)]));
    assert_eq!((chain(&scan), scan.greatest, scan.end_position), (vec![3, 4], 4, 2048));
    // A gap.
    let scan = examined(small(0, &[(0, 1, START), (512, 2, 0), (1536, 4, 0)]));
    assert_eq!((chain(&scan), scan.greatest, scan.end_position), (vec![1, 2], 4, 1024));
    // No window: its beginning is not there.
    let scan = examined(small(0, &[(512, 2, 0), (1024, 3, 0)]));
    assert_eq!((chain(&scan), scan.greatest, scan.end_position), (vec![], 3, 1536));
    // Around the ring's end, and to its very end.
    let last = RING - 512;
    let scan = examined(small(0, &[(last, 6, START), (0, 7, 0), (512, 8, 0), (1024, 5, 0)]));
    assert_eq!((chain(&scan), scan.end_position), (vec![6, 7, 8], 1024));
    let scan = examined(small(0, &[(0, 1, START), (last, 2, 0)]));
    assert_eq!((chain(&scan), scan.end_position), (vec![1, 2], RING as u64));
}

#[test]
fn what_the_head_has_overtaken_is_void_for_ever() {
    // LOG-11, LOG-3: its number counts all the same.
    let records = [(0, 4, START), (512, 5, 0), (1024, 6, START), (1536, 7, 0)];
    let scan = examined(small(7, &records));
    assert_eq!((chain(&scan), scan.greatest, scan.end_position), (vec![], 7, 2048));
    let scan = examined(small(9, &records));
    assert_eq!((chain(&scan), scan.greatest), (vec![], 9));
    // What comes behind a window that is void does not count either.
    let scan = examined(small(6, &records));
    assert_eq!((chain(&scan), scan.greatest), (vec![], 7));
    let scan = examined(small(5, &records));
    assert_eq!((chain(&scan), scan.greatest), (vec![6, 7], 7));
}

#[test]
fn records_of_another_log_do_not_count() {
    let (own, foreign) = (record(ID, 2, START, 9), record(ID + 1, 9, START, 9));
    let scan = examined(log(Some(&head(ID, 0)), RING, &[(0, &own), (512, &foreign)]));
    assert_eq!((chain(&scan), scan.greatest), (vec![2], 2));
    // What a newer dash left of another log is no obstacle.
    let mut newer = foreign;
    newer[8] = 2;
    let scan = examined(log(Some(&head(ID, 0)), RING, &[(0, &own), (512, &newer)]));
    assert_eq!(chain(&scan), [2]);
}

#[test]
fn a_damaged_head_hides_no_record() {
    let mut bytes = small(3, &[(0, 4, START), (512, 5, 0), (1024, 2, START)]);
    bytes[40] ^= 1;
    let scan = examined(bytes.clone());
    assert_eq!((scan.condition, scan.head.state), (Condition::Damaged, State::InUse));
    assert_eq!((scan.head.id, scan.head.sequence, chain(&scan)), (ID, 0, vec![4, 5]));
    bytes[..512].fill(0);
    let scan = examined(bytes.clone());
    assert_eq!((scan.condition, scan.head.state), (Condition::Absent, State::InUse));
    assert_eq!(chain(&scan), [4, 5]);
    // Of two logs it can't be known which.
    let foreign = record(ID + 1, 9, START, 9);
    bytes[4096 + 2048..][..foreign.len()].copy_from_slice(&foreign);
    assert!(matches!(refused(bytes), Error::Corrupt(_)));
}

#[test]
fn a_newer_dash_is_never_taken_for_an_empty_log() {
    // LOG-8: in the head, in a record, in a flag; whatever the checksum.
    let records = [(0, 1, START), (512, 2, 0)];
    let mut bytes = small(0, &records);
    bytes[8] = 2;
    assert!(matches!(refused(bytes), Error::CantOpen(_)));
    let mut bytes = small(0, &records);
    bytes[4096 + 512 + 8] = 9;
    assert!(matches!(refused(bytes), Error::CantOpen(_)));
    assert!(matches!(refused(small(0, &[(0, 1, START), (512, 2, 1 << 3)])), Error::CantOpen(_)));
    // A void one says nothing any more.
    let mut bytes = small(2, &records);
    bytes[4096 + 512 + 8] = 9;
    assert_eq!(chain(&examined(bytes)), []);
}

#[test]
fn in_a_log_of_lines_the_heads_tell_a_newer_dash() {
    // LOG-8: what begins a record there may be torn, with a version of anything.
    let of_lines = |void| {
        let made = record(ID, 2, 0, 9);
        let mut bytes = log(None, RING, &[(0, &record(ID, 1, START, 9)), (576, &made)]);
        let heads = [(0, 4_u64), (512, 3)];
        for (at, turn) in heads {
            let head = head(ID, void).encode_turn(turn).unwrap();
            bytes[at..at + 512].copy_from_slice(&head);
        }
        bytes
    };
    assert_eq!(chain(&examined(of_lines(0))), [1, 2]);
    let mut bytes = of_lines(0);
    bytes[4096 + 576 + 8] = 9;
    assert_eq!(chain(&examined(bytes)), [1]);
    for at in [8, 512 + 8] {
        let mut bytes = of_lines(0);
        bytes[at] = LINES_VERSION as u8 + 1;
        assert!(matches!(refused(bytes), Error::CantOpen(_)), "{at}");
    }
    let mut bytes = of_lines(0);
    let flagged = record(ID, 2, 1 << 3, 9);
    bytes[4096 + 576..4096 + 576 + flagged.len()].copy_from_slice(&flagged);
    assert!(matches!(refused(bytes), Error::CantOpen(_)));
    // Where there is but one head, records are at multiples of a sector, and in lines they are not.
    let mut bytes = of_lines(0);
    bytes[..512].copy_from_slice(&head(ID, 0).encode().unwrap());
    assert_eq!(chain(&examined(bytes)), [1]);
}

/// A log of lines with records at these places, below a head of this version or the one before.
fn of_lines(former_version: bool, records: &[(usize, &[u8])]) -> Vec<u8> {
    let mut bytes = log(None, RING, records);
    let said = head(ID, 0);
    let head =
        if former_version { former(&said, 7) } else { said.encode_turn(7).unwrap().to_vec() };
    bytes[512..1024].copy_from_slice(&head);
    bytes
}

#[test]
fn records_of_lines_are_compact_or_as_they_were_before() {
    let (start, full) = (compact(ID, 1, START, 9), record(ID, 2, 0, 9));
    let (next, last) = (compact(ID, 3, 0, 200), compact(ID, 4, 0, 9));
    let behind = 576 + next.len();
    let all = [(0, &start[..]), (64, &full[..]), (576, &next[..]), (behind, &last[..])];
    for former_version in [false, true] {
        let scan = examined(of_lines(former_version, &all));
        assert_eq!(chain(&scan), [1, 2, 3, 4]);
        assert_eq!(scan.end_position, (behind + last.len()) as u64);
    }
    // In a log of sectors a compact one is part of an image.
    let bytes = log(Some(&head(ID, 0)), RING, &all);
    assert_eq!(chain(&examined(bytes)), []);
    // LOG-7: one of another log is no record, whatever its number; LOG-1: nor one that is torn.
    let foreign = compact(ID + 1, 9, START, 9);
    let scan = examined(of_lines(false, &[(0, &start[..]), (64, &foreign[..])]));
    assert_eq!((chain(&scan), scan.greatest), (vec![1], 1));
    let mut torn = of_lines(false, &all);
    torn[4096 + 576 + 70] ^= 1;
    let scan = examined(torn);
    assert_eq!((chain(&scan), scan.greatest), (vec![1, 2], 4));
    // LOG-8: a flag of the future.
    let newer = common::resealed_compact([&start[..16], &[0x41], &start[17..]].concat(), 41);
    assert_eq!(Record::decode(&start).unwrap().length(), 41);
    assert!(matches!(refused(of_lines(false, &[(0, &newer[..])])), Error::CantOpen(_)));
}

#[test]
fn two_different_records_of_one_number_are_refused() {
    let (one, other) = (record(ID, 2, 0, 9), record(ID, 2, 0, 10));
    let start = record(ID, 1, START, 9);
    let both = [(0, &start[..]), (512, &one[..]), (2048, &other[..])];
    assert!(matches!(refused(log(Some(&head(ID, 0)), RING, &both)), Error::Corrupt(_)));
    // Two windows of one number, likewise.
    let (one, other) = (record(ID, 2, START, 9), record(ID, 2, START, 10));
    let both = [(0, &start[..]), (512, &one[..]), (2048, &other[..])];
    assert!(matches!(refused(log(Some(&head(ID, 0)), RING, &both)), Error::Corrupt(_)));
    // A copy changes nothing, and what left the window does not matter.
    let copies = [(0, &start[..]), (512, &one[..]), (2048, &one[..])];
    assert_eq!(chain(&examined(log(Some(&head(ID, 0)), RING, &copies))), [2]);
    let next = record(ID, 3, START, 9);
    let both = [(0, &start[..]), (512, &one[..]), (2048, &other[..]), (4096, &next[..])];
    assert_eq!(chain(&examined(log(Some(&head(ID, 0)), RING, &both))), [3]);
}

#[test]
fn a_record_that_contradicts_itself_is_refused_unless_it_is_void() {
    let mut bytes = record(ID, 2, 0, 9);
    let length = Record::decode(&bytes).unwrap().length();
    bytes[44] = 7;
    bytes[12..16].fill(0);
    let sum = crc32fast::hash(&bytes[..length]);
    bytes[12..16].copy_from_slice(&sum.to_le_bytes());
    let start = record(ID, 1, START, 9);
    let with = |void| log(Some(&head(ID, void)), RING, &[(0, &start[..]), (512, &bytes[..])]);
    assert!(matches!(refused(with(0)), Error::Corrupt(_)));
    assert!(matches!(refused(with(1)), Error::Corrupt(_)));
    assert_eq!(chain(&examined(with(2))), []);
}

/// A record of two sectors that begins a window, without its padding.
fn alone(sequence: u64) -> Vec<u8> {
    let mut bytes = record(ID, sequence, START, 600);
    let length = Record::decode(&bytes).unwrap().length();
    bytes.truncate(length);
    bytes
}

/// A record with an image that holds `inside` at a sector of the ring.
fn around(sequence: u64, inside: &[u8]) -> Vec<u8> {
    let mut builder = Builder::new();
    for shift in 0..512 {
        // Nothing in it is as in the image before it.
        let mut image = vec![0xAA; 4096];
        image[shift..shift + inside.len()].copy_from_slice(inside);
        builder.begin(ID, sequence, 0, 4096, 0, &[]).unwrap();
        builder.push(1, &[], Some(&[0x55; 4096]), &image).unwrap();
        let bytes = builder.finish(512).unwrap();
        let mut sectors = bytes.chunks(512).skip(1);
        if sectors.any(|sector| sector.starts_with(&inside[..512.min(inside.len())])) {
            return bytes.to_vec();
        }
    }
    panic!("it never lies at a sector");
}

#[test]
fn a_record_within_an_image_is_none() {
    // LOG-7: in a record that is whole, even one that whoever knows the id has forged.
    let start = record(ID, 1, START, 9);
    let forged = alone(99);
    let outer = around(2, &forged);
    let scan = examined(log(Some(&head(ID, 0)), RING, &[(0, &start), (512, &outer)]));
    assert_eq!((chain(&scan), scan.greatest), (vec![1, 2], 2));
    let outer = around(2, &alone(7));
    let scan = examined(log(Some(&head(ID, 0)), RING, &[(512, &outer)]));
    assert_eq!((chain(&scan), scan.greatest), (vec![], 2));
    // In the remains of one that was overwritten: a copy of a record that was there.
    let outer = around(2, &alone(1));
    let (three, four) = (record(ID, 3, START, 9), record(ID, 4, 0, 9));
    let records = [(0, &outer[..]), (0, &three[..]), (8192, &four[..])];
    assert_eq!(chain(&examined(log(Some(&head(ID, 0)), RING, &records))), [3, 4]);
}

proptest! {
    #[test]
    fn any_bytes_are_examined_without_a_panic(
        sectors in prop::collection::vec((0..9_u64, 0..4_u16, 0..1500_usize), 0..30),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..40),
        cut in 0..RING, void in 0..6_u64, whole_head in any::<bool>(),
    ) {
        let mut at = 0;
        let mut placed = Vec::new();
        for (sequence, flags, content) in sectors {
            let bytes = record(ID, sequence, flags, content);
            if at + bytes.len() <= RING {
                placed.push((at, bytes));
            }
            at += 512 * (1 + content / 700);
        }
        let placed: Vec<_> = placed.iter().map(|(at, bytes)| (*at, &bytes[..])).collect();
        let head = head(ID, void);
        let mut bytes = log(whole_head.then_some(&head), RING, &placed);
        for (at, value) in flips {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        bytes.truncate(4096 + cut);
        if let Ok(scan) = Scan::examine(bytes, "log") {
            let sequences = chain(&scan);
            prop_assert!(sequences.windows(2).all(|pair| pair[0] + 1 == pair[1]));
            prop_assert!(sequences.last().is_none_or(|&last| last <= scan.greatest));
            prop_assert!(scan.end_position <= cut as u64);
            let not_void = |it: &u64| scan.condition != Condition::Whole || *it > scan.head.sequence;
            prop_assert!(sequences.iter().all(not_void));
        }
    }
}

#[test]
fn a_head_with_a_context_is_read_as_written() {
    for len in [0, 1, 256] {
        let context: Vec<u8> = (0..len).map(|byte| byte as u8).collect();
        let written =
            Head { context, state: State::Clean, ring: 1 << 40, block: 4096, ..head(ID, 3) };
        assert_eq!(Head::decode(&written.encode().unwrap()), Ok(written));
    }
}
