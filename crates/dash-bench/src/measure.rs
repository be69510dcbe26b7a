//! One measurement: a database per row, copied from one that was made once; blocks in turns; a
//! table.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use tempfile::TempDir;

use crate::copy;
use crate::device::{Counts, Device, handed_over};
use crate::direct::Direct;
use crate::failure::{Explain, Failure, Result};
use crate::interleave::{self, Lane, Length, Watch};
use crate::options::Options;
use crate::row::{Kind, Regime, Row};
use crate::rows::named;
use crate::sqlite::Sqlite;
use crate::stores::Store;
use crate::table::{Calls, Line, Source, Table};
use crate::volume::Volume;
use crate::workers::{Handles, Order, Workers, work};
use crate::workload::{Session, Settings, Step, Worker, Workload};
use crate::{choose, strace};

/// Blocks that are run before the clock starts, so that a recycled log is long enough for one.
const WARM: usize = 2;
/// Steps that strace counts.
const CALLS: usize = 400;
/// What every row's database is copied from is made so.
const BASE: &Row = named("floor");
/// Rows that flush four times and more run blocks of a quarter: a virtual disk has only so many
/// writes to give before it throttles.
const DIVISOR: usize = 4;
/// What is said of times that are none.
const THROTTLED: &str =
    "THE DISK THROTTLED or the machine was busy, and did not stop: times are worth little";

/// Everything about one measurement.
struct Job<'a> {
    workload: Arc<dyn Workload>,
    settings: Settings,
    workers: Workers,
    volume: &'a Volume,
    folder: TempDir,
    block: usize,
    /// A block is so much work; else so much time.
    fixed: bool,
    /// That time.
    shift: Duration,
}

/// A row with what it works on.
struct Side {
    row: &'static Row,
    folder: PathBuf,
    file: PathBuf,
    db: Option<Connection>,
}

/// Measures.
pub fn run(options: &Options, volume: &Volume, command: String) -> Result<Table> {
    let settings = options.choice.settings()?;
    let workload = settings.workload()?;
    let workers = choose::workers(&*workload, options.workers()?)?;
    let rows = choose::rows(&*workload, workers, settings.name, &options.rows)?;
    let block = options.work.or(options.block).unwrap_or_else(|| workload.block()).max(1);
    if options.work.is_some() && workers == Workers::Alone {
        return Err(Failure::new(
            "--work is for several connections; --block says how much one does",
        ));
    }
    let fixed = options.work.is_some() || workload.steps().is_some();
    let folder = volume.folder("bench")?;
    let shift = Duration::from_millis(options.shift);
    let job = Job { folder, workload, settings, workers, volume, block, fixed, shift };
    let sides = job.prepare(&rows, options.base.as_deref())?;
    let mut lanes = sides.iter().map(|side| job.lane(side)).collect::<Result<Vec<_>>>()?;
    let steps = job.workload.steps().map_or(usize::MAX, |steps| steps.div_ceil(block));
    let length =
        Length { rounds: options.rounds().min(steps), size: block, patience: options.patience() };
    // What ends by itself must be run to its end, whatever the clock says.
    let length = match job.workload.steps() {
        Some(_) => Length { rounds: steps, patience: Duration::MAX, ..length },
        None => length,
    };
    let title = format!("{} on {}", job.workload.title(), volume.label);
    // Only a disk that is written to can throttle.
    let watched = job.workload.writes().then_some(volume);
    let measured = interleave::measure(&title, watched, &mut lanes, length)?;
    drop(lanes);
    let writes = job.workload.writes();
    let source = job.source();
    let baseline = choose::baseline(&rows, options.baseline);
    let compared = rows.iter().position(|row| *row == baseline).map(|at| &measured[at]);
    let mut lines = Vec::new();
    for (row, measured) in rows.iter().zip(&measured) {
        let line = Line::of(row, writes, measured, compared);
        let mut line = line.with_cost(measured, source, volume.tells_journal_apart());
        // Where all do the same work, that they did is no news.
        line.slowest = line.slowest.filter(|_| !fixed);
        if options.calls || (source == Source::Calls && strace::is_there()) {
            line.calls = job.calls(row)?;
            if let (Some(cost), Some(calls), Source::Calls) = (&mut line.cost, &line.calls, source)
            {
                cost.flushes = calls.flushes;
            }
        }
        lines.push(line);
    }
    let mut notes = choose::notes(workers, (options.work, options.shift), &rows, source);
    let throttled = measured.iter().any(|lane| lane.throttled);
    notes.extend(throttled.then(|| THROTTLED.to_owned()));
    Ok(Table {
        command,
        about: job.workload.about(),
        place: format!("{}: {}", volume.label, volume.what),
        connections: workers.of(),
        writes,
        source,
        rounds: measured.iter().map(|lane| lane.rounds()).max().unwrap_or(0),
        baseline: baseline.name.to_owned(),
        throttled,
        lines,
        notes,
    })
}

