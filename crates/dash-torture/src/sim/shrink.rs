//! Makes a failing case smaller, so that its story is short: fewer cuts, fewer actions.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::explore::{Seen, Violation};
use super::plan::Plan;
use super::program::run;
use super::subject::Subject;

/// No smaller case is tried after this time.
const PATIENCE: Duration = Duration::from_secs(20);

/// A case that fails, as small as could be found, and what is wrong with it.
pub fn shrink(
    subject: &'static dyn Subject,
    variant: &'static str,
    plan: Plan,
    violation: Violation,
) -> (Plan, Violation) {
    let begun = Instant::now();
    let seen = Arc::new(Mutex::new(Seen::default()));
    let (mut best, mut what) = (plan, violation);
    loop {
        let mut found = None;
        for smaller in smaller(&best) {
            if begun.elapsed() >= PATIENCE {
                return (best, what);
            }
            if let Err(violation) = run(subject, variant, &smaller, &seen) {
                found = Some((smaller, violation));
                break;
            }
        }
        match found {
            Some((plan, violation)) => (best, what) = (plan, violation),
            None => return (best, what),
        }
    }
}

/// What a case may be reduced to, the most daring first.
fn smaller(plan: &Plan) -> Vec<Plan> {
    let mut all = Vec::new();
    if plan.depth > 1 {
        all.push(Plan { depth: plan.depth - 1, ..plan.clone() });
    }
    let count = plan.keep.len();
    let mut part = count.div_ceil(2);
    while part > 0 && count > 1 {
        for start in (0..count).step_by(part).rev() {
            let keep = plan.keep[..start].iter().chain(plan.keep.iter().skip(start + part));
            let keep: Vec<_> = keep.copied().collect();
            if !keep.is_empty() {
                all.push(Plan { keep, ..plan.clone() });
            }
        }
        part /= 2;
    }
    if plan.fates > 1 {
        all.push(Plan { fates: plan.fates / 2, ..plan.clone() });
    }
    all
}
