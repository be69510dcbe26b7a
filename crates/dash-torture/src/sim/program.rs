//! What all kinds of programs share: contents to write, and a run to its end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use super::content::{Content, VALUES};
use super::explore::{Checked, Explorer, Seen, Violation, wrong};
use super::plan::{Kind, Plan};
use super::subject::Subject;
use super::{attached, many_processes, neighbours, sessions, sql, two_processes, wal};
use crate::random::Dice;

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

/// A violation that a call which had to succeed is.
pub fn unexpected(what: &str, error: &impl std::fmt::Display) -> Violation {
    Violation(format!("{what}: {error}"))
}

/// What a transaction makes of a content: some pages changed, the database grown or cut.
pub fn next(mut content: Content, plan: &Plan, dice: &mut Dice) -> Content {
    let most = plan.pages();
    let value = |dice: &mut Dice| u32::try_from(1 + dice.below(VALUES - 1)).unwrap_or(1);
    match dice.below(6) {
        0 | 1 if content.len() < most => {
            let room = most - content.len();
            for _ in 0..=dice.below(room as u64 / if plan.is_large() { 1 } else { 2 }) {
                content.push(value(dice));
            }
        }
        2 if content.len() > 2 => {
            let keep = content.len() - 1 - dice.index(content.len() / 2);
            content.truncate(keep);
        }
        _ => {}
    }
    if content.is_empty() {
        content.push(1);
    }
    for _ in 0..=dice.below(3) {
        let at = dice.index(content.len());
        content[at] = value(dice);
    }
    content[0] = value(dice);
    if plan.is_large() && dice.one_in(2) {
        // Every second page: a list of many places.
        content.iter_mut().step_by(2).for_each(|page| *page = value(dice));
    } else if plan.page <= 1024 && dice.one_in(8) {
        // Scattered: more places than a sector of a block has room for.
        content.iter_mut().skip(1).step_by(2).for_each(|page| *page = value(dice));
    }
    content
}
