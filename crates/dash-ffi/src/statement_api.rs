//! The routines of SQLite by which statements and their values are seen. An SQLite can be built
//! without some (`SQLITE_OMIT_TRACE`, `SQLITE_OMIT_DEPRECATED`); then none of them is used.

use crate::sys::statement::{
    BindBlob64, BindDouble, BindInt64, BindNull, BindText64, BindZeroblob64, ColumnBytes,
    ColumnInt, DbConfig, DbStatus, Limit, NextStatement, OfStatement, PrepareV2, RawStatement,
    SetAuthorizer, TraceV2,
};
use crate::sys::{ApiRoutines, Connection, RawValue};
use core::ffi::{c_char, c_int, c_uint};
use core::mem::offset_of;
use core::ptr::null_mut;

/// `sqlite3_stmt_busy`.
type StatementBusy = unsafe extern "C" fn(*mut RawStatement) -> c_int;

macro_rules! routines {
    ($($name:ident: $signature:ty,)*) => {
        /// Copied function pointers, all of them present.
        #[derive(Clone, Copy)]
        pub(crate) struct StatementApi {
            $(pub(crate) $name: $signature,)*
        }

        /// SQLite 3.31 and all later ones have these fields.
        const _: () = {
            $(assert!(offset_of!(ApiRoutines, $name) <= offset_of!(ApiRoutines, filename_wal));)*
        };

        impl StatementApi {
            /// Copies the routines out of a table; `None` if one is not there.
            ///
            /// # Safety
            ///
            /// `table` is the table of an SQLite of 3.31 or later.
            pub(crate) unsafe fn copy(table: *const ApiRoutines) -> Option<Self> {
                Some(Self {
                    // SAFETY: 3.31 and later have all of these fields.
                    $($name: unsafe { (*table).$name }?,)*
                })
            }
        }
    };
}

routines! {
    bind_blob64: BindBlob64,
    bind_double: BindDouble,
    bind_int64: BindInt64,
    bind_null: BindNull,
    bind_parameter_count: unsafe extern "C" fn(*mut RawStatement) -> c_int,
    bind_text64: BindText64,
    bind_zeroblob64: BindZeroblob64,
    clear_bindings: OfStatement,
    column_blob: ColumnBytes,
    column_bytes: ColumnInt,
    column_double: unsafe extern "C" fn(*mut RawStatement, c_int) -> f64,
    column_int64: unsafe extern "C" fn(*mut RawStatement, c_int) -> i64,
    column_text: ColumnBytes,
    column_type: ColumnInt,
    column_value: unsafe extern "C" fn(*mut RawStatement, c_int) -> *mut RawValue,
    db_config: DbConfig,
    db_filename: unsafe extern "C" fn(*mut Connection, *const c_char) -> *const c_char,
    db_status: DbStatus,
    finalize: unsafe extern "C" fn(*mut RawStatement) -> c_int,
    get_autocommit: unsafe extern "C" fn(*mut Connection) -> c_int,
    limit: Limit,
    next_stmt: NextStatement,
    prepare_v2: PrepareV2,
    reset: OfStatement,
    set_authorizer: SetAuthorizer,
    sql: unsafe extern "C" fn(*mut RawStatement) -> *const c_char,
    step: unsafe extern "C" fn(*mut RawStatement) -> c_int,
    stmt_busy: StatementBusy,
    stmt_readonly: unsafe extern "C" fn(*mut RawStatement) -> c_int,
    stmt_status: unsafe extern "C" fn(*mut RawStatement, c_int, c_int) -> c_int,
    total_changes: unsafe extern "C" fn(*mut Connection) -> c_int,
    trace_v2: TraceV2,
    transfer_bindings: unsafe extern "C" fn(*mut RawStatement, *mut RawStatement) -> c_int,
    value_subtype: unsafe extern "C" fn(*mut RawValue) -> c_uint,
}

