//! The program kind `wal`: the real SQLite in WAL mode on an engine, one to three connections in as
//! many processes; stock SQLite beside it now and then. They commit at every level of
//! `synchronous`, in large transactions that spill, roll back, checkpoint in every way, hold
//! snapshots, close, leave the mode and enter it again. They are killed between calls and inside,
//! flushes fail, the power goes for good.
//!
//! At every step all that could be left is looked at: by stock SQLite, by the engine, and by the
//! engine after a recovery that was cut, twice. Nobody may find anything but all commits up to one,
//! not older than what was flushed; after a kill, the newest; nobody is refused; and it goes on.

mod accident;
mod act;
mod checkpoint;
mod history;
mod image;
mod neighbours;
mod settings;
mod story;

use std::sync::{Arc, Mutex};

use dash_simulated::{Machine, Simulated};
use rusqlite::Connection;

use accident::{Accidents, End, watch};
use history::{Cause, History};
use image::Images;
use settings::Settings;

use super::content::Content;
use super::explore::{Checked, Explorer, lock, wrong};
use super::sql::failed;
use super::sql::statements::digest;
use super::stock::{Level, Stock, is_wal};
use super::subject::{DB, World};
use super::within::is_dead;
use crate::random::Dice;

/// A connection, and what it is in the middle of.
struct Connected {
    db: Connection,
    level: Level,
    /// In which process.
    place: usize,
    state: State,
}

/// What a connection is in the middle of.
enum State {
    Idle,
    /// A read transaction that began when this was the newest.
    Reading(Content),
    /// A write transaction that is going to leave this.
    Writing(Content),
    /// A checkpoint that has read the header of the wal-index.
    Checkpointing,
}

struct Wal {
    images: Arc<Images>,
    machine: Machine,
    history: Arc<Mutex<History>>,
    accidents: Arc<Mutex<Accidents>>,
    /// The processes of the engine.
    processes: Vec<Option<World>>,
    connections: Vec<Option<Connected>>,
    /// Connections of stock SQLite, each in a process of its own.
    stock: Vec<Stock>,
    /// A flush has failed since all were gone last: calls may fail that need not.
    is_faulty: bool,
    /// A commit was to survive everything since all were gone last. Before that a connection that
    /// never flushes is not beside others, and may tear what is there, as in stock SQLite.
    is_promised: bool,
    /// The last process of the engine was killed, and none has come since.
    is_left_by_dead: bool,
}

/// Runs it.
pub fn run(explorer: &Arc<Explorer>) -> Checked<()> {
    let Some(claims) = explorer.subject.claims().wal_mode else {
        return wrong!("{} is not for WAL mode", explorer.subject.engine());
    };
    let settings = Settings::draw(explorer, claims);
    let connections = settings.places.iter().map(|_| None).collect();
    let processes = settings.places.iter().map(|_| None).collect();
    let images = Arc::new(Images { explorer: Arc::clone(explorer), settings });
    let machine = explorer.machine();
    let blocks = [Some(512), Some(4096), None];
    machine.set_direct(blocks[Dice::new(explorer.plan.seed, 6500).index(3)]);
    let mut wal = Wal {
        images,
        machine,
        history: Arc::default(),
        accidents: Arc::default(),
        processes,
        connections,
        stock: Vec::new(),
        is_faulty: false,
        is_promised: false,
        is_left_by_dead: false,
    };
    wal.watch();
    for action in explorer.plan.keep.clone() {
        let dice = &mut Dice::new(explorer.plan.seed, 6400 + action as u64);
        wal.act(dice)?;
        explorer.result()?;
    }
    let left = wal.all_leave();
    if wal.settings().is_older && wal.is_left_by_dead {
        // Stock connections go last, and may copy frames without checksums
        // (`Wal::neighbour_acts`).
        wal.machine.watch(|_, _| {});
    }
    left
}

impl Wal {
    fn watch(&self) {
        watch(&self.images, &self.machine, &self.history, &self.accidents);
    }

    fn settings(&self) -> &Settings {
        &self.images.settings
    }

    fn explorer(&self) -> &Arc<Explorer> {
        &self.images.explorer
    }

    /// One action of one connection, that may be cut off; then somebody looks.
    fn act(&mut self, dice: &mut Dice) -> Checked<()> {
        if self.settings().has_neighbours && dice.one_in(3) {
            return self.neighbour_acts(dice);
        }
        let at = dice.index(self.connections.len());
        let victim = self.world(at).process.clone();
        self.arm(&victim, dice);
        if self.settings().has_faults && is_wal(&self.machine) && dice.one_in(4) {
            accident::lose_flushes(&self.machine, dice);
            lock(&self.history).flushes_fail();
            self.is_faulty = true;
        }
        let done = self.work(at, dice);
        self.machine.stop_failing();
        self.settle(done)?;
        self.look(dice)
    }

    /// Something may befall a process in its next calls. Not while the database is being made: one
    /// that dies when it undoes that, and has cut the file, leaves a journal which the next one
    /// removes as that of an empty database, and so does stock SQLite, before the cut is durable.
    fn arm(&self, victim: &Simulated, dice: &mut Dice) {
        if is_wal(&self.machine) {
            lock(&self.accidents).arm(victim, !self.stock.is_empty(), dice);
        }
    }

