//! No database: a change of the mode failed half-way, and the database could not be opened again.
//! Everything is an error.

use std::path::Path;

use dash_ffi::{DeviceCharacteristics, File, HostFile, HostVfs, Result};

use crate::delegate::delegate;
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

impl Gone {
    fn file(&mut self) -> Result<&mut HostFile> {
        Err(gone())
    }
}

impl File for Gone {
    delegate!([file()?] read write truncate sync size lock unlock check_reserved_lock file_control);

    fn sector_size(&mut self) -> u32 {
        crate::main_file::SECTOR
    }

    fn device_characteristics(&mut self) -> DeviceCharacteristics {
        DeviceCharacteristics::empty()
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
