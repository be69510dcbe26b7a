//! `TableFunction`: a read-only table whose rows a Rust function makes when it is read.
//!
//! Each is an eponymous-only virtual table: `SELECT * FROM dash_stats` works without CREATE, and
//! `dash_stats('aux')` or `WHERE schema = 'aux'` asks about an attached database, through a hidden
//! last column. The rows of one scan are made when it starts, so they are one state.
//!
//! Invariants: our `Table` and `Rows` begin with the head that SQLite knows, and are freed only by
//! `xDisconnect` and `xClose`.

use crate::capture;
use crate::code::{Code, OK};
use crate::connection::ConnectionRef;
use crate::error::{Error, Result, remember};
use crate::function::fail;
use crate::guard::guarded;
use crate::slot::Slot;
use crate::sys::{
    Connection, Context, Cursor, INDEX_CONSTRAINT_EQ, IndexInfo, Module, RawValue, VTAB_INNOCUOUS,
    Vtab,
};
use crate::value::Value;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::offset_of;
use core::ptr::null_mut;
use std::ffi::CString;

/// A table-valued function.
#[derive(Clone, Copy)]
pub struct TableFunction {
    /// Its name.
    pub name: &'static CStr,
    /// Its columns, before the hidden one, `schema`.
    pub columns: &'static [&'static str],
    /// Makes the rows. The second argument is the schema asked about, if any. A row that is too
    /// short ends in NULLs. The message of an error is the text of the statement's error.
    pub rows: fn(&ConnectionRef<'_>, Option<&str>) -> Result<Vec<Row>>,
}

/// The values of one row, in the order of the columns.
pub type Row = Vec<Value>;

/// What a module's callbacks know of it: freed when its connection closes.
struct Registered {
    slot: &'static Slot,
    table: &'static TableFunction,
}

/// A table on a connection.
#[repr(C)]
struct Table {
    head: Vtab,
    slot: &'static Slot,
    table: &'static TableFunction,
    db: *mut Connection,
}

/// A scan.
#[repr(C)]
struct Rows {
    head: Cursor,
    rows: Vec<Row>,
    at: usize,
    schema: Option<String>,
}

const _: () = assert!(offset_of!(Table, head) == 0 && offset_of!(Rows, head) == 0);

static MODULE: Module = Module {
    version: 1,
    // Without xCreate, and with it absent, the table is eponymous only.
    create: None,
    connect: Some(x_connect),
    best_index: Some(x_best_index),
    disconnect: Some(x_disconnect),
    destroy: None,
    open: Some(x_open),
    close: Some(x_close),
    filter: Some(x_filter),
    next: Some(x_next),
    eof: Some(x_eof),
    column: Some(x_column),
    rowid: Some(x_rowid),
    update: None,
    begin: None,
    sync: None,
    commit: None,
    rollback: None,
    find_function: None,
    rename: None,
    savepoint: None,
    release: None,
    rollback_to: None,
    shadow_name: None,
};

impl TableFunction {
    /// Adds the table to a connection.
    ///
    /// # Errors
    ///
    /// SQLite's own code.
    pub(crate) fn register(&'static self, connection: &ConnectionRef<'_>) -> Result<()> {
        let slot = connection.slot;
        let registered = Box::into_raw(Box::new(Registered { slot, table: self }));
        // SAFETY: an open connection, a C string, a module that is there for ever, and what its
        // callbacks expect; SQLite calls `forget` also when it refuses.
        let code = unsafe {
            (slot.api.create_module_v2)(
                connection.as_ptr(),
                self.name.as_ptr(),
                &raw const MODULE,
                registered.cast(),
                Some(forget),
            )
        };
        Error::check(code).map_err(|error| {
            Error::new(error.code, format!("{}: {}", self.name.to_string_lossy(), error.code))
        })
    }

