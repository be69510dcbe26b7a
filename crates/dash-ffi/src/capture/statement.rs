//! `TracedStatement`: what can be asked of a statement while SQLite tells of it.

use super::hook::Hook;
use super::values::{Bound, Unread, read};
use crate::code::OK;
use crate::sys::statement::{CACHE_HIT, CACHE_MISS, FP_DIGITS, LENGTH, REPREPARE, RawStatement};
use core::ffi::{CStr, c_char, c_int};

/// A statement, during a call of SQLite's about its connection.
pub struct TracedStatement<'a> {
    hook: &'a Hook,
    raw: *mut RawStatement,
}

impl<'a> TracedStatement<'a> {
    /// # Safety
    ///
    /// For `'a`, `raw` is a statement of the hook's connection, which this thread has locked.
    pub(crate) unsafe fn new(hook: &'a Hook, raw: *mut RawStatement) -> Self {
        Self { hook, raw }
    }

    /// A number that no other statement of the process has while this one is there.
    #[must_use]
    pub fn id(&self) -> usize {
        self.raw.addr()
    }

    pub(super) fn text(&self) -> *const c_char {
        // SAFETY: a live statement.
        unsafe { (self.hook.api.sql)(self.raw) }
    }

    /// Its text, with its parameters; `None`: it is a blob handle's.
    #[must_use]
    pub fn sql(&self) -> Option<&'a [u8]> {
        let text = self.text();
        // SAFETY: not null, so a C string that is there as long as the statement.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_bytes())
    }

    /// Whether it changes no database itself. A function in it may; statements of savepoints and
    /// transactions count as such.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        // SAFETY: a live statement.
        unsafe { (self.hook.api.stmt_readonly)(self.raw) != 0 }
    }

    /// Whether its program is under way. Not when it has run to its end; still, when it is reset
    /// before that.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        // SAFETY: a live statement.
        unsafe { (self.hook.api.stmt_busy)(self.raw) != 0 }
    }

    /// How often SQLite had to prepare it again, since the schema had changed.
    #[must_use]
    pub fn preparations(&self) -> i32 {
        // SAFETY: a live statement; nothing is reset.
        unsafe { (self.hook.api.stmt_status)(self.raw, REPREPARE, 0) }
    }

    /// Whether its connection is in no transaction that `BEGIN` or a savepoint began.
    #[must_use]
    pub fn is_autocommit(&self) -> bool {
        // SAFETY: an open connection.
        unsafe { (self.hook.api.get_autocommit)(self.hook.db) != 0 }
    }

    /// How many rows the statements of its connection have changed since it was opened; it wraps
    /// around. A statement's own are counted once it has run to its end without an error
    /// (`sqlite3VdbeHalt`), which is before [`ends`](super::Capture::ends); not, where it is reset
    /// before that.
    #[must_use]
    pub fn total_changes(&self) -> i32 {
        // SAFETY: an open connection.
        unsafe { (self.hook.api.total_changes)(self.hook.db) }
    }

    /// Whether its connection has a database `temp`. SQLite makes one for the first thing temporary
    /// that it is asked for, whoever asks, and has none before that.
    #[must_use]
    pub fn has_temporary(&self) -> bool {
        // SAFETY: an open connection and a C string.
        unsafe { !(self.hook.api.db_filename)(self.hook.db, c"temp".as_ptr()).is_null() }
    }

    /// How many bytes its connection takes in a row or a value at most (`SQLITE_LIMIT_LENGTH`).
    #[must_use]
    pub fn longest_value(&self) -> i32 {
        // SAFETY: an open connection; a negative limit sets nothing.
        unsafe { (self.hook.api.limit)(self.hook.db, LENGTH, -1) }
    }

    /// How many digits of a real number its connection keeps in a text
    /// (`SQLITE_DBCONFIG_FP_DIGITS`); `None`: this SQLite has no such setting.
    #[must_use]
    pub fn digits_of_reals(&self) -> Option<i32> {
        let (nothing, mut digits): (c_int, c_int) = (0, 0);
        let config = self.hook.api.db_config;
        // SAFETY: an open connection, and for this setting a number, of which 0 sets nothing, and a
        // place for the answer. Another SQLite takes no argument and says that it does not know it.
        let code = unsafe { config(self.hook.db, FP_DIGITS, nothing, &raw mut digits) };
        (code == OK).then_some(digits)
    }

    /// How often its connection has used a page of any of its databases; wraps around.
    #[must_use]
    pub fn page_uses(&self) -> i32 {
        let count = |what: c_int| {
            let (mut now, mut most) = (0, 0);
            let status = self.hook.api.db_status;
            // SAFETY: an open connection, and places for two numbers; nothing is reset.
            unsafe { status(self.hook.db, what, &raw mut now, &raw mut most, 0) };
            now
        };
        count(CACHE_HIT).wrapping_add(count(CACHE_MISS))
    }

    /// Shows every statement of the connection whose program is under way, this one among them,
    /// also those that nobody was told of. It looks at each one that is prepared.
    pub fn busy(&self, mut show: impl FnMut(&TracedStatement<'_>)) {
        // SAFETY: a call of SQLite's about this connection, so this thread has it locked.
        unsafe { self.hook.busy(&mut show) }
    }

    /// The values that it was run with, the first parameter's first; of texts and blobs no more
    /// than `room` bytes together. To be asked only of one whose program has run: in
    /// [`ends`](super::Capture::ends), or in the write of the frame that commits it, as SQLite
    /// forgets a program's plan here, which breaks one that is about to begin.
    ///
    /// # Errors
    ///
    /// Why they can't be read. The statement has them all the same.
    pub fn values(&self, room: usize) -> Result<Vec<Bound>, Unread> {
        // SAFETY: a live statement of this connection, which this thread has locked.
        unsafe { read(self.hook, self.raw, room) }
    }
}
