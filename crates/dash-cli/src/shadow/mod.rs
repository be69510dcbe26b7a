//! What this program knows of mode shadow: what its files are (`inspect`), what its connections do
//! (`watch`), and what to do after a crash (`recover`).

mod inspect;
mod recover;
mod watch;

use std::path::Path;

use dash_shadow::Report;
use dash_shadow::inspect::Opening;
use dash_storage::real::Real;
use serde_json::Value;

use crate::engine::{Engine, Findings};
use crate::failure::{Explain, Failure, Result, in_one_line};
use crate::interrupt::Interrupt;
use crate::out::Shown;
use crate::recover::plan::Reply;
use inspect::{Holders, json, text, words};

/// For the table of engines.
pub const ENGINE: Engine = Engine {
    name: "shadow",
    files: &["-shadow"],
    claims: |_| false,
    first_commit: "making the second copy",
    keep: &recover::KEEP,
    look,
    watch: watch::watch,
};

/// What was found, and who holds locks on it.
struct Found {
    report: Report,
    holders: Vec<Holders>,
}

fn look(path: &Path) -> Result<Box<dyn Findings>> {
    let mut report =
        dash_shadow::inspect(&Real, path).explain(format!("looking at {}", path.shown()))?;
    if report.database.is_none() && report.shadow.is_none() {
        return Err(Failure::new(format!(
            "{} does not exist, nor does a shadow of it",
            path.shown()
        )));
    }
    if let Opening::Refuse(_, message) = &mut report.opening {
        *message = in_one_line(message);
    }
    let holders = inspect::holders_of(path, &report);
    Ok(Box::new(Found { report, holders }))
}

impl Findings for Found {
    fn print(&self) {
        text::print(&self.report, &self.holders);
    }

    fn json(&self) -> Value {
        json::report(&self.report, &self.holders)
    }

    fn opening(&self) -> String {
        words::opening(&self.report)
    }

    fn is_open(&self) -> bool {
        self.report.open
    }

    fn is_cut_off(&self) -> bool {
        recover::needs_recovery(&self.report)
    }

    fn is_refused(&self) -> bool {
        matches!(
            self.report.opening,
            Opening::Refuse(..)
                | Opening::OtherFormat(_)
                | Opening::HardLinks(_)
                | Opening::Replaced(_)
        )
    }

    fn has_database(&self) -> bool {
        self.report.database.is_some()
    }

    fn is_used(&self) -> bool {
        self.report.shadow.is_some()
    }

    fn has_left_anything(&self) -> bool {
        let Report { shadow, beside, .. } = &self.report;
        shadow.is_some() || beside.fence || beside.coordination
    }

    fn recovery(&self, file: &Path, keep: Option<&str>, interrupt: &Interrupt) -> Result<Reply> {
        recover::reply(file, &self.report, keep, interrupt)
    }
}
