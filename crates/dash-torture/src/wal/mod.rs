//! The engine `wal`: SQLite's own WAL mode, commits durable in a log beside it. What the rings ask
//! an engine is answered here; `bits` damages its files.

mod bits;
mod loaded;
mod subject;

pub use subject::Simulation;

use crate::engine::{Engine, Loaded};
use crate::faults::part::Part;
use crate::sim::subject::Subject;

/// The engine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wal;

const PARTS: &[Part] = &[Part { name: "bits", run: bits::run, worker: None }];

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
