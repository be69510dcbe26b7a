//! Ctrl-C and SIGTERM: remembered, and passed on to the SQLite statement that runs, so that a
//! command ends at a place it chose, and guards take down what they put up. What can't be
//! interrupted (a commit) is finished first.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use nix::sys::signal::{SigSet, Signal};
use rusqlite::{Connection, InterruptHandle};

use crate::failure::{Explain, Failure, Result};

/// A process has one keyboard.
static PRESSED: AtomicBool = AtomicBool::new(false);

/// What to interrupt when Ctrl-C is pressed.
#[derive(Clone)]
pub struct Interrupt {
    running: Arc<Mutex<Option<InterruptHandle>>>,
}

impl Interrupt {
    /// Catches SIGINT and SIGTERM from now on. Call before any thread is started: threads inherit
    /// the mask.
    ///
    /// # Errors
    ///
    /// If the signals can't be blocked.
    pub fn catch() -> Result<Self> {
        Self::catching(|| eprintln!("dash: stopping at the next safe place"))
    }

    /// The same for a command that ends at once, and says nothing of it.
    ///
    /// # Errors
    ///
    /// If the signals can't be blocked.
    pub fn catch_silently() -> Result<Self> {
        Self::catching(|| ())
    }

    fn catching(say: fn()) -> Result<Self> {
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGINT);
        signals.add(Signal::SIGTERM);
        signals.thread_block().explain("blocking SIGINT")?;
        let interrupt = Self { running: Arc::default() };
        let inner = interrupt.clone();
        std::thread::spawn(move || {
            while signals.wait().is_ok() {
                PRESSED.store(true, Ordering::SeqCst);
                say();
                if let Some(handle) = &*inner.running.lock().unwrap_or_else(PoisonError::into_inner)
                {
                    handle.interrupt();
                }
            }
        });
        Ok(interrupt)
    }

    /// Ctrl-C interrupts the statements of this connection from now on.
    pub fn watch(&self, db: &Connection) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(db.get_interrupt_handle());
    }

    /// Ctrl-C interrupts nothing from now on; call before the connection is closed.
    pub fn unwatch(&self) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Whether it was pressed.
    pub fn pressed(&self) -> bool {
        pressed()
    }
}

/// Whether Ctrl-C was pressed since [`Interrupt::catch`].
pub fn pressed() -> bool {
    PRESSED.load(Ordering::SeqCst)
}

/// Goes on, or not.
///
/// # Errors
///
/// If Ctrl-C was pressed.
pub fn check() -> Result<()> {
    if pressed() { Err(Failure::new("interrupted")) } else { Ok(()) }
}
