//! One round: processes that work are killed one after the other, then processes that have just
//! begun to open what they left, and then everything must be there.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use super::check;
use super::process::{End, Process};
use super::worker::Said;
use crate::again::{Again, Task};
use crate::engine::Loaded;
use crate::random::Dice;
use crate::sqlite;

/// What all rounds of a run have in common.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    /// How workers are started.
    pub again: &'a Again,
    /// The engine's name.
    pub engine: &'static str,
    /// The engine.
    pub loaded: &'static dyn Loaded,
    /// The extension.
    pub library: &'a Path,
    /// The database.
    pub database: &'a Path,
    /// URI parameters.
    pub parameters: &'a str,
    /// Whether there are stock processes and members that can't write.
    pub has_guests: bool,
}

/// What a round was.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// What was left after kills, told apart by a hash.
    pub states: HashSet<u64>,
    /// Processes killed.
    pub killed: u64,
    /// Commits and snapshots that they finished.
    pub done: u64,
    /// Times they found a lock taken.
    pub busy: u64,
    /// Switches of the journal mode.
    pub switched: u64,
    /// Processes killed while they opened what killed processes had left.
    pub nested: u64,
    /// Of these, after another one had been killed so.
    pub nested_twice: u64,
    /// Times stock SQLite tried before dash had been there.
    pub stock_tried: u64,
    /// Times it was let in, and saw a committed state.
    pub stock_saw: u64,
    /// Times a process was stopped.
    pub stopped: u64,
    /// Times stock SQLite was killed with half of a transaction in the file.
    pub spilled: u64,
    /// Scripts that had a database for themselves.
    pub alone: u64,
    /// Rounds with stock writers that were let in beside dash.
    pub beside: u64,
}

/// Processes at a time.
const CAST: usize = 4;
/// Casts of a round; each line has one role for each slot.
const CASTS: [[&str; CAST]; 8] = [
    ["writer", "writer", "reader", "reader"],
    ["writer", "writer", "writer", "writer"],
    ["writer", "visitor", "visitor", "reader"],
    ["visitor", "visitor", "visitor", "visitor"],
    ["converter", "reader", "reader", "visitor"],
    ["converter", "converter", "visitor", "visitor"],
    ["writer", "reader", "visitor", "converter"],
    ["converter", "visitor", "reader", "reader"],
];
/// The same, with guests.
const GUESTS: [[&str; CAST]; 6] = [
    ["stock writer", "stock writer", "visitor", "stock reader"],
    ["stock writer", "visitor", "member", "nobody"],
    ["stock writer", "stock reader", "member", "nobody"],
    ["stock writer", "member", "nobody", "reader"],
    ["writer", "stock writer", "stock reader", "member"],
    ["stock writer", "visitor", "visitor", "nobody"],
];
/// URI parameters of those that want the database in whatever mode, among others that do not.
const MODES: [&str; 3] = ["", "&journal_mode=wal", "&journal_mode=shadow"];
/// Longest life of a working process, in microseconds from when it begins to open the database.
const LIFE: u64 = 40_000;
/// The same, of one that has to open what was left.
const OPENING: u64 = 3_000;

impl Report {
    /// Kills a process that is no longer needed.
    pub(super) fn take(&mut self, process: Process) -> Result<(), String> {
        self.count(process.kill())
    }

    fn count(&mut self, end: End) -> Result<(), String> {
        self.killed += 1;
        self.done += end.done;
        self.busy += end.busy;
        self.switched += end.switched;
        end.wrong.map_or(Ok(()), Err)
    }

    /// Adds another round.
    pub fn add(&mut self, other: &Self) {
        self.states.extend(&other.states);
        self.killed += other.killed;
        self.done += other.done;
        self.busy += other.busy;
        self.switched += other.switched;
        self.nested += other.nested;
        self.nested_twice += other.nested_twice;
        self.stock_tried += other.stock_tried;
        self.stock_saw += other.stock_saw;
        self.stopped += other.stopped;
        self.spilled += other.spilled;
        self.alone += other.alone;
        self.beside += other.beside;
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} processes killed and {} stopped, after {} commits and snapshots, {} switches of the mode, \
             {} waits in vain, {} scripts alone, {} rounds beside stock writers, {} halves of stock transactions left; stock SQLite was let in after {} of {} kills",
            self.killed,
            self.stopped,
            self.done,
            self.switched,
            self.busy,
            self.alone,
            self.beside,
            self.spilled,
            self.stock_saw,
            self.stock_tried
        )
    }
}

