//! Flushes of the two files and of their folder, counted, and what is known of the current copy's.

use crate::connection::state::Connection;
use crate::mutation::{Mutation, broken};
use crate::shared::durability::Durability;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_storage::{Directory, File, Storage};

impl<S: Storage> Connection<S> {
    /// What was found is flushed now.
    pub(crate) fn found_flushed(&self) {
        if self.pair.coordination.durability() == Durability::Unproven {
            self.pair.coordination.set_durability(Durability::Flushed);
        }
    }

    /// SHADOW-17: makes the current copy durable if it may not be. SQLite's next commit with
    /// synchronous=FULL makes durable what came before it under OFF, and recovery knows a commit by
    /// the one that it was made on. What a flush failed to write may be clean in the cache, so it
    /// is not tried again.
    pub(crate) fn flush_current(&mut self) -> Result<()> {
        let slot = self.view.current.slot;
        match self.pair.coordination.durability() {
            Durability::Flushed => return Ok(()),
            _ if broken(Mutation::UnflushedBuiltOn) => return Ok(()),
            Durability::Lost => {
                return Err(Error::Poisoned(
                    "what was committed with synchronous=OFF could not be flushed; close all connections, \
                     and check the disk and the last changes"
                        .into(),
                ));
            }
            Durability::Unproven if broken(Mutation::FoundBelievedDurable) => return Ok(()),
            Durability::Unknown | Durability::Unproven => {}
        }
        if let Err(error) = self.flush_file(slot) {
            self.pair.coordination.set_durability(Durability::Lost);
            return Err(error);
        }
        self.pair.coordination.set_durability(Durability::Flushed);
        self.pair.coordination.set_flushed(slot, true);
        Ok(())
    }

    /// Makes directory operations durable.
    pub(crate) fn flush_directory(&mut self) -> Result<()> {
        self.statistics.directory_flushes += 1;
        self.pair.directory.flush().during(Operation::FlushDirectory, self.pair.names.shown())
    }

    /// Makes the file in `slot` durable.
    pub(crate) fn flush_file(&mut self, slot: usize) -> Result<()> {
        self.statistics.flushes += 1;
        let file = self.pair.file(slot)?;
        let flushed = match file.flush() {
            Err(_) if broken(Mutation::FailedFlushRetried) => file.flush(),
            flushed => flushed,
        };
        flushed.during(Operation::Flush, self.role(slot))
    }
}
