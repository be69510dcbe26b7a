//! Which of the two files is kept, and how it is taken as it is.

use std::path::Path;

use dash_storage::real::Real;

use crate::failure::Explain;
use crate::out::Shown;
use crate::recover::plan::Step;

pub const DATABASE: &str = "database";
pub const SHADOW: &str = "shadow";

/// One of the two files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    Database,
    Shadow,
}

impl Keep {
    pub fn named(name: &str) -> Option<Self> {
        match name {
            DATABASE => Some(Self::Database),
            SHADOW => Some(Self::Shadow),
            _ => None,
        }
    }
}

/// The step that takes a file as it is.
pub fn forget(file: &Path) -> Step {
    let by = |file: &Path| {
        dash_shadow::forget(&Real, file).explain(format!("taking {} as it is", file.shown()))
    };
    Step::Forget { file: file.to_owned(), by }
}
