//! `FileCell`: a [`File`] as the trampolines hold it, behind a door that one thread passes at a
//! time.
//!
//! Invariants: at most one `&mut` to the file exists, also when a callback, a function and another
//! connection of a shared cache meet; a thread that is inside does not get in again; a panic inside
//! latches the file.

use crate::code::Code;
use crate::error::{Error, Result};
use crate::file::{File, latched};
use crate::name::Lease;
use crate::slot::Slot;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Who is inside a file.
#[derive(Default)]
pub(crate) struct Gate {
    /// The thread inside, by the address of a thread-local; 0 for nobody.
    owner: AtomicUsize,
    /// Whether it came by a callback of SQLite, not by `with_file`.
    callback: AtomicBool,
}

/// A number that no other living thread has, and never 0.
fn this_thread() -> usize {
    thread_local!(static PLACE: u8 = const { 0 });
    PLACE.with(|place| core::ptr::from_ref(place).addr())
}

impl Gate {
    /// Whether this thread is inside. Only a thread itself ever stores its own number, so the
    /// answer is right without further ordering.
    fn is_mine(&self) -> bool {
        self.owner.load(Ordering::Relaxed) == this_thread()
    }

    /// Whether this thread is inside a callback of SQLite.
    pub(crate) fn in_callback(&self) -> bool {
        self.is_mine() && self.callback.load(Ordering::Relaxed)
    }
}

/// A file and its door.
pub(crate) struct FileCell {
    pub(crate) slot: &'static Slot,
    gate: Arc<Gate>,
    state: Mutex<State>,
    lease: Lease,
}

struct State {
    /// The file, until it is closed.
    file: Option<Box<dyn File>>,
    /// The panic that latched it.
    latched: Option<String>,
}

/// The way in by which a thread came.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// SQLite calls the file.
    Callback,
    /// An SQL function or a table looks at it.
    Visit,
}

impl FileCell {
    /// A cell around an open file; `lease` is on the name it was opened with.
    pub(crate) fn new(slot: &'static Slot, file: Box<dyn File>, lease: Lease) -> Self {
        let state = Mutex::new(State {
            file: Some(file),
            latched: None,
        });
        Self {
            slot,
            gate: Arc::default(),
            state,
            lease,
        }
    }

    /// The door, for a busy handler that must know who is inside.
    pub(crate) fn gate(&self) -> Arc<Gate> {
        Arc::clone(&self.gate)
    }

    /// Calls the file.
    ///
    /// # Errors
    ///
    /// Those of `call`; `SQLITE_IOERR` if a panic has latched the file; `SQLITE_MISUSE` if this
    /// thread is inside already.
    pub(crate) fn enter<R>(
        &self,
        way: Way,
        call: impl FnOnce(&mut dyn File) -> Result<R>,
    ) -> Result<R> {
        let mut inside = self.pass(way)?;
        if let Some(cause) = &inside.state.latched {
            return Err(latched(cause));
        }
        match inside.state.file.as_deref_mut() {
            Some(file) => call(file),
            None => Err(Error::new(Code::MISUSE, "the file is closed")),
        }
    }

    /// Notes that a call panicked.
    pub(crate) fn latch(&self, cause: &str) {
        if let Ok(mut inside) = self.pass(Way::Visit) {
            inside.state.latched.get_or_insert_with(|| cause.to_owned());
        }
    }

    /// Takes the file out, to be closed. The lease ends when the file is gone.
    pub(crate) fn take(self) -> (Option<Box<dyn File>>, Lease) {
        let state = self
            .state
            .into_inner()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        (state.file, self.lease)
    }

    fn pass(&self, way: Way) -> Result<Inside<'_>> {
        if self.gate.is_mine() {
            return Err(Error::new(
                Code::MISUSE,
                "a call into a file that this thread is in",
            ));
        }
        let state = self
            .state
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        self.gate
            .callback
            .store(way == Way::Callback, Ordering::Relaxed);
        self.gate.owner.store(this_thread(), Ordering::Relaxed);
        Ok(Inside {
            gate: &self.gate,
            state,
        })
    }
}

/// Being inside; leaving is dropping it.
struct Inside<'a> {
    gate: &'a Gate,
    state: MutexGuard<'a, State>,
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        // Before the mutex is let go, which happens when the fields are dropped.
        self.gate.owner.store(0, Ordering::Relaxed);
    }
}
