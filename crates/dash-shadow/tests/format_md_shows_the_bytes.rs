//! What the tables of FORMAT.md say is what is written: a block with a value of its own in every
//! field has each value's bytes where its row says, that many, and nothing anywhere else.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use super::common::commit;
use super::common::sim::{start, tiny};
use dash_shadow::Protocol;
use dash_shadow::format::{
    BLOCK, CommitBlock, INLINE_UNITS, IntentBlock, Place, SEQUENCE_MAX, State, Unit, Vouched,
    first_page, layout,
};
use dash_simulated::Machine;

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

fn meaning(heading: &str, field: &str) -> &'static str {
    rows(heading).into_iter().find(|row| row.field == field).unwrap().meaning
}

/// Of "1 whole, 2 prepared": the numbers and the names.
fn numbered(meaning: &'static str) -> Vec<(u8, &'static str)> {
    meaning
        .split(", ")
        .map(|words| words.split_once(' ').unwrap())
        .map(|(number, name)| (number.parse().unwrap(), name))
        .collect()
}

/// The bytes of a magic: two digits each, and a text in quotes.
fn magic(meaning: &str) -> Vec<u8> {
    let code = meaning.split('`').nth(1).unwrap();
    let (digits, text) = code.split_once('"').unwrap();
    let digits = digits.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap());
    digits.chain(text.trim_end_matches('"').bytes()).collect()
}

/// Compares `block` with the table, whose other fields have these values.
fn shows(heading: &str, list: &[u8], block: &[u8], values: &[(&str, Vec<u8>)]) {
    let table = rows(heading);
    let version: u32 = meaning(heading, "version").rsplit(' ').next().unwrap().parse().unwrap();
    let field = |name: &str| table.iter().find(|row| row.field == name).unwrap().bytes.clone();
    let mut unsealed = block.to_vec();
    unsealed[field("checksum")].fill(0);
    let checksum = crc32fast::hash(&[list, &unsealed].concat());
    let always = [
        ("magic", magic(meaning(heading, "magic"))),
        ("version", version.to_le_bytes().to_vec()),
        ("checksum", checksum.to_le_bytes().to_vec()),
    ];
    let wanted: Vec<_> = always.iter().chain(values).collect();
    let names: Vec<_> = table.iter().map(|row| row.field).collect();
    assert_eq!(names, wanted.iter().map(|(name, _)| *name).collect::<Vec<_>>(), "{heading}");
    let mut elsewhere = block.to_vec();
    for (row, (_, value)) in table.iter().zip(&wanted) {
        assert_eq!(block[row.bytes.clone()], value[..], "{heading} {}", row.field);
        elsewhere[row.bytes.clone()].fill(0);
    }
    let undocumented = elsewhere.iter().position(|byte| *byte != 0);
    assert_eq!(undocumented, None, "{heading} a byte that no row has");
    let overlap = table.windows(2).find(|rows| rows[0].bytes.end > rows[1].bytes.start);
    assert_eq!(overlap.map(|rows| rows[1].field), None, "{heading} rows overlap");
}

/// Every byte of a field has another value.
fn number(field: u8, bytes: usize) -> u64 {
    (0..bytes).fold(0, |number, byte| number << 8 | u64::from(field + byte as u8))
}

fn bytes(field: u8, bytes: usize) -> Vec<u8> {
    number(field, bytes).to_le_bytes()[..bytes].to_vec()
}

/// The units, and their bytes as FORMAT.md tells in words.
fn units(count: usize) -> (Vec<Unit>, Vec<u8>) {
    let told = "an offset in 512-byte sectors (u48), flags (u16; bit 0: carried by aggregate \
                update), a length in sectors (u32), and the CRC-32";
    assert!(TEXT.replace('\n', " ").contains(told));
    let unit = |i: usize| Unit {
        offset: number(i as u8, 5) * 512,
        len: (i as u64 + 1) * 512,
        checksum: 0xA1B2_C300 + i as u32,
        carried: i.is_multiple_of(3),
    };
    let units: Vec<_> = (0..count).map(unit).collect();
    let told = units.iter().flat_map(|unit| {
        let offset = (unit.offset / 512).to_le_bytes();
        let flags = u16::from(unit.carried).to_le_bytes();
        let len = ((unit.len / 512) as u32).to_le_bytes();
        [&offset[..6], &flags, &len, &unit.checksum.to_le_bytes()].concat()
    });
    let told = told.collect();
    (units, told)
}

/// A whole commit with a value of its own in every field.
fn block(units: Vec<Unit>) -> CommitBlock {
    CommitBlock {
        place: Place::Tail,
        pair: number(0x11, 8),
        inode: number(0x21, 8),
        slot: 1,
        state: State::Prepared,
        protocol: Protocol::Exclusive,
        sequence: number(0x31, 8),
        id: number(0x41, 8),
        parent: number(0x51, 8),
        counter: number(0x61, 4) as u32,
        page_size: number(0x65, 4) as u32,
        size: number(0x71, 8),
        vouched: Some(Vouched {
            sequence: number(0x81, 8),
            id: number(0x91, 8),
            counter: number(0xA1, 4) as u32,
            names_durable: true,
            held: true,
            changed: number(0xB1, 8),
        }),
        super_journal: (0..=255).map(|i: u8| i | 1).collect(),
        unit_count: units.len() as u32,
        list_checksum: number(0xC1, 4) as u32,
        units,
    }
}

