//! The engine `shadow`: two copies, one flush, names exchanged. What the rings ask an engine is
//! answered here, and what only this engine has is damaged here: its blocks, and the memory that
//! its connections share.

mod blocks;
mod loaded;
mod scribble;
mod subject;

pub use blocks::damage_on;
pub use subject::Simulation;

use crate::engine::{Engine, Loaded};
use crate::faults::part::Part;
use crate::sim::subject::Subject;

/// The engine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Shadow;

const PARTS: &[Part] = &[
    Part { name: "damage", run: blocks::damage_part, worker: None },
    Part { name: "forged", run: blocks::forged_part, worker: None },
    Part { name: "decode", run: blocks::decode_part, worker: None },
    Part { name: scribble::ROLE, run: scribble::run, worker: Some(scribble::worker) },
];

impl Engine for Shadow {
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
