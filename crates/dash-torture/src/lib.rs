//! Proof of crash safety, engine by engine: what `dash-torture` runs and the tests run in
//! short.
//!
//! Four rings, a folder each: `sim` (every crash point on simulated storage), `fs` (real file
//! systems on a recording block device), `faults` (every storage call made to fail) and `kill`
//! (processes killed and stopped at random). They try the engines of the table in `engines`, a line
//! each; what only one engine has is in its folder, such as `shadow`. `deadly` kills a process at a
//! call, for `fs` and `kill`.

mod again;
pub mod aim;
mod deadly;
mod engine;
mod engines;
pub mod faults;
pub mod fs;
pub mod kill;
mod random;
pub mod shadow;
pub mod sim;
pub mod sqlite;
#[cfg(test)]
mod stock_wal;
#[cfg(test)]
mod toy;
pub mod variant;
pub mod wal;
pub mod worker;

use std::path::PathBuf;
use std::time::Duration;

/// A way to torture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ring {
    /// Simulated storage: power lost at every step, recoveries cut again.
    Sim,
    /// Real file systems: images rebuilt from a recording block device.
    Fs,
    /// Storage calls, and whole devices, that fail.
    Faults,
    /// Processes killed and stopped.
    Kill,
}

impl Ring {
    /// All of them, in the order in which they run.
    pub const ALL: [Self; 4] = [Self::Sim, Self::Fs, Self::Faults, Self::Kill];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sim => "sim",
            Self::Fs => "fs",
            Self::Faults => "faults",
            Self::Kill => "kill",
        }
    }
}

/// What to run, and for how long.
#[derive(Debug, Clone)]
pub struct Options {
    /// Seed of everything random. The same seed and the same build give the same cases.
    pub seed: u64,
    /// No case begins after this much time.
    pub time: Duration,
    /// Folder on the file system to be tried; `None`: a temporary one.
    pub folder: Option<PathBuf>,
    /// `libdash.so`, for the rings that load it into a stock SQLite.
    pub library: PathBuf,
    /// Which engine, or engine and variant: `shadow`, `shadow/paper`. `None`: all.
    pub engine: Option<String>,
    /// One case only, in the words of the ring's own [`Failure::replay`].
    pub case: Option<String>,
}

impl Options {
    /// Whether an engine, named as in [`Summary::engine`], is to be tried.
    pub fn wants(&self, engine: &str) -> bool {
        self.engine.as_deref().is_none_or(|wanted| {
            engine.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }
}

/// Something that must never happen, and how to see it again.
#[derive(Debug, Clone)]
pub struct Failure {
    /// What was wrong, in a sentence; more lines may tell the story.
    pub what: String,
    /// The command that repeats it.
    pub replay: String,
}

/// What a ring found for one engine.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// The engine, and its variant if it has some: `shadow/paper`.
    pub engine: String,
    /// Cases: programs, images, faults or rounds, as the ring counts.
    pub cases: u64,
    /// Distinct states that were recovered, told apart by a hash.
    pub states: u64,
    /// Of these, cut inside a recovery.
    pub nested: u64,
    /// Of these, cut inside the recovery of a recovery that was cut.
    pub nested_twice: u64,
    /// What else is worth knowing: one line each.
    pub notes: Vec<String>,
    /// What could not be run here, and why: one line each.
    pub skipped: Vec<String>,
    /// Of stock SQLite, by which the rig is measured: what became of it, and whether that was
    /// expected.
    pub calibration: Option<String>,
    /// What was wrong.
    pub failures: Vec<Failure>,
}

/// Is told how far a ring is, and says when to stop.
pub trait Watch: Sync {
    /// So many cases are done; `done` of 1 of the ring's work. `false`: stop as soon as possible.
    fn progress(&self, cases: u64, done: f64) -> bool;
}
