//! Stock writers beside writers of dash, where these let them in (WAL-50): some are killed, and
//! others come in their place. However they died, each one that lives commits on.

use std::time::Duration;

use super::check;
use super::round::{Report, Setting};
use super::worker::Said;
use super::workload::SLOTS;
use crate::random::Dice;

/// The processes of a round; those of dash come first.
const WRITERS: [&str; SLOTS] =
    ["writer", "writer", "writer", "writer", "stock beside", "stock beside"];
const OF_DASH: usize = 4;
/// One round in so many kills twice: what lives takes seconds to commit on.
const TWICE: u64 = 4;
/// After how many microseconds at most it kills.
const WHILE: u64 = 60_000;

/// Statements for a level of stock SQLite: a kill takes nothing from any.
pub(super) fn level(dice: &mut Dice) -> String {
    let synchronous = dice.pick(&["off", "normal", "full"]).unwrap_or("full");
    format!("PRAGMA synchronous = {synchronous}")
}

impl Setting<'_> {
    /// A round with stock writers; `Err` says what must never happen.
    pub fn beside(&self, dice: &mut Dice) -> Result<Report, String> {
        let mut report = Report { beside: 1, ..Report::default() };
        let mut all = Vec::new();
        for (slot, role) in WRITERS.iter().enumerate() {
            all.push(self.start(role, slot, dice)?);
        }
        for _ in 0..=u64::from(dice.one_in(TWICE)) {
            for process in &mut all {
                process.catch_up();
                process.must_say(Said::Done)?;
            }
            std::thread::sleep(Duration::from_micros(dice.below(WHILE)));
            let killed = match dice.below(6) {
                0 => 0..OF_DASH,
                1 => OF_DASH..SLOTS,
                _ => {
                    let one = dice.index(SLOTS);
                    one..one + 1
                }
            };
            // All of them are dead before one comes back.
            for process in all.splice(killed.clone(), []) {
                report.take(process)?;
            }
            for slot in killed {
                all.insert(slot, self.start(WRITERS[slot], slot, dice)?);
            }
        }
        while !all.is_empty() {
            report.take(all.swap_remove(dice.index(all.len())))?;
        }
        report.states.insert(check::fingerprint(self.loaded, self.database));
        check::keep_what_was_left(self.database)
            .map_err(|error| format!("keeping what was left: {error}"))?;
        check::dash_recovers(self.loaded, self.database, self.parameters, false)?;
        Ok(report)
    }
}
