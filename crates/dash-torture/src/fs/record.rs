//! Runs a program on a fresh file system while the device records, and keeps the ledger.

use std::collections::HashMap;
use std::time::Duration;

use rusqlite::Connection;

use super::blocks::{Blocks, Delta};
use super::database::{self, Opened, explained};
use super::kind::Kind;
use super::ledger::{Commit, Ledger};
use super::log::{Event, Recorded};
use super::program::{Program, Step};
use super::rig::{Loop, Mounted, Rig};

/// What a program left behind.
#[derive(Debug)]
pub struct Recording {
    /// The device's content when the program began.
    pub base: Blocks,
    /// Everything after mkfs.
    pub log: Recorded,
    /// The event of the log at which the program began.
    pub from: usize,
    /// Its commits.
    pub ledger: Ledger,
}

/// File systems as mkfs makes them, one a kind.
pub type Fresh = HashMap<Kind, Blocks>;

/// Sets the device up with an empty file system.
pub fn format(rig: &Rig, kind: Kind, fresh: &mut Fresh) -> std::io::Result<(Loop, Blocks)> {
    let device = rig.attach(kind.size())?;
    if let Some(blocks) = fresh.get(&kind) {
        let all = Delta {
            blocks: blocks.iter().map(|(number, block)| (number, Box::new(*block))).collect(),
        };
        super::stage::Stage::default().set(&rig.content, &Blocks::default(), &all)?;
        device.forget()?;
        return Ok((device, blocks.clone()));
    }
    device.format(kind)?;
    device.forget()?;
    let mut blocks = Blocks::default();
    blocks.apply(&everything(&rig.log.read()?, &Blocks::default()));
    rig.log.clear()?;
    fresh.insert(kind, blocks.clone());
    Ok((device, blocks))
}

/// All writes of a log, over `base`.
fn everything(log: &Recorded, base: &Blocks) -> Delta {
    let mut delta = Delta::default();
    for event in &log.events {
        if let Event::Write { place, .. } = *event {
            delta.write(base, place, log.bytes(*event));
        }
    }
    delta
}

/// A fresh file system that is mounted and recorded.
#[derive(Debug)]
pub struct Begun {
    /// The loop device.
    pub device: Loop,
    /// Where it is mounted.
    pub mounted: Mounted,
    base: Blocks,
    /// The event of the log from which on programs run.
    pub from: usize,
}

impl Begun {
    /// Makes and mounts it, with more mount options or none. So many files are there before: which
    /// inodes share a block of the table, and so reach the disk together, depends on their numbers.
    ///
    /// # Errors
    ///
    /// What the system says to that, in a sentence.
    pub fn new(
        rig: &Rig,
        (kind, fillers): (Kind, u64),
        more: &str,
        fresh: &mut Fresh,
    ) -> Result<Self, String> {
        let story = |error: std::io::Error| format!("setting up {}: {error}", kind.name());
        let (device, mut base) = format(rig, kind, fresh).map_err(story)?;
        let mounted = device.mount(kind, &rig.point(), more).map_err(story)?;
        for number in 0..fillers {
            std::fs::File::create(mounted.point().join(format!("filler-{number}")))
                .map_err(story)?;
        }
        nix::unistd::syncfs(std::fs::File::open(mounted.point()).map_err(story)?)
            .map_err(|error| error.to_string())?;
        let begun = rig.log.read().map_err(story)?;
        base.apply(&everything(&begun, &base));
        Ok(Self { device, mounted, base, from: begun.events.len() })
    }

    /// Unmounts it and takes the record.
    ///
    /// # Errors
    ///
    /// A file system that stays busy, in a sentence.
    pub fn end(self, rig: &Rig, ledger: Ledger) -> Result<(Loop, Recording), String> {
        let Self { device, mounted, base, from } = self;
        mounted.unmount().map_err(|error| format!("unmounting after the program: {error}"))?;
        rig.orders.give(None, None).map_err(|error| error.to_string())?;
        // After a failure there may be something left that can't be written back: it is forgotten.
        let _failed_before = device.forget();
        let log = rig.log.read().map_err(|error| error.to_string())?;
        Ok((device, Recording { base, log, from, ledger }))
    }
}

/// Runs the program.
///
/// # Errors
///
/// What went wrong, in a sentence: nothing may.
pub fn record(
    rig: &Rig,
    (kind, opened): (Kind, Opened),
    program: &Program,
    fresh: &mut Fresh,
) -> Result<(Loop, Recording), String> {
    let begun = Begun::new(rig, (kind, program.fillers), "", fresh)?;
    let ledger = perform(rig, opened, program)?;
    begun.end(rig, ledger)
}

