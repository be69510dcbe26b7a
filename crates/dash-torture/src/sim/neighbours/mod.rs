//! The program kind `neighbours`: sessions of dash and of stock SQLite, in every journal mode and
//! at every level of `synchronous`, one after the other, beside each other, and from before. In
//! every second one that the ring draws the database comes to rest under a session that stays open.
//! Processes of both kinds are killed; the power is cut at every step at which nothing was promised
//! away, and goes for good now and then. On what is left stock SQLite may look first, and write,
//! then dash opens it; files are copied by hand.
//!
//! Nobody may lose what was acknowledged, by dash or by stock SQLite at a level that promises it;
//! nobody is shown what no transaction left; nobody is refused for what only power losses and kills
//! did.

mod ends;
mod image;
mod rests;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use dash_simulated::{Machine, Metadata, Simulated};
use rusqlite::Connection;

use super::content::Content;
use super::explore::{Checked, Explorer, lock, wrong};
use super::model::{Model, short};
use super::sql::statements::{digest, transaction};
use super::sql::{self, failed};
use super::stock::{self, Manner, Stock, clear, is_busy, is_read_only};
use super::subject::DB;
use crate::random::Dice;

/// Stock connections that stay, at most.
const KEPT: usize = 2;
/// What becomes of a session.
enum End {
    /// What it wants.
    Own,
    /// It is killed.
    Killed,
    /// The power goes; this is left.
    Lost(Machine),
}

struct Neighbours {
    explorer: Arc<Explorer>,
    machine: Machine,
    model: Arc<Mutex<Model>>,
    /// Nothing is promised about a power loss now.
    quiet: Arc<AtomicBool>,
    /// What everybody alive sees,
    content: Content,
    /// unless what a dead one was about to make of it turns out to have come true.
    undecided: Option<Content>,
    /// A dash session was cut off in a commit. If stock SQLite writes before dash opens the
    /// database that commit gives way, unless the power goes before dash has done that: then nobody
    /// can tell.
    cut_off_commit: bool,
    /// The user has to choose.
    is_over: bool,
    /// A journal of stock SQLite may come back after a power loss.
    ghost: bool,
    /// A dash session that stays open.
    dash: Option<(Simulated, Connection)>,
    /// One under which it has come to rest.
    resting: Option<(Simulated, Connection)>,
    /// Stock connections from before.
    kept: Vec<Stock>,
}

/// Runs it.
pub fn run(explorer: &Arc<Explorer>) -> Checked<()> {
    let mut neighbours = Neighbours {
        explorer: Arc::clone(explorer),
        machine: explorer.machine(),
        model: Arc::new(Mutex::new(explorer.model())),
        quiet: Arc::default(),
        content: Content::new(),
        undecided: None,
        cut_off_commit: false,
        is_over: false,
        ghost: false,
        dash: None,
        resting: None,
        kept: Vec::new(),
    };
    for action in explorer.plan.keep.clone() {
        neighbours.act(&mut Dice::new(explorer.plan.seed, 5000 + action as u64))?;
        explorer.result()?;
        if neighbours.is_over {
            break;
        }
    }
    Ok(())
}

/// Opens the database through dash: what stock SQLite left beside it goes first.
fn open_dash(explorer: &Explorer, process: &Simulated) -> Checked<Connection> {
    match clear(explorer.subject, process.machine(), process) {
        Ok(()) => sql::open(explorer, process),
        Err(what) => wrong!("opening through dash: {what}"),
    }
}

impl Neighbours {
    fn act(&mut self, dice: &mut Dice) -> Checked<()> {
        match dice.below(16) {
            0 => self.write_back(),
            1 => {
                if !self.quiet.load(Ordering::Relaxed) {
                    let kind = self.explorer.plan.kind;
                    let after = kind.lose_power(&self.machine, dice.below(1 << 40));
                    return self.power_came_back(after);
                }
                Ok(())
            }
            2 | 3 => self.keep(dice),
            4 | 5 => self.use_kept(dice),
            6..=10 => {
                self.wake()?;
                self.cut_off(dice, Self::dash_session)
            }
            _ => self.cut_off(dice, Self::stock_session),
        }
    }