impl Job<'_> {
    /// A database per row; what is in `from` is in all of them.
    fn prepare(&self, rows: &[&'static Row], from: Option<&Path>) -> Result<Vec<Side>> {
        let base = self.folder.path().join("base.db");
        let mut size = self.workload.size();
        if let Some(from) = from {
            size += from.metadata().explain("looking at the database to start from")?.len();
        }
        choose::room(self.folder.path(), size, rows)?;
        from.map_or(Ok(()), |from| copy::copy(from, &base))?;
        let db = BASE.open(&base)?;
        self.workload.build(&db)?;
        // Recordings load with settings of their own: what is copied must be a plain closed file.
        db.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()))
            .explain("closing the base")?;
        db.close().map_err(|(_, error)| error).explain("closing the base")?;
        let mut sides = Vec::new();
        for row in rows {
            let folder = self.folder.path().join(row.word);
            std::fs::create_dir(&folder).explain("making a folder")?;
            let file = folder.join("app.db");
            let mut db = None;
            if row.sqlite().is_some() {
                copy::copy(&base, &file)?;
                let opened = row.open(&file)?;
                if self.workers == Workers::Alone && self.workload.stays_open() {
                    db = Some(opened);
                } else {
                    opened.close().map_err(|(_, error)| error).explain("closing")?;
                }
            }
            sides.push(Side { row, folder, file, db });
        }
        Ok(sides)
    }

    fn source(&self) -> Source {
        match (&self.volume.device, self.volume.is_own) {
            _ if !self.workload.writes() => Source::Nothing,
            (Some(_), true) => Source::OwnDevice,
            (Some(_), false) => Source::SharedDevice,
            (None, _) => Source::Calls,
        }
    }

    fn lane<'a>(&'a self, side: &'a Side) -> Result<Lane<'a>> {
        let lane = match (side.row.kind, self.workers) {
            (Kind::Limit, _) => {
                let mut limit = Direct::new(&side.folder.join("limit"))?;
                Lane::new(side.row.name, move || limit.step())
            }
            (Kind::Store(open), _) => self.store(side, open(&side.folder)?)?,
            (_, Workers::Alone) => self.alone(side)?,
            (_, workers) => self.together(side, workers)?,
        };
        let heavy = side.row.sqlite().is_some_and(Sqlite::is_rollback);
        let even = self.fixed || !self.workload.writes();
        let divisor = if heavy && !even && self.block >= 8 * DIVISOR { DIVISOR } else { 1 };
        let lane = lane.divided_by(divisor);
        if !self.workload.writes() {
            return Ok(lane);
        }
        let device = self.volume.device.clone();
        let counts = move || match &device {
            Some(device) => Device::counts(device),
            None => Some(Counts { bytes: handed_over(), ..Counts::default() }),
        };
        let settle = || copy::settle(&side.folder);
        Ok(lane.watched(Watch { counts: Box::new(counts), settle: Box::new(settle) }))
    }

    fn alone<'a>(&'a self, side: &'a Side) -> Result<Lane<'a>> {
        let worker =
            Worker { row: side.row, path: &side.file, db: side.db.as_ref(), index: 0, of: 1 };
        let mut session = self.workload.session(&worker)?;
        let regime = side.row.regime();
        if let (Some(_), Some(db)) = (regime, &side.db) {
            db.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(()))
                .explain("wal_autocheckpoint")?;
        }
        if self.workload.steps().is_none() {
            for _ in 0..WARM {
                session.before()?;
                work(&mut *session, Order::Steps(self.block))?;
            }
        }
        let session = std::rc::Rc::new(std::cell::RefCell::new(session));
        let other = session.clone();
        let block = move |size| work(&mut **other.borrow_mut(), Order::Steps(size));
        Ok(Lane::of_blocks(side.row.name, block).before(move || {
            session.borrow_mut().before()?;
            regime.zip(side.db.as_ref()).map_or(Ok(()), |(regime, db)| bring_log(db, regime))
        }))
    }

    fn together<'a>(&'a self, side: &'a Side, workers: Workers) -> Result<Lane<'a>> {
        let mut handles =
            Handles::start(workers, &self.workload, &self.settings, side.row, &side.file)?;
        let (fixed, shift) = (self.fixed, self.shift);
        if self.workload.steps().is_none() {
            handles.run(Order::Time(shift))?;
        }
        Ok(Lane::of_blocks(side.row.name, move |size| {
            handles.run(if fixed { Order::Steps(size) } else { Order::Time(shift) })
        }))
    }

    fn store<'a>(&'a self, side: &Side, store: Box<dyn Store>) -> Result<Lane<'a>> {
        let mut session = Putting { store, key: 0 };
        work(&mut session, Order::Steps(self.block))?;
        Ok(Lane::of_blocks(side.row.name, move |size| work(&mut session, Order::Steps(size))))
    }

    /// System calls of a step, on a database of their own.
    fn calls(&self, row: &Row) -> Result<Option<Calls>> {
        if row.sqlite().is_none() || self.workers != Workers::Alone {
            return Ok(None);
        }
        let file = self.folder.path().join(format!("calls-{}.db", row.word));
        copy::copy(&self.folder.path().join("base.db"), &file)?;
        let mut words: Vec<std::ffi::OsString> =
            ["bench", "worker", "--row", row.word].map(Into::into).to_vec();
        words.extend(self.settings.arguments());
        words.push(file.into());
        // Enough of them for what comes now and then to show as a share; few where each is large.
        let many = if self.workload.block() < 20 { self.block } else { CALLS };
        let steps = self.workload.steps().map_or(many, |steps| many.min(steps / 4));
        let counted = strace::count(&words, crate::numbers::count(steps.max(1)))?;
        let calls = Calls { total: counted.total, flushes: counted.flushes, names: counted.names };
        Ok(Some(calls))
    }
}

