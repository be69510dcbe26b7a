//! Tables: `dash_stats(name, value)` and `dash_latency(op, count, p50, p90, p99, p999, max)`, for
//! `main` or for the database named as in `dash_stats('aux')`. Both tell of this connection since
//! it was opened; times are in microseconds.

use dash_ffi::{Code, ConnectionRef, Error, Result, Row, TableFunction, Value};

use crate::main_file::MainFile;
use crate::mode::Database;

/// All of them.
pub const ALL: &[TableFunction] = &[
    TableFunction { name: c"dash_stats", columns: &["name", "value"], rows: stats },
    TableFunction {
        name: c"dash_latency",
        columns: &["op", "count", "p50", "p90", "p99", "p999", "max"],
        rows: latency,
    },
];

fn integer(value: u64) -> Value {
    i64::try_from(value).unwrap_or(i64::MAX).into()
}

fn visit<R>(
    connection: &ConnectionRef<'_>,
    schema: Option<&str>,
    visit: impl FnOnce(&dyn Database) -> Option<R>,
) -> Result<R> {
    let schema = schema.unwrap_or("main");
    let seen = connection.with_file(schema, |file| {
        file.as_any().downcast_mut::<MainFile>().and_then(|file| visit(&*file.database))
    });
    seen.flatten().ok_or_else(|| {
        Error::new(
            Code::ERROR,
            format!(
                "{schema} is not a database that dash writes (dash_engine('{schema}') tells): open it with ?vfs=dash"
            ),
        )
    })
}

fn stats(connection: &ConnectionRef<'_>, schema: Option<&str>) -> Result<Vec<Row>> {
    let rows = visit(connection, schema, |database| database.statistics())?;
    Ok(rows.into_iter().map(|(name, value)| vec![name.into(), integer(value)]).collect())
}

fn latency(connection: &ConnectionRef<'_>, schema: Option<&str>) -> Result<Vec<Row>> {
    visit(connection, schema, |database| database.latencies())
}
