//! The program kind `sql`: an SQLite that runs on the engine, with statements that move many pages
//! about. The power is cut at every step; what is recovered must pass `integrity_check` and be what
//! some transaction left, and so must what stock SQLite is shown under the name.

pub(super) mod statements;
pub(super) mod vfs;

use std::sync::{Arc, Mutex};

use dash_simulated::{Machine, OperationKind, Random, Simulated};
use rusqlite::{Connection, MAIN_DB};

use super::explore::{Checked, Explorer, Violation, changes, lock, wrong};
use super::model::{Model, short};
use super::subject::{DB, World};
use crate::random::Dice;
use statements::{digest, is_sound, prepare, transaction};

struct Sql {
    explorer: Arc<Explorer>,
    machine: Machine,
    model: Arc<Mutex<Model>>,
    open: Option<(Simulated, Connection)>,
}

/// Runs it.
pub fn run(explorer: &Arc<Explorer>) -> Checked<()> {
    let machine = explorer.machine();
    let model = Arc::new(Mutex::new(explorer.model()));
    watch(explorer, &machine, &model, 0);
    let mut sql = Sql { explorer: Arc::clone(explorer), machine, model, open: None };
    for action in explorer.plan.keep.clone() {
        let done = sql.act(&mut Dice::new(explorer.plan.seed, 4000 + action as u64));
        explorer.result()?;
        done?;
    }
    Ok(())
}

/// Opens the database through the engine.
pub(super) fn open(explorer: &Explorer, process: &Simulated) -> Checked<Connection> {
    let (subject, setup) = (explorer.subject, explorer.setup);
    let world = World::new(process.clone(), subject, setup);
    let db = vfs::open(world).map_err(|error| failed("opening", &error))?;
    prepare(&db, explorer).map_err(|error| failed("opening", &error))?;
    Ok(db)
}

/// What SQLite says, and what the engine said to it.
pub(super) fn failed(what: &str, error: &rusqlite::Error) -> Violation {
    let reason = dash_ffi::last_error().unwrap_or_default();
    Violation(format!("{what}: {error} ({:?}): {reason}", error.sqlite_error()))
}

impl Sql {
    fn act(&mut self, dice: &mut Dice) -> Checked<()> {
        if self.open.is_none() {
            let process = self.machine.process();
            let db = open(&self.explorer, &process)?;
            self.open = Some((process, db));
        }
        let Some((process, db)) = &self.open else {
            return wrong!("not opened");
        };
        let model = Arc::clone(&self.model);
        match dice.below(12) {
            0 => {
                if let Some((_, db)) = self.open.take() {
                    db.close().map_err(|(_, error)| failed("closing", &error))?;
                    self.explorer.result()?;
                    if let Err(what) = self.explorer.subject.check_at_rest(&self.machine, DB, &[]) {
                        return wrong!("closed: {what}");
                    }
                }
            }
            1 => {
                self.machine.kill(process);
                self.open = None;
            }
            2 => {
                let size = [512, 1024, 4096, self.explorer.setup.page][dice.index(4)];
                let text = format!("PRAGMA page_size={size}; VACUUM");
                db.execute_batch(&text).map_err(|error| failed(&text, &error))?;
            }
            3 => {
                let before = digest(db).map_err(|error| failed("reading", &error))?;
                let kept = lock(&model).tried(&before);
                transaction(db, dice)
                    .and_then(|()| digest(db))
                    .and_then(|_| db.execute_batch("ROLLBACK"))
                    .map_err(|error| failed("rolling back", &error))?;
                let after = digest(db).map_err(|error| failed("reading", &error))?;
                lock(&model).acknowledged(kept);
                if before != after {
                    return wrong!("rolled back from {} to {}", short(&before), short(&after));
                }
            }
            _ => {
                transaction(db, dice).map_err(|error| failed("a statement", &error))?;
                let new = digest(db).map_err(|error| failed("reading", &error))?;
                let number = lock(&model).tried(&new);
                db.execute_batch("COMMIT").map_err(|error| failed("COMMIT", &error))?;
                lock(&model).acknowledged(number);
            }
        }
        Ok(())
    }
}

