//! Regions of the wal-index, as SQLite gets them.

#![expect(unsafe_code, reason = "promises SQLite that shared memory stays mapped")]

use std::ptr::NonNull;

use dash_ffi::{SharedRegion, ShmMapping};

/// A region that the engine has mapped, or none.
pub fn mapping(address: Option<NonNull<u8>>) -> ShmMapping {
    // SAFETY: the engine maps as many bytes as SQLite asks for (it refuses any other number), for
    // reading and writing, and keeps them until its `unmap` or until it is closed.
    let region = address.map(|address| unsafe { SharedRegion::new(address) });
    ShmMapping { region, read_only: false }
}
