//! Commit throughput while eight threads scan, each on its own connection.
//!
//! Scanning threads take processor time from the writer, locks or no locks. So there is a control
//! in which the same eight threads scan another database: what is slower than that is locks. And
//! there are two kinds of readers: those that scan all the time, which is more than a small machine
//! has processors for, and those that rest most of the time.
//!
//! On L, because the share of a slow disk's commits is easily 100 %, and a throttled disk's means
//! nothing.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::bench::Bench;
use super::data::{Inserter, with_rows};
use crate::failure::{Explain, Result};
use crate::interleave::THROTTLED_MAX;
use crate::numbers::{count, float, median};
use crate::progress::{Progress, Unit};
use crate::report::{Section, Target};
use crate::row::Row;
use crate::sides::{DURABLE, SINGLE, WAL};
use crate::throttle::Throttle;
use crate::volume::Volume;

const ROUNDS: usize = 5;
const READERS: usize = 8;
const PHASE: Duration = Duration::from_millis(1000);
const SIDES: [&Row; 2] = [SINGLE, WAL];

/// Whom the readers disturb.
#[derive(Clone, Copy)]
enum Phase {
    Nobody,
    Writer,
    OtherDatabase,
}

const PHASES: [Phase; 3] = [Phase::Nobody, Phase::Writer, Phase::OtherDatabase];

/// How a reader spends its time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// Scan after scan.
    FlatOut,
    /// Rests [`REST`] times as long as a scan took.
    Resting,
}

const REST: u32 = 39;
/// So that the end of a phase is not waited for.
const REST_MAX: Duration = Duration::from_millis(500);

/// Makes the section.
pub fn measure(bench: &Bench) -> Result<Section> {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let what = format!(
        "commits/s while 8 threads scan a table, as a share of commits/s without; {cores} cores"
    );
    let mut section = Section::new("scanners", what, DURABLE);
    let volume = bench.volumes.l().or_else(|_| bench.volumes.v())?;
    for rows in [1000, 100_000] {
        for pace in [Pace::FlatOut, Pace::Resting] {
            for engine in SIDES {
                on(bench, volume, engine, rows, pace, &mut section)?;
            }
        }
    }
    section.note("control: the same threads scan another database; its share is what the processors alone cost");
    section.note(format!("resting: each reader rests {REST} times as long as its scan took"));
    Ok(section)
}

fn on(
    bench: &Bench,
    volume: &Volume,
    engine: &'static Row,
    rows: i64,
    pace: Pace,
    section: &mut Section,
) -> Result<()> {
    let folder = volume.folder("scanners")?;
    let (path, other) = (folder.path().join(engine.word), folder.path().join("other"));
    let writer = with_rows(engine, &path, rows)?;
    let _other = with_rows(engine, &other, rows)?;
    let rounds = if bench.many(10) < 10 { 1 } else { ROUNDS };
    let mut rates: [Vec<f64>; 3] = Default::default();
    let mut scans = 0;
    let how = if pace == Pace::Resting { "resting" } else { "flat out" };
    let title = format!("{}, {rows} rows, {how}", engine.name);
    let mut progress = Progress::new(&title, count(rounds * PHASES.len()), Unit::Count);
    let throttle = Throttle::new(volume, THROTTLED_MAX)?;
    while rates[0].len() < rounds {
        let round = rates[0].len();
        let mut seen = [(0.0, 0); 3];
        for turn in 0..PHASES.len() {
            let at = (turn + round) % PHASES.len();
            let scanned = match PHASES[at] {
                Phase::Nobody => None,
                Phase::Writer => Some(path.as_path()),
                Phase::OtherDatabase => Some(other.as_path()),
            };
            seen[at] = phase(engine, &writer, scanned, pace)?;
            progress.step(0)?;
        }
        if throttle.was_on(&progress)? {
            continue;
        }
        for (rates, (rate, _)) in rates.iter_mut().zip(seen) {
            rates.push(rate);
        }
        scans += seen[1].1;
        progress.step(count(PHASES.len()))?;
    }
    let share = |at: usize, of: usize| {
        let pairs = rates[at].iter().zip(&rates[of]);
        100.0
            * median(
                &pairs
                    .map(|(mine, theirs)| mine / theirs.max(f64::MIN_POSITIVE))
                    .collect::<Vec<_>>(),
            )
    };
    let (raw, locks) = (share(1, 0), share(1, 2));
    if engine == SINGLE {
        section.target(format!("{title}: with readers / none"), raw, "%", Target::AtLeast(90.0));
        section.target(
            format!("{title}: with readers / control"),
            locks,
            "%",
            Target::AtLeast(90.0),
        );
    } else {
        section.figure(format!("{title}: with readers / none"), raw, "%");
        section.figure(format!("{title}: with readers / control"), locks, "%");
    }
    let seconds = PHASE.as_secs_f64() * float(count(rounds));
    section.note(format!(
        "{title}: {:.0} commits/s alone, {:.0} with readers, {:.0} control; {:.0} scans/s beside the writer",
        median(&rates[0]), median(&rates[1]), median(&rates[2]), float(scans) / seconds
    ));
    Ok(())
}

/// Commits per second, and scans, while others scan `scanned`.
fn phase(
    engine: &'static Row,
    writer: &Connection,
    scanned: Option<&Path>,
    pace: Pace,
) -> Result<(f64, u64)> {
    let mut readers = Vec::new();
    for _ in 0..if scanned.is_some() { READERS } else { 0 } {
        readers.extend(scanned.map(|path| engine.open(path)).transpose()?);
    }
    let (stop, scans) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let threads: Vec<_> = readers
            .into_iter()
            .map(|reader| scope.spawn(|| scan(reader, pace, &stop, &scans)))
            .collect();
        let rate = write(writer);
        stop.store(true, Ordering::SeqCst);
        for thread in threads {
            thread
                .join()
                .unwrap_or_else(|_| Err(crate::failure::Failure::new("a reader panicked")))?;
        }
        Ok((rate?, scans.load(Ordering::SeqCst)))
    })
}

fn scan(reader: Connection, pace: Pace, stop: &AtomicBool, scans: &AtomicU64) -> Result<()> {
    let mut statement =
        reader.prepare("SELECT sum(length(body)) FROM t").explain("preparing a scan")?;
    while !stop.load(Ordering::SeqCst) {
        let begun = Instant::now();
        let sum: i64 = statement.query_row([], |row| row.get(0)).explain("scanning")?;
        std::hint::black_box(sum);
        scans.fetch_add(1, Ordering::SeqCst);
        if pace == Pace::Resting {
            std::thread::sleep((begun.elapsed() * REST).min(REST_MAX));
        }
    }
    drop(statement);
    reader.close().map_err(|(_, error)| error).explain("closing a reader")
}

fn write(writer: &Connection) -> Result<f64> {
    let mut insert = Inserter::into(writer, "log")?;
    let begun = Instant::now();
    let mut commits = 0;
    while begun.elapsed() < PHASE {
        insert.step()?;
        commits += 1;
    }
    Ok(float(commits) / begun.elapsed().as_secs_f64())
}
