//! Cases that have numbers, thousands of them in a worker process: a seed and a number are a case.
//! A worker says a line for each one that it is done with, so what kills it is the next one; then
//! another worker goes on behind that.
//!
//! Of every case a worker asks the same: that it ends, without a signal, in so much time and
//! memory, and that nothing is said on standard error.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::mpsc;
use std::time::Duration;

use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{Signal, killpg};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{Pid, alarm};

use super::part::{FEWEST, GoOn, case_folder, failed};
use crate::again::{Again, Assignment, Task};
use crate::random::Dice;
use crate::{Options, Summary};

/// Cases of a worker: then its memory is as new.
const LOT: u64 = 3000;
/// A case may compute for so long, and take so much memory. Without optimisation that is longer.
pub(crate) const LONGEST: Duration =
    Duration::from_secs(if cfg!(debug_assertions) { 5 } else { 1 });
pub(crate) const MOST: u64 = 256 << 20;
/// A case that waits for longer than this hangs.
const PATIENCE: u32 = 60;
/// No process takes more memory than this, whatever it asks for, and no file is longer.
const ADDRESSES: u64 = 4 << 30;
/// As little as programs give their threads.
const STACK: usize = 1 << 20;
/// Begins a worker's line about a case; a test's may have something before it.
const DONE: &str = "done:";

/// How many cases were of which kind; the first one is how many there were.
pub(crate) type Counts = Vec<(&'static str, u64)>;

/// Which cases a worker is to do: seed, first number, how many. Also in a case's own name, without
/// the last one.
fn lot(case: &str) -> Option<(u64, u64, u64)> {
    let mut numbers = case.split('/').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??, numbers.next().unwrap_or(Some(1))?))
}

/// A worker, as the program that started it sees it.
struct Worker {
    child: Option<Child>,
    cases: Range<u64>,
    /// Whether it has begun with the first one.
    is_ready: bool,
    /// The one that it is at.
    at: u64,
    /// What it says on standard error.
    told: PathBuf,
}

/// How workers are started.
struct Start<'a> {
    role: &'static str,
    seed: u64,
    folder: &'a Path,
    options: &'a Options,
    again: &'a Again,
    /// Gets what they say, each with its number; at its end nothing.
    tell: mpsc::Sender<(usize, Option<String>)>,
}

impl Start<'_> {
    fn start(&self, slot: usize, cases: Range<u64>) -> std::io::Result<Worker> {
        let home = self.folder.join(slot.to_string());
        fs::create_dir_all(&home)?;
        let case = format!("{}/{}/{}", self.seed, cases.start, cases.end - cases.start);
        let task = Task { slot, seed: self.seed, case, ..Task::default() };
        let (database, told) = (home.join("app.db"), home.join("stderr"));
        let mut command = self.again.command(self.role, &database, &self.options.library, &task);
        let mut child = command.stderr(File::create(&told)?).spawn()?;
        let lines = child.stdout.take().map(|output| BufReader::new(output).lines());
        let tell = self.tell.clone();
        std::thread::spawn(move || {
            let all = lines.into_iter().flatten().map_while(Result::ok).map(Some);
            all.chain([None]).try_for_each(|line| tell.send((slot, line)))
        });
        Ok(Worker { child: Some(child), at: cases.start, cases, is_ready: false, told })
    }
}

impl Worker {
    /// Ends it, with what it has started; why it has not done its cases.
    fn end(&mut self) -> Option<String> {
        let mut child = self.child.take()?;
        let _ = killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
        let ended = child.wait();
        if self.at == self.cases.end && ended.as_ref().is_ok_and(ExitStatus::success) {
            return None;
        }
        let words = fs::read_to_string(&self.told).unwrap_or_default();
        let ended = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
        Some(format!("{} ({ended}, in a worker from {} on)", words.trim(), self.cases.start))
    }
}

/// Nobody is left behind, whatever has ended the run.
impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.end());
    }
}

/// Adds what is said of a case.
fn count(told: &str, counts: &mut BTreeMap<String, u64>, summary: &mut Summary) {
    let words: Vec<_> = told.split_whitespace().collect();
    let counted = words.chunks_exact(2).filter_map(|it| Some((it[0], it[1].parse().ok()?)));
    for (place, (name, count)) in counted.enumerate() {
        *counts.entry(name.to_owned()).or_default() += count;
        summary.cases += if place == 0 { count } else { 0 };
    }
}

