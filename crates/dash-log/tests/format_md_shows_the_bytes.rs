//! What the tables of FORMAT.md say is what is written: a head and a record with a value of its own
//! in every field have each value's bytes where its row says, that many, and nothing anywhere else.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use super::common;
use dash_log::format::{Form, HEAD_CONTEXT_MAX, LINES_VERSION};
use dash_log::head::{Head, State};
use dash_log::heads::Heads;
use dash_log::record::{Builder, WINDOW_START};
use std::ops::Range;

const TEXT: &str = include_str!("../FORMAT.md");

struct Row {
    bytes: Range<usize>,
    field: &'static str,
    meaning: &'static str,
}

fn rows(heading: &str) -> Vec<Row> {
    let table = TEXT.split(heading).nth(1).unwrap();
    let lines = table.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    lines
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<_> = line.split('|').map(str::trim).collect();
            let (offset, bytes): (usize, usize) =
                (cells[1].parse().unwrap(), cells[2].parse().unwrap());
            Row { bytes: offset..offset + bytes, field: cells[3], meaning: cells[4] }
        })
        .collect()
}

/// The bytes of a magic: two digits each, and a text in quotes.
fn magic(meaning: &str) -> Vec<u8> {
    let code = meaning.split('`').nth(1).unwrap();
    let (digits, text) = code.split_once('"').unwrap();
    let digits = digits.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap());
    digits.chain(text.trim_end_matches('"').bytes()).collect()
}

/// Compares what was written, of which the first `summed` bytes have a checksum, with the table,
/// whose other fields have these values.
fn shows(heading: &str, summed: usize, written: &[u8], values: &[(&str, Vec<u8>)]) {
    let table = rows(heading);
    let meaning = |name: &str| table.iter().find(|row| row.field == name).unwrap().meaning;
    let version: u32 = meaning("version").rsplit(' ').next().unwrap().parse().unwrap();
    let mut unsealed = written[..summed].to_vec();
    unsealed[table.iter().find(|row| row.field == "checksum").unwrap().bytes.clone()].fill(0);
    let always = [
        ("magic", magic(meaning("magic"))),
        ("version", version.to_le_bytes().to_vec()),
        ("checksum", crc32fast::hash(&unsealed).to_le_bytes().to_vec()),
    ];
    let wanted: Vec<_> = always.iter().chain(values).collect();
    let names: Vec<_> = table.iter().map(|row| row.field).collect();
    assert_eq!(names, wanted.iter().map(|(name, _)| *name).collect::<Vec<_>>(), "{heading}");
    let mut elsewhere = written.to_vec();
    for (row, (_, value)) in table.iter().zip(&wanted) {
        assert_eq!(written[row.bytes.clone()], value[..], "{heading} {}", row.field);
        elsewhere[row.bytes.clone()].fill(0);
    }
    let undocumented = elsewhere.iter().position(|byte| *byte != 0);
    assert_eq!(undocumented, None, "{heading} a byte that no row has");
    let overlap = table.windows(2).find(|rows| rows[0].bytes.end > rows[1].bytes.start);
    assert_eq!(overlap.map(|rows| rows[1].field), None, "{heading} rows overlap");
}

/// Every byte of a field has another value.
fn number(field: u8, bytes: u8) -> u64 {
    (0..bytes).fold(0, |number, byte| number << 8 | u64::from(field + byte))
}

fn bytes(field: u8, bytes: u8) -> Vec<u8> {
    number(field, bytes).to_le_bytes()[..bytes.into()].to_vec()
}

#[test]
fn head() {
    let head = Head {
        id: number(0x11, 8),
        state: State::InUse,
        block: number(0x21, 4) as u32,
        sequence: number(0x31, 8),
        ring: number(0x41, 8),
        owner: number(0x51, 8),
        next: Some(number(0x61, 8)),
        context: (0..HEAD_CONTEXT_MAX).map(|byte| byte as u8 | 1).collect(),
    };
    let values = [
        ("id", bytes(0x11, 8)),
        ("state", vec![1, 0, 0, 0]),
        ("block", bytes(0x21, 4)),
        ("sequence", bytes(0x31, 8)),
        ("ring", bytes(0x41, 8)),
        ("owner", bytes(0x51, 8)),
        ("next", bytes(0x61, 8)),
        ("context length", vec![0, 1]),
        ("context", head.context.clone()),
    ];
    let written = head.encode().unwrap();
    shows("Head:", written.len(), &written, &values);
    assert_eq!(Head::decode(&written), Ok(head.clone()));
    let row = rows("Head:").into_iter().find(|row| row.field == "state").unwrap();
    assert_eq!(row.meaning, "0 clean, 1 in use");
    let clean = Head { state: State::Clean, ..head }.encode().unwrap();
    assert_eq!(clean[row.bytes], [0; 4]);
}