/// Runs the program's steps on the mounted file system, and the same on stock SQLite in memory.
fn perform(rig: &Rig, opened: Opened, program: &Program) -> Result<Ledger, String> {
    let mut running = Running::new(rig, opened, program)?;
    for (number, step) in program.steps.iter().enumerate() {
        running.step(step).map_err(|what| {
            let before = running.ledger.allowed(u64::MAX).story;
            format!("step {number}, {step:?}: {what}; {:?}, then {before}", program.settings)
        })?;
    }
    running.end()
}

/// A program under way.
struct Running<'a> {
    rig: &'a Rig,
    opened: Opened,
    program: &'a Program,
    db: Connection,
    model: Connection,
    ledger: Ledger,
    /// Whether commits are durable.
    is_durable: bool,
    /// Whether one was durable since the mode was entered.
    is_promised: bool,
}

fn told(error: rusqlite::Error) -> String {
    explained(&error)
}

impl<'a> Running<'a> {
    fn new(rig: &'a Rig, opened: Opened, program: &'a Program) -> Result<Self, String> {
        let model = Connection::open_in_memory().map_err(told)?;
        model.execute_batch("ATTACH ':memory:' AS aux").map_err(told)?;
        let empty = database::state(&model, program.is_attached).map_err(told)?;
        let ledger = Ledger { empty, ..Ledger::default() };
        let db = Self::open(rig, opened, program)?;
        Ok(Self { rig, opened, program, db, model, ledger, is_durable: true, is_promised: false })
    }

    fn open(rig: &Rig, opened: Opened, program: &Program) -> Result<Connection, String> {
        opened
            .open(&rig.point(), program.is_attached, &program.settings)
            .map_err(|error| format!("opening: {}", explained(&error)))
    }

    fn position(&self) -> Result<u64, String> {
        self.rig.log.position().map_err(|error| error.to_string())
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        let begun = self.position()?;
        self.ledger.story.push((begun, step.told(self.ledger.commits.len())));
        match step {
            Step::Commit(statements) => self.commit(statements)?,
            Step::Level(level) if level.needs_a_promise && !self.is_promised => {}
            Step::Level(level) => {
                self.db.execute_batch(level.sql).map_err(told)?;
                self.is_durable = level.is_durable;
            }
            Step::Rollback(statements) => {
                let text = format!("BEGIN IMMEDIATE; {}; ROLLBACK", statements.join("; "));
                self.db.execute_batch(&text).map_err(told)?;
            }
            Step::Maintain(text) => {
                self.db.execute_batch(text).map_err(told)?;
                self.is_promised &= !text.contains("journal_mode");
            }
            Step::Reopen => {
                let none = Connection::open_in_memory().map_err(told)?;
                let closed = std::mem::replace(&mut self.db, none).close();
                closed.map_err(|(_, error)| told(error))?;
                self.db = Self::open(self.rig, self.opened, self.program)?;
                (self.is_durable, self.is_promised) = (true, false);
            }
            Step::Wait(time) => std::thread::sleep(Duration::from_millis(*time)),
        }
        Ok(())
    }

    fn commit(&mut self, statements: &[String]) -> Result<(), String> {
        let text = match statements {
            [one] => one.clone(),
            more => format!("BEGIN IMMEDIATE; {}; COMMIT", more.join("; ")),
        };
        self.model.execute_batch(&text).map_err(told)?;
        let state = database::state(&self.model, self.program.is_attached).map_err(told)?;
        // Of one that changes nothing there is nothing to flush.
        let is_change = self.ledger.commits.last().is_none_or(|last| last.state != state);
        let is_durable = self.is_durable && is_change;
        self.is_promised |= is_durable;
        let begun = self.position()?;
        self.db.execute_batch(&text).map_err(told)?;
        let acknowledged = self.position()?;
        self.ledger.commits.push(Commit { begun, acknowledged, state, is_durable });
        Ok(())
    }

    fn end(self) -> Result<Ledger, String> {
        let Self { db, program, ledger, .. } = self;
        let found = database::state(&db, program.is_attached).map_err(told)?;
        let last = ledger.commits.last().map_or(ledger.empty, |commit| commit.state);
        if found != last {
            return Err("the program left other rows than on stock SQLite in memory".to_owned());
        }
        db.close().map_err(|(_, error)| format!("closing: {}", explained(&error)))?;
        Ok(ledger)
    }
}
