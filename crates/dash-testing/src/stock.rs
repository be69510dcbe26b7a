//! SQLite without dash, in a process of its own.

use std::path::Path;

use rusqlite::types::Value;

use crate::roles::{Role, role, say, told};

/// One connection there. It never waits for a lock.
pub struct Stock(Role);

impl Stock {
    /// Opens a database. `name` is an ignored test that does no more than to [`play`] that role.
    pub fn open(name: &str, path: &Path) -> Self {
        Self(Role::start(name, path))
    }

    /// Runs a statement: the first column of its first row, if there is one, or SQLite's error.
    pub fn run(&mut self, sql: &str) -> Result<String, String> {
        self.0.tell(sql);
        let answer = self.0.hear("answer");
        match answer.split_once(' ') {
            Some(("error", message)) => Err(message.to_owned()),
            _ => Ok(answer.trim_start_matches("ok ").to_owned()),
        }
    }

    /// Whether a statement runs; not, only because of a lock.
    pub fn can(&mut self, sql: &str) -> bool {
        match self.run(sql) {
            Ok(_) => true,
            Err(message) if message.contains("locked") => false,
            Err(message) => panic!("{sql}: {message}"),
        }
    }
}

/// Plays it, if this process was started for that.
pub fn play(name: &str) {
    let Some(path) = role(name) else { return };
    let connection = rusqlite::Connection::open(path).expect("opens");
    connection.busy_timeout(std::time::Duration::ZERO).expect("is set");
    let run = |sql: &str| -> rusqlite::Result<String> {
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        let first = rows.next()?.map(|row| row.get::<_, Value>(0)).transpose()?;
        while rows.next()?.is_some() {}
        Ok(format!("{:?}", first.unwrap_or(Value::Null)))
    };
    while let Some(sql) = told() {
        match run(&sql) {
            Ok(value) => say("answer", format!("ok {value}")),
            Err(error) => say("answer", format!("error {error}")),
        }
    }
}
