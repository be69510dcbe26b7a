//! `Confined`: what a connection of dash's own may do that runs what somebody else has written. It
//! is a wall behind whoever judges those statements, and knows nothing of them: SQLite itself tells
//! an authorizer what each of them asks for.
//!
//! Invariants: what is not on the list is refused; no virtual table can be reached, no other
//! database, no schema that is trusted; whatever runs comes to an end.

use crate::code::{Code, OK};
use crate::error::{Error, Result};
use crate::guard::guarded;
use crate::nested::Nested;
use crate::statement_api::StatementApi;
use crate::sys::statement::{
    ATTACHED, DEFENSIVE, DENY, ENABLE_LOAD_EXTENSION, ENABLE_TRIGGER, ENABLE_VIEW, EXPR_DEPTH,
    LENGTH, SQL_LENGTH, TRUSTED_SCHEMA, WRITABLE_SCHEMA,
};
use core::cell::{Cell, RefCell};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::fmt;
use core::ptr::null_mut;

/// Instructions of SQLite's between two looks at how many are left.
const INSTRUCTIONS: c_int = 1000;

/// Bytes of a statement's text, and how deep its expressions may be: SQLite's own limits as a rule.
const TEXT: c_int = 1_000_000;
const DEPTH: c_int = 1000;

/// What a statement asks for, in the words of `sqlite3_set_authorizer`.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// `SQLITE_READ` and so on.
    pub action: i32,
    /// The third argument, such as a table.
    pub what: Option<&'a CStr>,
    /// The database.
    pub schema: Option<&'a CStr>,
    /// The trigger or view that asks.
    pub inside: Option<&'a CStr>,
}

impl fmt::Debug for Asked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text =
            |text: Option<&CStr>| text.unwrap_or(c"").to_string_lossy().escape_debug().to_string();
        let Self { action, what, schema, inside } = *self;
        write!(f, "action {action}, \"{}\", \"{}\", \"{}\"", text(what), text(schema), text(inside))
    }
}

/// What a connection may do at most.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// What it may ask for.
    pub may: fn(&Asked<'_>) -> bool,
    /// Bytes of a value.
    pub length: u64,
    /// Instructions of SQLite's.
    pub instructions: u64,
}

/// See the module. SQLite has its address.
pub(crate) struct Confined {
    may: fn(&Asked<'_>) -> bool,
    instructions: Cell<u64>,
    /// What was refused last.
    refused: RefCell<Option<Error>>,
}

impl Confined {
    /// Confines a connection, which must be closed before this is dropped.
    ///
    /// # Errors
    ///
    /// SQLite's code and message.
    pub(crate) fn new(
        nested: &Nested,
        statements: &StatementApi,
        bounds: &Bounds,
    ) -> Result<Box<Self>> {
        let (db, api) = (nested.db, nested.api);
        let Bounds { may, length, instructions } = *bounds;
        let confined = Box::new(Self {
            may,
            instructions: Cell::new(instructions),
            refused: RefCell::default(),
        });
        let on = [DEFENSIVE];
        let off =
            [ENABLE_LOAD_EXTENSION, ENABLE_TRIGGER, ENABLE_VIEW, TRUSTED_SCHEMA, WRITABLE_SCHEMA];
        for (setting, value) in on.map(|it| (it, 1)).into_iter().chain(off.map(|it| (it, 0))) {
            let (value, nowhere): (c_int, *mut c_int) = (value, null_mut());
            // SAFETY: an open connection, and for these settings a number and a place for the
            // answer, or null. What an SQLite does not know it was built without.
            unsafe { (statements.db_config)(db, setting, value, nowhere) };
        }
        let length = c_int::try_from(length).unwrap_or(c_int::MAX);
        for (limit, value) in
            [(ATTACHED, 0), (EXPR_DEPTH, DEPTH), (SQL_LENGTH, TEXT), (LENGTH, length)]
        {
            // SAFETY: an open connection. What is above a limit that it was built with stays there.
            unsafe { (statements.limit)(db, limit, value) };
        }
        let this: *const Self = &raw const *confined;
        let this: *mut c_void = this.cast_mut().cast();
        if let Some(drop_modules) = api.drop_modules {
            // SAFETY: an open connection; null keeps none.
            nested.check(unsafe { drop_modules(db, null_mut()) })?;
        }
        if let Some(handler) = api.progress_handler {
            // SAFETY: an open connection; `this` stays where it is, and outlives it.
            unsafe { handler(db, INSTRUCTIONS, Some(go_on), this) };
        }
        // SAFETY: the same.
        nested.check(unsafe { (statements.set_authorizer)(db, Some(ask), this) })?;
        Ok(confined)
    }

    /// What SQLite's error came from, if that was this.
    pub(crate) fn cause(&self, error: Error) -> Error {
        self.refused.take().unwrap_or(error)
    }

    fn ask(&self, asked: &Asked<'_>) -> c_int {
        if (self.may)(asked) {
            return OK;
        }
        let text = format!("asked for beyond the list: {asked:?}");
        self.refused.replace(Some(Error::new(Code::AUTH, text)));
        DENY
    }

    fn go_on(&self) -> Result<()> {
        let left = self.instructions.get().checked_sub(u64::from(INSTRUCTIONS.unsigned_abs()));
        self.instructions.set(left.unwrap_or(0));
        left.map(|_| ()).ok_or_else(|| {
            let error =
                Error::new(Code::INTERRUPT, "they take longer than any that would be there");
            self.refused.replace(Some(error.clone()));
            error
        })
    }
}

/// Whether something may be done, for `sqlite3_set_authorizer`.
unsafe extern "C" fn ask(
    confined: *mut c_void,
    action: c_int,
    what: *const c_char,
    _: *const c_char,
    schema: *const c_char,
    inside: *const c_char,
) -> c_int {
    // SAFETY: null or a C string of SQLite's that stays during the call.
    let text = |text: *const c_char| (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) });
    let asked = Asked { action, what: text(what), schema: text(schema), inside: text(inside) };
    // SAFETY: what `Confined::new` passes, which outlives the connection.
    let confined = unsafe { &*confined.cast_const().cast::<Confined>() };
    guarded("an authorizer", Code::INTERNAL, || Ok(confined.ask(&asked)), |_| ()).unwrap_or(DENY)
}

/// Whether a statement may go on, for `sqlite3_progress_handler`.
unsafe extern "C" fn go_on(confined: *mut c_void) -> c_int {
    // SAFETY: as in `ask`.
    let confined = unsafe { &*confined.cast_const().cast::<Confined>() };
    c_int::from(guarded("a look", Code::INTERNAL, || confined.go_on(), |_| ()).is_err())
}
