//! Commits that their statements carry: what runs them again where a power loss took their frames.
//!
//! The engine knows neither SQL nor SQLite. Whoever opens a database hands it an [`Execute`], which
//! gets the pages of the database as of one commit, and says which pages each of the next ones
//! writes. The engine puts these into `-wal` as frames (WAL-34).
//!
//! The source is SQLite/SSL (VLDB 2017), section 5: recovery runs the log's statements again.

use dash_engine::error::Result;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

/// What runs statements: only the same one provably comes to the same pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Runner {
    /// SQLite's version, such as 3045001.
    pub version: u32,
    /// Of its source id and the options that it was built with, a checksum.
    pub build: u64,
}

impl Runner {
    /// For a word of the coordination file: another one of others.
    pub(crate) fn word(self) -> u64 {
        self.build ^ u64::from(self.version).rotate_left(32)
    }
}

impl fmt::Display for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = (self.version / 1_000_000, self.version / 1000 % 1000);
        write!(f, "SQLite {major}.{minor}.{} (build {:016x})", self.version % 1000, self.build)
    }
}

/// A database by pages, as of a commit.
pub trait Pages: Send {
    /// Bytes of a page.
    fn page_size(&self) -> u32;

    /// How many there are.
    fn count(&self) -> u32;

    /// A page by its number from 1; behind the last one zeros.
    ///
    /// # Errors
    ///
    /// Those of the files.
    fn read(&mut self, number: u32) -> Result<Vec<u8>>;

    /// The next commit: the pages that it wrote, if any, and how many there are behind it. From
    /// here on they are read.
    ///
    /// # Errors
    ///
    /// Those of the files.
    fn commit(&mut self, pages: &BTreeMap<u32, Vec<u8>>, count: u32) -> Result<()>;
}

/// Runs statements.
pub trait Execute: fmt::Debug + Send + Sync {
    /// What it runs them with.
    fn runner(&self) -> Runner;

    /// Runs what commits ran, one after the other, each as `dash-statement` encodes it, and commits
    /// each to `pages`.
    ///
    /// # Errors
    ///
    /// Why it could not; those of `pages`.
    fn execute(&self, pages: &Arc<Mutex<dyn Pages>>, commits: &[Vec<u8>]) -> Result<()>;
}
