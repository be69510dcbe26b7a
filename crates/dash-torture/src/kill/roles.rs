//! What a worker process does until it is killed. It says on its standard output, one byte each,
//! how far it is; see [`Said`].

use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::beside;
use super::guests;
use super::ledger::{self, Ledger};
use super::pairs;
use super::worker::{
    HANG, Identity, LIFE, PATIENCE, Said, TIMEOUT, Worker, is_later, is_refusal, say,
};
use super::workload::{self, SLOTS};
use crate::again::Assignment;
use crate::random::Dice;
use crate::sqlite::{self, Wrong};

/// Long enough for a process that polls for a lock to get it.
const PAUSE: Duration = Duration::from_millis(60);

/// Plays a role until killed; `Err` says what must never happen.
pub fn play(role: &str, assignment: &Assignment) -> Result<(), String> {
    sqlite::tell_corruption()?;
    sqlite::load(&assignment.library)?;
    let identity = match role {
        "member" => Identity::Member,
        "nobody" => Identity::Nobody,
        "stock beside" => Identity::Beside,
        _ if role.starts_with("stock") => Identity::Stock,
        _ => Identity::Dash,
    };
    if role == "nobody" {
        guests::become_nobody()?;
    }
    let ledger = match identity {
        Identity::Member | Identity::Nobody => None,
        _ => Some(
            Ledger::open(&assignment.file, assignment.task.slot)
                .map_err(|error| format!("the ledger: {error}"))?,
        ),
    };
    let dice = Dice::new(assignment.task.seed, 0);
    let mut worker = Worker { assignment, dice, identity, begun: Instant::now(), ledger };
    if let Some(played) = worker.other(role) {
        return played;
    }
    while worker.begun.elapsed() < LIFE {
        let Some(db) = worker.open()? else { continue };
        let mut keep = true;
        while keep && worker.begun.elapsed() < LIFE {
            keep = match role {
                "writer" | "stock beside" => worker.write(&db)?,
                "stock spiller" => worker.spill(&db)?,
                "stock writer" => worker.write(&db)? && worker.dice.below(8) > 0,
                "patient writer" => worker.write(&db)? && worker.pause(),
                "reader" | "stock reader" | "member" | "nobody" => worker.read(&db)?,
                "holder" => worker.hold(&db)? && worker.pause(),
                "converter" => worker.convert(&db)?,
                "visitor" => worker.write(&db)? && worker.dice.below(3) > 0,
                _ => return Err(format!("there is no role {role}")),
            };
        }
        if let Err((_, error)) = db.close() {
            worker.later("closing", &error)?;
        }
        say(Said::Closed)?;
    }
    Ok(())
}

