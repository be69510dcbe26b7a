//! What disks do to a database that is open on them: they fail, at any write or flush and from then
//! on; they fill up; the kernel makes the file system read-only. Every commit answers with success
//! or with an error that says what it is; what was acknowledged is there when the disk is well
//! again; and so it is when power goes first.

use std::fs::File;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use fastrand::Rng;
use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use rusqlite::ErrorCode;

use super::database::Opened;
use super::images::Images;
use super::job::{Found, Job, Task};
use super::kind::Kind;
use super::record::{Begun, Fresh, Recording};
use super::rig::{Loop, Rig};
use super::session::{Answer, Session};
use super::stage::Stage;
use crate::Failure;

/// Images of each fault.
const IMAGES: u64 = 10;
/// Bytes of a small and of a large commit.
const SIZES: [u64; 4] = [100, 100, 3000, 120_000];
/// How long a file system may take to know of space that was freed.
const FREED: Duration = Duration::from_secs(5);

/// What happens to the device.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// Writes, or flushes, or both fail from so many events after the beginning on.
    Fails { writes: bool, flushes: bool, after: u64 },
    /// There is no space left, for a while.
    Full,
    /// The file system finds itself damaged and turns read-only (ext4 lets one ask for that).
    TurnsReadOnly,
    /// It is mounted read-only, closed and open.
    ReadOnly,
}

/// Runs one of each fault.
pub fn run(
    rig: &Rig,
    job: &Job,
    fresh: &mut Fresh,
    sender: &UnixStream,
    found: &mut Found,
) -> Result<(), String> {
    let Task::Faults { kind, opened, seed } = job.task else { return Ok(()) };
    let end = Instant::now() + Duration::from_millis(job.time);
    let mut rng = Rng::with_seed(seed);
    let mut fails = |writes, flushes| Fault::Fails { writes, flushes, after: rng.u64(..60) };
    let faults = [
        fails(true, false),
        fails(false, true),
        fails(true, true),
        Fault::Full,
        Fault::TurnsReadOnly,
        Fault::ReadOnly,
    ];
    for fault in faults {
        if matches!(fault, Fault::TurnsReadOnly) && kind.driver() != "ext4" {
            continue;
        }
        if matches!(fault, Fault::Full) && kind.kills_when_full() {
            continue;
        }
        if Instant::now() >= end {
            break;
        }
        let outcome = one(rig, (kind, opened, fault), rng.fork(), fresh).and_then(
            |(device, recording, from)| {
                Images {
                    rig,
                    device,
                    task: &job.task,
                    kind,
                    opened,
                    is_attached: false,
                    end,
                    rng: rng.fork(),
                    stage: Stage::default(),
                    seen: Default::default(),
                    keep: &job.keep,
                    found,
                    sender,
                }
                .explore(recording, from, IMAGES)
                .map_err(|error| error.to_string())
            },
        );
        found.faults += 1;
        if let Err(what) = outcome {
            let what = format!("{}, {fault:?}: {what}", job.task.name());
            found.failures.push(Failure { what, replay: super::worker::replay(&job.task) });
        }
    }
    // Whatever went wrong: the next job has a device that works.
    rig.orders.give(None, None).map_err(|error| error.to_string())
}

/// One fault: the record, and the event from which on images are of interest.
fn one(
    rig: &Rig,
    (kind, opened, fault): (Kind, Opened, Fault),
    mut rng: Rng,
    fresh: &mut Fresh,
) -> Result<(Loop, Recording, usize), String> {
    let more = if matches!(fault, Fault::TurnsReadOnly) { "errors=remount-ro" } else { "" };
    let begun = Begun::new(rig, (kind, 0), more, fresh)?;
    let mut session = Session::new(rig, opened, rng.fork())?;
    let mut from = begun.from;
    let outcome = match fault {
        Fault::Fails { writes, flushes, after } => {
            let at = begun.from as u64 + after;
            from += usize::try_from(after).unwrap_or(0).saturating_sub(10);
            rig.orders
                .give(writes.then_some(at), flushes.then_some(at))
                .map_err(|error| error.to_string())?;
            fails(&mut session, &mut rng, at)
        }
        Fault::Full => full(&begun, &mut session, &mut rng),
        Fault::TurnsReadOnly => turns_read_only(&begun, &mut session),
        Fault::ReadOnly => read_only(&begun, &mut session, reads_without_writing(opened)),
    };
    session.close();
    let (device, recording) = begun.end(rig, session.ledger)?;
    outcome?;
    Ok((device, recording, from))
}

