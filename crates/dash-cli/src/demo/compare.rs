//! The comparisons: what each runs, for how long, and the figures it comes to. `dash_bench`
//! measures; nothing is timed here.

use std::path::PathBuf;
use std::time::Duration;

use dash_bench::durability::KEEPS;
use dash_bench::options::{Choice, Options, Where};
use dash_bench::table::{Line, Source, Table};
use dash_bench::volume::Volume;
use dash_bench::workload::Name;
use dash_bench::{measure, session};

use super::kind::Kind;
use super::modes::{MODES, Mode};
use crate::failure::Result;
use crate::numbers::{count, float};

/// Seconds for which one of several processes waits for another one.
pub const BUSY: u64 = 1;
/// Processes that write at once.
pub const PROCESSES: usize = 8;
/// Fewer rounds have no middle.
const ROUNDS_MIN: usize = 5;
/// More rounds than there is time for: patience ends them.
const ROUNDS_MAX: usize = 300;
/// Commits of a block on the fastest of disks.
const BLOCK_MAX: usize = 1000;

/// What all comparisons of a run have in common.
#[derive(Debug, Clone)]
pub struct Plan {
    /// A plain database to start from, in place of an empty one.
    pub base: Option<PathBuf>,
    /// A folder of recorded SQL.
    pub replay: Option<PathBuf>,
    /// On what.
    pub on: Where,
    /// For all comparisons together.
    pub time: Duration,
    /// Microseconds of a flush.
    pub flush_us: f64,
}

/// What a comparison came to.
#[derive(Debug)]
pub struct Comparison {
    /// Which.
    pub kind: Kind,
    /// For the reader, with what was run.
    pub title: String,
    /// One of each mode, in the order of [`MODES`].
    pub sides: Vec<Figures>,
    /// Where counts come from.
    pub source: Source,
    /// The disk throttled: times are worth little.
    pub throttled: bool,
}

/// What one mode came to.
#[derive(Debug, Clone, Copy)]
pub struct Figures {
    /// Which mode.
    pub mode: &'static Mode,
    /// Commits a second: of the best round for stock, of the middle one for dash.
    pub rate: f64,
    /// Microseconds within which half of the commits returned.
    pub half_us: f64,
    /// Microseconds of the slowest commit.
    pub slowest_us: f64,
    /// Flushes and KiB a commit, where they can be counted. The KiB are with what was kept back
    /// and written when that was forced.
    pub cost: Option<(f64, f64)>,
    /// Statements that failed: with "database is locked", or, of recorded SQL, for any reason.
    pub errors: u64,
    /// What a power loss does to a commit that returned, where it is not kept.
    pub may_lose: Option<&'static str>,
}

fn title(kind: Kind, table: &Table) -> String {
    match kind {
        Kind::Writer => "One writer: autocommit inserts of 100 bytes".into(),
        Kind::Processes => format!(
            "{PROCESSES} processes at once: the same inserts, each waits up to {BUSY} s for the lock"
        ),
        Kind::Sessions => {
            "Sessions: open, update one row, close, as programs that open per request do".into()
        }
        Kind::Recorded => {
            let mut about = table.about.clone();
            if let Some(first) = about.get(..1).map(str::to_uppercase) {
                about.replace_range(..1, &first);
            }
            about
        }
    }
}

fn options(kind: Kind, plan: &Plan) -> Options {
    let name = match kind {
        Kind::Writer | Kind::Processes => Name::Insert,
        Kind::Sessions => Name::Cycles,
        Kind::Recorded => Name::Replay,
    };
    let rows = MODES.each_ref().map(|mode| mode.row);
    let mut options = Options::of(Choice::of(name, 1), &rows, plan.on);
    options.choice.busy = BUSY;
    options.choice.replay.clone_from(&plan.replay);
    options.base.clone_from(&plan.base);
    let each = |per_cent: u32| plan.time * per_cent / 100;
    match kind {
        Kind::Writer => one_by_one(&mut options, each(25), plan.flush_us),
        Kind::Sessions => one_by_one(&mut options, each(15), plan.flush_us),
        Kind::Processes => {
            options.processes = PROCESSES;
            options.rounds = Some(ROUNDS_MIN);
            options.shift = shift(each(60));
            // It is also what a throttled disk is waited for.
            options.patience = (each(60) / 4).as_secs().max(1);
        }
        Kind::Recorded => {}
    }
    options
}

/// Blocks so large that about eight rounds fit into `time`, on a disk like this. Small ones would
/// flatter stock: the best of many short rounds is the luckiest.
fn one_by_one(options: &mut Options, time: Duration, flush_us: f64) {
    let commit = flush_us * 5.0 + 300.0;
    let block = time.as_secs_f64() * 1e6 / 8.0 / float(count(options.rows.len()));
    let fits = |size: &usize| float(count(*size)) * commit < block;
    options.block = Some((0..BLOCK_MAX).take_while(fits).count().max(2));
    options.rounds = Some(ROUNDS_MAX);
    options.patience = time.as_secs().max(1);
}

/// Milliseconds for which the processes of a mode work in a round. A round is one of each mode,
/// and both stock ones may wait for the lock at its end; one more round warms up.
fn shift(time: Duration) -> u64 {
    let rounds = count(ROUNDS_MIN) + 1;
    let round = u64::try_from(time.as_millis()).unwrap_or(u64::MAX) / rounds;
    (round.saturating_sub(2 * BUSY * 1000) / count(MODES.len())).clamp(50, 5000)
}

/// Runs one.
pub fn run(kind: Kind, plan: &Plan, volume: &Volume) -> Result<Comparison> {
    let table = measure::run(&options(kind, plan), volume, session::command())?;
    let sides = MODES.iter().filter_map(|mode| {
        let line = table.line(mode.row)?;
        Some(Figures::of(mode, line, table.source))
    });
    Ok(Comparison {
        kind,
        title: title(kind, &table),
        sides: sides.collect(),
        source: table.source,
        throttled: table.throttled,
    })
}

impl Comparison {
    /// The highest rate.
    pub fn top(&self) -> f64 {
        self.sides.iter().map(|side| side.rate).fold(0.0, f64::max)
    }

    /// Whether nobody was faster by more than rounds differ by.
    pub fn is_fastest(&self, mode: &Mode) -> bool {
        self.sides.iter().any(|side| {
            side.mode.name == mode.name && side.rate > 0.0 && side.rate * 1.05 >= self.top()
        })
    }
}

impl Figures {
    fn of(mode: &'static Mode, line: &Line, source: Source) -> Self {
        let counted = match source {
            Source::OwnDevice | Source::SharedDevice => true,
            // Of one process alone strace counts, if it is there.
            Source::Calls => line.calls.is_some(),
            Source::Nothing => false,
        };
        let cost = line.cost.filter(|_| counted);
        let keeps = mode.row.durability == KEEPS;
        Self {
            mode,
            rate: if mode.is_dash { line.rate.median } else { line.rate.best },
            half_us: line.latency.p50,
            slowest_us: line.latency.max,
            cost: cost.map(|cost| (cost.flushes, cost.kib + cost.later_kib)),
            errors: line.failures,
            may_lose: (!keeps).then_some(mode.row.durability.sentence),
        }
    }
}

#[cfg(test)]
pub mod tests;