    /// The statement that tells SQLite the columns.
    fn declaration(&self) -> Result<CString> {
        let quoted = |name: &&str| format!("\"{}\"", name.replace('"', "\"\""));
        let columns: Vec<String> = self.columns.iter().map(quoted).collect();
        let text = format!("CREATE TABLE x({}, schema HIDDEN)", columns.join(", "));
        CString::new(text).map_err(|_| Code::INTERNAL.into())
    }
}

unsafe extern "C" fn forget(registered: *mut c_void) {
    // SAFETY: made by `register` with `Box::into_raw`; SQLite calls this once.
    drop(unsafe { Box::from_raw(registered.cast::<Registered>()) });
}

unsafe extern "C" fn x_connect(
    db: *mut Connection,
    registered: *mut c_void,
    _count: c_int,
    _arguments: *const *const c_char,
    table: *mut *mut Vtab,
    message: *mut *mut c_char,
) -> c_int {
    // SAFETY: SQLite passes what `register` gave it.
    let &Registered { slot, table: function } = unsafe { &*registered.cast::<Registered>() };
    let connect = || {
        let declaration = function.declaration()?;
        // SAFETY: the connection that is connecting, and a C string; then an option without
        // arguments.
        Error::check(unsafe { (slot.api.declare_vtab)(db, declaration.as_ptr()) })?;
        // SAFETY: as above.
        Error::check(unsafe { (slot.api.vtab_config)(db, VTAB_INNOCUOUS) })?;
        capture::connected(db, slot.extension);
        Ok(())
    };
    if let Err(error) = guarded("xConnect", Code::INTERNAL, connect, |_| ()) {
        // SAFETY: SQLite passes a place for a message, which it frees.
        unsafe { message.write(slot.api.allocate(&error.to_string())) };
        return error.code.raw();
    }
    let head = Vtab { module: core::ptr::null(), references: 0, error_message: null_mut() };
    let made = Box::into_raw(Box::new(Table { head, slot, table: function, db }));
    // SAFETY: SQLite passes a place for the table.
    unsafe { table.write(made.cast()) };
    OK
}

unsafe extern "C" fn x_disconnect(table: *mut Vtab) -> c_int {
    // SAFETY: made by `x_connect`; SQLite disconnects once.
    let table = unsafe { Box::from_raw(table.cast::<Table>()) };
    let extension = table.slot.extension;
    let disconnected = || {
        // SAFETY: the table's connection, which SQLite has locked.
        unsafe { capture::disconnected(table.db, extension) };
        Ok(())
    };
    drop(guarded("xDisconnect", Code::INTERNAL, disconnected, remember));
    OK
}

/// Plans: 0 reads everything, 1 takes the schema from the hidden column.
unsafe extern "C" fn x_best_index(table: *mut Vtab, info: *mut IndexInfo) -> c_int {
    // SAFETY: SQLite passes a table of ours and its plan, with `constraint_count` constraints and
    // as many answers.
    unsafe {
        let function: &'static TableFunction = (*table.cast::<Table>()).table;
        let hidden = function.columns.len();
        let mut refused = false;
        for n in 0..usize::try_from((*info).constraint_count).unwrap_or(0) {
            let constraint = &*(*info).constraints.add(n);
            let on_schema = usize::try_from(constraint.column) == Ok(hidden)
                && constraint.operator == INDEX_CONSTRAINT_EQ;
            if on_schema && constraint.usable == 0 {
                refused = true;
            } else if on_schema && (*info).index_number == 0 {
                let usage = &mut *(*info).usage.add(n);
                usage.argument = 1;
                usage.omit = 1;
                (*info).index_number = 1;
            }
        }
        (*info).estimated_cost = 1000.0;
        (*info).estimated_rows = 100;
        // A schema that is only known later: this plan is no use, SQLite has to find another.
        if refused && (*info).index_number == 0 { Code::CONSTRAINT.raw() } else { OK }
    }
}

unsafe extern "C" fn x_open(table: *mut Vtab, cursor: *mut *mut Cursor) -> c_int {
    let head = Cursor { vtab: table };
    let rows = Box::new(Rows { head, rows: Vec::new(), at: 0, schema: None });
    // SAFETY: SQLite passes a place for the cursor.
    unsafe { cursor.write(Box::into_raw(rows).cast()) };
    OK
}

