//! What a log is written to: a file around the page cache, or through it where that is refused. The
//! third medium, memory, has a file of its own.

use dash_engine::error::{Context, Operation, Result};
use dash_engine::io::write_pieces;
use dash_storage::File;
use std::sync::Arc;

/// Something that blocks are written to and made durable on.
pub trait Medium: Send + Sync + 'static {
    /// Writes whole blocks at an offset of the file, a multiple of [`block`](Self::block), from
    /// memory that is aligned likewise.
    ///
    /// # Errors
    ///
    /// Those of the file system; any part of it may be written then.
    fn write(&self, blocks: &[u8], offset: u64) -> Result<()>;

    /// The same, durable when it returns; other bytes are as durable as before.
    ///
    /// # Errors
    ///
    /// As of [`write`](Self::write).
    fn write_durable(&self, blocks: &[u8], offset: u64) -> Result<()>;

    /// Makes all durable that was written through this; on a device what anybody wrote.
    ///
    /// # Errors
    ///
    /// Those of the device; what was written since the last flush may be there or not.
    fn flush(&self) -> Result<()>;

    /// Writes as [`write`](Self::write) does, and makes that and all before it durable as
    /// [`flush`](Self::flush) does.
    ///
    /// # Errors
    ///
    /// Those of both.
    fn write_and_flush(&self, blocks: &[u8], offset: u64) -> Result<()> {
        self.write(blocks, offset)?;
        self.flush()
    }

    /// What is written at once, in bytes, a power of two.
    fn block(&self) -> u32;
}

/// A block that is no device's: what the page cache writes at once.
const PAGE: u32 = 4096;

/// A description that bypasses the page cache.
pub struct Direct<F> {
    file: Arc<F>,
    block: u32,
    name: String,
}

impl<F> Direct<F> {
    /// `block` is what [`File::make_direct`] answered.
    pub(crate) fn new(file: Arc<F>, block: u32, name: String) -> Self {
        Self { file, block, name }
    }
}

impl<F: File> Medium for Direct<F> {
    fn write(&self, blocks: &[u8], offset: u64) -> Result<()> {
        self.file.write_at(blocks, offset).during(Operation::Write, &self.name)
    }

    fn write_durable(&self, blocks: &[u8], offset: u64) -> Result<()> {
        self.file.write_durable_at(blocks, offset).during(Operation::Write, &self.name)
    }

    fn flush(&self) -> Result<()> {
        self.file.flush().during(Operation::Flush, &self.name)
    }

    fn block(&self) -> u32 {
        self.block
    }
}

/// A description that writes through the page cache.
pub struct Buffered<F> {
    file: Arc<F>,
    name: String,
}

impl<F> Buffered<F> {
    pub(crate) fn new(file: Arc<F>, name: String) -> Self {
        Self { file, name }
    }
}

impl<F: File> Medium for Buffered<F> {
    fn write(&self, blocks: &[u8], offset: u64) -> Result<()> {
        write_pieces(&*self.file, blocks, offset, &self.name)
    }

    fn write_durable(&self, blocks: &[u8], offset: u64) -> Result<()> {
        self.file.write_durable_at(blocks, offset).during(Operation::Write, &self.name)
    }

    fn flush(&self) -> Result<()> {
        self.file.flush().during(Operation::Flush, &self.name)
    }

    fn block(&self) -> u32 {
        PAGE
    }
}
