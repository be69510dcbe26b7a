//! Tables: `dash_stats(name, value)` and `dash_latency(op, count, p50, p90, p99, p999, max)`, for `main` or for
//! the database named as in `dash_stats('aux')`. Both tell of this connection since it was opened; times are in
//! microseconds.

use dash_ffi::{Code, ConnectionRef, Error, Result, Row, TableFunction, Value};

use crate::main_file::MainFile;
use crate::shadow_file::ShadowFile;

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
    visit: impl FnOnce(&mut ShadowFile) -> R,
) -> Result<R> {
    let schema = schema.unwrap_or("main");
    let seen = connection.with_file(schema, |file| {
        file.as_any().downcast_mut::<MainFile>().and_then(MainFile::shadow).map(visit)
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
    visit(connection, schema, |file| {
        let mut rows: Vec<Row> = file
            .engine
            .statistics()
            .rows()
            .into_iter()
            .map(|(name, value)| vec![name.into(), integer(value)])
            .collect();
        // Commits that only survive a crash of the process: synchronous was OFF.
        rows.push(vec!["unflushed_commits".into(), integer(file.progress.unflushed)]);
        // Locks that were waited for, and had as soon as whoever was in the way was done.
        rows.push(vec!["wakeups".into(), integer(file.wakeups)]);
        // The newest commit's number, over all connections.
        rows.push(vec!["sequence".into(), integer(file.engine.sequence())]);
        rows
    })
}

fn latency(connection: &ConnectionRef<'_>, schema: Option<&str>) -> Result<Vec<Row>> {
    visit(connection, schema, |file| {
        file.latencies
            .rows()
            .into_iter()
            .map(|row| {
                let mut values = vec![row.op.name().into(), integer(row.count)];
                values.extend(row.times.into_iter().map(Value::Real));
                values
            })
            .collect()
    })
}
