//! Running a workload on both sides in alternating blocks, every transaction timed.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rusqlite::{Connection, params_from_iter};

use super::side::Side;
use super::workload::{Transaction, Workload};
use super::{failed, stop_if_pressed};
use crate::device::{Counts, Device};
use crate::extension::Extension;
use crate::failure::{Explain, Result};
use crate::interrupt::Interrupt;
use crate::progress::{Progress, Unit};

/// Transactions of each stream in a block.
const BLOCK: usize = 100;
/// Messages of failed statements that are kept.
const MESSAGES: usize = 3;
/// Latencies up to a minute, with three digits.
const LONGEST_NANOS: u64 = 60_000_000_000;

/// What one side did.
pub struct Tally {
    /// Which side.
    pub side: Side,
    /// Nanoseconds of each transaction that wrote, from its first statement to its commit's return.
    pub latency: Histogram<u64>,
    /// Time its blocks took.
    pub elapsed: Duration,
    /// Transactions that wrote nothing.
    pub reads: u64,
    /// Statements that failed.
    pub failures: u64,
    /// The first few of them.
    pub messages: Vec<String>,
    /// What the device counted.
    pub device: Option<Counts>,
    /// What dash counted itself.
    pub own: Option<Own>,
}

/// dash's own counts, from `dash_stats`.
#[derive(Debug, Clone, Copy)]
pub struct Own {
    /// Flushes of files and of the folder.
    pub flushes: u64,
    /// Bytes handed to the system.
    pub bytes: u64,
}

struct Runner<'a> {
    path: &'a Path,
    connections: Vec<Connection>,
    tally: Tally,
}

/// Runs everything, or what can be run within `patience`, and returns a tally of each side.
pub fn run(
    extension: &Extension,
    both: &[(Side, PathBuf); 2],
    workload: &Workload,
    patience: Duration,
    device: Option<&Device>,
    interrupt: &Interrupt,
) -> Result<Vec<Tally>> {
    let mut runners = Vec::new();
    for (side, path) in both {
        let connections =
            workload.streams.iter().map(|_| side.open(extension, path)).collect::<Result<_>>()?;
        runners.push(Runner { path, connections, tally: Tally::new(*side)? });
    }
    let mut progress =
        Progress::new("stock and dash in turns", 2 * workload.transactions(), Unit::Count);
    let rounds = workload.streams.iter().map(Vec::len).max().unwrap_or(0).div_ceil(BLOCK);
    let begun = Instant::now();
    let mut done = 0;
    for round in 0..rounds {
        stop_if_pressed(interrupt)?;
        // Only between rounds: both sides have run the same then.
        if begun.elapsed() >= patience {
            break;
        }
        let blocks: Vec<&[Transaction]> =
            workload.streams.iter().map(|stream| block(stream, round)).collect();
        let size: usize = blocks.iter().map(|block| block.len()).sum();
        for turn in 0..2 {
            // stock dash, dash stock, …: neither always comes first.
            runners[(turn + round) % 2].run(&blocks, device);
            done += u64::try_from(size).unwrap_or(0);
            progress.set(done);
        }
    }
    progress.finish();
    runners.into_iter().map(Runner::finish).collect()
}

fn block(stream: &[Transaction], round: usize) -> &[Transaction] {
    let end = stream.len().min((round + 1) * BLOCK);
    &stream[end.min(round * BLOCK)..end]
}

impl Tally {
    fn new(side: Side) -> Result<Self> {
        Ok(Self {
            side,
            latency: Histogram::new_with_bounds(1, LONGEST_NANOS, 3)
                .explain("making a histogram")?,
            elapsed: Duration::ZERO,
            reads: 0,
            failures: 0,
            messages: Vec::new(),
            device: None,
            own: None,
        })
    }

    /// Transactions that were run.
    pub fn transactions(&self) -> u64 {
        self.latency.len() + self.reads
    }

    fn absorb(&mut self, part: Part) {
        for nanos in part.writes {
            self.latency.saturating_record(nanos);
        }
        self.reads += part.reads;
        self.failures += part.failures;
        self.messages.extend(part.messages);
        self.messages.truncate(MESSAGES);
    }
}

impl Runner<'_> {
    fn run(&mut self, blocks: &[&[Transaction]], device: Option<&Device>) {
        let before = device.and_then(Device::counts);
        let begun = Instant::now();
        let parts: Vec<Part> = match (&mut self.connections[..], blocks) {
            ([connection], [block]) => vec![run_block(connection, block)],
            _ => std::thread::scope(|scope| {
                let work = self.connections.iter_mut().zip(blocks);
                let threads: Vec<_> = work
                    .map(|(connection, block)| scope.spawn(move || run_block(connection, block)))
                    .collect();
                threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
            }),
        };
        self.tally.elapsed += begun.elapsed();
        if let (Some(before), Some(after)) = (before, device.and_then(Device::counts)) {
            *self.tally.device.get_or_insert_default() += after.since(before);
        }
        for part in parts {
            self.tally.absorb(part);
        }
    }

    fn finish(mut self) -> Result<Tally> {
        let side = self.tally.side;
        if side == Side::Dash {
            self.tally.own = self.connections.first().and_then(own_counts);
        }
        for connection in self.connections {
            let closed = connection.close().map_err(|(_, error)| error);
            closed.map_err(|error| {
                failed(side, &format!("closing {}", self.path.display()), &error)
            })?;
        }
        Ok(self.tally)
    }
}

/// What one stream did in one block.
#[derive(Default)]
struct Part {
    writes: Vec<u64>,
    reads: u64,
    failures: u64,
    messages: Vec<String>,
}

fn run_block(connection: &mut Connection, block: &[Transaction]) -> Part {
    let mut part = Part::default();
    for transaction in block {
        let changes = connection.total_changes();
        let begun = Instant::now();
        for statement in transaction {
            if let Err(error) = execute(connection, statement) {
                part.failures += 1;
                if part.messages.len() < MESSAGES {
                    part.messages.push(format!("{error}: {}", shorten(&statement.sql)));
                }
            }
        }
        if connection.total_changes() == changes {
            part.reads += 1;
        } else {
            part.writes.push(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
        }
    }
    part
}

fn execute(
    connection: &Connection,
    statement: &super::workload::Statement,
) -> rusqlite::Result<()> {
    let step = |prepared: &mut rusqlite::Statement<'_>| {
        let mut rows = prepared.query(params_from_iter(&statement.values))?;
        while rows.next()?.is_some() {}
        Ok(())
    };
    if statement.values.is_empty() {
        step(&mut connection.prepare(&statement.sql)?)
    } else {
        step(&mut *connection.prepare_cached(&statement.sql)?)
    }
}

fn shorten(sql: &str) -> String {
    let line: String = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn own_counts(db: &Connection) -> Option<Own> {
    let sum = |names: &str| {
        let sql = format!("SELECT coalesce(sum(value), 0) FROM dash_stats WHERE name IN ({names})");
        db.query_row(&sql, [], |row| row.get::<_, i64>(0))
            .ok()
            .and_then(|sum| u64::try_from(sum).ok())
    };
    Some(Own {
        flushes: sum("'flushes', 'directory_flushes'")?,
        bytes: sum("'page_bytes', 'carried_bytes', 'tail_bytes'")?,
    })
}
