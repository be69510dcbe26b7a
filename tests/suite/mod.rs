//! What the tests share: the extension that was built with them, loaded into a stock SQLite.

#![allow(dead_code, reason = "each test uses a part")]

pub mod casualty;
pub mod damage;
pub mod mounts;
pub mod names;
pub mod parts;
pub mod peers;
pub mod sandbox;
pub mod workload;

use std::path::{Path, PathBuf};
use std::sync::Once;

use rusqlite::Connection;

pub mod roles;
pub mod sql;

/// `libdash.so`, built as a dependency of this test and lying beside it.
pub fn library() -> PathBuf {
    let test = std::env::current_exe().expect("the test has a path");
    let library = test.with_file_name("libdash.so");
    assert!(library.exists(), "{} was not built", library.display());
    library
}

/// Loads the extension into the SQLite that is linked here, once a process.
pub fn load() {
    static LOADED: Once = Once::new();
    LOADED.call_once(|| {
        let scratch = Connection::open_in_memory().expect("memory");
        #[expect(
            unsafe_code,
            reason = "loading an extension runs its code; it is the one under test"
        )]
        // SAFETY: `libdash.so` is a well-formed extension; it stays loaded for good.
        unsafe {
            scratch.load_extension_enable().expect("extensions are compiled in");
            scratch.load_extension(library(), None::<&str>).expect("libdash.so loads");
        }
    });
}

/// A URI for `path` with more parameters, such as `&dash_commit=paper`.
pub fn uri(path: &Path, more: &str) -> String {
    let escaped: String = path
        .to_str()
        .expect("test paths are UTF-8")
        .bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect();
    format!("file:{escaped}?vfs=dash{more}")
}

/// Opens `path` through dash.
pub fn open(path: &Path) -> Connection {
    load();
    Connection::open(uri(path, "")).expect("opens")
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
