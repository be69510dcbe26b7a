//! Coming to rest under a session that stays open, and going on.

use std::sync::Mutex;

use dash_simulated::Simulated;
use rusqlite::Connection;

use super::{End, Neighbours};
use crate::random::Dice;
use crate::sim::explore::{Checked, lock, wrong};
use crate::sim::sql::failed;
use crate::sim::sql::statements::digest;
use crate::sim::stock::clear;
use crate::sim::subject::DB;

impl Neighbours {
    /// SQLite goes on where the database has come to rest under it, with what it had cached.
    pub(super) fn wake(&mut self) -> Checked<()> {
        let Some((process, db)) = self.resting.take() else {
            return Ok(());
        };
        if let Err(what) = clear(self.explorer.subject, &self.machine, &process) {
            return wrong!("going on after a rest: {what}");
        }
        let seen = digest(&db).map_err(|error| failed("going on after a rest", &error))?;
        lock(&self.model).may_have_to_choose = false;
        self.sees("a session that was at rest", seen)?;
        self.dash = Some((process, db));
        Ok(())
    }

    /// The database comes to rest under a session, whose process is killed then or stays.
    pub(super) fn rest(
        &mut self,
        process: &Simulated,
        db: Connection,
        dice: &mut Dice,
        end: &Mutex<End>,
    ) -> Checked<()> {
        db.execute_batch("PRAGMA rest").map_err(|error| failed("coming to rest", &error))?;
        self.explorer.result()?;
        if !matches!(*lock(end), End::Own) {
            return Ok(());
        }
        if dice.one_in(4) {
            self.machine.kill(process);
        } else {
            self.resting = Some((process.clone(), db));
        }
        self.is_at_rest()
    }

    /// The database is as a close leaves it.
    pub(super) fn is_at_rest(&self) -> Checked<()> {
        let held: Vec<_> = self.kept.iter().map(|stock| stock.inode).collect();
        match self.explorer.subject.check_at_rest(&self.machine, DB, &held) {
            Ok(()) => Ok(()),
            Err(what) => wrong!("closed: {what}"),
        }
    }
}
