//! What `sqlite-dash recover` does about the two files: `plan` where one at least is whole, with
//! `age` for what a shadow lacks; `torn` for files that are no whole state.

mod age;
mod keep;
mod plan;
mod torn;

use std::path::Path;

use dash_shadow::Report;
use dash_shadow::inspect::{Action, DbKind, Opening, ShadowKind};

use super::inspect::words;
use crate::failure::Result;
use crate::interrupt::Interrupt;
use crate::out::Shown;
use crate::recover::plan::Reply;
use keep::{DATABASE, Keep, SHADOW};

/// What `--keep` can be given.
pub const KEEP: [(&str, &str); 2] =
    [(DATABASE, "What is named FILE"), (SHADOW, "What is named FILE-shadow")];

/// What to do.
pub fn reply(
    file: &Path,
    report: &Report,
    keep: Option<&str>,
    interrupt: &Interrupt,
) -> Result<Reply> {
    let shown = file.shown();
    if let Some(other) = keep.filter(|keep| Keep::named(keep).is_none()) {
        return Ok(Reply::Tell(format!(
            "nothing was done: {shown} has no {other}, as it is in mode shadow: --keep database, or --keep shadow"
        )));
    }
    let keep = keep.and_then(Keep::named);
    match (&report.opening, keep) {
        _ if needs_recovery(report) => {}
        (_, Some(keep)) => {
            return Ok(Reply::Tell(format!("nothing was done: {}", not_a_choice(keep, file))));
        }
        (Opening::Row(..), None) if report.verdict.db == DbKind::Cut => {
            return Ok(Reply::Tell(format!(
                "{shown} is shorter than its header says, and no shadow holds the rest; restore a backup"
            )));
        }
        (_, None) => {
            return Ok(Reply::Nothing(format!(
                "{shown} needs no recovery: opening it {}; for damage that no crash of dash made, PRAGMA integrity_check looks",
                words::opening(report)
            )));
        }
    }
    match &report.opening {
        Opening::Refuse(refusal, _) if torn::is_for(*refusal, keep) => {
            torn::plan(file, *refusal, keep, interrupt)
        }
        _ => plan::plan(file, report, keep, interrupt),
    }
}

/// Whether opening the database would do more than open it.
pub fn needs_recovery(report: &Report) -> bool {
    match &report.opening {
        Opening::Join => false,
        Opening::Row(Action::Create, _) => false,
        Opening::Row(Action::CreateAfresh | Action::UseShadow | Action::KeepUndo, _) => true,
        Opening::Row(..) => report.beside.fence || report.verdict.shadow == ShadowKind::Torn,
        _ => true,
    }
}

/// Why there is nothing to choose between, and what to do about damage.
fn not_a_choice(keep: Keep, file: &Path) -> String {
    let shown = file.shown();
    match keep {
        Keep::Database => format!("opening {shown} keeps it as it is, without --keep"),
        Keep::Shadow => format!(
            "by what dash keeps a record of, {shown} is whole and {shown}-shadow is an older state of it. If PRAGMA integrity_check \
             finds {shown} damaged, copy {shown}-shadow under another name before anything opens {shown} again, and \
             look with `sqlite-dash shell` what that copy holds"
        ),
    }
}
