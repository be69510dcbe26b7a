//! The routines of one SQLite copy that dash calls, copied out of the table that copy handed over.
//!
//! Invariants: nothing is read from a table of a version before 3.31 but its version; every routine
//! here was present when copied, or its type says that it may not have been; texts go through
//! `"%s"`, never as formats.

use crate::code::Code;
use crate::mutex_api::Mutexes;
use crate::statement_api::StatementApi;
use crate::sys::backup::{Backup, BackupInit, ProgressHandler};
use crate::sys::statement::{DropModules, NextStatement, PrepareV2, RawStatement};
use crate::sys::{
    ApiRoutines, CompileOptionGet, CompileOptionUsed, Connection, Context, CreateFunction, DbName,
    Destructor, EntryPoint, Exec, Module, RawValue, RawVfs, SourceId, TxnState,
};
use core::ffi::{CStr, c_char, c_int, c_uchar, c_void};
use std::ffi::CString;

/// The oldest SQLite that dash runs in: 3.31.0, the first whose filename routines and innocuous
/// tables it needs.
pub const OLDEST_SQLITE: i32 = 3_031_000;

/// `SQLITE_TXN_WRITE`.
const TXN_WRITE: c_int = 2;

/// A number before a routine: the version that appended it to the table.
macro_rules! routines {
    ($($name:ident: $signature:ty,)* $($version:literal => $later:ident: $of:ty,)*) => {
        /// Copied function pointers: valid as long as the SQLite they came from is mapped, which is
        /// for the life of the process, since the library that holds them is loaded permanently.
        #[derive(Clone, Copy)]
        pub(crate) struct Api {
            version: i32,
            /// What looking at statements needs; `None`: this SQLite lacks some of it.
            pub(crate) statements: Option<StatementApi>,
            pub(crate) compileoption_get: Option<CompileOptionGet>,
            compileoption_used: Option<CompileOptionUsed>,
            pub(crate) mutexes: Option<Mutexes>,
            pub(crate) sourceid: Option<SourceId>,
            /// `None`: statements of dash's own can't be interrupted.
            pub(crate) progress_handler: Option<ProgressHandler>,
            /// `None`: there are no virtual tables.
            pub(crate) drop_modules: Option<DropModules>,
            $(pub(crate) $name: $signature,)*
            $(pub(crate) $later: Option<$of>,)*
        }

        impl Api {
            /// Copies the routines out of a table.
            ///
            /// # Safety
            ///
            /// `table` is null or the table that SQLite handed to an extension's entry point.
            pub(crate) unsafe fn copy(table: *const ApiRoutines) -> Result<Self, Unusable> {
                if table.is_null() {
                    return Err(Unusable::NoTable);
                }
                // SAFETY: every SQLite that loads extensions has these two fields; the fields are
                // read one by one, so that no reference covers a part of the table that an older
                // version lacks.
                let (version, mprintf) = unsafe { ((*table).libversion_number, (*table).mprintf) };
                let (Some(version), Some(mprintf)) = (version, mprintf) else {
                    return Err(Unusable::NoTable);
                };
                // SAFETY: `sqlite3_libversion_number` takes nothing and may be called at any time.
                let version = unsafe { version() };
                if version < OLDEST_SQLITE {
                    return Err(Unusable::TooOld { version, mprintf });
                }
                Ok(Self {
                    version,
                    // SAFETY: as below.
                    statements: unsafe { StatementApi::copy(table) },
                    // SAFETY: as below.
                    compileoption_get: unsafe { (*table).compileoption_get },
                    // SAFETY: as below.
                    compileoption_used: unsafe { (*table).compileoption_used },
                    // SAFETY: as below.
                    mutexes: unsafe { Mutexes::copy(table) },
                    // SAFETY: as below.
                    sourceid: unsafe { (*table).sourceid },
                    // SAFETY: as below.
                    progress_handler: unsafe { (*table).progress_handler },
                    // SAFETY: as below.
                    drop_modules: unsafe { (*table).drop_modules },
                    $($later: match version >= $version {
                        // SAFETY: of a version that has the field.
                        true => unsafe { (*table).$later },
                        false => None,
                    },)*
                    // SAFETY: of 3.31 and later, which have all of these.
                    $($name: unsafe { (*table).$name }
                        .ok_or(Unusable::Missing { name: stringify!($name), mprintf })?,)*
                })
            }
        }
    };
}

type Mprintf = unsafe extern "C" fn(*const c_char, ...) -> *mut c_char;

