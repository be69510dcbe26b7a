//! `-wal`, below SQLite's WAL mode.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use dash_ffi::{Code, DeviceCharacteristics, File, Result, SyncFlags};
use dash_wal::Said;

use super::shared::{Shared, engine};
use crate::sim::subject::World;

/// See above.
pub(super) struct Log {
    connection: Arc<Shared>,
    _world: Arc<World>,
}

impl Log {
    /// That of a connection, in its world.
    pub(super) fn new(connection: Arc<Shared>, world: &Arc<World>) -> Self {
        Self { connection, _world: Arc::clone(world) }
    }

    fn forward(&self, data: &[u8], offset: u64) -> Result<()> {
        let piece = self.connection.older.piece(data, offset);
        let data = piece.as_deref().unwrap_or(data);
        engine(self.connection.get()?.wal_write(data, offset), Code::IOERR_WRITE)
    }
}

impl File for Log {
    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        engine(self.connection.get()?.wal_read(buffer, offset), Code::IOERR_READ)
    }

    fn write(&mut self, data: &[u8], offset: u64) -> Result<()> {
        let mut carry = self.connection.carry();
        if carry.holds(data, offset) {
            return Ok(());
        }
        let held = carry.complete(&mut *self.connection.get()?)?;
        drop(carry);
        if let Some((header, at)) = held {
            self.forward(&header, at)?;
        }
        let says = self.connection.says.load(Relaxed);
        if says > 0 && data.len() == 24 && data[4..8] != [0; 4] {
            let statements = vec![0xA5; says];
            let said = Said { process: 1, connection: Some(says as u64), time: 2, statements };
            self.connection.get()?.say(said, false, None);
        }
        self.forward(data, offset)
    }

    fn truncate(&mut self, size: u64) -> Result<()> {
        engine(self.connection.get()?.wal_truncate(size), Code::IOERR_TRUNCATE)
    }

    fn sync(&mut self, _: SyncFlags) -> Result<()> {
        self.connection.busy.flushes()?;
        engine(self.connection.get()?.wal_sync(), Code::IOERR_FSYNC)
    }

    fn size(&mut self) -> Result<u64> {
        engine(self.connection.get()?.wal_size(), Code::IOERR_FSTAT)
    }

    fn sector_size(&mut self) -> u32 {
        4096
    }

    /// SQLite asks the database's file.
    fn device_characteristics(&mut self) -> DeviceCharacteristics {
        DeviceCharacteristics::empty()
    }

    fn close(self: Box<Self>) -> Result<()> {
        engine(self.connection.get()?.wal_close(), Code::IOERR_CLOSE)
    }
}
