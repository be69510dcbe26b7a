//! What workers say to the engine only: settings of a connection, how durable its commits are, and
//! what leaves the content as it is.

use rusqlite::Connection;

use super::worker::{Identity, Worker, is_later};
use crate::engine::{Engine, Loaded, Statements};
use crate::engines::named;

impl Worker<'_> {
    /// What is said to the engine only.
    pub(super) fn statements(&self) -> Option<&'static Statements> {
        let loaded = named(&self.assignment.task.engine).and_then(Engine::loaded);
        loaded.filter(|_| self.identity == Identity::Dash).map(Loaded::statements)
    }

    /// Settings of a connection, and how durable its commits are: a kill takes none of them.
    pub(super) fn settings(&mut self) -> String {
        let Some(statements) = self.statements().filter(|all| !all.levels.is_empty()) else {
            return String::new();
        };
        let level = statements.levels[self.dice.index(statements.levels.len())].sql;
        match self.dice.pick(statements.settings) {
            Some(settings) => format!("{settings}; {level}"),
            None => level.to_owned(),
        }
    }

    /// Sets a connection up, if it is one of the engine's. No, if another process has taken the
    /// database out of the mode since it was opened, which it may while nobody reads.
    pub(super) fn set_up(&self, db: &Connection, settings: &str) -> Result<bool, String> {
        if settings.is_empty() {
            return Ok(true);
        }
        let engine = self.engine(db)?;
        if engine != self.assignment.task.engine {
            return match is_plain(&engine, db)? {
                true => Ok(false),
                false => Err(format!("it was opened by {engine}")),
            };
        }
        match db.execute_batch(settings) {
            Err(error) if !is_later(&error) => Err(format!("{settings}: {error}")),
            _ => Ok(true),
        }
    }

    /// The engine that has the database.
    pub(super) fn engine(&self, db: &Connection) -> Result<String, String> {
        db.query_row("SELECT dash_engine()", [], |row| row.get(0))
            .map_err(|error| format!("dash_engine(): {error}"))
    }

    /// What leaves the content as it is.
    pub(super) fn maintain(&mut self, db: &Connection) -> Result<bool, String> {
        let all = self.statements().map_or(&[][..], |statements| statements.maintenance);
        let engine = &self.assignment.task.engine;
        if all.is_empty() || !self.dice.one_in(12) || self.engine(db)? != *engine {
            return Ok(true);
        }
        let sql = self.dice.pick(all).unwrap_or_default();
        self.finish(db, |db, _| db.execute_batch(sql))
    }
}

/// Whether the database is a plain one for dash and for SQLite.
fn is_plain(engine: &str, db: &Connection) -> Result<bool, String> {
    let mode = db.query_row("PRAGMA journal_mode", [], |row| row.get::<_, String>(0));
    let mode = mode.map_err(|error| format!("PRAGMA journal_mode: {error}"))?;
    Ok(engine == "plain" && mode == "delete")
}