const COMMIT: &str = "Commit block:";
const PAGE_1: &str = "Block in page 1:";
const INTENT: &str = "Intent block:";

#[test]
fn commit_block() {
    let (units, told) = units(INLINE_UNITS);
    let mut block = block(units);
    let values = [
        ("pair", bytes(0x11, 8)),
        ("inode", bytes(0x21, 8)),
        ("slot", vec![1]),
        ("state", vec![2]),
        ("protocol", vec![3]),
        ("closed", vec![3]),
        ("unit count", (INLINE_UNITS as u32).to_le_bytes().to_vec()),
        ("sequence", bytes(0x31, 8)),
        ("id", bytes(0x41, 8)),
        ("parent", bytes(0x51, 8)),
        ("counter", bytes(0x61, 4)),
        ("page size", bytes(0x65, 4)),
        ("size", bytes(0x71, 8)),
        ("vouched sequence", bytes(0x81, 8)),
        ("vouched id", bytes(0x91, 8)),
        ("vouched counter", bytes(0xA1, 4)),
        ("list checksum", bytes(0xC1, 4)),
        ("super length", 256_u32.to_le_bytes().to_vec()),
        ("vouched changed", bytes(0xB1, 8)),
        ("super name", (0..=255).map(|i: u8| i | 1).collect()),
        ("units", told),
    ];
    shows(COMMIT, &[], &block.encode()[..], &values);
    assert_eq!(CommitBlock::decode(&block.encode()[..]), Ok(block.clone()));
    assert_eq!(rows(COMMIT).last().unwrap().bytes.end, BLOCK);
    // More units than fit leave their place empty.
    block.units.push(block.units[0]);
    let empty: Vec<_> = block.encode()[layout::UNITS..].to_vec();
    assert!(empty.iter().all(|byte| *byte == 0));
}

#[test]
fn what_a_field_of_a_few_values_says() {
    let mut block = block(Vec::new());
    let told = numbered(meaning(COMMIT, "state"));
    assert_eq!(told.len(), 4);
    for (number, name) in told {
        block.state = match name {
            "whole" => State::Whole,
            "prepared" => State::Prepared,
            "superseded" => State::Superseded,
            "settled" => State::Settled,
            other => panic!("{other} is no state"),
        };
        assert_eq!(block.encode()[layout::STATE], number, "{name}");
    }
    let told = numbered(meaning(COMMIT, "protocol"));
    assert_eq!(told.len(), 3);
    for (number, name) in told {
        block.protocol = Protocol::from_name(name).unwrap();
        assert_eq!(block.encode()[layout::PROTOCOL], number, "{name}");
    }
    let told = meaning(COMMIT, "closed");
    assert!(told.contains("bit 0 if the database was closed cleanly and both names are durable"));
    assert!(told.contains("bit 1 if another program had this file open"));
    for (names_durable, held, number) in
        [(false, false, 0), (true, false, 1), (false, true, 2), (true, true, 3)]
    {
        block.vouched = block.vouched.map(|vouched| Vouched { names_durable, held, ..vouched });
        assert_eq!(block.encode()[layout::CLOSED], number);
    }
    assert!(meaning(COMMIT, "sequence").contains("from 1, below 2^62"));
    assert_eq!(SEQUENCE_MAX, (1 << 62) - 1);
    block.sequence = SEQUENCE_MAX;
    assert!(CommitBlock::decode(&block.encode()[..]).is_ok());
    block.sequence += 1;
    assert!(CommitBlock::decode(&block.encode()[..]).is_err());
}

/// A page 1 with nothing in it but the block, and the bytes of the list before it.
fn inserted(block: &CommitBlock, list: usize) -> (Vec<u8>, Vec<u8>) {
    let mut page = vec![0; 4096];
    page[100] = 13;
    let empty = page.clone();
    first_page::insert(block, &mut page);
    let place = first_page::FIXED - list..512;
    assert_eq!(page[..place.start], empty[..place.start]);
    assert_eq!(page[place.end..], empty[place.end..]);
    let told = meaning(PAGE_1, "magic").rsplit_once("at byte ").unwrap().1;
    assert!(told.starts_with(&first_page::FIXED.to_string()), "{told}");
    let (list, block) = page[place].split_at(list);
    (list.to_vec(), block.to_vec())
}

