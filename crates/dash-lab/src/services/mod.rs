//! `dash-lab services`: what a service sees of dash. Django below gunicorn and Go answer requests
//! of several clients, on stock SQLite and on dash, with the same settings.
//!
//! `programs` makes the services of `benches/services` and starts them, `load` sends requests.

mod load;
mod programs;

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;

use crate::failure::{Explain, Result};
use crate::interleave::{self, Lane, Length, Measured};
use crate::numbers::{float, median};
use crate::out::say;
use crate::present::cells::{Cells, whole};
use crate::present::text::grid;
use crate::row::Row;
use crate::session::Bench;
use crate::sides::{DASH_WAL, DURABLE, WAL};
use crate::volume::Volume;
use load::{CLIENTS, Job};
use programs::{Programs, SERVICES, Server, Service};

/// Arguments of `dash-lab services`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Where databases are made (and removed); choose the disk to measure
    #[arg(long, value_name = "PATH", default_value = ".")]
    pub dir: PathBuf,
    /// Of a block of requests on one side
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: u64,
    /// Blocks of each side
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub rounds: usize,
    /// Only this one: `django` or `go`
    #[arg(long, value_name = "NAME", value_parser = ["django", "go"])]
    pub only: Option<String>,
}

/// Stock first: it is what the other one is compared with.
const SIDES: [&Row; 2] = [WAL, DASH_WAL];
const JOBS: [Job; 2] = [Job::Insert, Job::Update];
/// Rows that are updated.
const COUNTERS: u64 = 1000;
/// Before anything is measured.
const WARM: Duration = Duration::from_millis(300);
/// A disk that throttles is waited for that long.
const PATIENCE: Duration = Duration::from_secs(120);

/// A service on one side.
struct Side {
    row: &'static Row,
    database: PathBuf,
    server: Server,
    /// Requests that were answered with 200, for each of [`JOBS`].
    answered: [Cell<u64>; 2],
}

/// Runs the command; whether each request that was answered with 200 is in the database, and no
/// other one.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let bench = Bench::start(&arguments.dir)?;
    let volume = bench.volumes.v()?;
    bench.header(volume)?.lines().iter().for_each(|line| say!("{line}"));
    tables(&bench, arguments)
}

/// What the command says below its header.
pub fn tables(bench: &Bench, arguments: &Arguments) -> Result<bool> {
    let volume = bench.volumes.v()?;
    let chosen = |service: &&Service| {
        arguments.only.as_ref().is_none_or(|only| service.name.starts_with(only.as_str()))
    };
    let chosen: Vec<_> = SERVICES.iter().filter(chosen).collect();
    let programs = Programs::make(&chosen, bench.extension.path())?;
    say!("{CLIENTS} clients, a connection a request, over a Unix socket; {DURABLE}");
    let heading = [
        "service",
        "requests/s",
        "x stock",
        "p50 ms",
        "p99 ms",
        "slowest ms",
        "errors",
        "answered",
        "committed",
    ];
    let mut table = Cells { heading: heading.map(String::from).to_vec(), rows: Vec::new() };
    let mut good = true;
    for service in chosen {
        let (rows, all) = measure(&programs, service, volume, arguments)?;
        table.rows.extend(rows);
        good &= all;
    }
    say!("\n{}\n{}", command(arguments), grid(&table).trim_end());
    say!("  - requests/s: stock's best block, the middle of dash's; errors are in no other figure");
    say!("  - answered: with 200, unmeasured blocks among them; committed: rows found afterwards");
    Ok(good)
}

/// The command line that makes the table again.
fn command(arguments: &Arguments) -> String {
    let only = arguments.only.as_ref().map_or(String::new(), |only| format!(" --only {only}"));
    format!("dash-lab services --seconds {} --rounds {}{only}", arguments.seconds, arguments.rounds)
}