routines! {
    backup_finish: unsafe extern "C" fn(*mut Backup) -> c_int,
    backup_init: BackupInit,
    backup_step: unsafe extern "C" fn(*mut Backup, c_int) -> c_int,
    close: unsafe extern "C" fn(*mut Connection) -> c_int,
    errmsg: unsafe extern "C" fn(*mut Connection) -> *const c_char,
    exec: Exec,
    open_v2: unsafe extern "C" fn(
        *const c_char, *mut *mut Connection, c_int, *const c_char,
    ) -> c_int,
    auto_extension: unsafe extern "C" fn(Option<EntryPoint>) -> c_int,
    context_db_handle: unsafe extern "C" fn(*mut Context) -> *mut Connection,
    create_function_v2: CreateFunction,
    create_module_v2: unsafe extern "C" fn(
        *mut Connection, *const c_char, *const Module, *mut c_void, Option<Destructor>,
    ) -> c_int,
    db_filename: unsafe extern "C" fn(*mut Connection, *const c_char) -> *const c_char,
    db_readonly: unsafe extern "C" fn(*mut Connection, *const c_char) -> c_int,
    extended_errcode: unsafe extern "C" fn(*mut Connection) -> c_int,
    system_errno: unsafe extern "C" fn(*mut Connection) -> c_int,
    declare_vtab: unsafe extern "C" fn(*mut Connection, *const c_char) -> c_int,
    file_control: unsafe extern "C" fn(*mut Connection, *const c_char, c_int, *mut c_void) -> c_int,
    filename_database: unsafe extern "C" fn(*const c_char) -> *const c_char,
    finalize: unsafe extern "C" fn(*mut RawStatement) -> c_int,
    free: unsafe extern "C" fn(*mut c_void),
    get_autocommit: unsafe extern "C" fn(*mut Connection) -> c_int,
    log: unsafe extern "C" fn(c_int, *const c_char, ...),
    mprintf: Mprintf,
    next_stmt: NextStatement,
    prepare_v2: PrepareV2,
    result_blob64: unsafe extern "C" fn(*mut Context, *const c_void, u64, Option<Destructor>),
    result_double: unsafe extern "C" fn(*mut Context, f64),
    result_error: unsafe extern "C" fn(*mut Context, *const c_char, c_int),
    result_error_code: unsafe extern "C" fn(*mut Context, c_int),
    result_int64: unsafe extern "C" fn(*mut Context, i64),
    result_null: unsafe extern "C" fn(*mut Context),
    result_text64: unsafe extern "C" fn(
        *mut Context, *const c_char, u64, Option<Destructor>, c_uchar,
    ),
    step: unsafe extern "C" fn(*mut RawStatement) -> c_int,
    stmt_busy: unsafe extern "C" fn(*mut RawStatement) -> c_int,
    uri_key: unsafe extern "C" fn(*const c_char, c_int) -> *const c_char,
    uri_parameter: unsafe extern "C" fn(*const c_char, *const c_char) -> *const c_char,
    user_data: unsafe extern "C" fn(*mut Context) -> *mut c_void,
    value_blob: unsafe extern "C" fn(*mut RawValue) -> *const c_void,
    value_bytes: unsafe extern "C" fn(*mut RawValue) -> c_int,
    value_double: unsafe extern "C" fn(*mut RawValue) -> f64,
    value_int64: unsafe extern "C" fn(*mut RawValue) -> i64,
    value_text: unsafe extern "C" fn(*mut RawValue) -> *const c_uchar,
    value_type: unsafe extern "C" fn(*mut RawValue) -> c_int,
    vfs_find: unsafe extern "C" fn(*const c_char) -> *mut RawVfs,
    vfs_register: unsafe extern "C" fn(*mut RawVfs, c_int) -> c_int,
    vtab_config: unsafe extern "C" fn(*mut Connection, c_int, ...) -> c_int,
    3_034_000 => txn_state: TxnState,
    3_039_000 => db_name: DbName,
    3_041_000 => is_interrupted: unsafe extern "C" fn(*mut Connection) -> c_int,
}

