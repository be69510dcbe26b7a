//! Checkpoints, in all four ways.

use super::Wal;
use crate::random::Dice;
use crate::sim::explore::{Checked, lock};
use crate::sim::sql::failed;
use crate::sim::stock::is_busy;

impl Wal {
    /// A connection checkpoints.
    pub(super) fn checkpoint(&mut self, at: usize, dice: &mut Dice) -> Checked<()> {
        let mode = ["PASSIVE", "PASSIVE", "FULL", "RESTART", "TRUNCATE"][dice.index(5)];
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
