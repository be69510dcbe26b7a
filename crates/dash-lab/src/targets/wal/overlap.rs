//! Readers that always overlap, each with a snapshot of 50 ms: how long `-wal` gets, and how slow
//! the slowest commit is. Stock WAL's log grows as long as there is always somebody who reads.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};

use super::super::bench::Bench;
use super::super::data::with_rows;
use crate::failure::{Explain, Failure, Result};
use crate::numbers::{count, float};
use crate::report::{Section, Target};
use crate::row::Row;
use crate::sides::{DASH_WAL, DURABLE, WAL};

const READERS: u32 = 4;
const SNAPSHOT: Duration = Duration::from_millis(50);
const TIME: Duration = Duration::from_secs(20);
/// wal_autocheckpoint times four: from there on readers are held back.
const THRESHOLD: f64 = 4000.0;
/// Bytes of a frame.
const FRAME: u64 = 4096 + 24;

/// Makes the section.
pub fn measure(bench: &Bench) -> Result<Section> {
    let what = format!(
        "{READERS} readers whose snapshots of {} ms always overlap, a writer without pause, {} s each, on V",
        SNAPSHOT.as_millis(),
        TIME.as_secs()
    );
    let mut section = Section::new("wal-overlap", what, DURABLE);
    let folder = bench.volumes.v()?.folder("wal-overlap")?;
    let time = TIME / if bench.many(10) < 10 { 10 } else { 1 };
    for side in [DASH_WAL, WAL] {
        let path = folder.path().join(side.word);
        drop(with_rows(side, &path, 1000)?);
        let seen = run(side, &path, time)?;
        let allowed = (THRESHOLD + seen.rate).round();
        let frames = float(seen.longest / FRAME);
        let name = side.name;
        if side == DASH_WAL {
            let limit = Target::AtMost(allowed);
            section.target(format!("{name}: frames of -wal"), frames, "frames", limit);
            section.target(
                format!("{name}: slowest commit"),
                seen.slowest,
                "ms",
                Target::AtMost(60.0),
            );
            let none = Target::AtMost(0.0);
            section.target(format!("{name}: locked out"), float(seen.busy), "calls", none);
        } else {
            section.figure(format!("{name}: frames of -wal"), frames, "frames");
            section.figure(format!("{name}: slowest commit"), seen.slowest, "ms");
            section.figure(format!("{name}: locked out"), float(seen.busy), "calls");
        }
        section.note(format!("{name}: {:.0} commits/s, {} snapshots", seen.rate, seen.snapshots));
    }
    Ok(section)
}

struct Seen {
    /// Commits a second.
    rate: f64,
    /// Milliseconds.
    slowest: f64,
    /// Bytes of `-wal`.
    longest: u64,
    busy: u64,
    snapshots: u64,
}

fn run(side: &'static Row, path: &Path, time: Duration) -> Result<Seen> {
    let writer = side.open(path)?;
    let readers = (0..READERS).map(|_| side.open(path)).collect::<Result<Vec<_>>>()?;
    let mut wal = path.as_os_str().to_owned();
    wal.push("-wal");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..)
            .zip(readers)
            .map(|(number, reader)| {
                let stop = &stop;
                scope.spawn(move || read(&reader, SNAPSHOT * number / READERS, stop))
            })
            .collect();
        let written = write(&writer, Path::new(&wal), time);
        stop.store(true, Ordering::SeqCst);
        let (mut busy, mut snapshots) = (0, 0);
        for thread in threads {
            let joined = thread.join().unwrap_or_else(|_| Err(Failure::new("a reader panicked")));
            let (locked_out, taken) = joined?;
            busy += locked_out;
            snapshots += taken;
        }
        let seen = written?;
        Ok(Seen { busy: busy + seen.busy, snapshots, ..seen })
    })
}

fn write(db: &Connection, wal: &Path, time: Duration) -> Result<Seen> {
    let mut insert = db.prepare("INSERT INTO log (body) VALUES (?1)").explain("preparing")?;
    let body = "x".repeat(100);
    let (begun, mut commits) = (Instant::now(), 0_u64);
    let mut seen = Seen { rate: 0.0, slowest: 0.0, longest: 0, busy: 0, snapshots: 0 };
    while begun.elapsed() < time {
        let before = Instant::now();
        seen.busy += u64::from(locked_out(insert.execute([&body]).map(drop))?);
        seen.slowest = seen.slowest.max(before.elapsed().as_secs_f64() * 1000.0);
        commits += 1;
        if commits.is_multiple_of(64) {
            let len = wal.metadata().map_or(0, |found| found.len());
            seen.longest = seen.longest.max(len);
        }
    }
    seen.rate = float(commits) / begun.elapsed().as_secs_f64();
    Ok(seen)
}

/// How often it was locked out, and snapshots.
fn read(db: &Connection, later: Duration, stop: &AtomicBool) -> Result<(u64, u64)> {
    std::thread::sleep(later);
    let (mut busy, mut snapshots) = (0, 0);
    while !stop.load(Ordering::SeqCst) {
        let taken = db
            .execute_batch("BEGIN")
            .and_then(|()| db.query_row("SELECT count(*) FROM t WHERE id < 10", [], |_| Ok(())));
        if locked_out(taken)? {
            busy += 1;
        } else {
            snapshots += 1;
            std::thread::sleep(SNAPSHOT);
        }
        db.execute_batch("COMMIT").explain("ending a snapshot")?;
    }
    Ok((busy, count(snapshots)))
}

/// Whether somebody else was in the way; other errors are errors.
fn locked_out(result: rusqlite::Result<()>) -> Result<bool> {
    let code = result.as_ref().err().and_then(rusqlite::Error::sqlite_error_code);
    match code {
        Some(ErrorCode::DatabaseBusy | ErrorCode::FileLockingProtocolFailed) => Ok(true),
        _ => result.map(|()| false).explain("a statement beside others"),
    }
}