    /// The world of a connection; its process begins, if there is none.
    fn world(&mut self, at: usize) -> World {
        let place = self.settings().places[at];
        let (subject, setup) = (self.explorer().subject, self.explorer().setup);
        let process = self.machine.process();
        let begin = || World::new(process, subject, setup);
        self.processes[place].get_or_insert_with(begin).another()
    }

    /// After an action: what was cut off is buried; an error without a cause is a fault.
    fn settle(&mut self, done: Checked<()>) -> Checked<()> {
        self.explorer().result()?;
        let end = lock(&self.accidents).take();
        match end {
            End::Own if self.is_faulty => {
                if done.is_err() {
                    self.leave_at_once();
                }
                Ok(())
            }
            End::Own => done,
            End::Killed(victim, saved) => {
                lock(&self.history).cut_off();
                self.machine.kill(&victim);
                self.bury();
                saved.restore();
                Ok(())
            }
            End::Gone(machine, cause) => self.all_gone(machine, cause),
        }
    }

    /// All processes are gone; the next one that comes finds what they left.
    fn all_gone(&mut self, machine: Machine, cause: Cause) -> Checked<()> {
        self.machine.watch(|_, _| {});
        lock(&self.history).ended(cause);
        self.processes.iter_mut().for_each(|process| drop(process.take()));
        self.connections.iter_mut().for_each(|connection| drop(connection.take()));
        self.stock.clear();
        self.machine = machine;
        (self.is_faulty, self.is_promised) = (false, false);
        self.watch();
        Ok(())
    }

    /// After a call that failed because a flush did: all connections are gone, and may be opened
    /// again. Their processes end, so that nobody has anything open.
    fn leave_at_once(&mut self) {
        let machine = self.machine.clone();
        for world in self.processes.iter_mut().filter_map(Option::take) {
            machine.kill(&world.process);
        }
        let saved = super::stock::index::Saved::take(&machine, DB);
        self.connections.iter_mut().for_each(|connection| drop(connection.take()));
        saved.restore();
        lock(&self.history).ended(Cause::Kill);
        (self.is_faulty, self.is_promised) = (false, false);
    }

    /// What dead processes had open is dropped.
    fn bury(&mut self) {
        let mut died = false;
        for place in 0..self.processes.len() {
            if self.processes[place].as_ref().is_some_and(|world| is_dead(&world.process)) {
                self.processes[place] = None;
                died = true;
                for connection in &mut self.connections {
                    drop(connection.take_if(|connection| connection.place == place));
                }
            }
        }
        self.stock.retain(|stock| !is_dead(&stock.process));
        let nobody = self.connections.iter().all(Option::is_none) && self.stock.is_empty();
        self.is_promised &= self.connections.iter().any(Option::is_some);
        self.is_left_by_dead |= died && self.connections.iter().all(Option::is_none);
        if nobody {
            lock(&self.history).ended(Cause::Kill);
        }
    }

    /// The connection, opened if it is not.
    fn connection(&mut self, at: usize, dice: &mut Dice) -> Checked<&mut Connected> {
        if self.connections[at].is_none() {
            let (world, level) = (self.world(at), self.settings().level(self.is_promised, dice));
            let db = self.settings().open(world, level)?;
            self.is_left_by_dead = false;
            let place = self.settings().places[at];
            self.connections[at] = Some(Connected { db, level, place, state: State::Idle });
            self.first_look(at)?;
        }
        match &mut self.connections[at] {
            Some(connection) => Ok(connection),
            None => wrong!("not opened"),
        }
    }

    /// What a connection that was just opened sees.
    fn first_look(&mut self, at: usize) -> Checked<()> {
        let Some(connection) = &self.connections[at] else { return Ok(()) };
        let seen = digest(&connection.db).map_err(|error| failed("the first look", &error))?;
        match lock(&self.history).sees(&seen) {
            Ok(()) => Ok(()),
            Err(what) => wrong!("a connection that was opened finds {what}"),
        }
    }

    /// Whoever is alive sees the newest commit; snapshots are what they were.
    fn look(&mut self, dice: &mut Dice) -> Checked<()> {
        if lock(&self.history).is_unseen() {
            return Ok(());
        }
        for (at, connection) in self.connections.iter().enumerate() {
            let Some(Connected { db, state, .. }) = connection else { continue };
            if dice.one_in(2) || matches!(state, State::Checkpointing) {
                continue;
            }
            let seen = match digest(db) {
                Ok(seen) => seen,
                Err(_) if self.is_faulty => continue,
                Err(error) => return Err(failed(&format!("connection {at} reads"), &error)),
            };
            let expected = match state {
                State::Idle | State::Checkpointing => lock(&self.history).sees(&seen),
                State::Reading(content) | State::Writing(content) if seen == *content => Ok(()),
                State::Reading(_) => Err("another snapshot than it was".to_owned()),
                State::Writing(_) => Err("not what it has written".to_owned()),
            };
            if let Err(what) = expected {
                return wrong!("connection {at} sees {what}");
            }
        }
        Ok(())
    }
}
