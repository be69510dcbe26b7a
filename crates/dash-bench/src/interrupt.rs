//! Ctrl-C and SIGTERM: remembered, and looked at between blocks, so that guards take down what they
//! put up (loop devices, mounts, folders, child processes).

use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{SigSet, Signal};

use crate::failure::{Explain, Failure, Result};

static PRESSED: AtomicBool = AtomicBool::new(false);

/// Catches both from now on. Call before any thread is started: threads inherit the mask.
pub fn catch() -> Result<()> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGINT);
    signals.add(Signal::SIGTERM);
    signals.thread_block().explain("blocking SIGINT")?;
    std::thread::spawn(move || {
        while signals.wait().is_ok() {
            PRESSED.store(true, Ordering::SeqCst);
            eprintln!("dash-bench: stopping after this block");
        }
    });
    Ok(())
}

/// Whether either came.
pub fn pressed() -> bool {
    PRESSED.load(Ordering::SeqCst)
}

/// Fails if either came.
pub fn check() -> Result<()> {
    if pressed() { Err(Failure::new("interrupted")) } else { Ok(()) }
}
