//! The engine `wal`: SQLite's own WAL mode, commits durable in a log beside it. What the rings ask
//! an engine is answered here; `bits` damages its files, `forged` has them lie, and `judge` tries
//! what its statements may be.

mod bits;
mod forged;
mod judge;
mod loaded;
mod subject;
mod texts;

pub use subject::Simulation;

use crate::engine::{Engine, Loaded};
use crate::faults::part::Part;
use crate::sim::subject::Subject;

/// The engine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wal;

const PARTS: &[Part] = &[
    Part { name: "bits", run: bits::run, worker: None },
    Part { name: forged::ROLE, run: forged::run, worker: Some(forged::worker) },
    Part { name: judge::ROLE, run: judge::run, worker: Some(judge::worker) },
    Part { name: forged::TOOLS, run: forged::run_tools, worker: Some(forged::tools_worker) },
];

impl Engine for Wal {
    fn subject(&self) -> &'static dyn Subject {
        &Simulation
    }

    fn loaded(&self) -> Option<&'static dyn Loaded> {
        Some(&loaded::Files)
    }

    fn parts(&self) -> &'static [Part] {
        PARTS
    }
}