/// The rows of a service, and whether all that was answered was committed.
fn measure(
    programs: &Programs,
    service: &Service,
    volume: &Volume,
    arguments: &Arguments,
) -> Result<(Vec<Vec<String>>, bool)> {
    let folder = volume.folder("services")?;
    let start = |row| Side::start(programs, service, row, folder.path());
    let sides = SIDES.into_iter().map(start).collect::<Result<Vec<_>>>()?;
    let length = Length { rounds: arguments.rounds, size: 1, patience: PATIENCE };
    let mut measured = Vec::new();
    for (at, job) in JOBS.into_iter().enumerate() {
        let block = Duration::from_secs(arguments.seconds);
        for side in &sides {
            side.block(at, WARM)?;
        }
        let lanes =
            sides.iter().map(|side| Lane::of_blocks(side.row.name, move |_| side.block(at, block)));
        let mut lanes: Vec<_> = lanes.collect();
        let what = format!("{}, {}", service.name, job.word());
        measured.push(interleave::measure(&what, Some(volume), &mut lanes, length)?);
    }
    let mut rows = Vec::new();
    let mut good = true;
    let mut committed = Vec::new();
    for side in sides {
        committed.push(side.end()?);
    }
    for (at, job) in JOBS.into_iter().enumerate() {
        for (nth, row) in SIDES.into_iter().enumerate() {
            let name = format!("{}, {}: {}", service.name, job.word(), row.name);
            let (answered, found) = committed[nth][at];
            let lane = &measured[at][nth];
            // A request that failed may have been committed, when its answer was lost.
            good &= answered == found || (lane.failures > 0 && answered < found);
            rows.push(cells(name, lane, &measured[at][0], (answered, found)));
        }
    }
    Ok((rows, good))
}

impl Side {
    /// On a new database.
    fn start(
        programs: &Programs,
        service: &Service,
        row: &'static Row,
        folder: &Path,
    ) -> Result<Self> {
        let home = folder.join(row.word);
        std::fs::create_dir(&home).explain("making a folder")?;
        let database = home.join("app.db");
        let db = row.open(&database)?;
        lay_out(&db).explain("making the tables")?;
        db.close().map_err(|(_, error)| error).explain("closing")?;
        let server = programs.start(service, &database, row == DASH_WAL)?;
        say!("{}, {}: {}", service.name, row.name, server.facts()?);
        Ok(Self { row, database, server, answered: Default::default() })
    }

    /// A block of the job at that place of [`JOBS`].
    fn block(&self, at: usize, time: Duration) -> Result<interleave::Timed> {
        let timed = load::send(self.server.socket(), JOBS[at], COUNTERS, time)?;
        let answered = &self.answered[at];
        answered.set(answered.get() + crate::numbers::count(timed.writes.len()));
        Ok(timed)
    }

    /// Ends the service; how many requests of each job were answered, and how many are in the
    /// database.
    fn end(self) -> Result<[(u64, u64); 2]> {
        let wrote = self.server.end()?;
        if !wrote.is_empty() {
            say!("{}: the service wrote at last: {wrote}", self.row.name);
        }
        let db = self.row.open(&self.database)?;
        let count = |sql| -> Result<u64> {
            let found = db.query_row(sql, [], |row| row.get::<_, i64>(0));
            let what = "counting what was committed";
            u64::try_from(found.explain(what)?).explain(what)
        };
        let [inserts, updates] = self.answered.map(Cell::into_inner);
        Ok([
            (inserts, count("SELECT count(*) FROM note")?),
            (updates, count("SELECT sum(n) FROM counter")?),
        ])
    }
}

fn lay_out(db: &Connection) -> rusqlite::Result<()> {
    db.execute_batch(&format!(
        "BEGIN;
         CREATE TABLE note(id INTEGER PRIMARY KEY, body TEXT NOT NULL);
         CREATE TABLE counter(id INTEGER PRIMARY KEY, n INTEGER NOT NULL);
         WITH RECURSIVE ids(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM ids LIMIT {COUNTERS})
         INSERT INTO counter SELECT id, 0 FROM ids;
         COMMIT"
    ))
}

/// Stock in its best block: a disk that throttles hits the side that flushes most.
fn rate(lane: &Measured, is_stock: bool) -> f64 {
    let rates: Vec<_> = lane.writes.blocks.iter().map(|block| block.rate).collect();
    if is_stock { rates.into_iter().fold(0.0, f64::max) } else { median(&rates) }
}

fn cells(name: String, lane: &Measured, stock: &Measured, counts: (u64, u64)) -> Vec<String> {
    let is_stock = std::ptr::eq(lane, stock);
    let rate_here = rate(lane, is_stock);
    let times = rate_here / rate(stock, true).max(f64::MIN_POSITIVE);
    let sample = &lane.writes;
    let millis = |micros: f64| format!("{:.1}", micros / 1000.0);
    vec![
        name,
        whole(rate_here),
        format!("{times:.2}"),
        millis(sample.at(50.0)),
        millis(sample.at(99.0)),
        millis(sample.max()),
        whole(float(lane.failures)),
        counts.0.to_string(),
        counts.1.to_string(),
    ]
}
