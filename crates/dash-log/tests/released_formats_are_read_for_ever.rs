//! A stored sample of each released format is read, for ever, and the same is written byte for
//! byte: a log in use with a head, a window of two records with runs and copies, and a void one;
//! of sectors, of lines below a head from before compact records, and of lines. They are kept as
//! text. `make_the_samples` made them (run with `--ignored` when a format is released, never
//! again for the same one).

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use super::common::{ID, former, log};
use dash_log::format::Form;
use dash_log::head::{Head, State};
use dash_log::images::Images;
use dash_log::record::{Builder, WINDOW_START};
use dash_log::scan::{Condition, Scan};
use std::fmt::Write;
use std::path::Path;

/// A format, and the sample of it.
#[derive(Clone, Copy, PartialEq)]
enum Format {
    Sectors,
    LinesInFull,
    Lines,
}

const SAMPLES: [(Format, &str, &str); 3] = [
    (Format::Sectors, "v1.hex", include_str!("fixtures/v1.hex")),
    (Format::LinesInFull, "v2.hex", include_str!("fixtures/v2.hex")),
    (Format::Lines, "v3.hex", include_str!("fixtures/v3.hex")),
];

const UNIT: usize = 1024;

fn head(block: u32) -> Head {
    Head {
        id: ID,
        state: State::InUse,
        block,
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

fn sample(format: Format) -> Vec<u8> {
    let [first, second, other] = images();
    let (block, step) = if format == Format::Sectors { (512, 512) } else { (64, 64) };
    let mut builder = Builder::new();
    builder.set_form(if format == Format::Lines { Form::Lines } else { Form::Sectors });
    builder.begin(ID, 7, WINDOW_START, UNIT as u32, 2, b"header").unwrap();
    builder.push(1, b"f1", None, &first).unwrap();
    let start = builder.finish(block).unwrap().to_vec();
    builder.begin(ID, 8, 0, UNIT as u32, 2, b"").unwrap();
    builder.push(1, b"f2", Some(&first), &second).unwrap();
    builder.push(2, b"f3", None, &other).unwrap();
    let next = builder.finish(block).unwrap().to_vec();
    builder.begin(ID, 6, WINDOW_START, 0, 0, b"void").unwrap();
    let void = builder.finish(block).unwrap();
    let records = [(step, &start[..]), (step + start.len(), &next[..]), (3584, void)];
    let head = head(block);
    if format == Format::Sectors {
        return log(Some(&head), 4096, &records);
    }
    let mut bytes = log(None, 4096, &records);
    let older = Head { sequence: 5, ..head.clone() };
    let turn = |head: &Head, turn| match format {
        Format::Lines => head.encode_turn(turn).unwrap().to_vec(),
        _ => former(head, turn),
    };
    bytes[..512].copy_from_slice(&turn(&head, 4));
    bytes[512..1024].copy_from_slice(&turn(&older, 3));
    bytes
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
#[ignore = "makes the samples of released formats, each once"]
fn make_the_samples() {
    for (format, name, known) in SAMPLES {
        if known.is_empty() {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
            std::fs::write(folder.join(name), shown(&sample(format))).unwrap();
        }
    }
}

#[test]
fn each_format_is_read() {
    for (format, name, known) in SAMPLES {
        let scan = Scan::examine(read(known), name).unwrap();
        let block = if format == Format::Sectors { 512 } else { 64 };
        assert_eq!((scan.condition, &scan.head), (Condition::Whole, &head(block)), "{name}");
        let sequences: Vec<_> = scan.chain.iter().map(|place| place.sequence).collect();
        assert_eq!((sequences, scan.greatest), (vec![7, 8], 8), "{name}");
        let mut images_of = Images::new(UNIT as u32);
        let mut found = Vec::new();
        for record in scan.records().map(Result::unwrap) {
            assert_eq!(record.context, if record.sequence == 7 { &b"header"[..] } else { b"" });
            assert_eq!(record.form == Form::Lines, format == Format::Lines);
            for entry in record.entries() {
                let image = images_of.feed(&entry).unwrap().to_vec();
                found.push((entry.unit, entry.meta.to_vec(), image));
            }
        }
        let [first, second, other] = images();
        let wanted = [(1, b"f1", first), (1, b"f2", second), (2, b"f3", other)];
        let wanted = wanted.map(|(unit, meta, image)| (unit, meta.to_vec(), image));
        assert_eq!(found, wanted, "{name}");
    }
}

#[test]
fn each_format_is_what_is_written() {
    for (format, name, known) in SAMPLES {
        assert_eq!(shown(&sample(format)), known, "{name}");
        assert_eq!(read(known), sample(format), "{name}");
    }
}
