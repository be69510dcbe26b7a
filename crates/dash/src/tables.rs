//! Tables, of `main` or of the database named as in `dash_stats('aux')`.
//!
//! | of this connection since it was opened, or its mode was changed | |
//! |---|---|
//! | `dash_stats` | counters, beside those of all connections |
//! | `dash_latency` | how long its operations took |
//! | **of all connections to the database** | |
//! | `dash_commits` | the last 1,000 commits |
//! | `dash_locks` | who has which lock, and who waits for it |
//! | `dash_readers` | who reads |
//! | **of this process's connections to the database** | |
//! | `dash_statements` | the last 1,000 statements that were recorded |

use dash_ffi::{Code, ConnectionRef, Error, Result, Row, TableFunction, Value};
use dash_statement::Schema;

use crate::main_file::MainFile;
use crate::mode::{Database, Watched};
use crate::plain;
use crate::reference::meaning;

/// All of them.
pub const ALL: &[TableFunction] = &[
    TableFunction {
        name: c"dash_stats",
        columns: &["name", "value", "meaning", "total"],
        rows: stats,
    },
    TableFunction {
        name: c"dash_latency",
        columns: &["op", "count", "p50", "p90", "p99", "p999", "max"],
        rows: latency,
    },
    TableFunction {
        name: c"dash_commits",
        columns: &["time", "pid", "frames", "log_bytes", "wait", "flush", "group_size"],
        rows: |connection, schema| watched(connection, schema, Watched::Commits),
    },
    TableFunction {
        name: c"dash_locks",
        columns: &["lock", "place", "pid", "since"],
        rows: |connection, schema| watched(connection, schema, Watched::Locks),
    },
    TableFunction {
        name: c"dash_readers",
        columns: &["pid", "kind", "since", "frame", "kept_bytes"],
        rows: |connection, schema| watched(connection, schema, Watched::Readers),
    },
    TableFunction {
        name: c"dash_statements",
        columns: &[
            "commit_number",
            "time",
            "connection",
            "sql",
            "parameters",
            "clock",
            "nested",
            "reason",
            "replay",
        ],
        rows: statements,
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
    let seen = connection.with_file_below(schema, |file| {
        let database = file.downcast_mut::<MainFile>()?.look();
        Some(visit(database).ok_or_else(|| database.engine()))
    });
    let refusal = match seen.flatten() {
        Some(Ok(seen)) => return Ok(seen),
        Some(Err(engine)) if engine == plain::MODE.engine() => format!(
            "{schema} is in one of SQLite's own journal modes, where dash counts nothing: PRAGMA journal_mode=wal or =shadow changes that"
        ),
        Some(Err(_)) => format!("{schema} is open for reading only, where dash counts nothing"),
        None => format!("{schema} is not open through dash: open it with ?vfs=dash"),
    };
    Err(Error::new(Code::ERROR, refusal))
}

fn stats(connection: &ConnectionRef<'_>, schema: Option<&str>) -> Result<Vec<Row>> {
    // SQLite tells nobody else how much it asks to be flushed; it must not be asked within a visit.
    let synchronous = connection.pragma(schema.unwrap_or("main"), "synchronous");
    let (engine, rows, words, durability) = visit(connection, schema, |database| {
        let durability = database.durability(synchronous.as_deref());
        Some((database.engine(), database.statistics()?, database.words(connection), durability))
    })?;
    let rows = rows.into_iter().map(|row| (row.name, integer(row.value), row.total.map(integer)));
    let words = words.into_iter().map(|(name, word)| (name, Value::from(word)));
    let words = words.chain(durability.map(|value| ("durability", value)));
    let rows = rows.chain(words.map(|(name, value)| (name, value, None)));
    let row = |(name, value, total): (&str, Value, Option<Value>)| {
        vec![name.into(), value, meaning(engine, name).into(), total.unwrap_or(Value::Null)]
    };
    Ok(rows.map(row).collect())
}

fn latency(connection: &ConnectionRef<'_>, schema: Option<&str>) -> Result<Vec<Row>> {
    visit(connection, schema, |database| database.latencies())
}

fn statements(connection: &ConnectionRef<'_>, schema: Option<&str>) -> Result<Vec<Row>> {
    // Nothing must be run within a visit.
    let known = schema_of(connection, schema.unwrap_or("main"));
    watched(connection, schema, Watched::Statements(&known))
}

/// What the schema of a database is now. Where it can't be read no table is known.
fn schema_of(connection: &ConnectionRef<'_>, name: &str) -> Schema {
    let mut schema = Schema::default();
    if connection.pragma(name, "encoding").as_deref() != Some("UTF-8") {
        schema.is_not_utf8();
    }
    let quoted = name.replace('"', "\"\"");
    let query = format!("SELECT type, tbl_name, sql FROM \"{quoted}\".sqlite_master");
    for row in connection.texts(&query) {
        if let [Some(kind), Some(table), sql] = &row[..] {
            schema.add(kind, table, sql.as_deref());
        }
    }
    schema
}

fn watched(
    connection: &ConnectionRef<'_>,
    schema: Option<&str>,
    what: Watched<'_>,
) -> Result<Vec<Row>> {
    visit(connection, schema, |database| {
        let refused = || {
            let (schema, engine) = (schema.unwrap_or("main"), database.engine());
            let message = format!("{schema} is in mode {engine}; only mode wal keeps this table");
            Err(Error::new(Code::ERROR, message))
        };
        Some(database.watched(what).unwrap_or_else(refused))
    })?
}
