//! The hook: what SQLite calls, and which connections have one.
//!
//! Invariants: a hook is freed by SQLite, when it frees the function that owns it, which is after
//! the last statement of its connection; and it is listed exactly as long.

use super::{Capture, TracedStatement};
use crate::api::Api;
use crate::code::{Code, OK};
use crate::error::remember;
use crate::guard::guarded;
use crate::statement_api::StatementApi;
use crate::sys::statement::{RawStatement, TRACE_PROFILE, TRACE_STMT};
use crate::sys::{self, Connection, RawValue, UTF8};
use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The function that owns the hook of its connection. It is of no use, and answers NULL.
const OWNER: &CStr = c"dash_statements_hook";

/// The hooks of all connections of the process, by the address of the connection.
static HOOKS: Mutex<Option<HashMap<usize, Arc<Hook>>>> = Mutex::new(None);

fn hooks() -> MutexGuard<'static, Option<HashMap<usize, Arc<Hook>>>> {
    HOOKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// See the module.
pub(crate) struct Hook {
    pub(crate) api: &'static StatementApi,
    pub(crate) db: *mut Connection,
    pub(crate) capture: Arc<dyn Capture>,
    /// The statement by which values are read, while it is there; nobody is told of it.
    pub(super) own: AtomicPtr<RawStatement>,
}

// SAFETY: `db` is only handed to SQLite, by a thread that has it locked; the rest is shared by
// nature.
unsafe impl Send for Hook {}
// SAFETY: as above.
unsafe impl Sync for Hook {}

impl Hook {
    /// That of a connection, if it has one.
    pub(crate) fn of(db: *mut Connection) -> Option<Arc<Self>> {
        hooks().as_ref()?.get(&db.addr()).cloned()
    }

    /// Shows every statement whose program is under way, also those that nobody was told of.
    ///
    /// # Safety
    ///
    /// This thread has the connection locked.
    pub(crate) unsafe fn busy(&self, show: &mut dyn FnMut(&TracedStatement<'_>)) {
        let mut statement = null_mut();
        loop {
            // SAFETY: an open connection, and null or the statement that came before, which is
            // still there.
            statement = unsafe { (self.api.next_stmt)(self.db, statement) };
            if statement.is_null() {
                return;
            }
            // SAFETY: a live statement of this connection, for both.
            unsafe {
                if (self.api.stmt_busy)(statement) != 0 {
                    show(&TracedStatement::new(self, statement));
                }
            }
        }
    }
}

/// Sets the hook of a connection. Without the routines for it, or the memory, there is none.
///
/// # Safety
///
/// `db` is a connection of the SQLite of `api` that was just opened and is locked by this thread.
pub(crate) unsafe fn install(api: &'static Api, db: *mut Connection, capture: Arc<dyn Capture>) {
    let Some(statements) = &api.statements else { return };
    let own = AtomicPtr::new(null_mut());
    let hook = Arc::new(Hook { api: statements, db, capture, own });
    let raw = Arc::into_raw(Arc::clone(&hook)).cast_mut().cast::<c_void>();
    hooks().get_or_insert_default().insert(db.addr(), hook);
    let (name, flags) = (OWNER.as_ptr(), c_int::from(UTF8));
    // SAFETY: an open connection, a C string, and a hook that `forget` frees, which SQLite calls
    // also when it refuses; then it has no hook.
    unsafe {
        let create = api.create_function_v2;
        let code = create(db, name, 0, flags, raw, Some(nothing), None, None, Some(forget));
        if code == OK {
            (statements.trace_v2)(db, TRACE_STMT | TRACE_PROFILE, Some(traced), raw);
        }
    }
}

/// The owner as a function: without a result it answers NULL.
unsafe extern "C" fn nothing(_: *mut sys::Context, _: c_int, _: *mut *mut RawValue) {}

unsafe extern "C" fn forget(hook: *mut c_void) {
    // SAFETY: made by `install` with `Arc::into_raw`; SQLite calls this once.
    let hook = unsafe { Arc::from_raw(hook.cast_const().cast::<Hook>()) };
    if let Some(hooks) = hooks().as_mut() {
        hooks.remove(&hook.db.addr());
    }
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
