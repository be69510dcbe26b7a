//! The tables of FORMAT.md and the offsets in the code are the same.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking; its numbers are small"
)]

use dash_shadow::format::layout;

fn rows(heading: &str) -> Vec<(usize, String)> {
    let text = include_str!("../FORMAT.md");
    let table = text.split(heading).nth(1).unwrap();
    table
        .lines()
        .skip_while(|line| !line.starts_with("|---"))
        .skip(1)
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<_> = line.split('|').map(str::trim).collect();
            (cells[1].parse().unwrap(), cells[3].to_owned())
        })
        .collect()
}

fn expect(heading: &str, fields: &[(usize, &str)]) {
    let shown = rows(heading);
    let shown: Vec<_> = shown.iter().map(|(offset, name)| (*offset, name.as_str())).collect();
    assert_eq!(shown, fields);
}

#[test]
fn commit_block() {
    expect(
        "Commit block:",
        &[
            (layout::MAGIC, "magic"),
            (layout::VERSION, "version"),
            (layout::CHECKSUM, "checksum"),
            (layout::PAIR, "pair"),
            (layout::INODE, "inode"),
            (layout::SLOT, "slot"),
            (layout::STATE, "state"),
            (layout::PROTOCOL, "protocol"),
            (layout::CLOSED, "closed"),
            (layout::UNIT_COUNT, "unit count"),
            (layout::SEQUENCE, "sequence"),
            (layout::ID, "id"),
            (layout::PARENT, "parent"),
            (layout::COUNTER, "counter"),
            (layout::PAGE_SIZE, "page size"),
            (layout::SIZE, "size"),
            (layout::VOUCHED_SEQUENCE, "vouched sequence"),
            (layout::VOUCHED_ID, "vouched id"),
            (layout::VOUCHED_COUNTER, "vouched counter"),
            (layout::LIST_CHECKSUM, "list checksum"),
            (layout::SUPER_LEN, "super length"),
            (layout::VOUCHED_CHANGED, "vouched changed"),
            (layout::SUPER_NAME, "super name"),
            (layout::UNITS, "units"),
        ],
    );
}

#[test]
fn block_in_page_1() {
    expect(
        "Block in page 1:",
        &[
            (layout::MAGIC, "magic"),
            (layout::VERSION, "version"),
            (layout::CHECKSUM, "checksum"),
            (layout::PAIR, "pair"),
            (layout::INODE, "inode"),
            (layout::SLOT, "slot"),
            (layout::STATE, "state"),
            (layout::PROTOCOL, "protocol"),
            (layout::LIST_PLACE, "list place"),
            (layout::UNIT_COUNT, "unit count"),
            (layout::SEQUENCE, "sequence"),
            (layout::ID, "id"),
            (layout::PARENT, "parent"),
            (layout::COUNTER, "counter"),
            (layout::PAGE_SIZE, "page size"),
            (layout::SIZE, "size"),
        ],
    );
    assert_eq!(layout::FIRST_PAGE_LEN, layout::SIZE + 8);
}

#[test]
fn intent_block() {
    expect(
        "Intent block:",
        &[
            (layout::MAGIC, "magic"),
            (layout::VERSION, "version"),
            (layout::CHECKSUM, "checksum"),
            (layout::PAIR, "pair"),
            (layout::INODE, "inode"),
            (layout::REGION_SHIFT, "region shift"),
            (layout::REGIONS, "regions"),
        ],
    );
}