impl Worker<'_> {
    /// Plays a role on other databases.
    fn other(&mut self, role: &str) -> Option<Result<(), String>> {
        match role {
            pairs::WRITER => Some(self.write_pairs()),
            "pair reader" => Some(self.read_pairs()),
            "alone" => Some(self.run_script()),
            _ => None,
        }
    }

    /// Says "later", or that it is an error that has no business here.
    pub(super) fn later(&self, what: &str, error: &rusqlite::Error) -> Result<(), String> {
        if is_later(error) {
            return say(Said::Busy);
        }
        let more = sqlite::last_error();
        Err(format!("{what}: {error} (code {}); {more}", sqlite::code(error)))
    }

    /// Calls, and says so if it takes for ever.
    pub(super) fn timed<T>(&self, what: &str, call: impl FnOnce() -> T) -> Result<T, String> {
        let begun = Instant::now();
        let result = call();
        if begun.elapsed() > HANG {
            return Err(format!("{what} took {:?}", begun.elapsed()));
        }
        Ok(result)
    }

    fn open(&mut self) -> Result<Option<Connection>, String> {
        let Assignment { file, task, .. } = self.assignment;
        let ledger = self.ledgers()?;
        let is_beside = self.identity == Identity::Beside;
        let mode = match is_beside {
            true => beside::level(&mut self.dice),
            false => guests::mode(&mut self.dice),
        };
        let timeout = if is_beside { PATIENCE } else { TIMEOUT };
        let settings = self.settings();
        say(Said::Opening)?;
        let opened = self.timed("opening", || {
            let db = match self.identity {
                Identity::Dash | Identity::Nobody => sqlite::open(file, &task.parameters)?,
                Identity::Member => sqlite::open(file, &format!("{}&mode=ro", task.parameters))?,
                Identity::Stock | Identity::Beside => sqlite::open_stock(file)?,
            };
            db.busy_timeout(timeout)?;
            db.execute_batch("PRAGMA cache_size = 20")?;
            let newest = workload::newest(&db, task.slot)?;
            if is_beside || self.identity == Identity::Stock {
                db.execute_batch(&mode)?;
            }
            Ok((db, newest))
        })?;
        match opened {
            Ok((db, newest)) => {
                say(Said::Opened)?;
                let said = sqlite::last_error();
                let set_up = self.set_up(&db, &settings);
                if !set_up.map_err(|what| format!("{what}; before: {said}"))? {
                    say(Said::Busy)?;
                    return Ok(None);
                }
                let known = ledger[task.slot];
                // Others may have written in its slot meanwhile: a member has none of its own.
                let is_own = self.ledger.is_some();
                if !is_own || (known.acknowledged..=known.begun).contains(&newest) {
                    Ok(Some(db))
                } else {
                    Err(format!("worker {} finds its commit {newest} after {known:?}", task.slot))
                }
            }
            Err(error) if self.identity != Identity::Dash && is_refusal(&error) => {
                say(Said::Busy)?;
                std::thread::sleep(Duration::from_millis(1));
                Ok(None)
            }
            Err(error) => {
                self.later("opening", &error)?;
                std::thread::sleep(Duration::from_millis(1));
                Ok(None)
            }
        }
    }

    fn ledgers(&self) -> Result<Vec<ledger::Entry>, String> {
        ledger::read_all(&self.assignment.file, SLOTS).map_err(|error| error.to_string())
    }

    /// A commit or a rollback.
    fn write(&mut self, db: &Connection) -> Result<bool, String> {
        let slot = self.assignment.task.slot;
        if !self.maintain(db)? {
            return Ok(false);
        }
        match self.dice.below(60) {
            0..6 => {
                let mut dice = self.dice.clone();
                self.dice.draw();
                return self.finish(db, |db, _| workload::work_in_vain(db, slot, &mut dice));
            }
            6 => return self.finish(db, |db, _| db.execute_batch("VACUUM")),
            _ => {}
        }
        self.commit(db, |_| Ok(()))
    }

    /// Lets others have their turn: nothing makes the queue of several processes a fair one.
    fn pause(&self) -> bool {
        std::thread::sleep(PAUSE);
        true
    }

    /// A commit that rests before its end, so that it can be stopped there.
    fn hold(&mut self, db: &Connection) -> Result<bool, String> {
        self.commit(db, |_| {
            say(Said::Holding)?;
            std::thread::sleep(Duration::from_millis(5));
            Ok(())
        })
    }

    fn commit(
        &mut self,
        db: &Connection,
        rest: impl FnOnce(&Connection) -> Result<(), String>,
    ) -> Result<bool, String> {
        let slot = self.assignment.task.slot;
        let mut dice = self.dice.clone();
        self.dice.draw();
        let worked = self.timed("a transaction", || workload::work(db, slot, &mut dice))?;
        let n = match worked {
            Ok(n) => n,
            Err(error) => return self.give_up(db, "a transaction", &error),
        };
        rest(db)?;
        let Some(ledger) = &mut self.ledger else { return Err("a member writes".to_owned()) };
        if n <= ledger.acknowledged() {
            return Err(format!("a writer is let in who sees no more than commit {}", n - 1));
        }
        ledger.begin(n).map_err(|error| error.to_string())?;
        let committed = self.timed("COMMIT", || db.execute_batch("COMMIT"))?;
        match committed {
            Ok(()) => {
                let Some(ledger) = &mut self.ledger else { return Ok(false) };
                ledger.acknowledge(n).map_err(|error| error.to_string())?;
                say(Said::Done)?;
                Ok(true)
            }
            Err(error) => self.give_up(db, "COMMIT", &error),
        }
    }

    pub(super) fn finish(
        &mut self,
        db: &Connection,
        call: impl FnOnce(&Connection, &mut Self) -> rusqlite::Result<()>,
    ) -> Result<bool, String> {
        let begun = Instant::now();
        let result = call(db, self);
        if begun.elapsed() > HANG {
            return Err(format!("a rollback or VACUUM took {:?}", begun.elapsed()));
        }
        match result {
            Ok(()) => Ok(true),
            Err(error) => self.give_up(db, "a rollback or VACUUM", &error),
        }
    }

    fn give_up(
        &self,
        db: &Connection,
        what: &str,
        error: &rusqlite::Error,
    ) -> Result<bool, String> {
        let engine: String = match self.identity {
            Identity::Dash => self.engine(db)?,
            _ => "plain".to_owned(),
        };
        let refused = engine == "plain" && is_refusal(error);
        if refused {
            std::thread::sleep(Duration::from_millis(1));
            say(Said::Busy)?
        } else {
            self.later(what, error)?
        }
        if !db.is_autocommit() {
            db.execute_batch("ROLLBACK").map_err(|error| format!("ROLLBACK: {error}"))?;
        }
        Ok(!refused)
    }

    /// A snapshot, read twice: it has all that was acknowledged before, and does not change.
    fn read(&mut self, db: &Connection) -> Result<bool, String> {
        let before = self.ledgers()?;
        let look = |db: &Connection| {
            db.execute_batch("BEGIN")?;
            let first = workload::state(db)?;
            std::thread::sleep(Duration::from_millis(1));
            let second = workload::state(db)?;
            db.execute_batch("COMMIT")?;
            Ok((first, second))
        };
        let (first, second) = match self.timed("a read transaction", || look(db))? {
            Ok(both) => both,
            Err(Wrong::Sql(error)) => {
                let engine = self.engine(db).unwrap_or_default();
                return self.give_up(db, &format!("a read transaction ({engine})"), &error);
            }
            Err(Wrong::Content(what)) => return Err(format!("a reader sees {what}")),
        };
        if first != second {
            return Err(format!("a snapshot changed from {first:?} to {second:?}"));
        }
        let after = self.ledgers()?;
        for (slot, &n) in first.iter().enumerate() {
            // A stock connection from before may have a file that is an older copy now.
            let is_lost = n < before[slot].acknowledged && self.identity != Identity::Stock;
            if is_lost || n > after[slot].begun {
                return Err(format!(
                    "a reader sees commit {n} of worker {slot}: {:?} before, {:?} after",
                    before[slot], after[slot]
                ));
            }
        }
        say(Said::Done)?;
        Ok(self.dice.below(6) > 0)
    }

    /// Leaves the engine's mode, commits as stock SQLite does, and comes back.
    fn convert(&mut self, db: &Connection) -> Result<bool, String> {
        for mode in ["delete", &self.assignment.task.engine] {
            let switched = self.timed("switching", || {
                db.query_row(&format!("PRAGMA journal_mode = {mode}"), [], |row| {
                    row.get::<_, String>(0)
                })
            })?;
            match switched {
                Ok(now) if now == mode => say(Said::Switched)?,
                // SQLite answers the mode that it is still in.
                Ok(_) => say(Said::Busy)?,
                Err(error) => {
                    if !self.give_up(db, "switching", &error)? {
                        return Ok(false);
                    }
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            for _ in 0..self.dice.below(3) {
                if !self.write(db)? {
                    return Ok(false);
                }
            }
        }
        Ok(self.dice.below(4) > 0)
    }
}
