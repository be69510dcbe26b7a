//! A process that may write `app.db-dash` writes nonsense into it while others have the database
//! open: words of the head and of readers' entries, and records of the version store. Whatever they
//! read there, those others get an answer in time or an error with words, no panic, no signal; and
//! no file but the database's own is touched. What the database holds afterwards nobody promises:
//! such a person can write that, too.

use std::io::{BufRead, BufReader, Read, Write};
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use rusqlite::Connection;

use super::blocks::neighbours;
use crate::again::{Again, Assignment, Task};
use crate::faults::part::{GoOn, case_folder, failed};
use crate::faults::sql::said::Said;
use crate::random::Dice;
use crate::{Options, Summary, sqlite};

/// The part's name, and its workers' role.
pub const ROLE: &str = "scribble";
/// How long a round lasts.
const ROUND: Duration = Duration::from_millis(1500);
/// How long a statement may wait for others, on a machine that does other things, too.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long it may compute: the database has a few hundred rows.
const LONGEST: Duration = Duration::from_secs(1);
/// Words of the file, and of its head.
const WORDS: u64 = 4096;
const HEAD: u64 = 64;
/// Where the version store begins.
const LOG: u64 = WORDS * 8 * 2;
/// Bytes that the files may take on the disk.
const LARGEST: u64 = 256 << 20;

/// Connections of a worker, one a thread.
const PARTS: [&str; 4] = ["writer", "reader", "mapped reader", "read-only reader"];

/// What a worker's thread saw.
#[derive(Default)]
struct Seen {
    statements: u64,
    errors: u64,
    longest: Duration,
}

fn cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

impl Seen {
    /// Does one thing, and judges how it went.
    fn timed<T>(
        &mut self,
        what: &str,
        act: impl FnOnce() -> rusqlite::Result<T>,
    ) -> Result<Option<T>, String> {
        let (begun, used) = (Instant::now(), cpu());
        let done = act();
        let (took, used) = (begun.elapsed(), cpu().saturating_sub(used));
        self.statements += 1;
        self.longest = self.longest.max(took);
        if used > LONGEST || took > PATIENCE {
            return Err(format!("{what}: {took:?}, {used:?} of it computing"));
        }
        match done {
            Ok(value) => Ok(Some(value)),
            Err(error) => {
                self.errors += 1;
                let said = Said::of(&error);
                if said.is_panic() { Err(format!("{what}: a panic: {said:?}")) } else { Ok(None) }
            }
        }
    }

    /// One session: opens, works, closes.
    fn session(&mut self, part: &str, path: &Path, dice: &mut Dice) -> Result<(), String> {
        let parameters = if part == "read-only reader" { "&mode=ro" } else { "" };
        let Some(db) = self.timed("opening", || sqlite::open(path, parameters))? else {
            return Ok(());
        };
        let set = |db: &Connection| {
            db.busy_timeout(Duration::from_millis(100))?;
            db.execute_batch(if part == "mapped reader" { "PRAGMA mmap_size=1000000" } else { "" })
        };
        if self.timed("settings", || set(&db))?.is_none() {
            return Ok(());
        }
        for _ in 0..=dice.below(12) {
            let sum = "SELECT count(*), sum(length(b)) FROM t";
            let read = || db.query_row(sum, [], |row| row.get::<_, i64>(0));
            if part == "writer" {
                let change = "UPDATE t SET b = randomblob(700) WHERE id % 7 = abs(random()) % 7";
                self.timed("writing", || db.execute_batch(change))?;
            } else {
                self.timed("beginning", || db.execute_batch("BEGIN"))?;
                self.timed("reading", read)?;
                std::thread::sleep(Duration::from_micros(dice.below(4000)));
                self.timed("reading again", read)?;
                self.timed("ending", || db.execute_batch("COMMIT"))?;
            }
        }
        self.timed("closing", || db.close().map_err(|(_, error)| error)).map(drop)
    }
}

