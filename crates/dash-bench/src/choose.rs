//! Which rows make sense for a workload, and what must be said of them.

use std::path::Path;

use nix::sys::statvfs::statvfs;

use crate::failure::{Explain, Failure, Result};
use crate::row::{Kind, Row, Usual};
use crate::rows::ROWS;
use crate::table::Source;
use crate::workers::Workers;
use crate::workload::{Name, Workload};

/// Whether stock WAL's regimes can be told apart.
fn has_regimes(workload: &dyn Workload, workers: Workers) -> bool {
    workers == Workers::Alone
        && workload.steps().is_none()
        && workload.stays_open()
        && workload.writes()
}

/// How many connections.
pub fn workers(workload: &dyn Workload, asked: Workers) -> Result<Workers> {
    match (workload.connections(), asked) {
        (None, asked) => Ok(asked),
        (Some(1), Workers::Alone) => Ok(Workers::Alone),
        (Some(1), _) => Err(Failure::new("this workload is for one connection")),
        (Some(number), Workers::Processes(_)) => Ok(Workers::Processes(number)),
        (Some(number), _) => Ok(Workers::Threads(number)),
    }
}

/// The rows asked for, or the usual ones.
pub fn rows(
    workload: &dyn Workload,
    workers: Workers,
    name: Name,
    asked: &[&'static Row],
) -> Result<Vec<&'static Row>> {
    let regimes = has_regimes(workload, workers);
    let objection = |row: &Row| match row.kind {
        Kind::Regime(..) if !regimes => {
            Some("the log's regime can't be kept in this workload: name the row wal")
        }
        Kind::Limit if !regimes => Some("the limit is of commits on one open connection"),
        Kind::Store(_) if name != Name::Insert || workers != Workers::Alone => {
            Some("stores are measured by the workload insert only, on one connection")
        }
        _ => None,
    };
    if let Some((row, why)) = asked.iter().find_map(|row| Some((row, objection(row)?))) {
        return Err(Failure::new(format!("{}: {why}", row.word)));
    }
    let stands = |row: &&Row| {
        let usual = match regimes {
            true => Usual::Commits,
            false if workload.writes() => Usual::Lives,
            false => Usual::Reads,
        };
        let also = name == Name::Cycles && row.usual.contains(&Usual::Cycles);
        (row.usual.contains(&usual) || also) && objection(row).is_none()
    };
    let mut rows: Vec<_> = match asked {
        [] => ROWS.iter().filter(stands).collect(),
        asked => asked.to_vec(),
    };
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
pub fn baseline(rows: &[&'static Row], asked: &'static Row) -> &'static Row {
    if rows.contains(&asked) { asked } else { rows.first().copied().unwrap_or(asked) }
}

/// Fails if the databases will not fit.
pub fn room(folder: &Path, size: u64, rows: &[&Row]) -> Result<()> {
    let found = statvfs(folder).explain("asking how much room there is")?;
    let free = found.fragment_size() * found.blocks_available();
    // dash keeps two copies, and the base is one.
    let each = rows.iter().filter_map(|row| row.sqlite());
    let copies = 1 + each.map(|sqlite| sqlite.copies).sum::<u64>();
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
pub fn notes(
    workers: Workers,
    (work, shift): (Option<usize>, u64),
    rows: &[&Row],
    source: Source,
) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |text: &str| {
        if !text.is_empty() && !notes.iter().any(|said| said == text) {
            notes.push(text.to_owned());
        }
    };
    let (regimes, others): (Vec<&Row>, _) = rows.iter().partition(|row| row.regime().is_some());
    regimes.iter().for_each(|row| note(row.note));
    note(match source {
        Source::OwnDevice => "counts are exact: a block device that nobody else writes to",
        Source::SharedDevice => {
            "counts are medians over blocks, of a device that others write to as well; --on loop or --on memory counts exactly (what the limit has above 1.00 flushes and 4.0 KiB is others')"
        }
        Source::Calls => {
            "the device can't be told: bytes are those handed to write calls, flushes are counted by strace where it is installed"
        }
        Source::Nothing => "nothing is written",
    });
    let idle = "they have no real-time priority, so measure them on an idle machine";
    match (workers, work) {
        (Workers::Alone, _) => {}
        (_, Some(work)) => note(&format!(
            "fixed work: each connection makes {work} commits a block, at the same time as the others; commits/s is all of them by the time the last one took; {idle}"
        )),
        (_, None) => note(&format!(
            "connections work at the same time for {shift} ms a block (recordings: the same steps), busy_timeout 20 s unless --busy says otherwise; {idle}"
        )),
    }
    others.iter().for_each(|row: &&Row| note(row.note));
    notes
}
