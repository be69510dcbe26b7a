//! SQL functions: `dash_version()`, `dash_engine([schema])`, `dash_last_error()`. `dash_backup()`
//! is in [`crate::backup`].

use dash_ffi::{ConnectionRef, Context, FunctionFlags, Result, ScalarFunction, Value};

use crate::backup;
use crate::main_file::MainFile;
use crate::refused;

/// All of them.
pub const ALL: &[ScalarFunction] = &[
    ScalarFunction {
        name: c"dash_version",
        min_args: 0,
        max_args: 0,
        flags: FunctionFlags::INNOCUOUS.union(FunctionFlags::DETERMINISTIC),
        call: version,
    },
    ScalarFunction {
        name: c"dash_engine",
        min_args: 0,
        max_args: 1,
        flags: FunctionFlags::INNOCUOUS,
        call: engine,
    },
    ScalarFunction {
        name: c"dash_last_error",
        min_args: 0,
        max_args: 0,
        flags: FunctionFlags::INNOCUOUS,
        call: last_error,
    },
    ScalarFunction {
        name: c"dash_backup",
        min_args: 1,
        max_args: 3,
        flags: FunctionFlags::DIRECTONLY,
        call: backup::dash_backup,
    },
];

/// The version of dash, such as 0.1.0.
fn version(_: &mut Context<'_>) -> Result<Value> {
    Ok(env!("CARGO_PKG_VERSION").into())
}

/// `shadow`; `plain` for a file in one of SQLite's own modes that goes through dash; `none` for a
/// database that is not on dash.
fn engine(context: &mut Context<'_>) -> Result<Value> {
    let schema = match context.args().first() {
        None => "main",
        Some(Value::Text(schema)) => schema,
        Some(_) => return Ok(Value::Null),
    };
    let engine = context.connection().with_file_below(schema, |file| {
        file.downcast_mut::<MainFile>().map_or("none", |file| file.look().engine())
    });
    Ok(engine.unwrap_or("none").into())
}

/// The message of the last error of dash in this thread, or else in this process; else why this
/// connection's database is not on dash, or by stock SQLite's rules.
fn last_error(context: &mut Context<'_>) -> Result<Value> {
    refused::tell();
    if dash_ffi::last_error_at().is_none() {
        refused::tell_of_others();
    }
    let said = dash_ffi::last_error();
    Ok(said.or_else(|| without_dash(context.connection())).into())
}

/// `None`: it is as it was asked for, or in memory.
fn without_dash(connection: &ConnectionRef<'_>) -> Option<String> {
    let path = connection.path("main")?;
    let reason = connection.with_file_below("main", |file| {
        let file = file.downcast_mut::<MainFile>()?;
        let words = file.look().words(connection);
        words.into_iter().find(|(name, _)| *name == "reason")?.1
    });
    let name = path.file_name().unwrap_or(path.as_os_str()).display();
    reason.unwrap_or_else(|| {
        Some(format!(
            "this connection was opened without dash, which SQLite can't add to it: open {name} again with vfs=dash in its URI \
             (in sqlite3: .open file:{name}?vfs=dash)"
        ))
    })
}