unsafe extern "C" fn x_close(cursor: *mut Cursor) -> c_int {
    // SAFETY: made by `x_open`; SQLite closes once.
    drop(unsafe { Box::from_raw(cursor.cast::<Rows>()) });
    OK
}

unsafe extern "C" fn x_filter(
    cursor: *mut Cursor,
    plan: c_int,
    _text: *const c_char,
    count: c_int,
    values: *mut *mut RawValue,
) -> c_int {
    // SAFETY: a cursor of ours; SQLite sets its table after `x_open`, and calls nothing else on it
    // now.
    let rows = unsafe { &mut *cursor.cast::<Rows>() };
    let table = rows.head.vtab.cast::<Table>();
    // SAFETY: the cursor's table, which outlives it; read field by field, for SQLite writes to the
    // head.
    let (slot, function, db) = unsafe { ((*table).slot, (*table).table, (*table).db) };
    let make = || {
        let schema = if plan == 1 && count > 0 {
            // SAFETY: SQLite passes `count` values.
            match unsafe { Value::read(slot.api, *values) } {
                Value::Text(text) => Some(text),
                // Nothing is equal to NULL, and no schema is named by anything but a text.
                _ => return Ok((Vec::new(), None)),
            }
        } else {
            None
        };
        // SAFETY: the connection that runs the statement, locked by this thread.
        let connection = unsafe { ConnectionRef::new(db, slot) }.ok_or(Code::MISUSE)?;
        Ok(((function.rows)(&connection, schema.as_deref())?, schema))
    };
    let what = function.name.to_string_lossy();
    match guarded(&what, Code::INTERNAL, make, |_| ()) {
        Ok((made, schema)) => {
            (rows.rows, rows.at, rows.schema) = (made, 0, schema);
            OK
        }
        Err(error) => {
            let text = error.to_string();
            remember(&text);
            // SAFETY: null, or a message that this SQLite allocated; SQLite frees the new one.
            unsafe { slot.api.replace(&mut (*table).head.error_message, slot.api.allocate(&text)) };
            error.code.raw()
        }
    }
}

unsafe extern "C" fn x_next(cursor: *mut Cursor) -> c_int {
    // SAFETY: a cursor of ours, which SQLite calls nothing else on now.
    unsafe { (*cursor.cast::<Rows>()).at += 1 };
    OK
}

unsafe extern "C" fn x_eof(cursor: *mut Cursor) -> c_int {
    // SAFETY: a cursor of ours.
    let rows = unsafe { &*cursor.cast::<Rows>() };
    c_int::from(rows.at >= rows.rows.len())
}

unsafe extern "C" fn x_column(cursor: *mut Cursor, context: *mut Context, column: c_int) -> c_int {
    // SAFETY: a cursor of ours, whose table outlives it.
    let (rows, table) = unsafe {
        let rows = &*cursor.cast::<Rows>();
        (rows, &*rows.head.vtab.cast::<Table>())
    };
    let api = table.slot.api;
    let Ok(column) = usize::try_from(column) else {
        return Code::MISUSE.raw();
    };
    // SAFETY: SQLite's context, during the call.
    unsafe {
        if column == table.table.columns.len() {
            Value::from(rows.schema.clone()).set(api, context);
        } else if let Some(row) = rows.rows.get(rows.at) {
            row.get(column).unwrap_or(&Value::Null).set(api, context);
        } else {
            fail(table.slot, context, &Error::new(Code::MISUSE, "a column behind the last row"));
        }
    }
    OK
}

unsafe extern "C" fn x_rowid(cursor: *mut Cursor, rowid: *mut i64) -> c_int {
    // SAFETY: a cursor of ours, and a place for the answer.
    unsafe { rowid.write(i64::try_from((*cursor.cast::<Rows>()).at).unwrap_or(i64::MAX)) };
    OK
}
