//! Going on in a forked child: the engine anew, under a connection of SQLite's that has the log
//! open and keeps pointers into the wal-index.
//!
//! SQLite learns of nothing. It has SHARED of the database, so that is taken; its handle of `-wal`
//! finds the new engine by way of the old one; and the index comes to where SQLite knows it as soon
//! as SQLite, which finds no header there, asks for WRITER (`WAL-21` in FORMAT.md of `dash-wal`).
//! All else that SQLite knows of the log it compares with the header when it begins to read. So
//! `-wal` and the index may be other files than before: those of now.
//!
//! Where they were in memory SQLite has pointers into a copy that nobody else sees, and all that
//! happens elsewhere passes it by. There nothing goes on.

use dash_ffi::{Error, LockLevel, Result};
use dash_storage::File;
use dash_wal::Connection;

use super::file::WalFile;
use super::link::State;
use super::opening;
use crate::controls::engine_level;
use crate::errors::{inherited, inherited_memory};
use crate::mode::{Database, Switching};

impl WalFile {
    /// See [`crate::mode::Database::renew`].
    pub(super) fn renewed(&mut self, switching: &Switching<'_>, level: LockLevel) -> Result<Self> {
        let refused = || inherited(switching.path);
        let mut old = self.link.try_state().ok_or_else(refused)?;
        if old.engine()?.is_in_memory() {
            return Err(inherited_memory(switching.path));
        }
        let joined = opening::joined(switching, self.link.is_read_only)?;
        let mut file = joined.ok_or_else(refused)?;
        let taken = take_over(&mut file.link.state(), &mut old, level, &refused);
        drop(old);
        if let Err(error) = taken {
            drop(file.close_engine());
            return Err(error);
        }
        file.takes_form(self.mode);
        self.link.give_way(&file.link);
        Ok(file)
    }
}

/// What SQLite has, of the same file. The index comes last: from then on nothing fails.
fn take_over(
    new: &mut State,
    old: &mut State,
    level: LockLevel,
    refused: &dyn Fn() -> Error,
) -> Result<()> {
    let has_log = old.has_log;
    let dead = old.engine()?;
    let engine = new.engine()?;
    if engine.is_in_memory() || engine.database().file().id() != dead.database().file().id() {
        return Err(refused());
    }
    new.call(|engine| engine.lock(engine_level(level)))?;
    if has_log {
        new.call(Connection::wal_open)?;
    }
    new.call(|engine| engine.inherit_index(dead))?;
    new.has_log = has_log;
    Ok(())
}
