//! Files beside a database of which SQLite asks no more than their content: nobody else has them
//! open, and nothing of them need survive a crash.

use crate::error::Result;
use crate::file::File;
use crate::flags::{DeviceCharacteristics, SyncFlags};

/// The content of such a file. The methods are those of [`File`].
pub trait SideFile: Send + 'static {
    /// Reads into `buffer` from `offset`; how many bytes.
    ///
    /// # Errors
    ///
    /// `SQLITE_IOERR_READ`.
    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize>;

    /// Writes all of `data` at `offset`.
    ///
    /// # Errors
    ///
    /// `SQLITE_FULL`, `SQLITE_IOERR_WRITE`.
    fn write(&mut self, data: &[u8], offset: u64) -> Result<()>;

    /// Makes the file `size` bytes long.
    ///
    /// # Errors
    ///
    /// `SQLITE_IOERR_TRUNCATE`.
    fn truncate(&mut self, size: u64) -> Result<()>;

    /// The length of the file in bytes.
    ///
    /// # Errors
    ///
    /// `SQLITE_IOERR_FSTAT`.
    fn size(&mut self) -> Result<u64>;
}

/// A [`SideFile`] as a file of a VFS: locks are always had, flushes have nothing to do, and nothing
/// is promised about the device (SQLite asks the database's file about that).
pub struct Side<F>(pub F);

impl<F: SideFile> File for Side<F> {
    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.0.read(buffer, offset)
    }

    fn write(&mut self, data: &[u8], offset: u64) -> Result<()> {
        self.0.write(data, offset)
    }

    fn truncate(&mut self, size: u64) -> Result<()> {
        self.0.truncate(size)
    }

    fn sync(&mut self, _flags: SyncFlags) -> Result<()> {
        Ok(())
    }

    fn size(&mut self) -> Result<u64> {
        self.0.size()
    }

    fn sector_size(&mut self) -> u32 {
        512
    }

    fn device_characteristics(&mut self) -> DeviceCharacteristics {
        DeviceCharacteristics::empty()
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