#[test]
fn block_in_page_1() {
    let values = |list_place: u8, count: u32| {
        vec![
            ("pair", bytes(0x11, 8)),
            ("inode", bytes(0x21, 8)),
            ("slot", vec![1]),
            ("state", vec![2]),
            ("protocol", vec![3]),
            ("list place", vec![list_place]),
            ("unit count", count.to_le_bytes().to_vec()),
            ("sequence", bytes(0x31, 8)),
            ("id", bytes(0x41, 8)),
            ("parent", bytes(0x51, 8)),
            ("counter", bytes(0x61, 4)),
            ("page size", bytes(0x65, 4)),
            ("size", bytes(0x71, 8)),
        ]
    };
    let (units, told) = units(5);
    let whole = CommitBlock { place: Place::FirstPage, vouched: None, ..block(units) };
    let (list, fixed) = inserted(&whole, told.len());
    assert_eq!(list, told);
    shows(PAGE_1, &list, &fixed, &values(0, 5));
    let announced = CommitBlock { place: Place::Announced, ..whole.clone() };
    shows(PAGE_1, &[], &inserted(&announced, 0).1, &values(1, 5));
    // A superseded or settled file has the vouched id and counter in two of the fields.
    assert!(meaning(PAGE_1, "id").ends_with("of a superseded or settled file: vouched id"));
    assert!(
        meaning(PAGE_1, "parent").ends_with("of a superseded or settled file: vouched counter")
    );
    let settled = CommitBlock { state: State::Settled, ..block(Vec::new()) };
    let mut values = values(0, 0);
    for (field, value) in [
        ("state", vec![4]),
        ("id", bytes(0x91, 8)),
        ("parent", [bytes(0xA1, 4), vec![0; 4]].concat()),
    ] {
        values.iter_mut().find(|(name, _)| *name == field).unwrap().1 = value;
    }
    let first = CommitBlock { place: Place::FirstPage, ..settled };
    shows(PAGE_1, &[], &inserted(&first, 0).1, &values);
    assert_eq!(rows(PAGE_1).last().unwrap().bytes.end, layout::FIRST_PAGE_LEN);
}

#[test]
fn intent_block() {
    let regions: Vec<u8> = (0..BLOCK - layout::REGIONS).map(|i| i as u8 | 1).collect();
    let mut block = IntentBlock {
        pair: number(0x11, 8),
        inode: number(0x21, 8),
        region_shift: 13,
        regions: Box::new(regions.clone().try_into().unwrap()),
    };
    let values = [
        ("pair", bytes(0x11, 8)),
        ("inode", bytes(0x21, 8)),
        ("region shift", 13_u32.to_le_bytes().to_vec()),
        ("regions", regions),
    ];
    shows(INTENT, &[], &block.encode()[..], &values);
    assert_eq!(IntentBlock::decode(&block.encode()[..]), Ok(block.clone()));
    // One bit a region, lowest bit first.
    block.regions.fill(0);
    assert!(block.mark(&(13 << 13..14 << 13)));
    let marked = block.encode();
    let set: Vec<_> = (layout::REGIONS..BLOCK).filter(|at| marked[*at] != 0).collect();
    assert_eq!((set, marked[layout::REGIONS + 1]), (vec![layout::REGIONS + 1], 1 << 5));
    assert!(meaning(INTENT, "region shift").ends_with("12 to 47"));
    for (shift, fits) in [(11, false), (12, true), (47, true), (48, false)] {
        block.region_shift = shift;
        assert_eq!(IntentBlock::decode(&block.encode()[..]).is_ok(), fits, "{shift}");
    }
}

/// The first hundred bytes of a file on a machine.
fn header(machine: &Machine, name: &str) -> Vec<u8> {
    machine.open_stock(name).unwrap().read_all()[..100].to_vec()
}

#[test]
fn marks_in_sqlites_header() {
    let text = TEXT.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("**fenced**: bytes 18, 19 = 3, bytes 20–23 = 0, and bytes 24–39 are the current copy's XOR 0x55."));
    assert!(text.contains("**demoted**: byte 18 = 3 and the top bits of both change counters"));
    let machine = Machine::new(1);
    let (_process, mut connection) = start(&machine, &tiny());
    for value in 0..3 {
        commit(&mut connection, &[1, value, 3]).unwrap();
    }
    // Fenced, the copy that is being written has the current one's counter, changed.
    let current = header(&machine, "app.db");
    let mut fenced = current[18..40].to_vec();
    fenced[..2].fill(3);
    fenced[2..6].fill(0);
    fenced[6..].iter_mut().for_each(|byte| *byte ^= 0x55);
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    machine.watch(move |machine, _| {
        count.fetch_add(usize::from(header(machine, "app.db-shadow")[18..40] == fenced), SeqCst);
    });
    commit(&mut connection, &[1, 7, 3]).unwrap();
    machine.watch(|_, _| {});
    assert!(seen.load(SeqCst) > 0, "the shadow is never fenced as told");
    // The copy that was current is the shadow now.
    let mut demoted = current;
    demoted[18] = 3;
    demoted[24] ^= 0x80;
    demoted[92] ^= 0x80;
    assert_eq!(header(&machine, "app.db-shadow"), demoted);
}
