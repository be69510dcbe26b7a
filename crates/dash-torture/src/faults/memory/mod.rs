//! Every allocation of SQLite made to fail under every operation: `SQLITE_NOMEM`, and a sound
//! database. Runs in a process of its own, whose SQLite has another allocator.

mod allocator;

use std::io::{BufRead, BufReader, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use rusqlite::ffi;

use super::part::{FEWEST, GoOn, case_folder, failed, shuffle};
use super::sql::operation::{self, Operation};
use super::sql::said::Said;
use super::sql::stage::Stage;
use super::sql::verdict::sound_again;
use crate::again::{Again, Assignment, Task};
use crate::engine::Engine;
use crate::sqlite::Wrong;
use crate::{Options, Summary, sqlite};

/// Its role.
pub const ROLE: &str = "memory";
/// A number that no allocation has.
const NEVER: u64 = u64::MAX;

#[derive(Clone, Copy)]
struct Case {
    operation: &'static Operation,
    forever: bool,
    number: u64,
}

impl Case {
    fn name(&self) -> String {
        let forever = if self.forever { "ever" } else { "once" };
        format!("memory/{}/{forever}/{}", self.operation.name, self.number)
    }

    /// Runs it; how many allocations there were.
    fn run(&self, folder: &Path, task: &Task) -> Result<u64, String> {
        let mut stage = Stage::new(folder, &task.engine, &task.parameters);
        (self.operation.before)(&mut stage)
            .map_err(|error| format!("before: {error}; {}", sqlite::last_error()))?;
        allocator::arm(self.number, self.forever);
        let acted = catch_unwind(AssertUnwindSafe(|| (self.operation.act)(&mut stage)));
        let seen = allocator::disarm();
        match acted {
            // The binding may not know how to go on without memory; that is its own affair.
            Err(_) => stage.db = None,
            Ok(Err(Wrong::Content(what))) => return Err(format!("without memory: {what}")),
            Ok(Err(Wrong::Sql(error))) => judge(&Said::of(&error))?,
            Ok(Ok(())) => {}
        }
        super::sql::go_on(&mut stage)?;
        // Errors of closing have no business here any more, and the next opening would tell.
        drop(stage.close());
        sound_again(&mut stage)?;
        Ok(seen)
    }
}

/// Whether an error is one that lack of memory leads to.
fn judge(said: &Said) -> Result<(), String> {
    let fitting = [ffi::SQLITE_NOMEM, ffi::SQLITE_IOERR_NOMEM];
    // 0: the binding's own error.
    if !said.is_panic() && (fitting.contains(&said.code) || said.code == 0) {
        return Ok(());
    }
    Err(format!("not SQLITE_NOMEM: {said:?}"))
}

/// The worker. [`Task::seed`] is that of the order.
pub fn worker(assignment: &Assignment) -> Result<(), String> {
    allocator::install()?;
    sqlite::load(&assignment.library)?;
    std::panic::set_hook(Box::new(|_| {})); // the binding's panics are expected
    let parent = assignment.file.parent();
    let mut cases = Vec::new();
    for operation in operation::ALL.iter().filter(|operation| operation.crash.is_none()) {
        let dry = Case { operation, forever: false, number: NEVER };
        let folder = case_folder(parent)?;
        let seen = dry
            .run(folder.path(), &assignment.task)
            .map_err(|what| format!("{}: {what}", dry.name()))?;
        for forever in [false, true] {
            cases.extend((0..seen).map(|number| Case { operation, forever, number }));
        }
    }
    say(&format!("all {}", cases.len()))?;
    let wanted = &assignment.task.case;
    if !wanted.is_empty() {
        cases.retain(|case| case.name() == *wanted);
    }
    shuffle(&mut cases, assignment.task.seed);
    for case in cases {
        say(&format!("case {}", case.name()))?;
        let folder = case_folder(parent)?;
        case.run(folder.path(), &assignment.task)
            .map_err(|what| format!("{}: {what}", case.name()))?;
    }
    Ok(())
}

fn say(line: &str) -> Result<(), String> {
    let mut output = std::io::stdout();
    writeln!(output, "{line}").and_then(|()| output.flush()).map_err(|error| error.to_string())
}

/// The part: starts workers until the time is over, another one after each failure.
pub fn run(
    engine: &'static dyn Engine,
    options: &Options,
    again: &Again,
    summary: &mut Summary,
    go_on: &mut GoOn<'_>,
) {
    let parent = match case_folder(options.folder.as_deref()) {
        Ok(parent) => parent,
        Err(reason) => return summary.skipped.push(reason),
    };
    let file = parent.path().join("app.db");
    // One variant does: what needs memory is the same in all.
    let parameters = engine.loaded_variants().first().map_or("", |(_, uri)| uri);
    let mut all = 0;
    for seed in options.seed.. {
        let case = options.case.clone().unwrap_or_default();
        let (engine, parameters) = (engine.name().to_owned(), parameters.to_owned());
        let task = Task { slot: 0, seed, engine, parameters, case };
        let started = again.command(ROLE, &file, &options.library, &task).spawn();
        let mut child = match started {
            Ok(child) => child,
            Err(error) => return summary.skipped.push(format!("starting a worker: {error}")),
        };
        let mut case = String::from("before the first case");
        let mut time_is_over = false;
        for line in
            child.stdout.take().into_iter().flat_map(|output| BufReader::new(output).lines())
        {
            let Ok(line) = line else { break };
            if let Some(count) = line.strip_prefix("all ") {
                all = count.parse().unwrap_or(all);
            }
            if let Some(name) = line.strip_prefix("case ") {
                case = name.to_owned();
                summary.cases += 1;
                let in_time = go_on();
                if !in_time && summary.cases >= FEWEST {
                    time_is_over = true;
                    drop(child.kill());
                    break;
                }
            }
        }
        let ended = child.wait();
        if time_is_over || ended.as_ref().is_ok_and(std::process::ExitStatus::success) {
            break;
        }
        let mut words = String::new();
        if let Some(mut errors) = child.stderr.take() {
            // Without words the status has to do.
            drop(errors.read_to_string(&mut words));
        }
        let what = format!("a worker ended ({ended:?}): {}", words.trim());
        if failed(summary, &what, &case) || options.case.is_some() {
            break;
        }
    }
    summary.notes.push(format!("{} of {all} allocations made to fail", summary.cases));
}