#[test]
fn head_of_lines() {
    let said = common::head(number(0x11, 8), number(0x21, 8));
    let (head, other) = (said.encode_turn(number(0x71, 8)).unwrap(), said.encode().unwrap());
    let table = rows("\nHead of lines:");
    let fields: Vec<_> = table.iter().map(|row| row.field).collect();
    assert_eq!(fields, ["version", "turn"]);
    assert_eq!(table[0].meaning, format!("format version, {LINES_VERSION}"));
    assert_eq!(head[table[0].bytes.clone()], LINES_VERSION.to_le_bytes());
    assert_eq!(head[table[1].bytes.clone()], bytes(0x71, 8));
    // Beside these, and the checksum, it is the head of a log of sectors.
    let alike = |mut bytes: [u8; 512]| {
        table.iter().for_each(|row| bytes[row.bytes.clone()].fill(0));
        bytes[12..16].fill(0);
        bytes
    };
    assert_eq!(alike(head), alike(other));
    assert_eq!(Head::decode_turn(&head), Ok((said, number(0x71, 8))));
    let second = [[0; 512], head].concat();
    assert_eq!(Heads::decode(&second).place, 1);
    assert!(TEXT.contains("\nHead of lines: bytes 0 and 512 of the file"));
}

#[test]
fn record() {
    let mut builder = Builder::new();
    let unit_bytes = 0x0403;
    builder
        .begin(number(0x11, 8), number(0x21, 8), WINDOW_START, unit_bytes, 0x0102, b"context")
        .unwrap();
    let fixed = builder.len() - 7;
    let image = vec![9; unit_bytes as usize];
    builder.push(number(0x31, 4) as u32, &[8; 0x0102], None, &image).unwrap();
    builder.push(number(0x31, 4) as u32, &[8; 0x0102], Some(&image), &image).unwrap();
    let length = builder.len();
    let written = builder.finish(512).unwrap();
    let said = |number: usize| (number as u32).to_le_bytes().to_vec();
    let values = [
        ("id", bytes(0x11, 8)),
        ("sequence", bytes(0x21, 8)),
        ("length", said(length)),
        ("padded", said(written.len())),
        ("flags", vec![1, 0]),
        ("meta length", vec![2, 1]),
        ("entries", said(2)),
        ("unit bytes", said(0x0403)),
        ("context length", vec![7, 0]),
        ("annotation length", vec![0, 0]),
    ];
    let mut alone = written.to_vec();
    alone[fixed..].fill(0);
    let sum = written[12..16].to_vec();
    let mut unsealed = written[..length].to_vec();
    unsealed[12..16].fill(0);
    assert_eq!(sum, crc32fast::hash(&unsealed).to_le_bytes());
    alone[12..16].fill(0);
    let sum = crc32fast::hash(&alone[..length]).to_le_bytes();
    alone[12..16].copy_from_slice(&sum);
    shows("Record:", length, &alone, &values);
    assert_eq!(rows("Record:").last().unwrap().bytes.end, fixed);
    // The context, then the entries: unit, base, length of the difference, meta, difference.
    assert_eq!(&written[fixed..fixed + 7], b"context");
    let entry = &written[fixed + 7..length];
    let unit = bytes(0x31, 4);
    let difference = [vec![0b0100_0000 | 61, 0x02, 0x04], image].concat();
    let length = [0x80 | (difference.len() % 128) as u8, (difference.len() / 128) as u8];
    let first = [&unit[..], &[0], &length, &[8; 0x0102], &difference].concat();
    let second = [&unit[..], &[1], &[0], &[8; 0x0102]].concat();
    assert_eq!(entry, [first, second].concat());
    let table = rows("Entry:");
    let places: Vec<_> = table.iter().map(|row| (row.field, row.bytes.clone())).collect();
    assert_eq!(places, [("unit", 0..4), ("base", 4..5)]);
}

