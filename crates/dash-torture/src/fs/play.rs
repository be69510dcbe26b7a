//! A program with guests under way: what must be found next, and what came of each transaction.

use std::path::Path;

use fastrand::Rng;
use rusqlite::{Connection, ffi};
use serde_json::Value;

use super::actor::{Actor, Said};
use super::database::{self, Opened};
use super::kind::Kind;
use super::ledger::{Commit, Doubtful, Ledger, State};
use super::program::{Draft, tables};
use super::rig::Rig;
use super::stock::{Mode, Torn};
use crate::engine::{Level, Loaded};
use crate::sqlite::stock_uri;

/// The name of an actor's connection.
pub const DB: &str = "db";
/// A process that has had it open from before, maybe a file that is a copy no more: that process
/// may not write.
pub const STAYER: &str = "a stock process that stayed";
/// Begins to write: on a file that is not to be written `BEGIN IMMEDIATE` alone only reads.
pub const BEGIN: &str = "BEGIN IMMEDIATE; PRAGMA user_version = 7";
/// Codes with which stock SQLite refuses what dash has, or has left.
pub const REFUSALS: [i32; 6] = [
    ffi::SQLITE_BUSY,
    ffi::SQLITE_CANTOPEN,
    ffi::SQLITE_IOERR,
    ffi::SQLITE_NOTADB,
    ffi::SQLITE_READONLY,
    ffi::SQLITE_PROTOCOL,
];

/// What came of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It was acknowledged.
    Committed,
    /// Somebody has a lock, or it was not let in.
    Refused,
    /// The process died in it.
    Died,
}

/// A commit in which a process died.
#[derive(Debug, Clone, Copy)]
pub struct Pending {
    begun: u64,
    state: State,
    /// It was a process of dash's.
    of_dash: bool,
}

/// A program under way.
pub struct Play<'a> {
    /// The device.
    pub rig: &'a Rig,
    /// The file system on it.
    pub kind: Kind,
    /// The extension.
    pub library: &'a Path,
    /// How dash opens the database, but for the variant.
    pub opened: Opened,
    /// The URI parameters of the variant.
    pub parameters: &'static str,
    /// Draws everything.
    pub draft: Draft,
    /// The same content, in memory; in a transaction while something is pending.
    pub model: Connection,
    /// Of all commits.
    pub ledger: Ledger,
    /// The transaction in which somebody died, as long as nobody has seen what became of it.
    pub pending: Option<Pending>,
    /// Since when the file may be torn.
    pub torn: Option<u64>,
    /// A process died in the first commit of the database, through dash: its name may be an empty
    /// file's on the disk until somebody flushes the folder, which a commit of stock SQLite's
    /// without a journal file doesn't.
    pub is_unnamed: bool,
    /// Since when dash may leave a choice to the user.
    pub choice: Option<u64>,
    /// A stock process that has the database open from before.
    pub stayer: Option<Actor>,
    /// A process of dash's that has the database open, and does nothing.
    pub idler: Option<Actor>,
    /// How durable commits through dash are.
    pub level: Level,
    /// Whether the last session of dash closed.
    pub is_at_rest: bool,
    /// Whether a journal or log that stock SQLite removed may be back after a power loss: until
    /// somebody flushes the folder, which a commit of stock SQLite's without a journal file
    /// doesn't.
    pub may_return: bool,
}

