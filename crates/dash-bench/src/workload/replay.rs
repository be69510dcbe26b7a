//! Recorded SQL: each stream of a folder on a connection of its own, transaction after transaction.

use std::path::Path;

use rusqlite::Connection;

use super::session::{Session, Step, Worker, Workload};
use crate::failure::{Failure, Result};
use crate::recorded::{Recording, Transaction};

/// The workload.
pub struct Replay {
    recording: Recording,
    name: String,
}

impl Replay {
    /// From a folder.
    pub fn read(folder: &Path) -> Result<Self> {
        let name = folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned();
        let recording = Recording::read(folder)?;
        if recording.is_empty() {
            return Err(Failure::new(format!("{} has no statements", folder.display())));
        }
        Ok(Self { recording, name })
    }
}

impl Workload for Replay {
    fn about(&self) -> String {
        let streams = self.recording.streams.len();
        format!(
            "recorded SQL of {}: {} transactions on {streams} connection{}; where it sets values that were there already, SQLite writes nothing, and less than a flush per write is seen",
            self.name,
            self.recording.len(),
            if streams == 1 { "" } else { "s at the same time" }
        )
    }

    fn size(&self) -> u64 {
        16 << 20
    }

    fn steps(&self) -> Option<usize> {
        self.recording.streams.iter().map(Vec::len).max()
    }

    fn connections(&self) -> Option<usize> {
        Some(self.recording.streams.len())
    }

    fn block(&self) -> usize {
        100
    }

    fn build(&self, db: &Connection) -> Result<()> {
        // Statements of a recording may fail: its author's application lived with it.
        self.recording.load(db).map(drop)
    }

    fn session<'a>(&'a self, worker: &Worker<'a>) -> Result<Box<dyn Session + 'a>> {
        let stream = self.recording.streams.get(worker.index).map_or(&[][..], Vec::as_slice);
        Ok(Box::new(Running { db: worker.db()?, rest: stream.iter(), failures: 0 }))
    }
}

struct Running<'a> {
    db: &'a Connection,
    rest: std::slice::Iter<'a, Transaction>,
    failures: u64,
}

impl Session for Running<'_> {
    fn step(&mut self) -> Result<Step> {
        let Some(transaction) = self.rest.next() else { return Ok(Step::End) };
        let before = self.db.total_changes();
        for sql in transaction {
            let done = self.db.prepare(sql).and_then(|mut prepared| {
                let mut rows = prepared.query([])?;
                while rows.next()?.is_some() {}
                Ok(())
            });
            self.failures += u64::from(done.is_err());
        }
        Ok(if self.db.total_changes() == before { Step::Read } else { Step::Wrote })
    }

    fn failures(&self) -> u64 {
        self.failures
    }
}
