//! Neither file is a whole state: damage that no crash of dash alone explains. Both are looked at
//! as SQLite would see them, and the person decides.

use std::path::Path;

use dash_shadow::inspect::Refusal;

use super::keep::{Keep, forget};
use crate::engine::sidecar;
use crate::failure::{Failure, Result};
use crate::integrity::{Verdict, check_untouched};
use crate::interrupt::Interrupt;
use crate::out::Shown;
use crate::recover::plan::{Plan, Reply, Step, free_name};

/// Whether what is refused so is looked at here.
pub fn is_for(refusal: Refusal, keep: Option<Keep>) -> bool {
    match refusal {
        Refusal::BothTorn | Refusal::TornCopy => true,
        Refusal::Cut => keep == Some(Keep::Database),
        _ => false,
    }
}

/// Copies both aside; with `keep`, makes the database anew from that one.
pub fn plan(
    file: &Path,
    refusal: Refusal,
    keep: Option<Keep>,
    interrupt: &Interrupt,
) -> Result<Reply> {
    let shadow = sidecar(file, "-shadow");
    let mut why = match refusal {
        Refusal::TornCopy => {
            format!("{} is a copy that was made while the database was written.", file.shown())
        }
        Refusal::Cut => format!("{} is shorter than its header says.", file.shown()),
        _ => format!("Neither {} nor its shadow is the state after a commit.", file.shown()),
    };
    for copy in [file, &shadow].into_iter().filter(|copy| copy.exists()) {
        let found = match check_untouched(copy, interrupt)? {
            Verdict::Whole => "integrity_check: ok, but it may mix two states".into(),
            Verdict::Damaged(lines) => format!("integrity_check: {lines}"),
            Verdict::Interrupted => return Err(Failure::new("stopped; nothing was done")),
        };
        why.push_str(&format!("\n{}: {found}", copy.shown()));
    }
    let there = |copy: &Path| copy.exists();
    let copied = |copy: &Path| Step::Copy { from: copy.to_owned(), to: free_name(copy) };
    let mut steps = Vec::new();
    if there(file) {
        steps.push(copied(file));
    }
    match keep {
        None => {
            if there(&shadow) {
                steps.push(copied(&shadow));
            }
            why.push_str(
                "\nThe sure way is a backup. To go on with one of the two, add `--keep database` or `--keep shadow`. Until then:",
            );
        }
        Some(keep) => {
            let from = if keep == Keep::Database { file.to_owned() } else { shadow.clone() };
            steps.push(Step::Rewrite { from, to: file.to_owned() });
            if there(&shadow) {
                steps.push(Step::Rename { from: shadow.clone(), to: free_name(&shadow) });
            }
            // With it goes the name fence.
            steps.push(forget(file));
            steps.push(Step::Open {
                file: file.to_owned(),
                does: "takes the new file and makes a new shadow before the next commit".into(),
            });
        }
    }
    Ok(Reply::Do(Plan { why, steps }))
}
