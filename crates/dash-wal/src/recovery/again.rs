//! What a killed process left in the caches looks like what is on the disk, and may be on none: it
//! is written again, so that a flush of it counts (WAL-11).

use super::look::Log;
use crate::connection::state::Connection;
use crate::mutation::{Mutation, broken};
use dash_engine::error::{Context, Operation, Result};
use dash_engine::io::read_padded;
use dash_engine::memory::zeros;
use dash_log::scan::Condition;
use dash_storage::{File, Storage};
use std::sync::Arc;

impl<S: Storage> Connection<S> {
    /// Writes what a killed process left in the caches, so that a flush of it counts.
    pub(super) fn write_again(
        &self,
        log: Option<&Log<S::File>>,
        wal: Option<&S::File>,
    ) -> Result<()> {
        if let Some(log) = log.filter(|_| !broken(Mutation::LogTrustedAfterKill)) {
            log.write_again()?;
        }
        // Also without a log: a flush of it may have failed, after which the pages look clean.
        let Some(wal) = wal else { return Ok(()) };
        self.write_header_again()?;
        let name = Arc::clone(self.names.shown_wal());
        let len = wal.metadata().during(Operation::Stat, &name)?.len;
        let mut at = 0;
        let mut buffer = zeros(len.min(1 << 20))?;
        while at < len && !broken(Mutation::WalNotRewritten) {
            let part = usize::try_from((len - at).min(1 << 20)).unwrap_or_default();
            read_padded(wal, &mut buffer[..part], at).during(Operation::Read, &name)?;
            wal.write_at(&buffer[..part], at).during(Operation::Write, &name)?;
            at += part as u64;
        }
        wal.flush().during(Operation::Flush, &name)
    }

    /// The same for the beginning of the database: a checkpoint's flush may have failed, and the
    /// log is going to say what the database is like, which is flushed before that. Whatever else
    /// of it is on no device is in `-wal`.
    fn write_header_again(&self) -> Result<()> {
        let mut sector = [0; 512];
        let len = self.database.read(&mut sector, 0)?;
        self.database.write(&sector[..len], 0)
    }
}

impl<F: File> Log<F> {
    /// Writes the head and the chain again, and flushes them.
    fn write_again(&self) -> Result<()> {
        if self.scan.condition == Condition::Whole {
            self.file.write_head(&self.scan.head)?;
        }
        self.scan.rewrite(&self.file)?;
        self.file.flush()
    }
}
