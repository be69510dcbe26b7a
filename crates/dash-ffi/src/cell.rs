//! `FileCell`: a [`File`] as the trampolines hold it, behind a door that one thread passes at a
//! time.
//!
//! Invariants: at most one `&mut` to the file exists, also when a callback, a function and another
//! connection of a shared cache meet; a thread that is inside does not get in again; a panic inside
//! latches the file. Two files may share one door: a log has that of its database.

use crate::code::Code;
use crate::error::{Error, Result, report};
use crate::file::{File, latched};
use crate::name::Lease;
use crate::slot::Slot;
use crate::sys::Connection;
use crate::window::Window;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use core::time::Duration;
use std::ffi::c_int;
use std::path::PathBuf;
use std::sync::Arc;

/// How often a thread looks again whether the door is free before it begins to sleep.
const LOOKS: usize = 64;
/// How long it sleeps first, and at most.
const PAUSES: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(1));

/// Who is inside a file: the lock of its door. Nearly never do two threads meet there (SQLite calls
/// a file one call after the other; a visit from another connection of a shared cache may come
/// between), so being free costs one atomic exchange, and waiting is done by looking again.
#[derive(Default)]
pub(crate) struct Gate {
    /// The thread inside; 0 for nobody.
    owner: AtomicUsize,
    /// Whether it came by a callback of SQLite, not by `with_file`.
    callback: AtomicBool,
}

unsafe extern "C" {
    /// POSIX; its result is a number or a pointer, as long as a pointer everywhere on Linux.
    /// Cheaper than a thread-local, which costs a library a call of the dynamic linker.
    safe fn pthread_self() -> usize;
}

/// A number that no other living thread has, and never 0: the C library's own name of the thread,
/// which is the address of its control block.
#[inline]
fn this_thread() -> usize {
    pthread_self()
}

impl Gate {
    /// Whether this thread is inside. Only a thread itself ever stores its own number, so the
    /// answer is right without further ordering.
    fn is_mine(&self) -> bool {
        self.owner.load(Ordering::Relaxed) == this_thread()
    }

    /// Lets a thread in; `false` if it is inside already.
    #[inline]
    fn pass(&self, way: Way) -> bool {
        let me = this_thread();
        let passed = self.owner.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed);
        if let Err(owner) = passed {
            if owner == me {
                return false;
            }
            self.wait(me);
        }
        self.callback.store(way == Way::Callback, Ordering::Relaxed);
        true
    }

    /// Waits until nobody is inside, and is inside then.
    #[cold]
    fn wait(&self, me: usize) {
        let (mut pause, longest) = PAUSES;
        loop {
            for _ in 0..LOOKS {
                let passed =
                    self.owner.compare_exchange_weak(0, me, Ordering::Acquire, Ordering::Relaxed);
                if passed.is_ok() {
                    return;
                }
                std::thread::yield_now();
            }
            std::thread::sleep(pause);
            pause = longest.min(pause * 2);
        }
    }

    /// Lets the thread inside out.
    #[inline]
    fn leave(&self) {
        self.owner.store(0, Ordering::Release);
    }

    /// Whether this thread is inside a callback of SQLite.
    pub(crate) fn in_callback(&self) -> bool {
        self.is_mine() && self.callback.load(Ordering::Relaxed)
    }
}

/// The door of a file, for another one that is to be behind it, too: whoever is inside the one is
/// inside both.
#[derive(Clone)]
pub struct Door(pub(crate) Arc<Gate>);

impl core::fmt::Debug for Door {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Door")
    }
}

/// A file and its door.
pub(crate) struct FileCell {
    pub(crate) slot: &'static Slot,
    gate: Arc<Gate>,
    /// Where the file's b-tree has its connection (`SQLITE_FCNTL_PDB`); null until it has said so.
    connection: AtomicPtr<*mut Connection>,
    /// Only who is inside looks at it.
    state: UnsafeCell<State>,
    window: Option<Arc<Window>>,
    lease: Lease,
    path: PathBuf,
}

// SAFETY: the gate lets one thread at a time at the state, and orders what they do there. A file
// may go from thread to thread (`File: Send`); the rest is shared by nature.
unsafe impl Sync for FileCell {}

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
    /// A cell around an open file; `lease` is on the name it was opened with, `path` that name, or
    /// empty.
    pub(crate) fn new(
        slot: &'static Slot,
        file: Box<dyn File>,
        (lease, path): (Lease, PathBuf),
    ) -> Self {
        Self {
            slot,
            gate: file.door().map_or_else(Arc::default, |door| door.0),
            connection: AtomicPtr::default(),
            window: file.window(),
            state: UnsafeCell::new(State { file: Some(file), latched: None }),
            lease,
            path,
        }
    }

    /// Reports an error of the file; answers the number for SQLite.
    pub(crate) fn report(&self, error: Error) -> c_int {
        report(self.slot.api, &error.in_folder_of(&self.path))
    }

    /// The door, for a busy handler that must know who is inside.
    pub(crate) fn gate(&self) -> Arc<Gate> {
        Arc::clone(&self.gate)
    }

    /// Notes where the b-tree says that it has its connection: once, when it has opened the file.
    pub(crate) fn belongs_to(&self, connection: *mut *mut Connection) {
        let null = core::ptr::null_mut();
        let _ = self.connection.compare_exchange(
            null,
            connection,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        // A second one would be an application's, of which nothing is known.
    }

    /// Where the b-tree has its connection: that which is calling, in a callback of the file. Null:
    /// no b-tree has opened it.
    pub(crate) fn connection(&self) -> *mut *mut Connection {
        self.connection.load(Ordering::Relaxed)
    }

    /// Pages that SQLite may have without a call.
    #[inline]
    pub(crate) fn window(&self) -> Option<&Window> {
        self.window.as_deref()
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
        let inside = self.pass(way)?;
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
        if let Ok(inside) = self.pass(Way::Visit) {
            inside.state.latched.get_or_insert_with(|| cause.to_owned());
        }
    }

    /// Takes the file out, to be closed. The lease ends when the file is gone.
    pub(crate) fn take(self) -> (Option<Box<dyn File>>, Lease) {
        let state = self.state.into_inner();
        (state.file, self.lease)
    }

    #[inline]
    fn pass(&self, way: Way) -> Result<Inside<'_>> {
        if !self.gate.pass(way) {
            return Err(inside_already());
        }
        if let Some(window) = self.window() {
            window.close();
        }
        // SAFETY: this thread has just passed the gate, which lets nobody in, this thread included,
        // until `leave`; and that is called when this borrow is over.
        let state = unsafe { &mut *self.state.get() };
        Ok(Inside { gate: &self.gate, state })
    }
}

#[cold]
fn inside_already() -> Error {
    Error::new(Code::MISUSE, "a call into a file that this thread is in")
}

/// Being inside; leaving is dropping it.
struct Inside<'a> {
    gate: &'a Gate,
    state: &'a mut State,
}

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        self.gate.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn one_thread_at_a_time_passes_and_none_twice() {
        const ROUNDS: usize = 20_000;
        let (gate, inside) = (Gate::default(), AtomicUsize::new(0));
        let passes = thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        for _ in 0..ROUNDS {
                            assert!(gate.pass(Way::Callback));
                            assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0);
                            assert!(gate.in_callback() && !gate.pass(Way::Visit));
                            inside.fetch_sub(1, Ordering::Relaxed);
                            gate.leave();
                        }
                        ROUNDS
                    })
                })
                .collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).sum::<usize>()
        });
        assert_eq!(passes, 4 * ROUNDS);
        assert!(!gate.is_mine());
    }
}
