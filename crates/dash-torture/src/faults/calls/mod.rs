//! Every call of storage made to fail under every operation of an engine, on the simulated home:
//! what was acknowledged survives a power loss right then and later, and after a flush that failed
//! no later success stands on the pages that it lost.

mod operation;
mod run;
mod series;
mod story;

pub use run::run;
pub use series::Series;

use crate::sim::subject::Subject;

impl Series {
    /// Lets call `number` fail; whether there was one.
    ///
    /// # Errors
    ///
    /// What must never happen.
    pub fn run(&self, subject: &dyn Subject, number: u64) -> Result<bool, String> {
        story::run(subject, self, number)
    }
}
