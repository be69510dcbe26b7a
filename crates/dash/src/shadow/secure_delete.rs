//! Whether SQLite overwrites what it deletes: then it must be gone from the shadow, too, when the
//! database is closed.
//!
//! SQLite tells a VFS of `PRAGMA secure_delete` on the file of `main`, or of the schema that was
//! named, and sets it for all that are attached; nothing tells those. So once it was on anywhere in
//! this process it is taken to be on wherever nobody said otherwise: it costs a little time at the
//! last close. Distributions build SQLite with it on.

use std::sync::atomic::{AtomicBool, Ordering};

use dash_ffi::HostVfs;

/// Whether it was switched on in this process, or is on by default in one of its SQLites.
static ON: AtomicBool = AtomicBool::new(false);

/// Notes what an SQLite was built to do.
pub fn ask(host: &HostVfs) {
    if [c"SECURE_DELETE", c"FAST_SECURE_DELETE"].iter().any(|name| host.is_built_with(name)) {
        switch_on();
    }
}

/// Notes that it is switched on.
pub fn switch_on() {
    ON.store(true, Ordering::Relaxed);
}

/// Whether it was, anywhere.
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}
