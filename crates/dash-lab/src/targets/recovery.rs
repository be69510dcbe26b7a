//! Recovery of a 1 GiB database after a transaction of 20 scattered pages was killed: at its flush
//! (strace kills it there, with everything written and nothing durable) or at a random moment.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::bench::Bench;
use super::data::Dice;
use crate::failure::{Explain, Failure, Result};
use crate::interleave::THROTTLED_MAX;
use crate::numbers::{count, median};
use crate::progress::{Progress, Unit};
use crate::report::{Section, Target};
use crate::sides::{DELETE, DURABLE, SINGLE};
use crate::throttle::Throttle;
use crate::work::Job;

const TRIALS: usize = 10;
/// Rows of one page each that make 1 GiB.
const ROWS: i64 = 262_144;
/// How long a writer may take to say that it is ready.
const PATIENCE: Duration = Duration::from_secs(60);

/// How the writer dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Death {
    /// At the flush of one of its first transactions.
    Early,
    /// At a flush after some dozens of them.
    Late,
    /// At any moment after the first.
    Anywhere,
}

impl Death {
    fn title(self) -> &'static str {
        match self {
            Self::Early => "killed at the flush, first transactions",
            Self::Late => "killed at the flush, after dozens",
            Self::Anywhere => "killed anywhere, after dozens",
        }
    }

    /// The first and the last flush of the process that it can be.
    fn flushes(self) -> Option<(i64, i64)> {
        match self {
            Self::Early => Some((3, 6)),
            Self::Late => Some((40, 80)),
            Self::Anywhere => None,
        }
    }
}

/// Makes the section.
pub fn measure(bench: &Bench) -> Result<Section> {
    let what = "1 GiB, transactions of 20 scattered pages, writer killed with SIGKILL; page cache warm, on V";
    let mut section = Section::new("recovery", what, DURABLE);
    let volume = bench.volumes.v()?;
    let folder = volume.folder("recovery")?;
    let path = folder.path().join("large.db");
    let trials = bench.many(TRIALS);
    let mut progress = Progress::new("recovery", count(6 * trials) + 2, Unit::Count);
    build(&path)?;
    progress.step(1)?;
    let begun = Instant::now();
    first_commit(&SINGLE.connect(&path)?)?;
    section.note(format!(
        "the first commit ever, which makes the second copy (1 GiB): {:.2} s",
        begun.elapsed().as_secs_f64()
    ));
    progress.step(1)?;
    volume.settle()?;
    let throttle = Throttle::new(volume, THROTTLED_MAX)?;
    let mut dice = Dice::new(5);
    for death in [Death::Early, Death::Late, Death::Anywhere] {
        let mut times = Times::default();
        while times.later.len() < trials || times.commits.len() < trials {
            // A throttled disk must neither be asked nor have been asked.
            throttle.was_on(&progress)?;
            kill_a_writer(&path, death, &mut dice)?;
            let (read, committed) = recover(&path, times.later.len() <= times.commits.len())?;
            if !throttle.was_on(&progress)? {
                times.add(read, committed);
                progress.step(1)?;
            }
        }
        times.tell(death, &mut section);
    }
    section.note(format!("quick_check afterwards: {}", check(&path)?));
    Ok(section)
}

/// Milliseconds after so many deaths.
#[derive(Default)]
struct Times {
    /// Until the first row was read.
    reads: Vec<f64>,
    /// From then on until the first commit.
    later: Vec<f64>,
    /// Until the first commit, where nothing was read before.
    commits: Vec<f64>,
}

impl Times {
    fn add(&mut self, read: Option<Duration>, committed: Duration) {
        match read {
            Some(read) => {
                self.reads.push(millis(read));
                self.later.push(millis(committed.saturating_sub(read)));
            }
            None => self.commits.push(millis(committed)),
        }
    }

