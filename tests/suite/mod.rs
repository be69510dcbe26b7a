//! What the tests share: the extension that was built with them, loaded into a stock SQLite.

#![allow(dead_code, reason = "each test uses a part")]

pub mod casualty;
pub mod damage;
pub mod error_log;
pub mod fence;
pub mod parts;
pub mod peers;
pub mod rights;
pub mod sandbox;
pub mod sql;
pub mod steps;
pub mod strangers;
pub mod workload;

use std::ffi::OsStr;
use std::path::Path;

pub use dash_testing::extension::load;
pub use dash_testing::names::uri;
use rusqlite::Connection;

/// Opens `path` through dash.
pub fn open(path: &Path) -> Connection {
    load();
    Connection::open(uri(path, "")).expect("opens")
}

/// Opens any path through dash, as it is given.
pub fn open_dash(path: &OsStr, parameters: &str) -> rusqlite::Result<Connection> {
    load();
    Connection::open(uri(path, parameters))
}

/// Opens `path` as any SQLite would.
pub fn stock(path: &Path) -> Connection {
    Connection::open(path).expect("opens")
}

/// One value.
pub fn one<T: rusqlite::types::FromSql>(connection: &Connection, sql: &str) -> T {
    connection.query_row(sql, [], |row| row.get(0)).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// Panics unless SQLite finds nothing wrong.
pub fn check(connection: &Connection) {
    assert_eq!(one::<String>(connection, "PRAGMA integrity_check"), "ok");
}
