//! Blocks that are well-formed and lie: fields changed, and the checksums made right again. What
//! they say may be believed, or not; a reader of them neither panics nor searches nor allocates
//! without end.

use dash_shadow::format::{BLOCK, CommitBlock, IntentBlock, UNIT, layout, list_len};
use dash_simulated::Machine;
use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

use super::edge::change;
use super::original::{Original, put};
use super::{forged_first_page, neighbours, on_files, verdict};
use crate::random::Dice;
use crate::sim::subject::Subject;

/// Every so many cases are tried on real files instead.
const ON_FILES: u64 = 16;
/// What takes longer, on a database of a few pages, is taken for a search without end.
const LONGEST: Duration = Duration::from_secs(1);

/// Fields of both blocks, by offset and length.
pub const FIELDS: &[(usize, usize)] = &[
    (layout::VERSION, 4),
    (layout::PAIR, 8),
    (layout::INODE, 8),
    (layout::SLOT, 1),
    (layout::STATE, 1),
    (layout::PROTOCOL, 1),
    (layout::UNIT_COUNT, 4),
    (layout::SEQUENCE, 8),
    (layout::ID, 8),
    (layout::PARENT, 8),
    (layout::COUNTER, 4),
    (layout::PAGE_SIZE, 4),
    (layout::SIZE, 8),
    (layout::VOUCHED_SEQUENCE, 8),
    (layout::VOUCHED_ID, 8),
    (layout::VOUCHED_COUNTER, 4),
    (layout::LIST_CHECKSUM, 4),
    (layout::SUPER_LEN, 4),
    (layout::REGION_SHIFT, 4),
];

/// CRC-32 (IEEE), as in FORMAT.md.
pub fn seal(block: &mut [u8]) {
    block[layout::CHECKSUM..layout::CHECKSUM + 4].fill(0);
    let checksum = crc32fast::hash(block);
    block[layout::CHECKSUM..layout::CHECKSUM + 4].copy_from_slice(&checksum.to_le_bytes());
}

/// Forges a block, and what belongs to it.
fn forge(machine: &Machine, path: &str, dice: &mut Dice) -> std::io::Result<()> {
    if dice.below(3) == 0 && forged_first_page::forge(machine, path, dice)? {
        return Ok(());
    }
    let mut bytes = machine.file_view(path).unwrap_or_default();
    let len = bytes.len();
    if len < 2 * BLOCK {
        return Ok(());
    }
    let start = if dice.below(4) == 0 { len - 2 * BLOCK } else { len - BLOCK };
    for _ in 0..=dice.below(3) {
        let block = &mut bytes[start..start + BLOCK];
        if dice.one_in(16) {
            name_a_neighbour(block, dice);
            continue;
        }
        if let (0..3, Some((at, width))) = (dice.below(4), dice.pick(FIELDS)) {
            change(block, at, width, dice, len as u64);
            continue;
        }
        // An entry of the list, or a part of the regions or of a name.
        let entry = layout::SUPER_NAME + usize::try_from(dice.below(60)).unwrap_or(0) * UNIT;
        let (at, width) = dice.pick(&[(0, 8), (8, 4), (12, 4), (6, 2)]).unwrap_or((0, 8));
        change(block, entry + at, width, dice, len as u64);
    }
    // A list of its own, with a checksum that is right.
    let count = layout::UNIT_COUNT;
    let units =
        u32::from_le_bytes(bytes[start + count..start + count + 4].try_into().unwrap_or([0; 4]));
    let list = usize::try_from(list_len(units as usize)).unwrap_or(usize::MAX);
    if let Some(at) = (len - 2 * BLOCK).checked_sub(list).filter(|_| list > 0 && dice.below(2) == 0)
    {
        let used = units as usize * UNIT;
        for _ in 0..dice.below(4) {
            let entry = usize::try_from(dice.below(u64::from(units))).unwrap_or(0) * UNIT;
            change(&mut bytes[at..at + used], entry, 8, dice, len as u64);
        }
        let checksum = crc32fast::hash(&bytes[at..at + used]);
        let place = start + layout::LIST_CHECKSUM;
        bytes[place..place + 4].copy_from_slice(&checksum.to_le_bytes());
        put(machine, path, at as u64, &bytes[at..at + used])?;
    }
    let block = &mut bytes[start..start + BLOCK];
    seal(block);
    // Decoding alone must not fail in other ways than by saying so.
    drop((CommitBlock::decode(block), IntentBlock::decode(block)));
    put(machine, path, start as u64, block)
}

/// Names a file that is none of the database's as the super-journal.
fn name_a_neighbour(block: &mut [u8], dice: &mut Dice) {
    let neighbour = dice.pick(&neighbours::NAMES).unwrap_or_default();
    let before = dice.pick(&["", "/", "./", "../", "x/../"]).unwrap_or_default();
    let name = format!("{before}{neighbour}");
    let len = u32::try_from(name.len()).unwrap_or(0);
    block[layout::SUPER_LEN..layout::SUPER_LEN + 4].copy_from_slice(&len.to_le_bytes());
    block[layout::SUPER_NAME..layout::SUPER_NAME + name.len()].copy_from_slice(name.as_bytes());
    block[layout::STATE] = 2;
}

/// Opens an original with one forged block, or two.
///
/// # Errors
///
/// What must never happen.
pub fn run(subject: &dyn Subject, original: &Original, seed: u64) -> Result<(), String> {
    let mut dice = Dice::new(seed, 0);
    let machine = original.copy(subject);
    let both = dice.below(4) == 0;
    for path in ["/app.db", "/app.db-shadow"] {
        if (both || dice.below(2) == 0) && machine.file_view(path).is_some() {
            forge(&machine, path, &mut dice).map_err(|error| format!("forging: {error}"))?;
        }
    }
    neighbours::put(&machine).map_err(|error| format!("neighbours: {error}"))?;
    if dice.one_in(ON_FILES) {
        return on_files::run(&machine, &mut dice);
    }
    let begun = used()?;
    verdict::of(subject, &machine, original, false).map(drop)?;
    if used()?.saturating_sub(begun) > LONGEST {
        return Err(format!("opening took more than {LONGEST:?}"));
    }
    neighbours::untouched(&machine)
}

/// Time that this thread has used: what others do on this machine does not count.
fn used() -> Result<Duration, String> {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    time.map(Duration::from).map_err(|error| format!("asking for the time: {error}"))
}