/// Why a table of routines can't be used.
pub(crate) enum Unusable {
    /// There is no table: SQLite was built without extension loading.
    NoTable,
    /// An SQLite before [`OLDEST_SQLITE`].
    TooOld { version: i32, mprintf: Mprintf },
    /// An SQLite built without a part that dash needs.
    Missing { name: &'static str, mprintf: Mprintf },
}

impl Unusable {
    /// The message for people, in memory of SQLite; null if there is no allocator to make it with.
    pub(crate) fn message(&self) -> *mut c_char {
        let (text, mprintf) = match self {
            Self::NoTable => return core::ptr::null_mut(),
            Self::TooOld { version, mprintf } => (
                format!(
                    "SQLite {} is too old: {} or later is needed",
                    dotted(*version),
                    dotted(OLDEST_SQLITE)
                ),
                *mprintf,
            ),
            Self::Missing { name, mprintf } => {
                (format!("this SQLite was built without sqlite3_{name}, which is needed"), *mprintf)
            }
        };
        allocate_text(mprintf, &text)
    }
}

/// 3031000 as "3.31.0".
fn dotted(version: i32) -> String {
    format!("{}.{}.{}", version / 1_000_000, version / 1000 % 1000, version % 1000)
}

/// A C string of a text; a zero byte inside, which C can't carry, becomes a space.
pub(crate) fn c_text(text: &str) -> CString {
    CString::new(text).unwrap_or_else(|_| CString::new(text.replace('\0', " ")).unwrap_or_default())
}

fn allocate_text(mprintf: Mprintf, text: &str) -> *mut c_char {
    let text = c_text(text);
    // SAFETY: "%s" takes one C string, which is given.
    unsafe { mprintf(c"%s".as_ptr(), text.as_ptr()) }
}

impl Api {
    /// The number of the SQLite version, such as 3031000.
    pub(crate) fn version(&self) -> i32 {
        self.version
    }

    /// Whether this SQLite was built with an option, named without `SQLITE_`; no, if it does not
    /// say.
    pub(crate) fn is_built_with(&self, option: &CStr) -> bool {
        // SAFETY: the routine takes a C string.
        self.compileoption_used.is_some_and(|used| unsafe { used(option.as_ptr()) } != 0)
    }

    /// The name of the database with a number in a connection: 0 is `main`, 1 is `temp`, those that
    /// were attached follow. Null behind the last one, and in an SQLite before 3.39, which can't
    /// tell.
    ///
    /// # Safety
    ///
    /// `db` is an open connection of this SQLite, locked by this thread.
    pub(crate) unsafe fn db_name(&self, db: *mut Connection, number: c_int) -> *const c_char {
        // SAFETY: as the caller states.
        self.db_name.map_or(core::ptr::null(), |name| unsafe { name(db, number) })
    }

    /// Whether a transaction that writes is open on a database; `None` in an SQLite before 3.34,
    /// which can't tell.
    ///
    /// # Safety
    ///
    /// As for [`Api::db_name`]; `schema` is a C string.
    pub(crate) unsafe fn is_written(
        &self,
        db: *mut Connection,
        schema: *const c_char,
    ) -> Option<bool> {
        // SAFETY: as the caller states.
        self.txn_state.map(|state| unsafe { state(db, schema) } == TXN_WRITE)
    }

    /// Writes a line to the error log of the host.
    pub(crate) fn log(&self, code: Code, text: &str) {
        let text = c_text(text);
        // SAFETY: "%s" takes one C string, which is given.
        unsafe { (self.log)(code.raw(), c"%s".as_ptr(), text.as_ptr()) }
    }

    /// A copy of `text` in memory of SQLite, which frees it; null if there is none left.
    pub(crate) fn allocate(&self, text: &str) -> *mut c_char {
        allocate_text(self.mprintf, text)
    }

    /// Like [`Api::allocate`], for bytes that need not be UTF-8.
    pub(crate) fn allocate_bytes(&self, text: &CStr) -> *mut c_char {
        // SAFETY: "%s" takes one C string, which is given.
        unsafe { (self.mprintf)(c"%s".as_ptr(), text.as_ptr()) }
    }

