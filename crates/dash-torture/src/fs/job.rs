//! What a worker is given to do, and what it answers.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::database::Opened;
use super::kind::Kind;
use crate::Failure;

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Task {
    /// Record the program of this seed, and try so many images of it.
    Images {
        /// The file system.
        kind: Kind,
        /// How databases are opened.
        opened: Opened,
        /// Of program and images.
        seed: u64,
        /// At most so many images.
        images: u64,
    },
    /// Devices that fail, fill up and turn read-only under an open database.
    Faults {
        /// The file system.
        kind: Kind,
        /// How databases are opened.
        opened: Opened,
        /// Of the program.
        seed: u64,
    },
    /// Look at a saved image again.
    Saved(PathBuf),
}

/// A task, and what holds for all.
#[derive(Debug, Clone)]
pub struct Job {
    /// What to do.
    pub task: Task,
    /// Milliseconds after which no image begins.
    pub time: u64,
    /// `libdash.so`.
    pub library: PathBuf,
    /// Where failing images are kept.
    pub keep: PathBuf,
}

/// What a job found.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// Images tried, told apart by a hash.
    pub hashes: Vec<u64>,
    /// Of these, cut inside a recovery, and inside the recovery of one that was cut.
    pub nested: (u64, u64),
    /// Images that lack an acknowledged commit.
    pub lost: u64,
    /// Images otherwise wrong.
    pub broken: u64,
    /// Faults tried.
    pub faults: u64,
    /// What must not be; of stock SQLite nothing is listed, only counted.
    pub failures: Vec<Failure>,
}

impl Task {
    /// As the engine and file system of a summary.
    pub fn name(&self) -> String {
        match self {
            Self::Images { kind, opened, .. } => format!("{}/{}", opened.name(), kind.name()),
            Self::Faults { kind, opened, .. } => {
                format!("{}/{}/faults", opened.name(), kind.name())
            }
            Self::Saved(_) => "saved image".to_owned(),
        }
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Images { kind, opened, seed, images } => json!({
                "images": images, "kind": kind.name(), "opened": opened.name(), "seed": seed,
            }),
            Self::Faults { kind, opened, seed } => json!({
                "kind": kind.name(), "opened": opened.name(), "seed": seed,
            }),
            Self::Saved(place) => json!({ "saved": place }),
        }
    }

    fn from_json(value: &Value) -> Option<Self> {
        if let Some(place) = value.get("saved") {
            return Some(Self::Saved(place.as_str()?.into()));
        }
        let kind = Kind::named(value.get("kind")?.as_str()?)?;
        let opened = Opened::named(value.get("opened")?.as_str()?)?;
        let seed = value.get("seed")?.as_u64()?;
        Some(match value.get("images").and_then(Value::as_u64) {
            Some(images) => Self::Images { kind, opened, seed, images },
            None => Self::Faults { kind, opened, seed },
        })
    }
}

impl Job {
    /// For the link.
    pub fn to_json(&self) -> Value {
        json!({
            "task": self.task.to_json(), "time": self.time,
            "library": self.library, "keep": self.keep,
        })
    }

    /// From the link.
    pub fn from_json(value: &Value) -> Option<Self> {
        Some(Self {
            task: Task::from_json(value.get("task")?)?,
            time: value.get("time")?.as_u64()?,
            library: value.get("library")?.as_str()?.into(),
            keep: value.get("keep")?.as_str()?.into(),
        })
    }
}

impl Found {
    /// For the link.
    pub fn to_json(&self) -> Value {
        let failures: Vec<_> =
            self.failures.iter().map(|failure| json!([failure.what, failure.replay])).collect();
        json!({
            "hashes": self.hashes, "nested": self.nested, "lost": self.lost,
            "broken": self.broken, "faults": self.faults, "failures": failures,
        })
    }

    /// From the link.
    pub fn from_json(value: &Value) -> Option<Self> {
        let number = |name: &str| value.get(name).and_then(Value::as_u64);
        let nested = value.get("nested")?;
        let failure = |pair: &Value| {
            let text = |index: usize| Some(pair.get(index)?.as_str()?.to_owned());
            Some(Failure { what: text(0)?, replay: text(1)? })
        };
        Some(Self {
            hashes: value.get("hashes")?.as_array()?.iter().filter_map(Value::as_u64).collect(),
            nested: (nested.get(0)?.as_u64()?, nested.get(1)?.as_u64()?),
            lost: number("lost")?,
            broken: number("broken")?,
            faults: number("faults")?,
            failures: value.get("failures")?.as_array()?.iter().filter_map(failure).collect(),
        })
    }
}