fn bring_log(db: &Connection, regime: Regime) -> Result<()> {
    let sql = regime.checkpoint();
    let busy: i64 = db.query_row(sql, [], |row| row.get(0)).explain(sql)?;
    if busy == 0 { Ok(()) } else { Err(Failure::new(format!("{sql} found somebody in its way"))) }
}

/// What a store does.
struct Putting {
    store: Box<dyn Store>,
    key: u64,
}

impl Session for Putting {
    fn step(&mut self) -> Result<Step> {
        self.key += 1;
        self.store.put(self.key, &[b'x'; 100])?;
        Ok(Step::Wrote)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extension::Extension;
    use crate::options::{Choice, Where};
    use crate::volume::Volumes;
    use crate::workload::Name;

    /// The row `toy` is an entry of the table and nothing else.
    #[test]
    fn a_row_of_the_table_is_measured_like_any_other() {
        let _extension = Extension::load().expect("libdash.so is built beside the tests");
        let folder = tempfile::tempdir().expect("a folder");
        let volumes = Volumes::new(folder.path()).expect("volumes");
        let rows = ["toy", "delete", "dash-single"].map(named);
        // Two threads, or strace would have to start this test in place of the program.
        for (name, threads) in [(Name::Reads, 1), (Name::Insert, 2)] {
            let mut options = Options::of(Choice::of(name, 1), &rows, Where::Dir);
            options.choice.size = Some(40_000);
            (options.rounds, options.block, options.threads) = (Some(2), Some(10), threads);
            let volume = options.volume(&volumes).expect("a volume");
            let table = run(&options, volume, String::new()).expect("measured");
            assert_eq!(table.baseline, "toy");
            for row in rows {
                let line = table.line(row).expect("a line");
                assert!(line.latency.count > 2 && line.failures == 0, "{row:?}");
            }
        }
    }

    #[test]
    fn a_database_to_start_from_is_in_every_side() {
        let _extension = Extension::load().expect("libdash.so is built beside the tests");
        let folder = tempfile::tempdir().expect("a folder");
        let volumes = Volumes::new(folder.path()).expect("volumes");
        let base = folder.path().join("theirs.db");
        let mut options = Options::of(Choice::of(Name::Insert, 1), &[named("toy")], Where::Dir);
        (options.rounds, options.block, options.threads) = (Some(2), Some(10), 2);
        options.base = Some(base.clone());
        let volume = options.volume(&volumes).expect("a volume");
        // A table of theirs may have the name of one of ours.
        let db = Connection::open(&base).expect("a database");
        db.execute_batch("CREATE TABLE t0 (x); INSERT INTO t0 VALUES (7)").expect("writes");
        drop(db);
        assert!(run(&options, volume, String::new()).is_ok());
        std::fs::write(&base, [b'x'; 8192]).expect("damaged");
        assert!(run(&options, volume, String::new()).is_err(), "the base is not used");
    }
}
