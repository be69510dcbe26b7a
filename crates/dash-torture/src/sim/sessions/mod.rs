//! The program kind `sessions`: a long history of short sessions, one after the other, some beside
//! one that stays open and does nothing. Each is opened, commits a few times near one place of the
//! database, flushed or, under synchronous=OFF, not, rolls back, and is closed or killed. The power
//! is cut at every step; now and then it goes for good, and the history goes on with what that
//! left.
//!
//! It is for what one session leaves to the next but one: what an engine says about its files is
//! made smaller when a database is closed, is in the cache and not on the disk, and is believed by
//! the next session. That takes databases much larger than a transaction, and several sessions
//! between the cause and the power loss that shows it.

mod session;

use std::sync::{Arc, Mutex};

use dash_simulated::{Machine, OperationKind, Simulated, StockDescriptor};

use super::content::{self, Content, Stock, VALUES, as_stock};
use super::explore::{Checked, Explorer, changes, check_bytes, lock, wrong};
use super::model::{Model, short};
use super::next::unexpected;
use super::subject::{DB, Outcome, Session, Trouble};
use crate::random::{Dice, mix};

/// Attempts at what somebody else may be in the way of.
const ATTEMPTS: usize = 4;
/// Sessions that stay open, and stock descriptors, at most.
const KEPT: usize = 2;
/// Steps within which a session is cut off, if it is.
const STEPS: u64 = 60;

/// What becomes of a session.
enum End {
    /// What it wants.
    Own,
    /// It is killed.
    Killed,
    /// The power goes; this is left.
    Lost(Machine),
}

struct Sessions {
    explorer: Arc<Explorer>,
    machine: Machine,
    model: Arc<Mutex<Model>>,
    /// What everybody alive sees,
    content: Content,
    /// unless what a dead one was about to make of it turns out to have come true.
    undecided: Option<Content>,
    /// Where most changes are.
    hot: usize,
    /// Sessions that stay open.
    idle: Vec<(Simulated, Box<dyn Session>)>,
    /// Stock descriptors opened long ago.
    descriptors: Vec<StockDescriptor>,
}

/// Runs it.
pub fn run(explorer: &Arc<Explorer>) -> Checked<()> {
    let machine = explorer.machine();
    let mut sessions = Sessions {
        explorer: Arc::clone(explorer),
        machine,
        model: Arc::new(Mutex::new(explorer.model())),
        content: Content::new(),
        undecided: None,
        hot: 0,
        idle: Vec::new(),
        descriptors: Vec::new(),
    };
    let content: Content = (1..).take(explorer.plan.pages() / 2).collect();
    let mut first =
        explorer.open(&sessions.machine).map_err(|error| unexpected("opening", &error))?;
    content::commit(&mut *first, explorer.setup.page, &content)
        .and_then(|()| first.close())
        .map_err(|error| unexpected("the first session", &error))?;
    lock(&sessions.model).on_disk(&content);
    sessions.content = content;
    for action in explorer.plan.keep.clone() {
        sessions.act(&mut Dice::new(explorer.plan.seed, 4000 + action as u64))?;
        explorer.result()?;
    }
    sessions.cut_here(&mut Dice::new(explorer.plan.seed, 3999))
}

impl Sessions {
    fn act(&mut self, dice: &mut Dice) -> Checked<()> {
        if dice.one_in(2) && !self.idle.is_empty() {
            let (process, session) = self.idle.remove(0);
            if dice.one_in(4) {
                self.machine.kill(&process);
            } else {
                self.close(session, dice)?;
            }
        }
        if dice.one_in(6)
            && let Ok(descriptor) = self.machine.open_stock(DB)
        {
            self.descriptors.truncate(KEPT - 1);
            self.descriptors.insert(0, descriptor);
        }
        let process = self.machine.process();
        let end = self.watch(&process, dice);
        let ran = self.session(&process, dice);
        self.machine.watch(|_, _| {});
        self.explorer.result()?;
        let end = std::mem::replace(&mut *lock(&end), End::Own);
        if let End::Lost(after) = end {
            return self.power_came_back(after);
        }
        match (ran, end) {
            (Ok(()), End::Own) => self.check_others(),
            (Err(violation), End::Own) => Err(violation),
            // What a dead process was told is nobody's business.
            _ => Ok(()),
        }
    }

