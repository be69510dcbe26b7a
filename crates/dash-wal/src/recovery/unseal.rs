//! Letting stock SQLite read a `-wal` that was in the memory of a process which died (WAL-45).

use super::look::raw_header;
use crate::connection::state::Connection;
use dash_engine::error::{Context, Operation, Result};
use dash_storage::{File, Storage};

impl<S: Storage> Connection<S> {
    /// The last thing that is done: it is whole by then.
    pub(super) fn unseal(&self) -> Result<()> {
        let name = self.names.shown_wal();
        let wal = self.find_wal()?;
        let Some(wal) = wal else { return Ok(()) };
        let Some(header) = raw_header(&wal, name)? else { return Ok(()) };
        wal.write_at(&header, 0).during(Operation::Write, name)?;
        wal.flush().during(Operation::Flush, name)
    }
}
