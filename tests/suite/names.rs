//! Opening files whose names are any bytes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use rusqlite::Connection;

/// Bytes of a path as SQLite's URIs want them.
pub fn escape(path: &OsStr) -> String {
    path.as_bytes()
        .iter()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' => {
                char::from(*byte).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect()
}

/// Opens any path through dash, as it is given.
pub fn open_dash(path: &OsStr, parameters: &str) -> rusqlite::Result<Connection> {
    super::load();
    Connection::open(format!("file:{}?vfs=dash{parameters}", escape(path)))
}
