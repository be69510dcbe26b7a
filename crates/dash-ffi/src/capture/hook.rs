//! The hook: what SQLite calls, and which connections have one.
//!
//! The list of them is open in any thread at any time, so forks are kept out of it.
//!
//! Invariants: a hook is freed by SQLite, when it frees the function that owns it, which is after
//! the last statement of its connection; and it is listed exactly as long.

use super::{Capture, TracedStatement};
use crate::code::{Code, OK};
use crate::error::remember;
use crate::extension::Extension;
use crate::guard::guarded;
use crate::slot::Slot;
use crate::statement_api::StatementApi;
use crate::sys::statement::{RawStatement, TRACE_PROFILE, TRACE_STMT};
use crate::sys::{self, Connection, RawValue, UTF8};
use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The function that owns the hook of its connection. It is of no use, and answers NULL.
const OWNER: &CStr = c"dash_statements_hook";

/// By the address of the connection.
type Hooks = HashMap<usize, Arc<Hook>>;

/// The hooks of all connections of the process.
static HOOKS: Mutex<Option<Hooks>> = Mutex::new(None);

/// Looks at the list, or changes it. No fork comes into that: a child would find it locked for
/// ever.
fn with_hooks(extension: &Extension, work: &mut dyn FnMut(&mut Hooks)) {
    (extension.without_fork)(&mut || {
        work(HOOKS.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default());
    });
}

/// The statements by which values are read, from one time to the next ([`super::kept`]).
#[derive(Default)]
pub(super) struct Kept {
    /// How many parameters, and the statement; the one that was used last is the last one.
    pub(super) statements: Vec<(usize, *mut RawStatement)>,
    /// How many tables of ours are connected.
    pub(super) tables: usize,
}

/// See the module.
pub(crate) struct Hook {
    pub(crate) api: &'static StatementApi,
    pub(crate) db: *mut Connection,
    pub(crate) capture: Arc<dyn Capture>,
    extension: &'static Extension,
    /// The statement by which values are read, while it runs; nobody is told of it.
    pub(super) own: AtomicPtr<RawStatement>,
    /// Such statements, for the next time.
    pub(super) kept: Mutex<Kept>,
}

// SAFETY: `db` is only handed to SQLite, by a thread that has it locked; the rest is shared by
// nature.
unsafe impl Send for Hook {}
// SAFETY: as above.
unsafe impl Sync for Hook {}

impl Hook {
    /// That of a connection, if it has one.
    pub(crate) fn of(db: *mut Connection, extension: &Extension) -> Option<Arc<Self>> {
        let mut found = None;
        with_hooks(extension, &mut |hooks| found = hooks.get(&db.addr()).cloned());
        found
    }

