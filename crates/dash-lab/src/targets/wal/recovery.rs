//! Recovery of 16 MiB of log: a writer is killed, `-wal` keeps what the log does not have, as
//! after a power loss, and dash puts the rest back. Its own part is timed apart from SQLite's.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dash_storage::real::Real;
use dash_wal::Choice;

use super::super::bench::Bench;
use super::super::data::with_rows;
use crate::copy;
use crate::failure::{Explain, Failure, Result};
use crate::numbers::{float, median};
use crate::report::{Section, Target};
use crate::sides::{DASH_WAL, DURABLE};
use crate::work::Job;

const TRIALS: usize = 5;
/// Bytes of log that are recovered, at least.
const BYTES: u64 = 16 << 20;
const LIMIT: f64 = 100.0;
/// How often another writer is killed, if the log began anew just then.
const ATTEMPTS: usize = 4;
const PATIENCE: Duration = Duration::from_secs(120);

/// Makes the section.
pub fn measure(bench: &Bench) -> Result<Section> {
    let what =
        "open after a power loss that took from -wal all that is in the log; page cache warm, on V";
    let mut section = Section::new("wal-recovery", what, DURABLE);
    let folder = bench.volumes.v()?.folder("wal-recovery")?;
    let path = folder.path().join("app.db");
    drop(with_rows(DASH_WAL, &path, 100_000)?);
    let mut killed = kill_a_writer(&path);
    for _ in 0..ATTEMPTS {
        if killed.is_ok() {
            break;
        }
        killed = kill_a_writer(&path);
    }
    let (bytes, frames, first) = killed?;
    let home = folder.path().join("again");
    let mut times: [Vec<f64>; 2] = Default::default();
    for _ in 0..bench.many(TRIALS) {
        std::fs::create_dir(&home).explain("making a folder")?;
        let again = home.join("app.db");
        copy_all(&path, &again)?;
        let begun = Instant::now();
        dash_wal::recover(&Real, &again, Choice::Ask).explain("recovering")?;
        times[0].push(begun.elapsed().as_secs_f64() * 1000.0);
        let begun = Instant::now();
        let db = DASH_WAL.connect(&again)?;
        let rows: i64 = db
            .query_row("SELECT count(*) FROM log WHERE id < 10", [], |row| row.get(0))
            .explain("the first read")?;
        std::hint::black_box(rows);
        times[1].push(begun.elapsed().as_secs_f64() * 1000.0);
        drop(db);
        std::fs::remove_dir_all(&home).explain("removing a folder")?;
    }
    let scaled = median(&times[0]) * float(BYTES) / float(bytes.max(1));
    let label = "dash's part, for each 16 MiB of log";
    section.target(label, scaled, "ms", Target::AtMost(LIMIT));
    section.figure("dash's part, all of it", median(&times[0]), "ms");
    section.figure("then SQLite's: open and first read", median(&times[1]), "ms");
    section.note(format!("{bytes} bytes of log, {frames} frames from {first} on"));
    Ok(section)
}

/// The path of a file beside a database.
pub fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// Copies what counts after a power loss.
pub fn copy_all(from: &Path, to: &Path) -> Result<()> {
    for end in ["", "-dashlog", "-wal"] {
        copy::copy(&beside(from, end), &beside(to, end))?;
    }
    Ok(())
}

/// Cuts `-wal` to the frames before one.
pub fn cut_wal(path: &Path, first_frame: u32) -> Result<()> {
    let kept = u64::from(first_frame.saturating_sub(1));
    let wal = std::fs::OpenOptions::new().write(true).open(beside(path, "-wal")).explain("-wal")?;
    wal.set_len(32 + kept * (24 + 4096)).explain("cutting -wal")
}

/// A child that is killed when this goes.
struct Writer(Child);

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Leaves a log with so many bytes, and cuts `-wal` to what that does not hold.
fn kill_a_writer(path: &Path) -> Result<(u64, u32, u32)> {
    let own = std::env::current_exe().explain("finding this program")?;
    let mut command = Command::new(own);
    command.args(["work", Job::LongLog.word(), DASH_WAL.word, "--count", "1000000000"]).arg(path);
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
    let mut writer = Writer(spawned.explain("starting a writer")?);
    let begun = Instant::now();
    let chain = || -> Result<Option<dash_wal::inspect::ChainSeen>> {
        let report = dash_wal::inspect(&Real, path).explain("looking at the log")?;
        Ok(report.log.and_then(std::result::Result::ok).and_then(|log| log.chain))
    };
    loop {
        std::thread::sleep(Duration::from_millis(100));
        if begun.elapsed() > PATIENCE || writer.0.try_wait().explain("a writer")?.is_some() {
            return Err(Failure::new("the writer ended, or its log did not become long enough"));
        }
        if chain()?.is_some_and(|chain| chain.bytes >= BYTES) {
            break;
        }
    }
    drop(writer);
    let chain = chain()?.filter(|chain| chain.bytes >= BYTES);
    let chain = chain.ok_or_else(|| Failure::new("the log began anew when its writer died"))?;
    cut_wal(path, chain.first_frame)?;
    for end in ["-dash", "-shm"] {
        std::fs::remove_file(beside(path, end)).explain("removing what a power loss takes")?;
    }
    Ok((chain.bytes, chain.frames, chain.first_frame))
}
