//! SQL functions: `dash_version()`, `dash_engine([schema])`, `dash_last_error()`. `dash_backup()`
//! is in [`crate::backup`].

use dash_ffi::{Context, FunctionFlags, Result, ScalarFunction, Value};

use crate::backup;
use crate::main_file::MainFile;

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
        file.as_any().downcast_mut::<MainFile>().map_or("none", |file| file.look().engine())
    });
    Ok(engine.unwrap_or("none").into())
}

/// The message of the last error of dash in this thread, or else in this process.
fn last_error(_: &mut Context<'_>) -> Result<Value> {
    Ok(dash_ffi::last_error().into())
}
