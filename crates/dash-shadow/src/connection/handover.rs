//! A connection's turn for the write lock: see [`dash_engine::handover`].

use crate::connection::state::Connection;
use dash_engine::handover::{Handed, Turn};
use dash_storage::{File, Storage};

impl<S: Storage> Connection<S> {
    /// Where this connection can wait for its turn. `None`: it has no reader entry, and polls.
    pub fn turn(&self) -> Option<Turn<<S::File as File>::Memory>> {
        self.pair.coordination.turn()
    }

    /// After WRITER was given up: if somebody waits for it, lets the first in line out and returns
    /// when WRITER has been taken, at the latest after two milliseconds.
    pub fn hand_over(&mut self) {
        match self.pair.coordination.hand_over() {
            Ok(Handed::Taken) => self.statistics.handovers += 1,
            Ok(Handed::Missed) => self.statistics.missed_handovers += 1,
            // A waiter that nobody wakes comes back by itself.
            Ok(Handed::NobodyWaits) | Err(_) => {}
        }
    }
}
