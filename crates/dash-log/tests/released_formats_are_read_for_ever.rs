//! A stored sample of each released format is read, for ever, and the same is written byte for
//! byte: a log in use with a head, a window of two records with runs and copies, and a void one. It
//! is kept as text. `make_the_sample` made it (run with `--ignored` when a format is released,
//! never again for the same one).

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use super::common::{ID, log};
use dash_log::head::{Head, State};
use dash_log::images::Images;
use dash_log::record::{Builder, WINDOW_START};
use dash_log::scan::{Condition, Scan};
use std::fmt::Write;

const SAMPLE: &str = include_str!("fixtures/v1.hex");
const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/v1.hex");

const UNIT: usize = 1024;

fn head() -> Head {
    Head {
        id: ID,
        state: State::InUse,
        block: 512,
        sequence: 6,
        ring: 4096,
        owner: 42,
        next: None,
        context: b"of the engine".to_vec(),
    }
}

/// The images, in the order in which they were logged: two of page 1, then one of page 2.
fn images() -> [Vec<u8>; 3] {
    let mut first = vec![0; UNIT];
    first[..16].copy_from_slice(b"SQLite format 3\0");
    let rows: Vec<u8> = (0..500_u32).map(|n| (n * n / 7 + n) as u8 | 1).collect();
    first[500..1000].copy_from_slice(&rows);
    let mut second = first.clone();
    second.copy_within(500..1000, 508);
    second[24] = 7;
    let mut other = vec![0; UNIT];
    other[0] = 13;
    [first, second, other]
}

fn sample() -> Vec<u8> {
    let [first, second, other] = images();
    let mut builder = Builder::new();
    builder.begin(ID, 7, WINDOW_START, UNIT as u32, 2, b"header").unwrap();
    builder.push(1, b"f1", None, &first).unwrap();
    let start = builder.finish(512).unwrap().to_vec();
    builder.begin(ID, 8, 0, UNIT as u32, 2, b"").unwrap();
    builder.push(1, b"f2", Some(&first), &second).unwrap();
    builder.push(2, b"f3", None, &other).unwrap();
    let next = builder.finish(512).unwrap().to_vec();
    builder.begin(ID, 6, WINDOW_START, 0, 0, b"void").unwrap();
    let void = builder.finish(512).unwrap();
    log(Some(&head()), 4096, &[(512, &start), (512 + start.len(), &next), (3584, void)])
}

/// Sixteen bytes a line, as digits and as text; lines of zeros are left out.
fn shown(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (line, bytes) in bytes.chunks(16).enumerate() {
        if bytes.iter().any(|&byte| byte != 0) {
            let digits: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let readable =
                |byte: &u8| if byte.is_ascii_graphic() { char::from(*byte) } else { '.' };
            let readable: String = bytes.iter().map(readable).collect();
            writeln!(text, "{:04x}  {}  {readable}", line * 16, digits.join(" ")).unwrap();
        }
    }
    text
}

fn read(text: &str) -> Vec<u8> {
    let mut bytes = vec![0; 8192];
    for line in text.lines() {
        let at = usize::from_str_radix(&line[..4], 16).unwrap();
        for (byte, digits) in bytes[at..at + 16].iter_mut().zip(line[6..].split(' ')) {
            *byte = u8::from_str_radix(digits, 16).unwrap();
        }
    }
    bytes
}

#[test]
#[ignore = "makes the sample of a released format, once"]
fn make_the_sample() {
    std::fs::write(PATH, shown(&sample())).unwrap();
}

#[test]
fn format_1_is_read() {
    let scan = Scan::examine(read(SAMPLE), "sample").unwrap();
    assert_eq!((scan.condition, &scan.head), (Condition::Whole, &head()));
    let sequences: Vec<_> = scan.chain.iter().map(|place| place.sequence).collect();
    assert_eq!((sequences, scan.greatest), (vec![7, 8], 8));
    let mut images_of = Images::new(UNIT as u32);
    let mut found = Vec::new();
    for record in scan.records().map(Result::unwrap) {
        assert_eq!(record.context, if record.sequence == 7 { &b"header"[..] } else { b"" });
        for entry in record.entries() {
            let image = images_of.feed(&entry).unwrap().to_vec();
            found.push((entry.unit, entry.meta.to_vec(), image));
        }
    }
    let [first, second, other] = images();
    let wanted = [(1, b"f1", first), (1, b"f2", second), (2, b"f3", other)];
    let wanted = wanted.map(|(unit, meta, image)| (unit, meta.to_vec(), image));
    assert_eq!(found, wanted);
}

#[test]
fn format_1_is_what_is_written() {
    assert_eq!(shown(&sample()), SAMPLE);
    assert_eq!(read(SAMPLE), sample());
}
