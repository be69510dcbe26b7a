//! What is known of a database while it is at rest: what the engines had counted that are closed,
//! and what it is told by when it is opened again.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::SystemTime;

use super::engine::{Counter, Identity, Rollback};

/// What is known of the database at rest.
#[derive(Default)]
pub struct Left {
    /// What was counted by the engines that are closed.
    statistics: Vec<Counter>,
    /// The number of the newest commit.
    pub sequence: u64,
    identity: Identity,
    files: Vec<Known>,
    /// How often it has come to rest.
    pub rests: u64,
}

/// A file, among all that ever had its inode.
#[derive(PartialEq, Eq)]
struct Known {
    device: u64,
    inode: u64,
    born: SystemTime,
}

/// The files of the database at `path`, as far as it can be told which these are.
fn known<E: Rollback>(path: &Path) -> Vec<Known> {
    let look = |path: &Path| {
        let found = path.metadata().ok()?;
        Some(Known { device: found.dev(), inode: found.ino(), born: found.created().ok()? })
    };
    let more = E::MODE.files_beside(path).filter_map(|name| look(&path.with_file_name(name)));
    look(path).into_iter().chain(more).collect()
}

impl Left {
    /// Whether that is the same state.
    pub fn is_state(&self, found: &Identity) -> bool {
        found.commit != 0 && found.commit == self.identity.commit
    }

    /// Whether that is surely the same database, in whatever state: one of dash's that goes on from
    /// this one, or a file that was this one's before and may have been written by anybody since.
    /// Where stock SQLite and dash have written in turns it may be, and can't be told.
    pub fn is_of<E: Rollback>(&self, found: &Identity, path: &Path) -> bool {
        self.is_state(found)
            || (found.database != 0 && found.database == self.identity.database)
            || known::<E>(path).iter().any(|file| self.files.contains(file))
    }

    /// It is read without an engine, so SQLite caches what nothing is known of but the files.
    /// Whether it may be another database than before.
    pub fn is_read<E: Rollback>(&mut self, path: &Path) -> bool {
        let files = known::<E>(path);
        let is_another = !files.iter().any(|file| self.files.contains(file));
        (self.identity, self.files) = (Identity::default(), files);
        is_another
    }

    /// Adds what was counted.
    pub fn add_to(&self, rows: &mut Vec<Counter>) {
        add(rows, &self.statistics);
    }

    /// What is to be known of an engine that is about to be closed.
    pub fn note<E: Rollback>(&mut self, engine: &E, path: &Path) {
        self.identity = engine.identity();
        self.sequence = engine.sequence();
        self.files = known::<E>(path);
        self.rests += 1;
        let (mut statistics, _) = engine.counters();
        add(&mut statistics, &self.statistics);
        self.statistics = statistics;
    }
}

/// Adds counters of the same names.
fn add(to: &mut Vec<Counter>, more: &[Counter]) {
    if to.is_empty() {
        to.extend_from_slice(more);
        return;
    }
    for ((_, sum), (_, value)) in to.iter_mut().zip(more) {
        *sum += value;
    }
}
