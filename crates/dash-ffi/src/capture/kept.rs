//! `Kept`: the statements by which values are read, from one time to the next. To prepare one takes
//! longer than all the rest, the longer the more parameters it has.
//!
//! A host that has statements left can't close its connection, so ours have to be gone before
//! SQLite counts them. As it closes a connection it disconnects virtual tables first (`main.c`
//! `sqlite3Close`): one of ours is connected as long as statements are kept, and lets them go.
//!
//! A host may finish every statement that `sqlite3_next_stmt` shows it, ours among them. So before
//! one is used or finished it is looked for there, by its address and by its text, which nobody
//! else's statement has.

use super::hook::{Hook, Kept};
use crate::code::OK;
use crate::extension::Extension;
use crate::sys::Connection;
use crate::sys::statement::RawStatement;
use core::ffi::{CStr, c_int};
use core::fmt::Write;
use core::ptr::null_mut;
use std::sync::{MutexGuard, PoisonError};

/// `SQLITE_LIMIT_COLUMN`, as SQLite has it by default, is 2000: a row holds so many values.
const COLUMNS: usize = 1000;

/// How the text of one begins.
const MARK: &str = "/*dash*/";

/// Connects a table of ours.
const TABLE: &str = "SELECT 1 FROM dash_stats";

/// So many are kept: programs run few statements over and over.
const MOST: usize = 4;

fn kept(hook: &Hook) -> MutexGuard<'_, Kept> {
    hook.kept.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A statement that answers so many parameters, not run yet; `None`: SQLite, or the host's
/// authorizer, refused it. To be given back.
///
/// # Safety
///
/// This thread has the hook's connection locked.
pub(super) unsafe fn take(hook: &Hook, count: usize) -> Option<*mut RawStatement> {
    let found = {
        let mut kept = kept(hook);
        let place = kept.statements.iter().position(|(parameters, _)| *parameters == count);
        place.map(|place| kept.statements.remove(place).1)
    };
    // SAFETY: as the caller states.
    unsafe {
        match found {
            Some(raw) if is_there(hook, raw) => Some(raw),
            _ => prepare(hook, &text(count)),
        }
    }
}

/// Keeps one, or finishes it where it could be in the way.
///
/// # Safety
///
/// As of [`take`], which it is from; it is reset.
pub(super) unsafe fn give_back(hook: &Hook, raw: *mut RawStatement, count: usize) {
    // SAFETY: as the caller states.
    if !unsafe { is_anchored(hook) } {
        // SAFETY: as the caller states.
        unsafe { (hook.api.finalize)(raw) };
        return;
    }
    let oldest = {
        let mut kept = kept(hook);
        kept.statements.push((count, raw));
        (kept.statements.len() > MOST).then(|| kept.statements.remove(0))
    };
    if let Some((_, oldest)) = oldest {
        // SAFETY: as the caller states.
        unsafe { finish(hook, oldest) };
    }
}

/// A table of ours is connected.
pub(crate) fn connected(db: *mut Connection, extension: &Extension) {
    if let Some(hook) = Hook::of(db, extension) {
        kept(&hook).tables += 1;
    }
}

/// A table of ours is disconnected: the connection may be about to be closed, and all statements
/// that are kept for it are finished.
///
/// # Safety
///
/// This thread has the connection locked.
pub(crate) unsafe fn disconnected(db: *mut Connection, extension: &Extension) {
    let Some(hook) = Hook::of(db, extension) else { return };
    let statements = {
        let mut kept = kept(&hook);
        kept.tables = kept.tables.saturating_sub(1);
        core::mem::take(&mut kept.statements)
    };
    for (_, raw) in statements {
        // SAFETY: as the caller states.
        unsafe { finish(&hook, raw) };
    }
}

/// Whether a table of ours is connected; one is, if that can be.
///
/// # Safety
///
/// As of [`take`].
unsafe fn is_anchored(hook: &Hook) -> bool {
    if kept(hook).tables == 0 {
        // SAFETY: as the caller states; what was prepared is finished once.
        unsafe {
            if let Some(raw) = prepare(hook, TABLE) {
                (hook.api.finalize)(raw);
            }
        }
    }
    // The host may have a table of that name, and statements have to be let go then.
    kept(hook).tables > 0
}

unsafe fn prepare(hook: &Hook, sql: &str) -> Option<*mut RawStatement> {
    let length = c_int::try_from(sql.len()).ok()?;
    let mut raw = null_mut();
    // SAFETY: an open connection, a text of that length, and a place for the statement.
    let code = unsafe {
        (hook.api.prepare_v2)(hook.db, sql.as_ptr().cast(), length, &raw mut raw, null_mut())
    };
    (code == OK && !raw.is_null()).then_some(raw)
}

unsafe fn finish(hook: &Hook, raw: *mut RawStatement) {
    // SAFETY: a statement of ours that is there, of a connection that this thread has locked.
    unsafe {
        if is_there(hook, raw) {
            (hook.api.finalize)(raw);
        }
    }
}

/// Whether the host has left it alone.
unsafe fn is_there(hook: &Hook, raw: *mut RawStatement) -> bool {
    let mut statement = null_mut();
    loop {
        // SAFETY: an open connection that this thread has locked, and null or the statement that
        // came before, which is still there.
        statement = unsafe { (hook.api.next_stmt)(hook.db, statement) };
        if statement.is_null() {
            return false;
        }
        if core::ptr::eq(statement, raw) {
            // SAFETY: a live statement, and its text.
            return unsafe {
                let text = (hook.api.sql)(statement);
                !text.is_null() && CStr::from_ptr(text).to_bytes().starts_with(MARK.as_bytes())
            };
        }
    }
}

/// A statement that answers its parameters.
fn text(count: usize) -> String {
    let is_one_row = columns(count) == count;
    let mut sql = format!("{MARK}{}", if is_one_row { "SELECT" } else { "VALUES" });
    for number in 1..=count {
        let comma = if number > 1 { "," } else { "" };
        let written = match is_one_row {
            true => write!(sql, "{comma} ?{number}"),
            false => write!(sql, "{comma} (?{number})"),
        };
        debug_assert!(written.is_ok(), "writing into a String never fails");
    }
    sql
}

/// How many values are in a row.
pub(super) fn columns(count: usize) -> usize {
    if count <= COLUMNS { count } else { 1 }
}