/// The worker: several threads use the database until the round is over. Says what they saw.
pub fn worker(assignment: &Assignment) -> Result<(), String> {
    sqlite::load(&assignment.library)?;
    let begun = Instant::now();
    let all = std::thread::scope(|scope| {
        let threads = PARTS.map(|part| {
            scope.spawn(move || {
                let mut seen = Seen::default();
                let salt = part.len() as u64;
                let mut dice = Dice::new(assignment.task.seed, salt);
                while begun.elapsed() < ROUND {
                    seen.session(part, &assignment.file, &mut dice)
                        .map_err(|what| format!("{part}: {what}; {}", sqlite::last_error()))?;
                }
                Ok::<_, String>(seen)
            })
        });
        threads.map(|thread| thread.join().unwrap_or_else(|_| Err("a thread's panic".into())))
    });
    for seen in all {
        let Seen { statements, errors, longest } = seen?;
        println!("{statements} {errors} {}", longest.as_millis());
    }
    Ok(())
}

/// A number that no program would write, or nearly the one that is there.
fn nonsense(old: u64, dice: &mut Dice) -> u64 {
    let edges = [0, 1, 2, 3, 7, 255, 4096, 1 << 20, 1 << 31, (1 << 32) - 1, 1 << 40, 1 << 62];
    match dice.below(4) {
        0 => old ^ 1 << dice.below(64),
        1 => u64::MAX - dice.pick(&edges).unwrap_or(0),
        2 => old.wrapping_add(dice.below(3)).wrapping_sub(1),
        _ => dice.pick(&edges).unwrap_or(0),
    }
}

/// Writes nonsense; how often. The file may not be there, or be another one the next time.
fn scribble(path: &Path, dice: &mut Dice) -> std::io::Result<u64> {
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path)?;
    let len = file.metadata()?.len();
    let word = match dice.below(8) {
        0..3 => dice.below(HEAD),
        3 => dice.below(WORDS),
        4 => HEAD + dice.below(64),
        // Where the version store begins and ends, and what a snapshot is.
        5 => 14 + dice.below(2),
        6 => 16 + dice.below(16),
        _ => {
            let places = len.saturating_sub(LOG) / 32;
            let place = LOG + 32 * dice.below(places.clamp(1, 4096));
            let mut record = [0; 32];
            for (field, bytes) in record.chunks_exact_mut(8).enumerate() {
                let value = if field == 1 { dice.below(3) } else { nonsense(0, dice) };
                bytes.copy_from_slice(&value.to_le_bytes());
            }
            // Behind its end there is nothing to change.
            if place + 32 <= len {
                file.write_all_at(&record, place)?;
            }
            return Ok(1);
        }
    };
    // Cutting it, or what is mapped of it, is another matter (a signal).
    if (word + 1) * 8 > len {
        return Ok(0);
    }
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, word * 8)?;
    let new = nonsense(u64::from_le_bytes(bytes), dice);
    file.write_all_at(&new.to_le_bytes(), word * 8)?;
    Ok(1)
}

/// Waits for a worker; what it said.
fn wait_for(mut child: Child) -> Result<(Vec<String>, String, bool), String> {
    let until = Instant::now() + PATIENCE + PATIENCE;
    let ended = loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) => break Some(status),
            None if Instant::now() > until => break None,
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let Some(status) = ended else {
        let id = child.id();
        // One that does not end by itself has no other use.
        drop(child.kill());
        drop(child.wait());
        return Err(format!("the process {id} did not come to an end"));
    };
    let lines = child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines());
    let lines: Vec<String> = lines.map_while(Result::ok).collect();
    let mut errors = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        drop(stderr.read_to_string(&mut errors)); // without words the status has to do
    }
    Ok((lines, format!("{status}: {}", errors.trim()), status.success()))
}

