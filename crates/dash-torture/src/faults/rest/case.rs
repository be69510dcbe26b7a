//! A case of coming to rest, and what its process has said.

use std::process::ExitStatus;

use super::story::{ROLE, Story};
use crate::faults::sql::inject::Fault;
use crate::variant::Variant;

/// A case.
#[derive(Clone, Copy)]
pub struct Case {
    /// How it comes to rest.
    pub story: Story,
    /// The engine's name.
    pub engine: &'static str,
    /// The variant, and its URI parameters.
    pub variant: (&'static Variant, &'static str),
    /// What fails.
    pub fault: Fault,
}

/// What a process has said, and how it ended.
pub struct Ended {
    /// On standard output.
    pub said: String,
    /// On standard error.
    pub errors: String,
    /// How it ended.
    pub status: ExitStatus,
}

impl Ended {
    /// What stands behind the lines that begin so, the last one first.
    pub fn lines<'a>(&'a self, word: &'a str) -> impl Iterator<Item = &'a str> {
        self.said.lines().rev().filter_map(move |line| line.strip_prefix(word)).map(str::trim)
    }

    /// The number behind the last one.
    pub fn number(&self, word: &str) -> Option<i64> {
        self.lines(word).next()?.parse().ok()
    }

    /// How many calls came that each of [`EFFECTS`] may befall.
    pub fn seen(&self) -> Vec<u64> {
        let counts = self.lines("seen").next().unwrap_or_default();
        counts.split(' ').filter_map(|count| count.parse().ok()).collect()
    }
}

impl Case {
    /// In words, as in `--case`.
    pub fn name(&self) -> String {
        let (Variant { name: variant, .. }, _) = self.variant;
        format!("{ROLE}/{}/{variant}/{}", self.story.name(), self.fault.name())
    }
}
