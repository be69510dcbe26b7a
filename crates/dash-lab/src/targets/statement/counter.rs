//! What `dash_stats` counts of a connection.

use rusqlite::Connection;

use crate::failure::{Explain, Result};

/// `log_bytes` and `records` of `dash_stats`.
pub fn counters(db: &Connection) -> Result<[i64; 2]> {
    Ok([counter(db, "log_bytes")?, counter(db, "records")?])
}

/// The counter of this name.
pub fn counter(db: &Connection, name: &str) -> Result<i64> {
    let sql = "SELECT value FROM dash_stats WHERE name = ?1";
    db.query_row(sql, [name], |row| row.get(0)).explain(format!("asking for {name}"))
}
