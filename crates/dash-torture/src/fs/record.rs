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
    let sql = |error: rusqlite::Error| error.to_string();
    let position = || rig.log.position().map_err(|error| error.to_string());
    let attached = program.is_attached;
    let model = Connection::open_in_memory().map_err(sql)?;
    model.execute_batch("ATTACH ':memory:' AS aux").map_err(sql)?;
    let mut ledger =
        Ledger { empty: database::state(&model, attached).map_err(sql)?, ..Ledger::default() };
    let open = || {
        opened
            .open(&rig.point(), attached, &program.settings)
            .map_err(|error| format!("opening: {}", explained(&error)))
    };
    let mut db = open()?;
    for (number, step) in program.steps.iter().enumerate() {
        let failed =
            |error: rusqlite::Error| format!("step {number}, {step:?}: {}", explained(&error));
        match step {
            Step::Commit(statements) => {
                let text = match statements.as_slice() {
                    [one] => one.clone(),
                    more => format!("BEGIN IMMEDIATE; {}; COMMIT", more.join("; ")),
                };
                model.execute_batch(&text).map_err(sql)?;
                let state = database::state(&model, attached).map_err(sql)?;
                let begun = position()?;
                db.execute_batch(&text).map_err(failed)?;
                ledger.commits.push(Commit {
                    begun,
                    acknowledged: position()?,
                    state,
                    is_durable: true,
                });
            }
            Step::Rollback(statements) => db
                .execute_batch(&format!("BEGIN IMMEDIATE; {}; ROLLBACK", statements.join("; ")))
                .map_err(failed)?,
            Step::Maintain(text) => db.execute_batch(text).map_err(failed)?,
            Step::Reopen => {
                db.close().map_err(|(_, error)| failed(error))?;
                db = open()?;
            }
            Step::Wait(time) => std::thread::sleep(Duration::from_millis(*time)),
        }
    }
    let found = database::state(&db, attached).map_err(sql)?;
    let last = ledger.commits.last().map_or(ledger.empty, |commit| commit.state);
    if found != last {
        return Err("the program left other rows than on stock SQLite in memory".to_owned());
    }
    db.close().map_err(|(_, error)| format!("closing: {}", explained(&error)))?;
    Ok(ledger)
}
