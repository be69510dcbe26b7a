//! Databases that a killed process has left: a worker commits, and is killed before one of its
//! calls.

use std::io::{Read, Write};

use super::inject::{self, Effect, Fault, Injector};
use super::stage::Stage;
use super::workers::{Workers, explained};
use crate::again::{Assignment, Task};
use crate::faults::part::case_folder;
use crate::sqlite;

/// Its role.
pub const ROLE: &str = "casualty";

/// What the worker does until it is killed: opens, commits twice, rolls back, and goes on.
fn work(stage: &mut Stage) -> rusqlite::Result<()> {
    stage.open()?;
    for bytes in [100, 60_000, 100] {
        stage.commit(bytes)?;
        say(stage);
        stage.db().execute_batch("BEGIN IMMEDIATE")?;
        stage.write(-5, 100_000)?;
        stage.db().execute_batch("ROLLBACK")?;
    }
    stage.close()
}

/// Tells the driver which commits were acknowledged.
fn say(stage: &Stage) {
    let mut output = std::io::stdout();
    // If nobody listens nobody is waiting for it either.
    drop(writeln!(output, "acknowledged {}", stage.acknowledged).and_then(|()| output.flush()));
}

/// The worker: [`Task::slot`] is the call before which it is killed, [`Task::seed`] the newest
/// commit of the database.
pub fn worker(assignment: &Assignment) -> Result<(), String> {
    sqlite::load(&assignment.library)?;
    let folder = assignment.file.parent().ok_or("a database has a folder")?;
    let number = assignment.task.slot as u64;
    let injector = Injector::new(folder, Fault { effect: Effect::Kill, forever: false, number });
    let newest = i64::try_from(assignment.task.seed).map_err(|error| error.to_string())?;
    let Task { engine, parameters, .. } = &assignment.task;
    inject::run(
        &injector,
        || Stage { acknowledged: newest, begun: newest, ..Stage::new(folder, engine, parameters) },
        |mut stage, injector| {
            injector.arm(true);
            work(&mut stage).map_err(|error| format!("the casualty: {error}"))
        },
    )??;
    println!("calls {}", injector.seen(Effect::Kill));
    Ok(())
}

/// Lets a worker be killed before this call; what it said.
fn run(stage: &Stage, workers: &Workers<'_>, number: usize) -> Result<String, String> {
    let seed = u64::try_from(stage.acknowledged).unwrap_or_default();
    let Stage { engine, parameters, .. } = stage;
    let (engine, parameters) = (engine.clone(), parameters.clone());
    let task = Task { slot: number, seed, engine, parameters, ..Task::default() };
    let mut child = workers
        .again
        .command(ROLE, &stage.path, workers.library, &task)
        .spawn()
        .map_err(|error| format!("starting a worker: {error}"))?;
    let (mut said, mut words) = (String::new(), String::new());
    let pipes = (child.stdout.take(), child.stderr.take());
    if let (Some(mut output), Some(mut errors)) = pipes {
        let read = output.read_to_string(&mut said).and_then(|_| errors.read_to_string(&mut words));
        read.map_err(|error| format!("listening to a worker: {error}"))?;
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    let killed = std::os::unix::process::ExitStatusExt::signal(&status) == Some(libc::SIGKILL);
    if killed || status.success() {
        return Ok(said);
    }
    Err(format!("a worker ended with {status}: {}", words.trim()))
}

/// The number behind the last line that begins so.
fn number(said: &str, word: &str) -> Option<i64> {
    said.lines().rev().find_map(|line| line.trim().strip_prefix(word)?.trim().parse().ok())
}

/// Leaves the database as a process does that is killed after so many percent of its calls.
pub fn crash(stage: &mut Stage, workers: &Workers<'_>, percent: u8) -> Result<(), String> {
    use std::sync::Mutex;
    // How many calls there are in all is found out on a copy, once for each protocol.
    static KNOWN: Mutex<Vec<(String, usize)>> = Mutex::new(Vec::new());
    let known = || KNOWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let variant = format!("{}{}", stage.engine, stage.parameters);
    let found = known().iter().find(|(known, _)| *known == variant).map(|(_, calls)| *calls);
    let calls = match found {
        Some(calls) => calls,
        None => {
            let folder = case_folder(stage.path.parent())?;
            let mut other = Stage::new(folder.path(), &stage.engine, &stage.parameters);
            other
                .open()
                .and_then(|()| other.make())
                .and_then(|()| other.close())
                .map_err(|error| explained(&error))?;
            let said = run(&other, workers, usize::MAX)?;
            let calls = number(&said, "calls").ok_or("a worker did not count")?;
            let calls = usize::try_from(calls).map_err(|error| error.to_string())?;
            known().push((variant, calls));
            calls
        }
    };
    let said = run(stage, workers, calls * usize::from(percent) / 100)?;
    if let Some(acknowledged) = number(&said, "acknowledged") {
        stage.acknowledged = acknowledged;
    }
    stage.begun = stage.acknowledged + 1;
    Ok(())
}
