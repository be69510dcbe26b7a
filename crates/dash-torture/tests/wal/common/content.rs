//! What the database holds.

use rusqlite::Connection;

/// What SQLite says, and what the engine said to it.
pub fn said(error: &rusqlite::Error) -> String {
    format!("{error}: {}", dash_ffi::last_error().unwrap_or_default())
}

/// A row's bytes.
pub fn payload(number: i64) -> Vec<u8> {
    let mut state = number.unsigned_abs().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..180)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state.to_le_bytes()[7]
        })
        .collect()
}

/// A commit's number, and its bytes.
type Row = (i64, Vec<u8>);

/// How many commits a database holds, if it holds all up to one, and nothing is wrong with it.
pub fn content(db: &Connection) -> Result<i64, String> {
    let read = || -> rusqlite::Result<(String, i64, Vec<Row>)> {
        let sound = db.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
        let count = db.query_row("SELECT n FROM u", [], |row| row.get(0))?;
        let mut statement = db.prepare("SELECT k, v FROM t ORDER BY k")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok((sound, count, rows.collect::<rusqlite::Result<_>>()?))
    };
    let (sound, count, rows) = read().map_err(|error| said(&error))?;
    if sound != "ok" {
        return Err(sound);
    }
    for (expected, (number, bytes)) in (1..).zip(&rows) {
        if expected != *number || *bytes != payload(*number) {
            return Err(format!("row {number} is in the place of {expected}"));
        }
    }
    match rows.len() as i64 == count {
        true => Ok(count),
        false => Err(format!("{} rows, and {count} are counted", rows.len())),
    }
}