fn watch(explorer: &Arc<Explorer>, machine: &Machine, model: &Arc<Mutex<Model>>, depth: usize) {
    let (explorer, model) = (Arc::clone(explorer), Arc::clone(model));
    let mut dice = Dice::new(explorer.plan.seed, 4100 + depth as u64);
    machine.watch(move |machine, operation| {
        if !changes(operation.kind) || explorer.result().is_err() {
            return;
        }
        let flush = operation.kind == OperationKind::Flush;
        let fates = match (depth, flush) {
            (0, true) => explorer.plan.fates / 2,
            (0, false) => u64::from(dice.one_in(3)),
            (_, true) => 1,
            (_, false) => u64::from(dice.one_in(4)),
        };
        let model = lock(&model).clone();
        explorer.cut_and(machine, fates, &mut dice, |after, _| {
            check(&explorer, after, &model, depth + 1)
        });
    });
}

fn check(explorer: &Arc<Explorer>, machine: &Machine, model: &Model, depth: usize) -> Checked<()> {
    let hash = machine.state_hash();
    if !explorer.is_new(hash, model.floor(), depth) {
        return Ok(());
    }
    check_stock(explorer, machine, model)?;
    let model = Arc::new(Mutex::new(model.clone()));
    if depth < explorer.plan.depth && hash.is_multiple_of(12) {
        watch(explorer, machine, &model, depth);
    }
    let process = machine.process();
    let opened = open(explorer, &process);
    explorer.result()?;
    let db = opened?;
    let read = is_sound(&db).and_then(|sound| digest(&db).map(|content| (sound, content)));
    let (sound, content) = read.map_err(|error| failed("reading what was recovered", &error))?;
    if !sound {
        return wrong!("what was recovered fails integrity_check");
    }
    if !lock(&model).allows(&content) {
        return wrong!("recovered {}, not {}", short(&content), lock(&model).shown());
    }
    lock(&model).on_disk(&content);
    // It goes on, and what is committed now is durable.
    let mut dice = Dice::new(hash, 4200);
    let new = transaction(&db, &mut dice).and_then(|()| digest(&db));
    let new = new.map_err(|error| failed("a statement after the recovery", &error))?;
    lock(&model).tried(&new);
    let committed = db.execute_batch("COMMIT");
    explorer.result()?;
    committed.map_err(|error| failed("COMMIT after the recovery", &error))?;
    machine.watch(|_, _| {});
    let after = machine.power_loss(&mut Random::new(hash));
    let db = open(explorer, &after.process())?;
    let found = digest(&db).map_err(|error| failed("recovered, committed, cut", &error))?;
    match found == new {
        true => Ok(()),
        false => wrong!("recovered, committed {}, cut: then {}", short(&new), short(&found)),
    }
}

/// Stock SQLite, with the bytes that are under the name.
fn check_stock(explorer: &Explorer, machine: &Machine, model: &Model) -> Checked<()> {
    let bytes = machine.file_view(DB).unwrap_or_default();
    if explorer.subject.stock_refuses(machine, DB).is_some() || bytes.is_empty() {
        return Ok(());
    }
    let read = || {
        let mut db = Connection::open_in_memory()?;
        db.deserialize_read_exact(MAIN_DB, &*bytes, bytes.len(), true)?;
        Ok((is_sound(&db)?, digest(&db)?))
    };
    match read() {
        Ok((true, content)) if model.allows_ever(&content) => Ok(()),
        Ok((sound, content)) => {
            let content = short(&content);
            wrong!("a stock reader sees {content}, no committed state; sound: {sound}")
        }
        Err(rusqlite::Error::SqliteFailure(error, _))
            if error.code == rusqlite::ErrorCode::NotADatabase =>
        {
            Ok(())
        }
        Err(error) => wrong!("a stock reader fails: {error}"),
    }
}
