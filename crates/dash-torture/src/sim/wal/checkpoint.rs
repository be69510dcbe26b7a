//! Checkpoints, in all four ways, and one of an older SQLite that is interrupted.

use super::settings::Locking;
use super::{Connected, State, Wal};
use crate::random::Dice;
use crate::sim::explore::{Checked, lock};
use crate::sim::sql::failed;
use crate::sim::stock::is_busy;

impl Wal {
    /// A connection checkpoints.
    pub(super) fn checkpoint(&mut self, at: usize, dice: &mut Dice) -> Checked<()> {
        let mode = ["PASSIVE", "PASSIVE", "FULL", "RESTART", "TRUNCATE"][dice.index(5)];
        let settings = self.settings();
        let can_be = settings.claims.pragmas && settings.locking == Locking::Normal;
        if mode == "PASSIVE" && can_be && dice.one_in(3) {
            return self.connection(at, dice)?.begin_checkpoint();
        }
        let connection = self.connection(at, dice)?;
        let level = connection.level;
        let row = connection.db.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
        });
        match row {
            // All that is in the log is in the database.
            Ok((0, log, copied)) if log == copied && log >= 0 => {
                let told = !lock(&self.accidents).is_over();
                if told && self.settings().checkpoint_flushes(level) {
                    lock(&self.history).flushed();
                }
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(error) if is_busy(&error) => Ok(()),
            Err(error) => Err(failed(&format!("a checkpoint ({mode})"), &error)),
        }
    }
}

impl Connected {
    /// An older SQLite begins one, and is interrupted when it has read the header of the wal-index.
    fn begin_checkpoint(&mut self) -> Checked<()> {
        match self.db.execute_batch("PRAGMA checkpoint=begins") {
            Ok(()) => {
                self.state = State::Checkpointing;
                Ok(())
            }
            Err(error) if is_busy(&error) => Ok(()),
            Err(error) => Err(failed("a checkpoint begins", &error)),
        }
    }

    /// Ends what it was in the middle of; a transaction is rolled back.
    pub(super) fn end(&self, state: &State) -> Checked<()> {
        let end = match state {
            State::Idle => return Ok(()),
            State::Reading(_) | State::Writing(_) => "ROLLBACK",
            State::Checkpointing => "PRAGMA checkpoint=ends",
        };
        match self.db.execute_batch(end) {
            Err(error) if is_busy(&error) && matches!(state, State::Checkpointing) => Ok(()),
            ended => ended.map_err(|error| failed(end, &error)),
        }
    }
}