    /// Shows every statement whose program is under way, also those that nobody was told of.
    ///
    /// # Safety
    ///
    /// This thread has the connection locked.
    pub(crate) unsafe fn busy(&self, show: &mut dyn FnMut(&TracedStatement<'_>)) {
        let mut show = |statement| {
            // SAFETY: a live statement of this connection.
            show(&unsafe { TracedStatement::new(self, statement) });
        };
        // SAFETY: an open connection, which this thread has locked.
        unsafe { self.api.busy(self.db, &mut show) };
    }
}

/// Sets the hook of a connection. Without the routines for it, or the memory, there is none.
///
/// # Safety
///
/// `db` is a connection of the SQLite of `slot` that was just opened and is locked by this thread.
pub(crate) unsafe fn install(slot: &'static Slot, db: *mut Connection, capture: Arc<dyn Capture>) {
    let Some(api) = &slot.api.statements else { return };
    let (own, extension) = (AtomicPtr::new(null_mut()), slot.extension);
    let hook = Arc::new(Hook { api, db, capture, extension, own, kept: Mutex::default() });
    let raw = Arc::into_raw(Arc::clone(&hook)).cast_mut().cast::<c_void>();
    with_hooks(extension, &mut |hooks| {
        hooks.insert(db.addr(), Arc::clone(&hook));
    });
    let (name, flags) = (OWNER.as_ptr(), c_int::from(UTF8));
    // SAFETY: an open connection, a C string, and a hook that `forget` frees, which SQLite calls
    // also when it refuses; then it has no hook.
    unsafe {
        let create = slot.api.create_function_v2;
        let code = create(db, name, 0, flags, raw, Some(nothing), None, None, Some(forget));
        if code == OK {
            (api.trace_v2)(db, TRACE_STMT | TRACE_PROFILE, Some(traced), raw);
        }
    }
}

/// The owner as a function: without a result it answers NULL.
unsafe extern "C" fn nothing(_: *mut sys::Context, _: c_int, _: *mut *mut RawValue) {}

unsafe extern "C" fn forget(hook: *mut c_void) {
    // SAFETY: made by `install` with `Arc::into_raw`; SQLite calls this once.
    let hook = unsafe { Arc::from_raw(hook.cast_const().cast::<Hook>()) };
    with_hooks(hook.extension, &mut |hooks| {
        hooks.remove(&hook.db.addr());
    });
}

unsafe extern "C" fn traced(
    event: c_uint,
    hook: *mut c_void,
    statement: *mut c_void,
    text: *mut c_void,
) -> c_int {
    // SAFETY: the hook that `install` set, which is there while its connection has statements.
    let hook = unsafe { &*hook.cast_const().cast::<Hook>() };
    let raw = statement.cast::<RawStatement>();
    if core::ptr::eq(raw, hook.own.load(Ordering::Relaxed)) {
        return 0;
    }
    let tell = || {
        // SAFETY: SQLite passes a statement of the connection, in both events.
        let statement = unsafe { TracedStatement::new(hook, raw) };
        match event {
            // SAFETY: in this event the text is a C string.
            TRACE_STMT if unsafe { is_inside(&statement, text.cast()) } => {
                hook.capture.runs_inside(&statement);
            }
            TRACE_STMT => hook.capture.begins(&statement),
            _ => hook.capture.ends(&statement),
        }
        Ok(())
    };
    let told = guarded("a look at a statement", Code::INTERNAL, tell, remember);
    if told.is_err() {
        hook.capture.panicked();
    }
    0
}

/// Whether SQLite says that a program runs inside another one: the text is then not the
/// statement's own, but a comment made of it.
///
/// # Safety
///
/// `text` is the C string of the event in which the statement came.
unsafe fn is_inside(statement: &TracedStatement<'_>, text: *const c_char) -> bool {
    if text.is_null() || core::ptr::eq(text, statement.text()) {
        return false;
    }
    // SAFETY: a C string, as the caller states.
    unsafe { CStr::from_ptr(text) }.to_bytes().starts_with(b"--")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::thread::{sleep, spawn};
    use std::time::Duration;

    static EXTENSION: Extension = Extension {
        make_vfs: |_| unreachable!("never registered"),
        stands_on: None,
        functions: &[],
        tables: &[],
        capture: |_| None,
        without_fork: |work| dash_storage::real::without_fork(work),
        automatic,
    };

    unsafe extern "C" fn automatic(
        _: *mut Connection,
        _: *mut *mut c_char,
        _: *const crate::ApiRoutines,
    ) -> c_int {
        unreachable!("never registered")
    }

    #[test]
    fn a_forked_child_finds_the_list_free() {
        let (inside, is_inside) = channel();
        let other = spawn(move || {
            with_hooks(&EXTENSION, &mut |_| {
                inside.send(()).unwrap();
                sleep(Duration::from_millis(100));
            });
        });
        is_inside.recv().unwrap();
        // SAFETY: the child looks for an address in a map, under a lock that no other thread has,
        // and leaves by `_exit`; `alarm` ends it where it waits for ever.
        let child = unsafe {
            let child = libc::fork();
            if child == 0 {
                libc::alarm(10);
                let found = Hook::of(null_mut(), &EXTENSION);
                libc::_exit(i32::from(found.is_some()));
            }
            child
        };
        let mut status = -1;
        // SAFETY: our own child, and a place for how it ended.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "the child ended by a signal, or found something");
        other.join().unwrap();
    }
}