#[test]
fn compact_record() {
    let mut builder = Builder::new();
    builder.set_form(Form::Lines);
    builder.begin(number(0x11, 8), 300, WINDOW_START, 0x0403, 3, b"context").unwrap();
    let image = common::noise(1, 0x0403);
    builder.push(5, b"abc", None, &image).unwrap();
    builder.push(200, b"def", Some(&image), &image).unwrap();
    builder.annotate(b"said").unwrap();
    let length = builder.len();
    let written = builder.finish(256).unwrap();
    let table = rows("\nCompact record:");
    let field = |name: &str| table.iter().find(|row| row.field == name).unwrap();
    assert_eq!(
        table.iter().map(|row| row.field).collect::<Vec<_>>(),
        ["magic", "checksum", "id", "flags"]
    );
    assert_eq!(written[field("magic").bytes.clone()], magic(field("magic").meaning));
    let mut unsealed = written[..length].to_vec();
    unsealed[field("checksum").bytes.clone()].fill(0);
    let sum = crc32fast::hash(&unsealed).to_le_bytes();
    assert_eq!(written[field("checksum").bytes.clone()], sum);
    assert_eq!(written[field("id").bytes.clone()], bytes(0x11, 8));
    // A window begins, an annotation follows, and 64 is doubled twice.
    assert_eq!(written[field("flags").bytes.clone()], [0b01011]);
    let difference = [vec![0b0100_0000 | 61, 0x02, 0x04], image.clone()].concat();
    let twice = 2 * difference.len();
    let len = [0x80 | (twice % 128) as u8, (twice / 128) as u8];
    let first = [&[5], &len[..], b"abc", &difference].concat();
    let second = [&[0xC8, 1, 1], &b"def"[..]].concat();
    let body = [&b"context"[..], &first, &second, b"said"].concat();
    let body_len = [0x80 | (body.len() % 128) as u8, (body.len() / 128) as u8];
    let numbers = [&[0xAC, 2], &body_len[..], &[2, 0x83, 8, 3, 7, 4]].concat();
    assert_eq!(written[17..length], [numbers, body].concat());
    assert_eq!(written.len(), length.next_multiple_of(256));
    assert!(written[length..].iter().all(|&byte| byte == 0));
}

#[test]
fn operations_of_a_difference() {
    use dash_log::difference::{Copies, apply, encode};
    let table = TEXT.split("\nDifference:").nth(1).unwrap();
    assert!(table.contains("| `00` and a length | | keep:"));
    assert!(table.contains("| `01` and a length | the bytes | data:"));
    assert!(table.contains("| `10000000` | offset u16, length − 1 u16 | copy:"));
    assert!(table.contains("| `11` and a length | offset u16 | copy, in compact records only:"));
    let old: Vec<u8> = (0..2000_u32).map(|n| (n * n / 9 + n) as u8).collect();
    let mut new = old.clone();
    new[100] ^= 0xFF;
    new.copy_within(1200..1300, 500);
    let mut difference = Vec::new();
    encode(Some(&old), &new, Copies::WhereTheyPay, &mut difference).unwrap();
    // Keep 100: 60, and a byte, 100 − 61. Data 1. Keep 399: 61, and a u16, 399 − 1. Copy.
    let begins = [60, 39, 0b0100_0000, new[100], 61, 142, 1];
    assert_eq!(difference[..7], begins);
    assert_eq!(difference[7..], [0b1000_0000, 0xB0, 4, 99, 0]);
    let mut image = vec![0; 2000];
    apply(&difference, Some(&old), &mut image).unwrap();
    assert_eq!(image, new);
    // Of a compact record: a copy of 100, then one from the new image, which is behind the old one.
    new.copy_within(500..600, 1500);
    difference.clear();
    encode(Some(&old), &new, Copies::Everywhere, &mut difference).unwrap();
    assert_eq!(difference[7..11], [0b1100_0000 | 60, 39, 0xB0, 4]);
    assert_eq!(difference[14..], [0b1100_0000 | 60, 39, 0xC4, 9]);
    apply(&difference, Some(&old), &mut image).unwrap();
    assert_eq!(image, new);
}
