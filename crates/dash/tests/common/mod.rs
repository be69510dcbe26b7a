//! What the tests share: a folder with databases, opened through dash or through stock SQLite.

#![allow(dead_code, reason = "each test file uses its part")]

use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::Duration;

pub use rusqlite::{Connection, ErrorCode, Result};

static REGISTERED: Once = Once::new();

/// Registers dash in this process's SQLite.
pub fn register() {
    REGISTERED.call_once(|| dash::register!(rusqlite).expect("registers"));
}

/// A folder that goes away with the test.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        register();
        Self(tempfile::tempdir().expect("a folder"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        // SQLite resolves symbolic links, and so do expectations.
        self.0.path().canonicalize().expect("exists").join(name)
    }

    pub fn exists(&self, name: &str) -> bool {
        self.path(name).symlink_metadata().is_ok()
    }

    /// Opens through dash; `parameters` such as `&dash_commit=paper`.
    pub fn try_open(&self, name: &str, parameters: &str) -> Result<Connection> {
        let db = Connection::open(uri(&self.path(name), "dash", parameters))?;
        db.busy_timeout(Duration::from_secs(5))?;
        Ok(db)
    }

    pub fn open(&self, name: &str) -> Connection {
        self.try_open(name, "").expect("opens through dash")
    }

    /// Opens through stock SQLite.
    pub fn stock(&self, name: &str) -> Connection {
        let db = Connection::open(uri(&self.path(name), "unix", "")).expect("opens");
        db.busy_timeout(Duration::ZERO).expect("sets");
        db
    }
}

pub fn uri(path: &Path, vfs: &str, parameters: &str) -> String {
    format!("file:{}?vfs={vfs}{parameters}", path.display())
}

pub fn text(db: &Connection, sql: &str) -> String {
    db.query_row(sql, [], |row| {
        row.get::<_, rusqlite::types::Value>(0).map(|value| match value {
            rusqlite::types::Value::Text(text) => text,
            rusqlite::types::Value::Integer(number) => number.to_string(),
            rusqlite::types::Value::Real(number) => number.to_string(),
            rusqlite::types::Value::Null => "NULL".into(),
            rusqlite::types::Value::Blob(_) => "BLOB".into(),
        })
    })
    .unwrap_or_else(|error| panic!("{sql}: {error}"))
}

pub fn number(db: &Connection, sql: &str) -> i64 {
    text(db, sql).parse().expect("a number")
}

#[track_caller]
pub fn message(result: Result<impl Sized>) -> String {
    result.map(drop).expect_err("fails").to_string()
}

#[track_caller]
pub fn code(result: Result<impl Sized>) -> ErrorCode {
    match result.map(drop).expect_err("fails") {
        rusqlite::Error::SqliteFailure(error, _) => error.code,
        other => panic!("{other}"),
    }
}

pub fn last_error(db: &Connection) -> String {
    text(db, "SELECT dash_last_error()")
}

pub fn whole(db: &Connection) {
    assert_eq!(text(db, "PRAGMA integrity_check"), "ok");
}
