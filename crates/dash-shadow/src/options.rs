//! How to open a database.

use crate::format::Protocol;
use crate::tuning::Tuning;
use dash_engine::coordination::OPEN_PATIENCE;
use std::time::Duration;

/// How to open a database for reading and writing.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// Make an empty database if there is none.
    pub create: bool,
    /// Permission bits of a new database.
    pub permissions: u32,
    /// Flushes a commit makes.
    pub protocol: Protocol,
    /// How long somebody is waited for who opens, closes or recovers it.
    pub patience: Duration,
    /// Sizes.
    pub tuning: Tuning,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            create: true,
            permissions: 0o644,
            protocol: Protocol::Single,
            patience: OPEN_PATIENCE,
            tuning: Tuning::default(),
        }
    }
}