    fn tell(&self, death: Death, section: &mut Section) {
        let title = death.title();
        for (what, times) in
            [("open + first read", &self.reads), ("open + first commit", &self.commits)]
        {
            let (label, typical) = (format!("{title}: {what}, median"), median(times));
            if death == Death::Early {
                section.target(label, typical, "ms", Target::AtMost(50.0));
            } else {
                section.figure(label, typical, "ms");
            }
            let longest = times.iter().copied().fold(0.0, f64::max);
            section.figure(format!("{title}: {what}, longest"), longest, "ms");
        }
        section.note(format!(
            "{title}: first commit after a first read: median {:.2} ms",
            median(&self.later)
        ));
    }
}

/// Opens what a dead writer left: how long the first read, if asked for, and the first commit took.
fn recover(path: &Path, read_first: bool) -> Result<(Option<Duration>, Duration)> {
    let begun = Instant::now();
    let db = SINGLE.connect(path)?;
    let mut read = None;
    if read_first {
        first_read(&db)?;
        read = Some(begun.elapsed());
    }
    first_commit(&db)?;
    let committed = begun.elapsed();
    close(db)?;
    Ok((read, committed))
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn build(path: &Path) -> Result<()> {
    let db = DELETE.connect(path)?;
    db.query_row("PRAGMA journal_mode=OFF", [], |_| Ok(())).explain("journal_mode")?;
    db.execute_batch("PRAGMA synchronous=OFF; PRAGMA page_size=4096; CREATE TABLE wide (id INTEGER PRIMARY KEY, n INTEGER, pad BLOB)").explain("making a table")?;
    let sql = "INSERT INTO wide SELECT value, 0, zeroblob(3900) FROM (WITH RECURSIVE n(value) AS
               (VALUES(1) UNION ALL SELECT value + 1 FROM n WHERE value < ?1) SELECT value FROM n)";
    db.execute(sql, [ROWS]).explain("filling a table")?;
    close(db)
}

/// A child that is killed when this goes.
struct Writer(Child);

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn kill_a_writer(path: &Path, death: Death, dice: &mut Dice) -> Result<()> {
    let own = std::env::current_exe().explain("finding this program")?;
    let mut command = match death.flushes() {
        None => Command::new(own),
        Some((first, last)) => {
            let when = first - 1 + dice.roll(last - first + 1);
            let mut command = Command::new("strace");
            command.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync", "-e"]);
            command.arg(format!("inject=fdatasync:signal=SIGKILL:when={when}")).arg(own);
            command
        }
    };
    let ready = path.with_extension("ready");
    drop(std::fs::remove_file(&ready));
    command
        .args(["work", Job::Scatter.word(), SINGLE.word])
        .args(["--count", "1000000000"])
        .arg(path);
    let mut writer = Writer(
        command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().explain("starting a writer")?,
    );
    let begun = Instant::now();
    while death == Death::Anywhere && !ready.exists() {
        if begun.elapsed() > PATIENCE
            || writer.0.try_wait().explain("looking at the writer")?.is_some()
        {
            return Err(Failure::new("a writer to be killed ended, or never got ready"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    match death {
        Death::Anywhere => {
            std::thread::sleep(Duration::from_micros(u64::try_from(dice.roll(30_000)).unwrap_or(0)))
        }
        Death::Early | Death::Late => {
            writer.0.wait().explain("waiting for the writer to be killed").map(|_| ())?
        }
    }
    drop(writer);
    Ok(())
}

fn first_read(db: &Connection) -> Result<()> {
    let n: i64 = db
        .query_row("SELECT n FROM wide WHERE id = 100000", [], |row| row.get(0))
        .explain("the first read")?;
    std::hint::black_box(n);
    Ok(())
}

fn first_commit(db: &Connection) -> Result<()> {
    db.execute("UPDATE wide SET n = n + 1 WHERE id = 200000", [])
        .map(drop)
        .explain("the first commit")
}

fn close(db: Connection) -> Result<()> {
    db.close().map_err(|(_, error)| error).explain("closing")
}

fn check(path: &Path) -> Result<String> {
    let db = SINGLE.connect(path)?;
    db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).explain("quick_check")
}
