//! The table `dash_readers` in mode shadow.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dash_ffi::{Row, Value};
use dash_shadow::{Connection, Error};
use dash_storage::Storage;
use dash_storage::real::Real;

/// A row for each connection of dash that reads, the oldest snapshot first, and one for each
/// process that reads a copy with stock SQLite.
pub fn rows(engine: &Connection<Real>) -> Result<Vec<Row>, Error> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (clock, namespace) = (engine.now(), Real.pid_namespace());
    let integer = |number: u64| Value::from(i64::try_from(number).unwrap_or(i64::MAX));
    let row = |reader: dash_shadow::Reader| {
        // The engine's clock begins anywhere.
        let ago = Duration::from_nanos(clock.saturating_sub(reader.since));
        let process = if reader.namespace == namespace { reader.process } else { 0 };
        vec![
            integer(process),
            "dash".into(),
            Value::from(now.saturating_sub(ago).as_secs_f64()),
            integer(reader.sequence),
            integer(reader.kept_bytes),
        ]
    };
    let stock = |process: Option<u32>| {
        let mut row = vec![integer(process.map_or(0, u64::from)), "stock".into()];
        row.resize(row.len() + 3, Value::Null);
        row
    };
    let ours = engine.readers()?.into_iter().map(row);
    Ok(ours.chain(engine.stock_readers()?.into_iter().map(stock)).collect())
}
