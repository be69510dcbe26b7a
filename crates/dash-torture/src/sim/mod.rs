//! Ring `sim`: programs of transactions on simulated storage, the power cut at every step, every
//! recovery checked against a model and cut again.

mod attached;
pub mod content;
mod crowd;
mod explore;
mod model;
mod neighbours;
mod pair;
pub mod plan;
mod program;
mod ring;
mod sessions;
mod shadow;
mod shrink;
mod sql;
pub mod subject;

pub use explore::{Seen, Violation};
pub use program::run as run_case;
pub use ring::{run, run_on, targets};
pub use shadow::Shadow;
