//! What the unit tests share: a simulated machine's files, and SQLite without dash in a process of
//! its own.

use dash_simulated::{File, Machine, Simulated};
use dash_storage::{Directory, OpenMode, Storage};
use dash_testing::roles::{Role, role, say, told};
use rusqlite::types::Value;
use std::ffi::OsStr;
use std::path::Path;

/// The directory of a simulated machine, as a new process opens it.
pub(crate) fn root(machine: &Machine) -> <Simulated as Storage>::Directory {
    machine.process().open_directory(Path::new("/")).unwrap()
}

/// A file there, with a description of its own.
pub(crate) fn open(machine: &Machine, name: &str) -> File {
    let mode = OpenMode::Create { permissions: 0o644 };
    root(machine).open(OsStr::new(name), mode).unwrap()
}

/// The role's name.
const STOCK: &str = "testing::stock_sqlite";

/// A stock SQLite with one connection, in another process. It never waits for a lock.
pub(crate) struct Stock(Role);

impl Stock {
    /// Opens a database.
    pub(crate) fn open(path: &Path) -> Self {
        Self(Role::start(STOCK, path))
    }

    /// Runs a statement: the first column of its first row, if there is one, or SQLite's error.
    pub(crate) fn run(&mut self, sql: &str) -> Result<String, String> {
        self.0.tell(sql);
        let answer = self.0.hear("answer");
        match answer.split_once(' ') {
            Some(("error", message)) => Err(message.to_owned()),
            _ => Ok(answer.trim_start_matches("ok ").to_owned()),
        }
    }

    /// Whether a statement runs; not, only because of a lock.
    pub(crate) fn can(&mut self, sql: &str) -> bool {
        match self.run(sql) {
            Ok(_) => true,
            Err(message) if message.contains("locked") => false,
            Err(message) => panic!("{sql}: {message}"),
        }
    }
}

#[test]
#[ignore = "a role of other tests"]
fn stock_sqlite() {
    let Some(path) = role(STOCK) else { return };
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.busy_timeout(std::time::Duration::ZERO).unwrap();
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