impl StatementApi {
    /// Shows every statement of a connection whose program is under way.
    ///
    /// # Safety
    ///
    /// The connection is open, and this thread has it locked; no statement goes meanwhile.
    pub(crate) unsafe fn busy(&self, db: *mut Connection, show: &mut dyn FnMut(*mut RawStatement)) {
        let routines = (self.next_stmt, self.stmt_busy);
        // SAFETY: as the caller states.
        let next = |statement| unsafe { next_busy(routines, db, statement) };
        let mut statement = next(null_mut());
        while !statement.is_null() {
            show(statement);
            statement = next(statement);
        }
    }
}

/// The next statement of a connection that runs, or null, by its SQLite's `sqlite3_next_stmt` and
/// `sqlite3_stmt_busy`; the first one behind null.
///
/// # Safety
///
/// The connection is open, and this thread has it locked; `statement` is null or one of it.
pub(crate) unsafe fn next_busy(
    (next, is_busy): (NextStatement, StatementBusy),
    db: *mut Connection,
    mut statement: *mut RawStatement,
) -> *mut RawStatement {
    loop {
        // SAFETY: as the caller states, or the statement that came before, which is still there.
        statement = unsafe { next(db, statement) };
        // SAFETY: a live statement of this connection.
        if statement.is_null() || unsafe { is_busy(statement) } != 0 {
            return statement;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linked::{same, table};
    use std::mem::MaybeUninit;

    #[test]
    fn the_table_is_read_in_sqlites_order() {
        // SAFETY: SQLite's own table, of a version after 3.31.
        let api = unsafe { StatementApi::copy(table()) }.unwrap();
        same! { api:
            bind_blob64 is sqlite3_bind_blob64,
            bind_double is sqlite3_bind_double,
            bind_int64 is sqlite3_bind_int64,
            bind_null is sqlite3_bind_null,
            bind_text64 is sqlite3_bind_text64,
            bind_zeroblob64 is sqlite3_bind_zeroblob64,
            clear_bindings is sqlite3_clear_bindings,
            reset is sqlite3_reset,
            bind_parameter_count is sqlite3_bind_parameter_count,
            column_blob is sqlite3_column_blob,
            column_bytes is sqlite3_column_bytes,
            column_double is sqlite3_column_double,
            column_int64 is sqlite3_column_int64,
            column_text is sqlite3_column_text,
            column_type is sqlite3_column_type,
            column_value is sqlite3_column_value,
            db_config is sqlite3_db_config,
            db_filename is sqlite3_db_filename,
            db_status is sqlite3_db_status,
            finalize is sqlite3_finalize,
            get_autocommit is sqlite3_get_autocommit,
            limit is sqlite3_limit,
            next_stmt is sqlite3_next_stmt,
            prepare_v2 is sqlite3_prepare_v2,
            set_authorizer is sqlite3_set_authorizer,
            sql is sqlite3_sql,
            step is sqlite3_step,
            stmt_busy is sqlite3_stmt_busy,
            stmt_readonly is sqlite3_stmt_readonly,
            stmt_status is sqlite3_stmt_status,
            total_changes is sqlite3_total_changes,
            trace_v2 is sqlite3_trace_v2,
            value_subtype is sqlite3_value_subtype,
        }
    }

    /// `SQLITE_OMIT_DEPRECATED` leaves a null there, `SQLITE_OMIT_TRACE` another.
    #[test]
    fn an_sqlite_that_lacks_one_of_them_has_none() {
        let whole = table();
        type Leave = fn(&mut ApiRoutines);
        let without: [Leave; 2] =
            [|table| table.transfer_bindings = None, |table| table.trace_v2 = None];
        for leave in without {
            let mut table = MaybeUninit::<ApiRoutines>::uninit();
            // SAFETY: a copy of a whole table of function pointers, which has all these fields.
            let api = unsafe {
                table.as_mut_ptr().copy_from_nonoverlapping(whole, 1);
                leave(table.assume_init_mut());
                StatementApi::copy(table.as_ptr())
            };
            assert!(api.is_none());
        }
    }
}