impl Setting<'_> {
    /// Whether one process at a time may have the database.
    pub(super) fn is_of_one(&self) -> bool {
        self.parameters.contains(sqlite::IN_MEMORY)
    }

    pub(super) fn start(
        &self,
        role: &str,
        slot: usize,
        dice: &mut Dice,
    ) -> Result<Process, String> {
        self.start_with((self.engine, self.parameters), role, slot, dice)
    }

    /// `engine`: the one whose settings are said to it; empty: whichever has the database.
    fn start_with(
        &self,
        (engine, parameters): (&str, &str),
        role: &str,
        slot: usize,
        dice: &mut Dice,
    ) -> Result<Process, String> {
        let (seed, engine) = (dice.draw(), engine.to_owned());
        let parameters = parameters.to_owned();
        let task = Task { slot, seed, engine, parameters, ..Task::default() };
        Process::start(self.again, role, self.database, self.library, &task)
    }

    /// Starts processes and kills each after a while of its own; in the order of the slots.
    fn start_and_kill(
        &self,
        roles: &[&str],
        life: u64,
        dice: &mut Dice,
    ) -> Result<Vec<End>, String> {
        let mut processes = Vec::new();
        for (slot, role) in roles.iter().enumerate() {
            let mixed = (self.has_guests && dice.one_in(6)).then(|| dice.pick(&MODES)).flatten();
            let wants = mixed.map_or((self.engine, self.parameters), |mode| ("", mode));
            let process = self.start_with(wants, role, slot, dice)?;
            processes.push((process, dice.below(life)));
        }
        let kill = |(mut process, life): (Process, u64)| {
            if process.hears(Said::Opening) {
                std::thread::sleep(Duration::from_micros(life));
            }
            process.kill()
        };
        let ends = std::thread::scope(|scope| {
            let killers: Vec<_> =
                processes.into_iter().map(|process| scope.spawn(move || kill(process))).collect();
            killers.into_iter().map(|killer| killer.join().ok()).collect::<Option<Vec<_>>>()
        });
        ends.ok_or_else(|| "a thread of the driver panicked".to_owned())
    }

    /// A round; `Err` says what must never happen.
    pub fn round(&self, dice: &mut Dice) -> Result<Report, String> {
        let mut report = Report::default();
        let casts = if self.has_guests { &GUESTS[..] } else { &CASTS[..] };
        let roles = dice.pick(casts).unwrap_or(CASTS[0]);
        for end in self.start_and_kill(&roles, LIFE, dice)? {
            report.count(end)?;
        }
        let openers = ["writer", "visitor", "reader", "writer"];
        let mut before = false;
        for _ in 0..dice.below(4) {
            if !self.loaded.needs_recovery(self.database)? {
                break;
            }
            report.states.insert(check::fingerprint(self.loaded, self.database));
            let several = 1 + usize::try_from(dice.below(4)).unwrap_or_default();
            let mut inside = 0;
            for end in self.start_and_kill(&openers[..several], OPENING, dice)? {
                inside += u64::from(end.while_opening);
                report.count(end)?;
            }
            report.nested += inside;
            if before {
                report.nested_twice += inside;
            }
            before = inside > 0;
        }
        report.states.insert(check::fingerprint(self.loaded, self.database));
        check::keep_what_was_left(self.database)
            .map_err(|error| format!("keeping what was left: {error}"))?;
        if dice.below(4) == 0 {
            check::a_copy_recovers(self.database, self.parameters)?;
        }
        if dice.below(2) == 0 {
            report.stock_tried += 1;
            report.stock_saw += u64::from(check::stock_looks(self.database)?);
        }
        check::dash_recovers(self.loaded, self.database, self.parameters, false)?;
        Ok(report)
    }
}
