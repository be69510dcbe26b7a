//! Which rows make sense for a workload, and what must be said of them.

use std::path::Path;

use nix::sys::statvfs::statvfs;

use crate::crew::Crew;
use crate::failure::{Explain, Failure, Result};
use crate::rows::Row;
use crate::table::Source;
use crate::workload::{Name, Workload};

/// Commits on one connection: stock WAL's regimes apart.
const COMMITS: [Row; 12] = [
    Row::Delete,
    Row::Truncate,
    Row::Persist,
    Row::Memory,
    Row::Off,
    Row::WalGrowing,
    Row::WalRecycled,
    Row::WalNormal,
    Row::DashSingle,
    Row::DashExclusive,
    Row::DashPaper,
    Row::Limit,
];
/// Where a block can't be kept within one regime.
const LIVES: [Row; 8] = [
    Row::Delete,
    Row::Truncate,
    Row::Persist,
    Row::Wal,
    Row::WalNormal,
    Row::DashSingle,
    Row::DashExclusive,
    Row::DashPaper,
];
/// Reading; the shims beside what they pass through to.
const READS: [Row; 5] = [Row::Delete, Row::Wal, Row::DashSingle, Row::DashPlain, Row::Shim];

/// Whether stock WAL's regimes can be told apart.
fn has_regimes(workload: &dyn Workload, crew: Crew) -> bool {
    crew == Crew::Alone && workload.steps().is_none() && workload.stays_open() && workload.writes()
}

/// How many connections.
pub fn crew(workload: &dyn Workload, asked: Crew) -> Result<Crew> {
    match (workload.connections(), asked) {
        (None, asked) => Ok(asked),
        (Some(1), Crew::Alone) => Ok(Crew::Alone),
        (Some(1), _) => Err(Failure::new("this workload is for one connection")),
        (Some(number), Crew::Processes(_)) => Ok(Crew::Processes(number)),
        (Some(number), _) => Ok(Crew::Threads(number)),
    }
}

/// The rows asked for, or the usual ones.
pub fn rows(workload: &dyn Workload, crew: Crew, name: Name, asked: &[Row]) -> Result<Vec<Row>> {
    let objection = |row: Row| match row {
        Row::WalGrowing | Row::WalRecycled if !has_regimes(workload, crew) => {
            Some("the log's regime can't be kept in this workload: name the row wal")
        }
        Row::Shim if crew != Crew::Alone => Some("the sqlite-vfs peer is for one connection"),
        Row::Limit if !has_regimes(workload, crew) => {
            Some("the limit is of commits on one open connection")
        }
        row if row.is_store() && (name != Name::Insert || crew != Crew::Alone) => {
            Some("stores are measured by the workload insert only, on one connection")
        }
        _ => None,
    };
    if let Some((row, why)) = asked.iter().find_map(|row| Some((row, objection(*row)?))) {
        return Err(Failure::new(format!("{}: {why}", row.word())));
    }
    let mut rows = match (asked, has_regimes(workload, crew)) {
        ([_, ..], _) => asked.to_vec(),
        ([], true) => COMMITS.to_vec(),
        ([], false) if workload.writes() => LIVES.to_vec(),
        ([], false) => READS.iter().copied().filter(|row| objection(*row).is_none()).collect(),
    };
    if asked.is_empty() && name == Name::Cycles {
        rows.extend([Row::DashLinger, Row::Floor]);
    }
    let mut once = Vec::new();
    rows.retain(|row| {
        !once.contains(row) && {
            once.push(*row);
            true
        }
    });
    Ok(rows)
}

/// The row to compare with: the one asked for if it is there, or the first.
pub fn baseline(rows: &[Row], asked: Row) -> Row {
    if rows.contains(&asked) { asked } else { rows.first().copied().unwrap_or(asked) }
}

/// Fails if the databases will not fit.
pub fn room(folder: &Path, size: u64, rows: &[Row]) -> Result<()> {
    let found = statvfs(folder).explain("asking how much room there is")?;
    let free = found.fragment_size() * found.blocks_available();
    // dash keeps two copies, and the base is one.
    let copies = 1 + rows.iter().fold(0, |sum, row| {
        sum + match row.engine() {
            Some(engine) if engine.is_dash() => 2,
            Some(_) => 1,
            None => 0,
        }
    });
    let needed = size * copies + (64 << 20);
    if free < needed {
        return Err(Failure::new(format!(
            "{} MiB are free in {}, and about {} are needed: name fewer rows, a smaller --size, or another --dir",
            free >> 20,
            folder.display(),
            needed >> 20
        )));
    }
    Ok(())
}

/// What a reader must know about these rows.
pub fn notes(crew: Crew, rows: &[Row], source: Source) -> Vec<String> {
    let mut notes = Vec::new();
    if rows.contains(&Row::WalGrowing) || rows.contains(&Row::WalRecycled) {
        notes.push("stock WAL growing: the log is cut before each block, as after every open; recycled: it is overwritten from its start; checkpoints are off the clock in both, and among the commits in the row `wal`".to_owned());
    }
    notes.push(match source {
        Source::OwnDevice => "counts are exact: a block device that nobody else writes to",
        Source::SharedDevice => "counts are medians over blocks, of a device that others write to as well; --on loop or --on memory counts exactly (what the limit has above 1.00 flushes and 4.0 KiB is others')",
        Source::Calls => "the device can't be told: bytes are those handed to write calls, flushes are counted by strace where it is installed",
        Source::Nothing => "nothing is written",
    }.to_owned());
    if crew != Crew::Alone {
        notes.push("connections work at the same time for 100 ms a block (recordings: the same steps), busy_timeout 20 s; they have no real-time priority, so measure them on an idle machine".to_owned());
    }
    if rows.contains(&Row::DashLinger) {
        notes.push("dash lingering (dash_linger=1000): the database stays open for a second after its last close, so all cycles but the first find it open".to_owned());
    }
    if rows.contains(&Row::Shim) {
        notes.push("sqlite-vfs is a shim that passes through to files, beside dash's own VFS doing the same; compare both with stock DELETE".to_owned());
    }
    notes
}