    /// The kernel has had the time.
    fn write_back(&mut self) -> Checked<()> {
        self.machine.write_back();
        self.ghost = false;
        if self.undecided.is_none() {
            lock(&self.model).on_disk(&self.content);
        }
        self.quiet.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// A process that has just opened it must read what everybody alive sees.
    fn sees(&mut self, who: &str, seen: Content) -> Checked<()> {
        if self.undecided.take_if(|dead| *dead == seen).is_some() {
            self.content = seen;
            return Ok(());
        }
        self.undecided = None;
        match seen == self.content {
            true => Ok(()),
            false => wrong!("{who} sees {}, not {}", short(&seen), short(&self.content)),
        }
    }

    /// A few transactions through dash, and an end.
    fn dash_session(
        &mut self,
        process: &Simulated,
        dice: &mut Dice,
        end: &Mutex<End>,
    ) -> Checked<()> {
        let db = match self.dash.take() {
            Some((_, db)) => db,
            None => {
                // Opening sets the database up, by a commit.
                self.cut_off_commit = true;
                let db = open_dash(&self.explorer, process)?;
                self.cut_off_commit = false;
                lock(&self.model).may_have_to_choose = false;
                db
            }
        };
        // Before it is cut off it is alone.
        if !matches!(*lock(end), End::Own) {
            return Ok(());
        }
        if dice.one_in(4) {
            // The next writer decides what became of a dead one's transaction.
            db.execute_batch("BEGIN IMMEDIATE; ROLLBACK")
                .map_err(|error| failed("beginning", &error))?;
        }
        for _ in 0..dice.below(3) {
            transaction(&db, dice).map_err(|error| failed("a statement", &error))?;
            let new = digest(&db).map_err(|error| failed("reading", &error))?;
            let number = lock(&self.model).tried(&new);
            self.undecided = Some(new.clone());
            self.cut_off_commit = true;
            db.execute_batch("COMMIT").map_err(|error| failed("COMMIT", &error))?;
            self.cut_off_commit = false;
            (self.content, self.undecided, self.ghost) = (new, None, false);
            if !self.quiet.load(Ordering::Relaxed) {
                lock(&self.model).acknowledged(number);
            }
        }
        let seen = digest(&db).map_err(|error| failed("reading", &error))?;
        self.sees("a dash session", seen)?;
        match dice.below(6) {
            0 => self.machine.kill(process),
            1 | 2 if self.explorer.plan.rests() && dice.one_in(2) => {
                self.rest(process, db, dice, end)?;
            }
            1 | 2 => self.dash = Some((process.clone(), db)),
            _ => {
                db.close().map_err(|(_, error)| failed("closing", &error))?;
                self.explorer.result()?;
                self.is_at_rest()?;
            }
        }
        self.cut_here(dice)
    }

    /// A few transactions of stock SQLite, and an end. Somebody else may be in its way, or dash's
    /// fence.
    fn stock_session(
        &mut self,
        process: &Simulated,
        dice: &mut Dice,
        end: &Mutex<End>,
    ) -> Checked<()> {
        let process = match self.dash {
            // Beside a dash session: in a process of its own, that is not cut off.
            Some(_) => self.machine.process(),
            None => process.clone(),
        };
        let wal = self.explorer.plan.metadata == Metadata::Journaled && self.dash.is_none();
        let manner = Manner::draw(dice, wal && self.kept.is_empty());
        let journal = self.has_a_journal();
        // Without a journal stock SQLite never flushes the name of a file that it, or somebody
        // else, has just made.
        let is_missing = !self.machine.exists(DB);
        let is_new = is_missing || self.content.is_empty();
        let opened = Stock::open_in(process)
            .and_then(|stock| stock.content().map(|content| (stock, content)));
        if is_new {
            self.write_back()?;
        }
        let (stock, content) = match opened {
            Ok(opened) => opened,
            Err(error) => return self.refused("opening", &error, end),
        };
        if is_missing && content.is_empty() && !self.content.is_empty() {
            // Somebody was killed between two of three renames: until dash has opened the database
            // stock SQLite sees an empty one.
            drop(stock);
            return self.cut_here(dice);
        }
        self.sees("a stock session", content)?;
        self.let_no_journal_come_back(journal, manner)?;
        if let Err(error) = stock.set(manner) {
            return self.refused("setting the journal mode", &error, end);
        }
        for _ in 0..dice.below(3) {
            if let Err(error) = self.stock_commit(&stock, manner, dice)? {
                return self.refused("committing", &error, end);
            }
        }
        let seen = stock.content().map_err(|error| failed("a stock session reads", &error))?;
        self.sees("a stock session", seen)?;
        if dice.one_in(6) {
            self.machine.kill(&stock.process);
        }
        drop(stock);
        self.cut_here(dice)
    }

    fn has_a_journal(&self) -> bool {
        self.machine.file_view(format!("{DB}-journal")).is_some()
    }

    /// What stock SQLite writes without a journal file must not be undone by one of before, whose
    /// removal a power loss undid: also where `journal` was there, and it has rolled that back just
    /// now.
    fn let_no_journal_come_back(&mut self, journal: bool, manner: Manner) -> Checked<()> {
        self.ghost |= journal;
        if self.ghost && !manner.survives_death() {
            self.write_back()?;
        }
        Ok(())
    }

    /// A transaction of stock SQLite; its error is the caller's to judge.
    fn stock_commit(
        &mut self,
        stock: &Stock,
        manner: Manner,
        dice: &mut Dice,
    ) -> Checked<rusqlite::Result<()>> {
        let was_quiet = self.quiet.load(Ordering::Relaxed);
        if !manner.survives_power_loss() {
            self.quiet.store(true, Ordering::Relaxed);
        }
        let begun = transaction(&stock.db, dice).and_then(|()| stock.content());
        let new = match begun {
            Ok(new) => new,
            Err(error) => {
                self.quiet.store(was_quiet, Ordering::Relaxed);
                return Ok(Err(error));
            }
        };
        let number = lock(&self.model).tried(&new);
        lock(&self.model).may_have_to_choose |= self.cut_off_commit;
        self.undecided = Some(new.clone());
        if let Err(error) = stock.db.execute_batch("COMMIT") {
            return Ok(Err(error));
        }
        self.undecided = None;
        self.content = new;
        self.ghost |= manner.leaves_a_ghost();
        if was_quiet {
            return Ok(Ok(()));
        }
        self.quiet.store(!manner.is_whole_once_committed(), Ordering::Relaxed);
        if manner.is_durable() {
            lock(&self.model).acknowledged(number);
        }
        Ok(Ok(()))
    }

    /// Stock SQLite is refused: by somebody alive, by the fence of somebody dead, by the mark of a
    /// close beside stock connections that have both copies open, by its own death, and by nothing
    /// else.
    fn refused(&self, what: &str, error: &rusqlite::Error, end: &Mutex<End>) -> Checked<()> {
        let fence = self.explorer.subject.stock_may_refuse(&self.machine, DB);
        let cut_off = !matches!(*lock(end), End::Own);
        let marked = is_read_only(error) && stock::may_not_be_written(&self.machine);
        if cut_off
            || fence
            || marked
            || is_busy(error) && (self.dash.is_some() || !self.kept.is_empty())
        {
            return Ok(());
        }
        wrong!("a stock session is refused, {what}: {error} ({:?})", error.sqlite_error())
    }

    /// A stock connection that stays.
    fn keep(&mut self, dice: &mut Dice) -> Checked<()> {
        if self.kept.len() == KEPT {
            self.kept.remove(dice.index(KEPT));
        }
        if stock::is_wal(&self.machine) || !self.machine.exists(DB) {
            return Ok(());
        }
        if let Ok(stock) = Stock::open(&self.machine)
            && let Ok(seen) = stock.content()
        {
            self.sees("a stock connection", seen)?;
            self.kept.push(stock);
        }
        Ok(())
    }

    /// A stock connection from before reads, or writes if it is let.
    fn use_kept(&mut self, dice: &mut Dice) -> Checked<()> {
        if self.kept.is_empty() {
            return Ok(());
        }
        let stock = self.kept.remove(dice.index(self.kept.len()));
        let journal = self.has_a_journal();
        if let Ok(seen) = stock.content()
            && self.undecided.is_none()
        {
            if !lock(&self.model).allows_ever(&seen) && seen != self.content {
                return wrong!("an old stock connection sees {}", short(&seen));
            }
            let manner = Manner::draw(dice, false);
            self.let_no_journal_come_back(journal, manner)?;
            if dice.one_in(2) && stock.set(manner).is_ok() {
                let at_rest = self.dash.is_none();
                match self.stock_commit(&stock, manner, dice)? {
                    Ok(()) if at_rest => {}
                    Ok(()) => return wrong!("an old stock connection wrote beside dash"),
                    Err(_) => {
                        self.undecided = None;
                        drop(stock.db.execute_batch("ROLLBACK"));
                    }
                }
            }
        }
        self.kept.push(stock);
        self.cut_here(dice)
    }
}