/// What a round came to.
#[derive(Default)]
struct Round {
    scribbles: u64,
    statements: u64,
    errors: u64,
    longest: u64,
}

fn round(options: &Options, again: &Again, seed: u64) -> Result<Round, String> {
    let folder = case_folder(options.folder.as_deref())?;
    let path = folder.path().join("app.db");
    let explain = |error: rusqlite::Error| format!("making a database: {error}");
    let db = sqlite::open(&path, "").map_err(explain)?;
    db.execute_batch(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, b); \
         INSERT INTO t(b) WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 200) \
         SELECT randomblob(600) FROM c",
    )
    .map_err(explain)?;
    db.close().map_err(|(_, error)| explain(error))?;
    for name in neighbours::NAMES {
        std::fs::write(folder.path().join(name), neighbours::CONTENT)
            .map_err(|error| format!("writing {name}: {error}"))?;
    }
    let task = Task { seed, ..Task::default() };
    let child = again
        .command(ROLE, &path, &options.library, &task)
        .spawn()
        .map_err(|error| format!("starting a worker: {error}"))?;
    let mut done = Round::default();
    let (mut dice, begun) = (Dice::new(seed, 2), Instant::now());
    let shared = folder.path().join("app.db-dash");
    while begun.elapsed() < ROUND {
        // Between two sessions it is not there.
        done.scribbles += scribble(&shared, &mut dice).unwrap_or(0);
        std::thread::sleep(Duration::from_micros(dice.below(3000)));
    }
    let (lines, end, well) = wait_for(child)?;
    if !well {
        return Err(end);
    }
    for line in lines {
        let mut numbers = line.split(' ').map(str::parse::<u64>);
        if let (Some(Ok(statements)), Some(Ok(errors)), Some(Ok(longest))) =
            (numbers.next(), numbers.next(), numbers.next())
        {
            done.statements += statements;
            done.errors += errors;
            done.longest = done.longest.max(longest);
        }
    }
    neighbours::untouched_in(folder.path())?;
    for entry in std::fs::read_dir(folder.path()).map_err(|error| error.to_string())? {
        let found = entry.and_then(|entry| entry.metadata()).map_err(|error| error.to_string())?;
        if found.blocks() * 512 > LARGEST {
            return Err(format!("a file of {} bytes was made", found.blocks() * 512));
        }
    }
    // The next connection is answered, too.
    let mut seen = Seen::default();
    seen.session("writer", &path, &mut dice)?;
    Ok(done)
}

/// The part: rounds until the time is over. [`Summary::cases`] counts words and statements.
pub fn run(options: &Options, again: &Again, summary: &mut Summary, go_on: &mut GoOn<'_>) {
    if let Err(reason) = sqlite::load(&options.library) {
        return summary.skipped.push(reason);
    }
    let named = options.case.as_deref().and_then(|case| case.strip_prefix("scribble/"));
    let (mut all, mut rounds) = (Round::default(), 0);
    for number in 0.. {
        let seed = named.and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| crate::random::mix(options.seed ^ number << 20));
        rounds += 1;
        let end = match round(options, again, seed) {
            Ok(round) => {
                all.scribbles += round.scribbles;
                all.statements += round.statements;
                all.errors += round.errors;
                all.longest = all.longest.max(round.longest);
                ControlFlow::Continue(())
            }
            Err(what) if failed(summary, &what, &format!("scribble/{seed}")) => {
                ControlFlow::Break(())
            }
            Err(_) => ControlFlow::Continue(()),
        };
        summary.cases = all.scribbles + all.statements;
        if end.is_break() || !go_on() || options.case.is_some() {
            break;
        }
    }
    summary.notes.push(format!(
        "{rounds} rounds: {} words written, {} statements meanwhile, {} of them errors, the longest of {} ms",
        all.scribbles, all.statements, all.errors, all.longest
    ));
    // So that what a panic said is not lost where this program is a test.
    drop(std::io::stderr().flush());
}
