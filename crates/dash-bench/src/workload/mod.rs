//! What is run: one file per workload.
//!
//! A workload builds a database once; every row begins with a copy of it. A [`Session`] is what one
//! connection then does, one transaction a step.

mod androbench;
mod bulk;
mod cycles;
mod data;
mod duplication;
mod mixed;
mod mobibench;
mod partsupp;
mod reading;
mod replay;
mod session;
mod skew;

use std::sync::Arc;

use clap::ValueEnum;

use crate::failure::{Failure, Result};
pub use session::{Name, Session, Settings, Step, Worker, Workload};
pub use skew::Skew;

impl Settings {
    /// The workload.
    pub fn workload(&self) -> Result<Arc<dyn Workload>> {
        Ok(match self.name {
            Name::Insert | Name::Update | Name::Delete => Arc::new(mobibench::Mobibench::new(self)),
            Name::Androbench => Arc::new(androbench::Androbench),
            Name::RandomA => Arc::new(partsupp::Partsupp::new(1)),
            Name::RandomB => Arc::new(partsupp::Partsupp::new(2000)),
            Name::Cycles => Arc::new(cycles::Cycles::new(self)),
            Name::Bulk => Arc::new(bulk::Bulk),
            Name::Reads => Arc::new(reading::Points::new(self)),
            Name::Scans => Arc::new(reading::Scans::new(self)),
            Name::Mixed => Arc::new(mixed::Mixed::new(self)),
            Name::Duplication => Arc::new(duplication::Duplication::new(self)),
            Name::Replay => {
                let folder = self.replay.as_ref().ok_or_else(|| {
                    Failure::new("the workload replay needs a folder: --replay FOLDER")
                })?;
                Arc::new(replay::Replay::read(folder)?)
            }
        })
    }

    /// As arguments of the command that a worker is started by.
    pub fn arguments(&self) -> Vec<std::ffi::OsString> {
        let name = self.name.to_possible_value().map(|value| value.get_name().to_owned());
        let skew = self.skew.to_possible_value().map(|value| value.get_name().to_owned());
        let mut words: Vec<std::ffi::OsString> = Vec::new();
        let mut push = |key: &str, value: std::ffi::OsString| words.extend([key.into(), value]);
        push("--workload", name.unwrap_or_default().into());
        push("--operations", self.operations.to_string().into());
        push("--skew", skew.unwrap_or_default().into());
        push("--share", self.share.to_string().into());
        push("--busy", self.busy.to_string().into());
        if let Some(size) = self.size {
            push("--size", size.to_string().into());
        }
        if let Some(folder) = &self.replay {
            push("--replay", folder.into());
        }
        words
    }
}

#[cfg(test)]
mod tests;