/// An error in words.
pub fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl Play<'_> {
    /// Draws.
    pub fn rng(&mut self) -> &mut Rng {
        &mut self.draft.rng
    }

    /// True one time in so many.
    pub fn one_in(&mut self, times: u8) -> bool {
        self.rng().u8(..times) == 0
    }

    /// Events in the log.
    pub fn position(&self) -> Result<u64, String> {
        self.rig.log.position().map_err(text)
    }

    /// For the story of a failure.
    pub fn tell(&mut self, what: impl Into<String>) {
        let position = self.position().unwrap_or_default();
        self.ledger.story.push((position, what.into()));
    }

    /// The newest content.
    fn current(&self) -> State {
        self.ledger.commits.last().map_or(self.ledger.empty, |commit| commit.state)
    }

    /// A process that opens the database, and what came of that.
    pub fn actor(&mut self, parameters: &str) -> Result<(Actor, Said), String> {
        let mut actor = Actor::start(self.library).map_err(text)?;
        let uri = stock_uri(&self.rig.point().join("app.db")) + parameters;
        let said = actor.open(DB, &uri)?;
        Ok((actor, said))
    }

    /// Whether the newest content is there, or that of a commit in which somebody died. `is_last`:
    /// what this one finds is what everybody will find from now on.
    pub fn finds(&mut self, found: &Value, is_last: bool, who: &str) -> Result<(), String> {
        let found = (found.get("state").and_then(Value::as_u64).unwrap_or_default(), 0);
        let current = self.current();
        if let Some(Pending { begun, state, of_dash }) = self.pending {
            if found == state && state != current {
                self.model.execute_batch("COMMIT").map_err(text)?;
                let acknowledged = self.position()?;
                let is_durable = false;
                self.ledger.commits.push(Commit { begun, acknowledged, state, is_durable });
                self.pending = None;
                return Ok(());
            }
            if found == current && is_last {
                self.model.execute_batch("ROLLBACK").map_err(text)?;
                let after = self.ledger.commits.len();
                self.ledger.doubtful.push(Doubtful { begun, after, state });
                self.pending = None;
                if of_dash && who != "dash" {
                    self.choice = Some(self.position()?);
                }
            }
        }
        if found == current {
            return Ok(());
        }
        let ever = self.ledger.commits.iter().rposition(|commit| commit.state == found);
        let is_empty = found == self.ledger.empty;
        Err(match ever {
            Some(number) => format!(
                "{who} finds commit {number}, but {} is the newest",
                self.ledger.commits.len() - 1
            ),
            None if is_empty => format!("{who} finds an empty database"),
            None => format!("{who} finds a state that no commit made"),
        })
    }

    /// The program ends: what became of the last transaction in which somebody died stays open.
    pub fn nobody_looks(&mut self) {
        if let Some(Pending { begun, state, .. }) = self.pending.take() {
            let after = self.ledger.commits.len();
            self.ledger.doubtful.push(Doubtful { begun, after, state });
        }
    }

    /// What must be done.
    pub fn must(&self, said: Said, what: &str) -> Result<Value, String> {
        match said {
            Said::Done(value) => Ok(value),
            other => Err(format!("{what}: {other:?}")),
        }
    }

    /// A transaction; of stock SQLite, if there is a mode.
    pub fn transaction(
        &mut self,
        actor: &mut Actor,
        who: &str,
        mode: Option<Mode>,
    ) -> Result<Ended, String> {
        let batch = self.statements();
        let begun = self.position()?;
        match actor.run(DB, BEGIN)? {
            Said::Done(_) if self.idler.is_some() && mode.is_some() => {
                return Err(format!("{who} is let in beside dash"));
            }
            Said::Done(_) => {}
            Said::Died => return Ok(Ended::Died),
            Said::Refused(code, what) => return self.refused(code, &what, who),
        }
        match actor.state(DB)? {
            Said::Done(found) => self.finds(&found, true, who)?,
            Said::Died => return Ok(Ended::Died),
            Said::Refused(code, what) => return Err(format!("{who} reads: {what} ({code})")),
        }
        self.model.execute_batch(&format!("BEGIN; {batch}")).map_err(text)?;
        let state = (database::content(&self.model, "main").map_err(text)?, 0);
        let torn = mode.map_or(Torn::Never, |mode| mode.torn(self.kind));
        let said = actor.run(DB, &format!("{batch}; COMMIT"))?;
        let acknowledged = self.position()?;
        if torn == Torn::WhileWriting {
            self.ledger.torn.push(begun..acknowledged);
        }
        if torn == Torn::UntilFlushed {
            self.torn.get_or_insert(begun);
        }
        match said {
            Said::Done(_) => {
                self.committed(Commit { begun, acknowledged, state, is_durable: false }, mode)
            }
            Said::Died => {
                if torn != Torn::Never {
                    self.torn.get_or_insert(begun);
                }
                self.died(Pending { begun, state, of_dash: mode.is_none() });
                Ok(Ended::Died)
            }
            Said::Refused(code, what) => {
                self.model.execute_batch("ROLLBACK").map_err(text)?;
                self.refused(code, &what, who)
            }
        }
    }

    /// What a transaction does.
    fn statements(&mut self) -> String {
        let mut statements = match self.ledger.commits.is_empty() {
            true => tables(&["main"]),
            false if self.one_in(10) => self.draft.large(),
            false => self.draft.transaction(),
        };
        // No two commits make the same content.
        statements.push("UPDATE s SET n = n + 1000000".to_owned());
        statements.join("; ")
    }

    /// A transaction was acknowledged.
    fn committed(&mut self, commit: Commit, mode: Option<Mode>) -> Result<Ended, String> {
        self.model.execute_batch("COMMIT").map_err(text)?;
        let no_journal = mode.is_some_and(|mode| ["memory", "off"].contains(&mode.journal));
        let is_promised = mode.map_or(self.level.is_durable, Mode::is_durable);
        self.is_unnamed &= no_journal || (mode.is_none() && !is_promised);
        let is_durable = is_promised && !self.is_unnamed;
        self.ledger.commits.push(Commit { is_durable, ..commit });
        // Of what a log was copied from, its flushes say nothing.
        let flushes = || self.opened.loaded().is_none_or(Loaded::commits_flush_the_database);
        if is_durable && mode.map_or_else(flushes, |mode| mode.journal != "wal") {
            self.is_whole(commit.acknowledged);
        }
        self.may_return = match mode {
            Some(Mode { journal: "memory" | "off", .. }) => self.may_return,
            Some(mode) => !mode.is_durable() || mode.journal == "wal",
            // As with stock SQLite: whoever closes last removes it, and flushes no folder for that.
            None => self.opened.is_wal() || (self.may_return && !is_promised),
        };
        self.tell(format!("commit {}", self.ledger.commits.len() - 1));
        Ok(Ended::Committed)
    }

    /// All of the file was flushed.
    pub fn is_whole(&mut self, now: u64) {
        if let Some(since) = self.torn.take() {
            self.ledger.torn.push(since..now);
        }
    }

    /// A process died in a transaction.
    fn died(&mut self, pending: Pending) {
        // A process of dash that died may not have come to flush the folder.
        self.may_return |= !pending.of_dash || self.opened.is_wal();
        self.is_unnamed |= pending.of_dash && self.ledger.commits.is_empty();
        self.pending = Some(pending);
        self.tell("killed in a transaction");
    }

    /// Whether a refusal is one that may be.
    pub fn refused(&mut self, code: i32, what: &str, who: &str) -> Result<Ended, String> {
        let may_be = who != "dash" && REFUSALS.contains(&code) && !self.must_let_in(who);
        self.tell(format!("{who} is refused"));
        match may_be {
            true => Ok(Ended::Refused),
            false => Err(format!("{who} is refused: {what} ({code})")),
        }
    }

    /// Nobody is there, and nothing was left, that may keep a stock process out.
    fn must_let_in(&self, who: &str) -> bool {
        self.is_at_rest && self.stayer.is_none() && who != STAYER
    }
}
