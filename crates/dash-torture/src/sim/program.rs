//! A program of any kind, run to its end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use super::explore::{Checked, Explorer, Seen, wrong};
use super::plan::{Kind, Plan};
use super::subject::Subject;
use super::{attached, many_processes, neighbours, sessions, sql, two_processes, wal};

/// Runs a case to its end.
pub fn run(
    subject: &'static dyn Subject,
    variant: &'static str,
    plan: &Plan,
    seen: &Arc<Mutex<Seen>>,
) -> Checked<()> {
    let explorer = Explorer::new(subject, variant, plan.clone(), Arc::clone(seen));
    let ran = catch_unwind(AssertUnwindSafe(|| match plan.kind {
        Kind::TwoProcesses => two_processes::run(&explorer),
        Kind::Sessions => sessions::run(&explorer),
        Kind::ManyProcesses => many_processes::run(&explorer),
        Kind::Attached => attached::run(&explorer),
        Kind::Sql => sql::run(&explorer),
        Kind::Neighbours => neighbours::run(&explorer),
        Kind::Wal => wal::run(&explorer),
    }));
    match ran {
        Ok(Ok(())) => explorer.result(),
        Ok(Err(violation)) => Err(explorer.result().err().unwrap_or(violation)),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            wrong!("a panic: {}", text.unwrap_or("without a word"))
        }
    }
}