    /// Cuts at the steps of a session, and decides what becomes of it.
    fn watch(&self, process: &Simulated, dice: &mut Dice) -> Arc<Mutex<End>> {
        let end = Arc::new(Mutex::new(End::Own));
        let (told, victim) = (Arc::clone(&end), process.clone());
        let (explorer, model) = (Arc::clone(&self.explorer), Arc::clone(&self.model));
        let fates = explorer.plan.fates;
        let (lost, killed) = (dice.one_in(4), dice.one_in(6));
        let (at, after) = (dice.below(STEPS), dice.one_in(3));
        let (mut steps, mut dice) = (0, Dice::new(dice.draw(), 0));
        self.machine.watch(move |machine, operation| {
            if !changes(operation.kind) || explorer.result().is_err() {
                return;
            }
            let model = lock(&model).clone();
            steps += 1;
            if !matches!(*lock(&told), End::Own) {
                return;
            }
            if model.promises() {
                let flush =
                    matches!(operation.kind, OperationKind::Flush | OperationKind::FlushDirectory);
                let fates = if flush { fates } else { u64::from(dice.one_in(3)) };
                explorer.cut(machine, &model, fates, 0, &mut dice);
            }
            if steps <= at {
                return;
            }
            if lost && model.promises() {
                let kind = explorer.plan.kind;
                *lock(&told) = End::Lost(kind.lose_power(machine, dice.below(1 << 40)));
                machine.kill(&victim);
            } else if killed && !lost {
                *lock(&told) = End::Killed;
                if after {
                    machine.kill_after(&victim);
                } else {
                    machine.kill(&victim);
                }
            }
        });
        end
    }

    /// The power is cut where nobody is doing anything.
    fn cut_here(&self, dice: &mut Dice) -> Checked<()> {
        let model = lock(&self.model).clone();
        if model.promises() {
            self.explorer.cut(&self.machine, &model, self.explorer.plan.fates, 0, dice);
        }
        self.explorer.result()
    }

    /// All is new, and all that is there is durable.
    fn power_came_back(&mut self, after: Machine) -> Checked<()> {
        self.idle.clear();
        self.descriptors.clear();
        self.undecided = None;
        self.machine = after;
        let read = self
            .explorer
            .open(&self.machine)
            .and_then(|mut session| self.explorer.read(&mut *session));
        let content = read.map_err(|error| unexpected("after the power came back", &error))?;
        let mut model = lock(&self.model);
        if !model.allows(&content) {
            return wrong!("the power left {}, not {}", short(&content), model.shown());
        }
        model.on_disk(&content);
        self.content = content;
        Ok(())
    }

    /// A session ends as it should. The last one leaves all that was committed on the disk, in a
    /// plain file.
    fn close(&mut self, session: Box<dyn Session>, dice: &mut Dice) -> Checked<()> {
        session.close().map_err(|error| unexpected("closing", &error))?;
        if !self.idle.is_empty() || self.undecided.is_some() {
            return Ok(());
        }
        lock(&self.model).flushed();
        let held: Vec<_> = self.descriptors.iter().map(StockDescriptor::inode).collect();
        if let Err(what) = self.explorer.subject.check_at_rest(&self.machine, DB, &held) {
            return wrong!("all closed: {what}");
        }
        match as_stock(&self.machine.file_view(DB).unwrap_or_default()) {
            Stock::Content(content) if content == self.content => self.cut_here(dice),
            other => wrong!("closed at {}, stock SQLite sees {other:?}", short(&self.content)),
        }
    }

    /// A session that stays open sees the newest state; a stock process sees a committed one, or is
    /// refused.
    fn check_others(&mut self) -> Checked<()> {
        let (page, content) = (self.explorer.setup.page, &self.content);
        for (_, session) in &mut self.idle {
            let seen = content::read(&mut **session, page);
            let seen = seen.map_err(|error| unexpected("reading in an idle session", &error))?;
            if seen != *content {
                return wrong!("an idle session sees {}, not {}", short(&seen), short(content));
            }
        }
        let model = lock(&self.model).clone();
        for descriptor in &self.descriptors {
            check_bytes(&descriptor.read_all(), &model, "an old stock descriptor")?;
        }
        self.explorer.check_stock(&self.machine, &model)
    }

    /// A few pages, one by one or in a row, or near the end; in some programs another size.
    fn change(&self, dice: &mut Dice) -> Content {
        let (plan, hot) = (&self.explorer.plan, self.hot);
        let mut content = self.content.clone();
        let value = |dice: &mut Dice| u32::try_from(1 + dice.below(VALUES - 1)).unwrap_or(1);
        let resized = match plan.swings() {
            true => dice.one_in(2),
            false => mix(plan.seed) % 8 < 3 && dice.one_in(4),
        };
        if resized {
            let least = plan.pages().div_ceil(8);
            content.resize(least + dice.index(plan.pages() - least + 1), value(dice));
        }
        let len = content.len();
        if dice.one_in(4) {
            for at in hot..=hot + dice.index(8) {
                content[at % len] = value(dice);
            }
        }
        for _ in 0..=dice.below(3) {
            let at =
                if dice.one_in(3) { len - 1 - dice.index(len.min(6)) } else { hot + dice.index(9) };
            content[at % len] = value(dice);
        }
        content[0] = value(dice);
        content
    }

    /// Opens; half-done renames are a process's that may yet live.
    fn open(&self, process: &Simulated) -> Outcome<Box<dyn Session>> {
        let setup = &self.explorer.setup;
        let mut opened = self.explorer.subject.open(process, DB, setup);
        for _ in 0..ATTEMPTS {
            if !matches!(opened, Err(Trouble::Busy)) {
                break;
            }
            opened = self.explorer.subject.open(process, DB, setup);
        }
        opened
    }
}
