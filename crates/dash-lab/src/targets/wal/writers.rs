//! Many writers: threads and processes, for a fixed time and with fixed work, beside stock WAL in
//! its best round. In a fixed time one of stock's writers may run alone while the others starve;
//! with fixed work they must finish, too.

use super::super::bench::Bench;
use super::doubt::doubt;
use crate::failure::Result;
use crate::measure;
use crate::options::{Choice, Options, Where};
use crate::report::{Section, Target};
use crate::row::Row;
use crate::sides::{DASH_WAL, DURABLE, WAL};
use crate::table::{Line, Table};
use crate::workload::Name;

const ROWS: [&Row; 2] = [WAL, DASH_WAL];
/// Rounds of so many milliseconds, and of fixed work.
const ROUNDS: [usize; 2] = [10, 5];
const SHIFT: u64 = 600;
/// Section's patience with one measurement, in seconds.
const PATIENCE: u64 = 120;

/// So many writers, and what is wanted of them.
#[derive(Clone, Copy)]
struct Crew {
    many: usize,
    processes: bool,
    /// Seconds that one waits for another.
    busy: u64,
    /// Commits of each, and times stock's rate.
    work: Option<(usize, f64)>,
    /// Times stock's rate in a fixed time; 0: whatever it is.
    time: f64,
    /// Flushes a commit; p99.9 and the slowest commit in milliseconds.
    most: Option<[f64; 3]>,
    /// The slowest writer as a share of the fastest.
    slowest: f64,
}

const ANY: Crew =
    Crew { many: 1, processes: false, busy: 20, work: None, time: 0.0, most: None, slowest: 0.0 };

const THREADS: [Crew; 6] = [
    Crew { many: 2, ..ANY },
    Crew { many: 4, ..ANY },
    Crew {
        many: 16,
        work: Some((200, 6.0)),
        time: 2.2,
        most: Some([0.2, 12.0, 50.0]),
        slowest: 0.75,
        ..ANY
    },
    Crew { many: 16, busy: 5, ..ANY },
    Crew { many: 32, ..ANY },
    Crew {
        many: 64,
        work: Some((50, 20.0)),
        time: 4.0,
        most: Some([0.1, 25.0, 60.0]),
        slowest: 0.6,
        ..ANY
    },
];

const PROCESSES: [Crew; 2] = [
    Crew { many: 4, processes: true, time: 1.0, ..ANY },
    Crew { many: 16, processes: true, work: Some((200, 5.0)), time: 1.8, slowest: 0.8, ..ANY },
];

/// Makes the section of threads.
pub fn threads(bench: &Bench) -> Result<Section> {
    section(bench, "wal-threads", &THREADS)
}

/// Makes the section of processes.
pub fn processes(bench: &Bench) -> Result<Section> {
    section(bench, "wal-processes", &PROCESSES)
}

fn section(bench: &Bench, name: &'static str, crews: &[Crew]) -> Result<Section> {
    let what = format!(
        "autocommit inserts of 100 bytes by writers at the same time, on V; blocks of {SHIFT} ms, or of so many commits each; \
         times stock WAL: dash's median round / stock's best"
    );
    let mut section = Section::new(name, what, DURABLE);
    for crew in crews {
        in_fixed_time(bench, crew, &mut section)?;
        if let Some((work, wanted)) = crew.work {
            let table = run(bench, crew, Some(work))?;
            let title = format!("{}, {work} commits each", title(crew));
            compare(&mut section, &title, &table, wanted);
            failures(&mut section, &title, &table);
        }
    }
    Ok(section)
}

fn in_fixed_time(bench: &Bench, crew: &Crew, section: &mut Section) -> Result<()> {
    let table = run(bench, crew, None)?;
    let title = title(crew);
    compare(section, &title, &table, crew.time);
    if let Some(dash) = table.line(DASH_WAL) {
        let latency = dash.latency;
        let (p999, max) = (latency.p999 / 1000.0, latency.max / 1000.0);
        let flushes = dash.cost.map_or(0.0, |cost| cost.flushes);
        let figures =
            [("flushes a commit", flushes, ""), ("p99.9", p999, "ms"), ("max", max, "ms")];
        for (at, (what, value, unit)) in figures.into_iter().enumerate() {
            let label = format!("{title}: dash, {what}");
            match crew.most {
                Some(most) => section.target(label, value, unit, Target::AtMost(most[at])),
                None => section.figure(label, value, unit),
            }
        }
        let label = format!("{title}: dash, slowest / fastest writer");
        let share = dash.slowest.unwrap_or_default();
        match crew.slowest > 0.0 {
            true => section.target(label, share, "x", Target::AtLeast(crew.slowest)),
            false => section.figure(label, share, "x"),
        }
    }
    failures(section, &title, &table);
    Ok(())
}

fn title(crew: &Crew) -> String {
    let kind = if crew.processes { "processes" } else { "threads" };
    let busy =
        if crew.busy == ANY.busy { String::new() } else { format!(", wait {} s", crew.busy) };
    format!("{} {kind}{busy}", crew.many)
}

fn run(bench: &Bench, crew: &Crew, work: Option<usize>) -> Result<Table> {
    let choice = Choice { busy: crew.busy, ..Choice::of(Name::Insert, 1) };
    let mut options = Options::of(choice, &ROWS, Where::Dir);
    match crew.processes {
        true => options.processes = crew.many,
        false => options.threads = crew.many,
    }
    (options.work, options.shift, options.patience) = (work, SHIFT, PATIENCE);
    options.rounds = Some(bench.many(ROUNDS[usize::from(work.is_some())]));
    measure::run(&options, bench.volumes.v()?, String::new())
}

/// dash's median against stock's best round: a disk that throttles hits who flushes most.
fn compare(section: &mut Section, title: &str, table: &Table, wanted: f64) {
    let (Some(dash), Some(stock)) = (table.line(DASH_WAL), table.line(WAL)) else { return };
    doubt(section, title, table);
    let times = dash.rate.median / stock.rate.best.max(f64::MIN_POSITIVE);
    let label = format!("{title}: times stock WAL");
    match wanted > 0.0 {
        true => section.target(label, times, "x", Target::AtLeast(wanted)),
        false => section.figure(label, times, "x"),
    }
    for line in [dash, stock] {
        section.note(format!("{title}: {}", described(line)));
    }
}

fn described(line: &Line) -> String {
    let (rate, latency) = (line.rate, line.latency);
    let slowest =
        line.slowest.map_or(String::new(), |share| format!(", slowest/fastest {share:.2}"));
    format!(
        "{}: {:.0} commits/s (best {:.0}), p50 {:.2}, p99 {:.1}, p99.9 {:.1}, max {:.0} ms{slowest}, {:.2} flushes",
        line.name,
        rate.median,
        rate.best,
        latency.p50 / 1000.0,
        latency.p99 / 1000.0,
        latency.p999 / 1000.0,
        latency.max / 1000.0,
        line.cost.map_or(0.0, |cost| cost.flushes)
    )
}

/// BUSY, "locking protocol" and the like.
fn failures(section: &mut Section, title: &str, table: &Table) {
    for line in &table.lines {
        let failed = crate::numbers::float(line.failures);
        let label = format!("{title}: {}, locked out", line.name);
        match line.row == DASH_WAL.word {
            true => section.target(label, failed, "commits", Target::AtMost(0.0)),
            false => section.figure(label, failed, "commits"),
        }
    }
}