    /// Replaces a text in memory of SQLite, which may be null, by another.
    ///
    /// # Safety
    ///
    /// `*place` is null or was allocated by this SQLite, and nothing else frees it.
    pub(crate) unsafe fn replace(&self, place: &mut *mut c_char, text: *mut c_char) {
        let old = core::mem::replace(place, text);
        // SAFETY: allocated by this SQLite, as the caller states; free(NULL) does nothing.
        unsafe { (self.free)(old.cast()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linked::{same, table};
    use rusqlite::ffi;
    use std::mem::MaybeUninit;

    /// Reading every routine at its place gives the function that the linker knows by that name.
    #[test]
    fn the_table_is_read_in_sqlites_order() {
        let table = table();
        // SAFETY: SQLite's own table, of a version after 3.31.
        let api = unsafe { Api::copy(table) }.map_err(|_| "unusable").unwrap();
        same! { api:
            auto_extension is sqlite3_auto_extension,
            backup_finish is sqlite3_backup_finish,
            backup_init is sqlite3_backup_init,
            backup_step is sqlite3_backup_step,
            close is sqlite3_close,
            context_db_handle is sqlite3_context_db_handle,
            create_function_v2 is sqlite3_create_function_v2,
            create_module_v2 is sqlite3_create_module_v2,
            db_filename is sqlite3_db_filename,
            db_readonly is sqlite3_db_readonly,
            declare_vtab is sqlite3_declare_vtab,
            errmsg is sqlite3_errmsg,
            exec is sqlite3_exec,
            file_control is sqlite3_file_control,
            filename_database is sqlite3_filename_database,
            finalize is sqlite3_finalize,
            free is sqlite3_free,
            get_autocommit is sqlite3_get_autocommit,
            log is sqlite3_log,
            mprintf is sqlite3_mprintf,
            next_stmt is sqlite3_next_stmt,
            open_v2 is sqlite3_open_v2,
            prepare_v2 is sqlite3_prepare_v2,
            result_blob64 is sqlite3_result_blob64,
            result_double is sqlite3_result_double,
            result_error is sqlite3_result_error,
            result_error_code is sqlite3_result_error_code,
            result_int64 is sqlite3_result_int64,
            result_null is sqlite3_result_null,
            result_text64 is sqlite3_result_text64,
            step is sqlite3_step,
            stmt_busy is sqlite3_stmt_busy,
            uri_key is sqlite3_uri_key,
            uri_parameter is sqlite3_uri_parameter,
            user_data is sqlite3_user_data,
            value_blob is sqlite3_value_blob,
            value_bytes is sqlite3_value_bytes,
            value_double is sqlite3_value_double,
            value_int64 is sqlite3_value_int64,
            value_text is sqlite3_value_text,
            value_type is sqlite3_value_type,
            vfs_find is sqlite3_vfs_find,
            vfs_register is sqlite3_vfs_register,
            vtab_config is sqlite3_vtab_config,
        }
        macro_rules! same_if_there {
            ($($name:ident is $function:ident,)*) => {$(
                let found = api.$name.map(|routine| routine as *const c_void);
                assert_eq!(found, Some(ffi::$function as *const c_void));
            )*};
        }
        same_if_there! {
            compileoption_used is sqlite3_compileoption_used,
            db_name is sqlite3_db_name,
            is_interrupted is sqlite3_is_interrupted,
            progress_handler is sqlite3_progress_handler,
            txn_state is sqlite3_txn_state,
        }
        assert_eq!(api.version(), rusqlite::version_number());
        // The last field of 3.31, which closes the count.
        // SAFETY: as above.
        let last = unsafe { (*table).filename_wal };
        assert_eq!(last, ffi::sqlite3_filename_wal as *const c_void);
    }

    unsafe extern "C" fn version_3_30() -> c_int {
        3_030_001
    }

    /// A table of 3.30: only its version and its allocator may be read.
    #[test]
    fn an_sqlite_that_is_too_old_is_named() {
        let mut table = MaybeUninit::<ApiRoutines>::zeroed();
        // SAFETY: zeroed memory of this type; both fields are pointers to functions.
        let unusable = unsafe {
            (*table.as_mut_ptr()).libversion_number = Some(version_3_30);
            (*table.as_mut_ptr()).mprintf = Some(ffi::sqlite3_mprintf);
            Api::copy(table.as_ptr())
        };
        let message = unusable.err().unwrap().message();
        // SAFETY: a text that SQLite allocated, freed once.
        let text = unsafe {
            let text = CStr::from_ptr(message).to_str().unwrap().to_owned();
            ffi::sqlite3_free(message.cast());
            text
        };
        assert_eq!(text, "SQLite 3.30.1 is too old: 3.31.0 or later is needed");
    }

    #[test]
    fn an_sqlite_without_a_part_that_is_needed_is_told_so() {
        let mut table = MaybeUninit::<ApiRoutines>::zeroed();
        // SAFETY: zeroed memory of this type; both fields are pointers to functions.
        let unusable = unsafe {
            (*table.as_mut_ptr()).libversion_number = Some(ffi::sqlite3_libversion_number);
            (*table.as_mut_ptr()).mprintf = Some(ffi::sqlite3_mprintf);
            Api::copy(table.as_ptr())
        };
        assert!(matches!(unusable, Err(Unusable::Missing { .. })));
    }
}
