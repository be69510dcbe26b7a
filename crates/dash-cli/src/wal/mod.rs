//! What this program knows of mode wal: what its files are (`inspect`), what its connections do
//! (`watch`), and what to do after a crash (`recover`).

mod inspect;
mod recover;
mod watch;

use std::path::Path;

use dash_storage::real::Real;
use dash_wal::Report;
use dash_wal::inspect::Opening;
use serde_json::Value;

use crate::engine::{Engine, Findings, sidecar};
use crate::failure::{Explain, Failure, Result, in_one_line};
use crate::interrupt::Interrupt;
use crate::out::Shown;
use crate::recover::plan::Reply;
use inspect::{Holders, json, text, words};

/// For the table of engines.
pub const ENGINE: Engine = Engine {
    name: "wal",
    files: &["-dashlog"],
    claims: is_in_wal_mode,
    first_commit: "putting it into WAL mode",
    keep: &recover::KEEP,
    look,
    watch: watch::watch,
};

/// What was found, and who holds locks on it.
struct Found {
    report: Report,
    holders: Vec<Holders>,
}

/// Whether SQLite's header says so; then it is opened in this mode, whatever lies beside it. One
/// that is empty or gone had it, where its `-wal` holds anything.
fn is_in_wal_mode(path: &Path) -> bool {
    let len = |path: &Path| path.metadata().map_or(0, |found| found.len());
    if len(path) == 0 {
        return len(&sidecar(path, "-wal")) > 0;
    }
    let mut start = [0; 20];
    let read = std::fs::File::open(path)
        .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut start));
    read.is_ok() && start.starts_with(b"SQLite format 3\0") && start[18..] == [2, 2]
}

fn look(path: &Path) -> Result<Box<dyn Findings>> {
    let mut report =
        dash_wal::inspect(&Real, path).explain(format!("looking at {}", path.shown()))?;
    if report.database.is_none() && report.log.is_none() && report.wal.is_none() {
        return Err(Failure::new(format!("{} does not exist, nor does a log of it", path.shown())));
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
        recover::is_cut_off(&self.report)
    }

    fn is_refused(&self) -> bool {
        // That somebody has it open (`Opening::Held`) passes, as a lock does.
        matches!(self.report.opening, Opening::Refuse(..) | Opening::HardLinks(_))
    }

    fn has_database(&self) -> bool {
        self.report.database.is_some()
    }

    fn is_used(&self) -> bool {
        self.report.log.is_some()
    }

    fn has_left_anything(&self) -> bool {
        let Report { wal, log, fence, coordination, .. } = &self.report;
        wal.is_some() || log.is_some() || *fence || coordination.is_some()
    }

    fn recovery(&self, file: &Path, keep: Option<&str>, _: &Interrupt) -> Result<Reply> {
        recover::reply(file, &self.report, keep)
    }
}
