//! Letting stock SQLite read a `-wal` that was in the memory of a process which died (WAL-45).

use super::Recovery;
use super::look::raw_header;
use dash_engine::error::{Context, Operation, Result};
use dash_storage::{File, Storage};

impl<S: Storage> Recovery<'_, S> {
    /// The last thing that is done: it is whole by then.
    pub(super) fn unseal(&self) -> Result<()> {
        let name = self.files.names.shown_wal();
        let wal = self.wal.find(self.files)?;
        let Some(wal) = wal else { return Ok(()) };
        let Some(header) = raw_header(&wal, name)? else { return Ok(()) };
        wal.write_at(&header, 0).during(Operation::Write, name)?;
        wal.flush().during(Operation::Flush, name)
    }
}
