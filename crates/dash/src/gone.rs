//! No database: a change of the mode failed half-way, and the database could not be opened again.
//! Everything is an error.

use std::any::Any;
use std::path::Path;

use dash_ffi::{
    DeviceCharacteristics, File, FileControl, Handled, HostVfs, LockLevel, Result, SyncFlags,
};

use crate::mode::Parameters;
use crate::mode::{Database, gone};

/// See the module.
pub struct Gone;

impl Database for Gone {
    fn engine(&self) -> &'static str {
        "none"
    }

    fn may_leave(&mut self) -> Result<()> {
        Err(gone())
    }

    fn leave(self: Box<Self>, _: &mut Parameters, _: &Path, _: &HostVfs) -> Result<()> {
        Err(gone())
    }

    fn end(self: Box<Self>, _: &HostVfs) -> Result<()> {
        Ok(())
    }
}

impl File for Gone {
    fn read(&mut self, _: &mut [u8], _: u64) -> Result<usize> {
        Err(gone())
    }

    fn write(&mut self, _: &[u8], _: u64) -> Result<()> {
        Err(gone())
    }

    fn truncate(&mut self, _: u64) -> Result<()> {
        Err(gone())
    }

    fn sync(&mut self, _: SyncFlags) -> Result<()> {
        Err(gone())
    }

    fn size(&mut self) -> Result<u64> {
        Err(gone())
    }

    fn lock(&mut self, _: LockLevel) -> Result<()> {
        Err(gone())
    }

    fn unlock(&mut self, _: LockLevel) -> Result<()> {
        Err(gone())
    }

    fn check_reserved_lock(&mut self) -> Result<bool> {
        Err(gone())
    }

    fn file_control(&mut self, _: FileControl<'_>) -> Result<Handled> {
        Err(gone())
    }

    fn sector_size(&mut self) -> u32 {
        crate::main_file::SECTOR
    }

    fn device_characteristics(&mut self) -> DeviceCharacteristics {
        DeviceCharacteristics::empty()
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
