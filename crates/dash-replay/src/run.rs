//! A transaction, run again by stock SQLite on a copy.

use std::collections::BTreeSet;

use dash_statement::{Event, Statement, Transaction, Value};
use dash_storage::real::Real;
use dash_wal::history::pages_in_wal;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql};

use crate::Result;
use crate::image::Image;

/// What a connection was set to, and what that changes in what statements do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Settings {
    foreign_keys: bool,
    recursive_triggers: bool,
}

impl Settings {
    /// These, then the other ones.
    pub fn and_others(self) -> impl Iterator<Item = Self> {
        let all = [(false, false), (true, false), (false, true), (true, true)]
            .map(|(foreign_keys, recursive_triggers)| Self { foreign_keys, recursive_triggers });
        std::iter::once(self).chain(all.into_iter().filter(move |it| *it != self))
    }
}

/// What was done.
pub struct Done {
    /// The pages that it wrote.
    pub pages: BTreeSet<u32>,
    /// What the first statement that failed said. It may have failed before, too.
    pub failed: Option<String>,
}

/// Runs it. The file has everything in it afterwards.
pub fn run(copy: &Image, ran: &Transaction, settings: Settings) -> Result<Done> {
    let mut db = Connection::open(&copy.path)?;
    db.authorizer(Some(stays_inside))?;
    db.execute_batch(&format!(
        "PRAGMA synchronous=OFF; PRAGMA wal_autocheckpoint=0; PRAGMA foreign_keys={}; PRAGMA recursive_triggers={}",
        u8::from(settings.foreign_keys),
        u8::from(settings.recursive_triggers)
    ))?;
    let mut failed = None;
    let mut note = |result: rusqlite::Result<()>| {
        if let Err(error) = result {
            failed.get_or_insert(error.to_string());
        }
    };
    if ran.events.len() > 1 {
        db.execute_batch("BEGIN")?;
    }
    for event in &ran.events {
        note(match event {
            Event::Statement(statement) => step(&db, statement),
            Event::Control(_, sql) => db.execute_batch(&String::from_utf8_lossy(sql)),
        });
    }
    if !db.is_autocommit() {
        note(db.execute_batch("COMMIT"));
    }
    if !db.is_autocommit() {
        note(db.execute_batch("ROLLBACK"));
    }
    let pages = pages_in_wal(&Real, &copy.path, copy.page)?;
    let failed = failed.take();
    db.close().map_err(|(_, error)| error)?;
    Ok(Done { pages, failed })
}

/// A log may come from anybody: what it has run again writes to no other file. `ATTACH` and
/// `VACUUM INTO` name one; VACUUM by itself names none.
fn stays_inside(asked: AuthContext<'_>) -> Authorization {
    match asked.action {
        AuthAction::Attach { filename } if !filename.is_empty() => Authorization::Deny,
        _ => Authorization::Allow,
    }
}

fn step(db: &Connection, statement: &Statement) -> rusqlite::Result<()> {
    let mut prepared = db.prepare(&String::from_utf8_lossy(&statement.sql))?;
    let count = prepared.parameter_count();
    let values = statement.values.iter().flatten().take(count);
    for (number, value) in (1..).zip(values) {
        prepared.raw_bind_parameter(number, Exact(value))?;
    }
    let mut rows = prepared.raw_query();
    while rows.next()?.is_some() {}
    Ok(())
}

/// A value, to the last bit.
struct Exact<'a>(&'a Value);

impl ToSql for Exact<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            Value::Null | Value::Pointer => ValueRef::Null,
            Value::Integer(value) => ValueRef::Integer(*value),
            Value::Real(bits) => ValueRef::Real(f64::from_bits(*bits)),
            Value::Text(text) => ValueRef::Text(text),
            Value::Blob(blob) => ValueRef::Blob(blob),
            Value::Zeroblob(count) => {
                return Ok(ToSqlOutput::ZeroBlob(*count));
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use dash_statement::Sql;

    fn ran(sql: &[String]) -> Transaction {
        let step = |sql: &String| {
            let sql = Sql::from(sql.as_bytes());
            Event::Statement(Statement { sql, values: None, clock: None, nested: 0 })
        };
        Transaction { events: sql.iter().map(step).collect(), ..Transaction::default() }
    }

    #[test]
    fn nothing_is_written_outside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("copy.db");
        let db = Connection::open(&path).unwrap();
        db.execute_batch("PRAGMA journal_mode=WAL; CREATE TABLE t(v); INSERT INTO t VALUES (1)")
            .unwrap();
        db.close().unwrap();
        let (copy, other) = (Image::open(&path, 4096).unwrap(), folder.path().join("other.db"));
        for sql in ["ATTACH '{}' AS o", "VACUUM INTO '{}'"] {
            let sql = sql.replace("{}", &other.to_string_lossy());
            let done = run(&copy, &ran(&[sql]), Settings::default()).unwrap();
            let failed = done.failed.unwrap();
            assert!(failed.contains("authoriz"), "{failed}");
            assert!(!other.exists());
        }
        let done = run(&copy, &ran(&["VACUUM".into()]), Settings::default()).unwrap();
        assert_eq!(done.failed, None);
    }
}
