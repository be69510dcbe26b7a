//! SQL in one line, and what is asked of a database again and again.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::Path;

use dash_testing::names::beside;
use rusqlite::Connection;
use rusqlite::types::ValueRef;

/// Runs SQL that has to succeed; rows are thrown away.
pub fn run(db: &Connection, sql: &str) {
    db.execute_batch(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// Why SQL that has to fail does so: the extended result code and the message.
pub fn refused(db: &Connection, sql: &str) -> (i32, String) {
    match db.execute_batch(sql) {
        Ok(()) => panic!("{sql}: succeeded"),
        Err(rusqlite::Error::SqliteFailure(error, message)) => {
            (error.extended_code, message.unwrap_or_default())
        }
        Err(error) => panic!("{sql}: {error}"),
    }
}

/// A counter of `main` in `dash_stats`.
pub fn stat(db: &Connection, name: &str) -> i64 {
    stat_of(db, "main", name)
}

/// A counter of the database attached as `schema`.
pub fn stat_of(db: &Connection, schema: &str, name: &str) -> i64 {
    super::one(db, &format!("SELECT value FROM dash_stats('{schema}') WHERE name = '{name}'"))
}

/// A number that stands for the rows of a query, in their order.
pub fn content(db: &Connection, query: &str) -> u64 {
    gives(db, query).unwrap_or_else(|error| panic!("{query}: {error}"))
}

/// Such a number of any statement: of one without rows how many it has changed.
pub fn gives(db: &Connection, sql: &str) -> rusqlite::Result<u64> {
    let mut statement = db.prepare(sql)?;
    let columns = statement.column_count();
    let mut hash = DefaultHasher::new();
    if columns == 0 {
        let changes = || db.query_row("SELECT total_changes()", [], |row| row.get::<_, i64>(0));
        let before = changes()?;
        statement.execute([])?;
        (changes()? - before).hash(&mut hash);
        return Ok(hash.finish());
    }
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        for column in 0..columns {
            match row.get_ref(column)? {
                ValueRef::Null => 0.hash(&mut hash),
                ValueRef::Integer(number) => (1, number).hash(&mut hash),
                ValueRef::Real(number) => (2, number.to_bits()).hash(&mut hash),
                ValueRef::Text(bytes) => (3, bytes).hash(&mut hash),
                ValueRef::Blob(bytes) => (4, bytes).hash(&mut hash),
            }
        }
    }
    Ok(hash.finish())
}

/// A database that nobody has open, as stock SQLite sees it: whole, unmarked, without a fence.
pub fn at_rest(path: &Path) -> Connection {
    for ending in ["-journal", "-wal", "-dash", "-shadow-tmp"] {
        let other = beside(path, ending);
        assert!(!other.exists(), "{} is left", other.display());
    }
    let header = fs::read(path).expect("a file at rest");
    if !header.is_empty() {
        assert_eq!(header[18..20], [1, 1], "the header is marked at rest");
    }
    let stock = super::stock(path);
    super::check(&stock);
    stock
}
