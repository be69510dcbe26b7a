//! The tables about all connections: times as SQL shows them.

use std::time::{SystemTime, UNIX_EPOCH};

use dash_ffi::{Result, Row, Value};
use dash_wal::LockName;

use super::link::Link;
use crate::errors::to_sqlite;
use crate::mode::Watched;

/// The rows of one.
///
/// # Errors
///
/// Those of looking at locks.
pub fn rows(link: &Link, what: Watched<'_>) -> Result<Vec<Row>> {
    let mut state = link.state();
    let engine = state.engine()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let clock = engine.now();
    // The engine's clock begins anywhere.
    let time = |at: u64| {
        let ago = std::time::Duration::from_nanos(clock.saturating_sub(at));
        Value::from(now.saturating_sub(ago).as_secs_f64())
    };
    let whole = |number: u32| i64::from(number);
    Ok(match what {
        Watched::Commits => engine
            .recent_commits()
            .into_iter()
            .map(|commit| {
                vec![
                    time(commit.at),
                    whole(commit.process).into(),
                    whole(commit.frames).into(),
                    commit.record.map(|record| whole(record.bytes)).into(),
                    micros(commit.wait).into(),
                    commit.flush.map(micros).into(),
                    commit.record.map(|record| whole(record.commits)).into(),
                ]
            })
            .collect(),
        Watched::Locks => {
            let entries = engine.lock_entries().map_err(to_sqlite)?;
            let row = |entry: dash_wal::LockEntry| {
                let lock = match entry.lock {
                    LockName::Writer => "writer",
                    LockName::Checkpoint => "checkpoint",
                };
                let (place, process) = (whole(entry.place), entry.process.map(whole));
                vec![lock.into(), place.into(), process.into(), entry.since.map(time).into()]
            };
            entries.into_iter().map(row).collect()
        }
        Watched::Readers => {
            let readers = engine.readers().map_err(to_sqlite)?;
            let row = |reader: dash_wal::Reader| {
                let kept = reader.kept_bytes.map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
                vec![
                    reader.process.map(whole).into(),
                    if reader.is_ours { "dash" } else { "stock" }.into(),
                    reader.since.map(time).into(),
                    reader.frame.map(whole).into(),
                    kept.into(),
                ]
            };
            readers.into_iter().map(row).collect()
        }
        Watched::Statements(schema) => link.together.statements.rows(schema),
    })
}

/// Of nanoseconds.
fn micros(nanos: u64) -> i64 {
    i64::try_from(nanos / 1000).unwrap_or(i64::MAX)
}
