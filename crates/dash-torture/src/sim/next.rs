//! What programs share: contents to write, and calls that have to succeed.

use super::content::{Content, VALUES};
use super::explore::Violation;
use super::plan::Plan;
use crate::random::Dice;

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