/// The part `role`: workers until the time is over.
pub(crate) fn run(
    role: &'static str,
    options: &Options,
    again: &Again,
    summary: &mut Summary,
    go_on: &mut GoOn<'_>,
) {
    let folder = match case_folder(options.folder.as_deref()) {
        Ok(folder) => folder,
        Err(reason) => return summary.skipped.push(reason),
    };
    let one =
        options.case.as_deref().map(|case| lot(case.strip_prefix(role)?.strip_prefix('/')?));
    if one == Some(None) {
        return;
    }
    let (seed, first, most) = one.flatten().unwrap_or((options.seed, 0, LOT));
    let (tell, told) = mpsc::channel();
    let start = Start { role, seed, folder: folder.path(), options, again, tell };
    // Many cases wait for something, and not for a processor.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let side_by_side = if one.is_some() { 1 } else { 2 * cores };
    let mut lots = (0..).map(|lot| first + lot * most..first + (lot + 1) * most);
    let started = (0..side_by_side).zip(&mut lots).map(|(slot, cases)| start.start(slot, cases));
    let mut workers: Vec<Worker> = match started.collect() {
        Ok(workers) => workers,
        Err(error) => return summary.skipped.push(format!("starting a worker: {error}")),
    };
    let mut counts = BTreeMap::new();
    while let Ok((slot, line)) = told.recv() {
        let worker = &mut workers[slot];
        match line.as_deref().map(|line| line.split_once(DONE)) {
            Some(Some((_, told))) => {
                count(told, &mut counts, summary);
                worker.at += u64::from(worker.is_ready);
                worker.is_ready = true;
            }
            Some(None) => {}
            None => {
                let what = worker.end();
                let case = format!("{role}/{seed}/{}", worker.at);
                let enough = what.as_ref().is_some_and(|it| failed(summary, it, &case));
                // One that has not begun finds the next one as it is.
                if enough || one.is_some() || !worker.is_ready {
                    break;
                }
                let left = worker.at + u64::from(what.is_some())..worker.cases.end;
                let next = if left.is_empty() { lots.next() } else { Some(left) };
                match next.map(|cases| start.start(slot, cases)) {
                    Some(Ok(next)) => *worker = next,
                    _ => break,
                }
            }
        }
        if !go_on() && summary.cases >= FEWEST {
            break;
        }
    }
    let counts = counts.iter().map(|(name, count)| format!("{count} {name}"));
    summary.notes.push(counts.collect::<Vec<_>>().join(", "));
}

/// The worker: does its cases, in a thread of which nothing is special.
pub(crate) fn worker(
    assignment: &Assignment,
    make: impl FnOnce() -> Result<Box<dyn FnMut(&mut Dice) -> Result<Counts, String>>, String> + Send,
) -> Result<(), String> {
    let (seed, first, count) = lot(&assignment.task.case).ok_or("no such case")?;
    let limit =
        |what, most| setrlimit(what, most, most).map_err(|error| format!("limits: {error}"));
    limit(Resource::RLIMIT_CORE, 0)?;
    limit(Resource::RLIMIT_FSIZE, MOST)?;
    // The address sanitizer takes terabytes of them.
    if std::env::var_os("ASAN_OPTIONS").is_none() {
        limit(Resource::RLIMIT_AS, ADDRESSES)?;
    }
    let work = || {
        let mut case = make()?;
        println!("{DONE}");
        (first..first + count).try_for_each(|number| {
            alarm::set(PATIENCE);
            let counts = within_limits(|| case(&mut Dice::new(seed, number)))?;
            let line: Vec<_> =
                counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
            let mut output = std::io::stdout().lock();
            writeln!(output, "{DONE} {}", line.join(" ")).map_err(|error| error.to_string())
        })
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
        let thread = thread.map_err(|error| format!("starting a thread: {error}"))?;
        thread.join().unwrap_or_else(|_| Err("a panic".to_owned()))
    })
}

/// What a case answers, if it computes no longer than it may, takes no more memory, and says
/// nothing on standard error.
fn within_limits<T>(case: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    // Makes the peak what is there now.
    fs::write("/proc/self/clear_refs", "5").map_err(|error| format!("clear_refs: {error}"))?;
    let before = (computed(), memory()?);
    let answer = case()?;
    let used = (computed().saturating_sub(before.0), memory()?.saturating_sub(before.1));
    let errors = std::io::stderr().as_fd().try_clone_to_owned().map(File::from);
    match errors.and_then(|errors| errors.metadata()) {
        _ if used.0 > LONGEST => Err(format!("it computes for {:?}", used.0)),
        _ if used.1 > MOST => Err(format!("it takes {} MiB of memory", used.1 >> 20)),
        Ok(said) if said.is_file() && said.len() > 0 => Err("said on standard error".into()),
        Ok(_) => Ok(answer),
        Err(error) => Err(format!("standard error: {error}")),
    }
}

fn computed() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// The peak of memory, in bytes.
fn memory() -> Result<u64, String> {
    let status = fs::read_to_string("/proc/self/status").map_err(|error| error.to_string())?;
    let peak =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next());
    let peak = peak.and_then(|peak| peak.parse::<u64>().ok()).ok_or("no peak of memory")?;
    Ok(peak << 10)
}