fn fails(session: &mut Session<'_>, rng: &mut Rng, at: u64) -> Result<(), String> {
    let mut errors = 0;
    // After the device began to fail no commit can reach it any more.
    for _ in 0..60 {
        match session.commit(SIZES[rng.usize(..4)])? {
            Answer::Done(begun) if begun >= at => {
                return Err("a commit was acknowledged on a device that failed".to_owned());
            }
            Answer::Done(_) if errors > 0 => {
                return Err("a commit was acknowledged after one that failed".to_owned());
            }
            Answer::Done(_) => {}
            Answer::Refused(_) => errors += 1,
        }
        session.read(false)?;
        // A program that meets an error may well try to open the database anew.
        if errors == 3 {
            session.close();
        }
        if errors == 6 {
            return Ok(());
        }
    }
    Err("the device failed and nobody was told".to_owned())
}

fn must(answer: Answer, when: &str) -> Result<(), String> {
    match answer {
        Answer::Done(_) => Ok(()),
        Answer::Refused(code) => Err(format!("a commit failed {when}: {code:?}")),
    }
}

/// Takes what space there is.
fn fill(file: &File) -> Result<(), Errno> {
    let mut length = 0;
    for step in [64 << 20, 4 << 20, 256 << 10, 16 << 10, 4096] {
        loop {
            match fallocate(file, FallocateFlags::empty(), length, step) {
                Ok(()) => length += step,
                Err(Errno::ENOSPC) => break,
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

fn full(begun: &Begun, session: &mut Session<'_>, rng: &mut Rng) -> Result<(), String> {
    for _ in 0..3 {
        must(session.commit(SIZES[rng.usize(..4)])?, "before the disk was full")?;
    }
    let path = begun.mounted.point().join("filler");
    let filler = File::create(&path).map_err(|error| error.to_string())?;
    fill(&filler).map_err(|error| format!("filling the disk: {error}"))?;
    let mut refused = 0;
    for number in 0..8 {
        let bytes = if number % 2 == 0 { 300_000 } else { 100 };
        match session.commit(bytes)? {
            Answer::Refused(ErrorCode::DiskFull) => refused += 1,
            Answer::Refused(code) => return Err(format!("a full disk is reported as {code:?}")),
            Answer::Done(_) => {}
        }
        session.read(true)?;
    }
    if refused == 0 {
        return Err("commits of megabytes went to a full disk".to_owned());
    }
    drop(filler);
    std::fs::remove_file(path).map_err(|error| format!("freeing space: {error}"))?;
    let freed = Instant::now();
    while let Answer::Refused(code) = session.commit(100)? {
        if freed.elapsed() > FREED {
            return Err(format!("a commit failed when there was space again: {code:?}"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    session.read(true)
}

/// Whether a database at rest can be read where nothing may be written.
fn reads_without_writing(opened: Opened) -> bool {
    opened.loaded().is_none_or(|loaded| loaded.reads_without_writing())
}

/// No commit succeeds; reading does, if it must.
fn only_reads(session: &mut Session<'_>, must: bool) -> Result<(), String> {
    for _ in 0..3 {
        if let Answer::Done(_) = session.commit(100)? {
            return Err("a commit was acknowledged on a read-only file system".to_owned());
        }
        session.read(must)?;
    }
    Ok(())
}

fn turns_read_only(begun: &Begun, session: &mut Session<'_>) -> Result<(), String> {
    for _ in 0..4 {
        must(session.commit(1000)?, "before")?;
    }
    let trigger = format!("/sys/fs/ext4/{}/trigger_fs_error", begun.device.name());
    std::fs::write(trigger, "torture").map_err(|error| format!("asking ext4: {error}"))?;
    only_reads(session, true)
}

fn read_only(begun: &Begun, session: &mut Session<'_>, reads: bool) -> Result<(), String> {
    for _ in 0..4 {
        must(session.commit(1000)?, "before")?;
    }
    // The kernel refuses while the database is open for writing.
    match begun.mounted.remount(true) {
        Ok(()) => only_reads(session, reads)?,
        Err(error) if error.raw_os_error() == Some(Errno::EBUSY as i32) => {}
        Err(error) => return Err(format!("remounting: {error}")),
    }
    session.close();
    let remount = |read_only| {
        begun.mounted.remount(read_only).map_err(|error| format!("remounting: {error}"))
    };
    remount(true)?;
    only_reads(session, reads)?;
    session.close();
    remount(false)?;
    must(session.commit(1000)?, "when the file system was writable again")?;
    session.read(true)
}
