//! Workers that are not of dash, or must not write: stock processes in the modes that survive a
//! kill, and members without the right to write.

use std::time::Duration;

use nix::unistd::{Gid, Uid, setgid, setgroups, setuid};
use rusqlite::Connection;

use super::check;
use super::round::{Report, Setting};
use super::worker::{Said, Worker, is_refusal, say};
use super::workload;
use crate::random::Dice;

/// How long members read on after something happened.
const WHILE: Duration = Duration::from_millis(15);

/// A user without rights.
const NOBODY: u32 = 65534;

/// Gives all rights up.
pub(super) fn become_nobody() -> Result<(), String> {
    if !nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
    setgroups(&[])
        .and_then(|()| setgid(group))
        .and_then(|()| setuid(user))
        .map_err(|error| format!("becoming nobody: {error}"))
}

/// Statements for a mode of stock SQLite that survives a kill. Without a journal file none does.
pub(super) fn mode(dice: &mut Dice) -> String {
    let journals = ["delete", "delete", "truncate", "persist", "wal"];
    let journal = dice.pick(&journals).unwrap_or("delete");
    let synchronous = dice.pick(&["off", "normal", "full", "extra"]).unwrap_or("full");
    format!("PRAGMA synchronous = {synchronous}; PRAGMA journal_mode = {journal}")
}

impl Worker<'_> {
    /// A transaction that has written to the file already, and rests there until it is killed.
    pub(super) fn spill(&mut self, db: &Connection) -> Result<bool, String> {
        let slot = self.assignment.task.slot;
        let spilled = workload::work(db, slot, &mut self.dice).and_then(|_| {
            db.execute_batch(
                "UPDATE counters SET n = -7, pad = zeroblob(2000);
                 UPDATE entries SET sum = 0, body = zeroblob(length(body));
                 INSERT INTO entries VALUES (-1, -1, zeroblob(300000), 0)",
            )
        });
        match spilled {
            Ok(()) => {
                say(Said::Holding)?;
                loop {
                    std::thread::park();
                }
            }
            Err(error) if is_refusal(&error) => {
                say(Said::Busy)?;
                std::thread::sleep(Duration::from_millis(1));
                Ok(false)
            }
            Err(error) => Err(format!("a stock transaction: {error}")),
        }
    }
}

impl Setting<'_> {
    /// A round in which a stock process is killed that has written half of a transaction into the
    /// file, beside members that had it open before: they see none of it, neither before it is
    /// rolled back nor after. `Err` says what must never happen.
    pub fn spilled(&self, dice: &mut Dice) -> Result<Report, String> {
        let mut report = Report::default();
        let mut members = Vec::new();
        for (slot, role) in [(1, "member"), (2, "nobody")] {
            let mut member = self.start(role, slot, dice)?;
            member.must_say(Said::Done)?;
            members.push(member);
        }
        let mut spiller = self.start("stock spiller", 0, dice)?;
        // It may find no way in: a member that can't write may well hold stock writers out.
        let is_in = spiller.hears_within(Said::Holding, WHILE * 10);
        std::thread::sleep(WHILE);
        report.take(spiller)?;
        std::thread::sleep(WHILE);
        report.spilled += u64::from(is_in);
        match dice.below(3) {
            0 => drop(check::stock_looks(self.database)?),
            1 => match check::dash_recovers(self.loaded, self.database, self.parameters, true) {
                // As long as somebody reads a log of stock SQLite it can't be left.
                Err(what) if !what.contains("is in WAL mode, and is in use") => return Err(what),
                _ => {}
            },
            _ => {}
        }
        std::thread::sleep(WHILE);
        for member in members {
            report.take(member)?;
        }
        check::dash_recovers(self.loaded, self.database, self.parameters, false)?;
        Ok(report)
    }
}
