//! SQLite's allocator, made to fail in one thread: call number n, once or from there on.
//!
//! Covers what SQLite allocates and what dash asks SQLite for (messages, values, file objects).
//! What Rust allocates for itself can't fail: the standard library ends the process.

#![expect(unsafe_code, reason = "an allocator speaks C")]

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;

use rusqlite::ffi;

/// When this thread's allocations fail.
#[derive(Clone, Copy)]
struct Failing {
    armed: bool,
    forever: bool,
    number: u64,
    seen: u64,
}

thread_local! {
    static FAILING: Cell<Failing> =
        const { Cell::new(Failing { armed: false, forever: false, number: 0, seen: 0 }) };
}

const NONE: c_int = 0;

type Allocate = unsafe extern "C" fn(c_int) -> *mut c_void;
type Reallocate = unsafe extern "C" fn(*mut c_void, c_int) -> *mut c_void;

/// SQLite's own.
static ORIGINAL: OnceLock<(Allocate, Reallocate)> = OnceLock::new();

/// Allocations of this thread fail from the one with this number, counted from now, or only that
/// one.
pub fn arm(number: u64, forever: bool) {
    FAILING.set(Failing { armed: true, forever, number, seen: 0 });
}

/// They don't any more; how many there were.
pub fn disarm() -> u64 {
    let failing = FAILING.get();
    FAILING.set(Failing { armed: false, ..failing });
    failing.seen
}

fn fails() -> bool {
    let failing = FAILING.get();
    if !failing.armed {
        return false;
    }
    FAILING.set(Failing { seen: failing.seen + 1, ..failing });
    failing.seen == failing.number || (failing.forever && failing.seen > failing.number)
}

unsafe extern "C" fn allocate(bytes: c_int) -> *mut c_void {
    match ORIGINAL.get() {
        // SAFETY: the arguments are SQLite's own.
        Some((original, _)) if !fails() => unsafe { original(bytes) },
        _ => null_mut(),
    }
}

unsafe extern "C" fn reallocate(old: *mut c_void, bytes: c_int) -> *mut c_void {
    match ORIGINAL.get() {
        // SAFETY: the arguments are SQLite's own; `old` came from the original allocator.
        Some((_, original)) if !fails() => unsafe { original(old, bytes) },
        _ => null_mut(),
    }
}

/// Puts this allocator in front of SQLite's own. Nothing of SQLite may have been used before.
///
/// # Errors
///
/// If SQLite is in use already.
pub fn install() -> Result<(), String> {
    // SAFETY: plain C structure of pointers that may be null.
    let mut methods: ffi::sqlite3_mem_methods = unsafe { std::mem::zeroed() };
    let check = |code: c_int| match code {
        ffi::SQLITE_OK => Ok(()),
        code => Err(format!("sqlite3_config: {code}")),
    };
    // SAFETY: takes a pointer to the structure, which it fills.
    check(unsafe { ffi::sqlite3_config(ffi::SQLITE_CONFIG_GETMALLOC, &raw mut methods) })?;
    let (Some(malloc), Some(realloc)) = (methods.xMalloc, methods.xRealloc) else {
        return Err("SQLite has no allocator".into());
    };
    ORIGINAL.set((malloc, realloc)).map_err(|_| "installed already".to_owned())?;
    methods.xMalloc = Some(allocate);
    methods.xRealloc = Some(reallocate);
    // SAFETY: takes a pointer to the structure, which it copies.
    check(unsafe { ffi::sqlite3_config(ffi::SQLITE_CONFIG_MALLOC, &raw mut methods) })?;
    // Small pieces that a connection keeps would hide most allocations.
    // SAFETY: takes two integers.
    check(unsafe { ffi::sqlite3_config(ffi::SQLITE_CONFIG_LOOKASIDE, NONE, NONE) })
}
