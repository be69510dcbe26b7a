//! Cuts the power, lets fates decide what survives, recovers it, looks at it, and cuts again.
//!
//! A cut before every operation that changes what may survive. What may survive only grows until
//! the next flush, so most fates are tried just before one.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dash_simulated::{Enumerate, Machine, OperationKind, Random};

use super::commit::CommitStep;
use super::content::{self, Content, as_stock};
use super::model::{Model, short};
use super::plan::{Kind, Plan};
use super::subject::{DB, Outcome, Session, Setup, Subject};
use crate::random::Dice;

/// Something that must never happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation(pub String);

/// Shorthand.
pub type Checked<T> = Result<T, Violation>;

/// A [`Violation`] with this text, formatted.
macro_rules! wrong {
    ($($text:tt)*) => { Err($crate::sim::explore::Violation(format!($($text)*))) };
}
pub(crate) use wrong;

/// Hashes of the distinct machines that were recovered.
#[derive(Debug, Default)]
pub struct Seen {
    /// All of them.
    pub states: HashSet<u64>,
    /// Cut inside a recovery.
    pub nested: HashSet<u64>,
    /// Cut inside the recovery of a recovery.
    pub nested_twice: HashSet<u64>,
}

/// The database of a machine, checked against its model.
pub struct Explorer {
    /// The engine.
    pub subject: &'static dyn Subject,
    /// How it is opened.
    pub setup: Setup,
    /// The steps of its commits.
    pub steps: &'static [CommitStep],
    /// The case.
    pub plan: Plan,
    seen: Arc<Mutex<Seen>>,
    checked: Mutex<HashSet<(u64, u64)>>,
    violation: Mutex<Option<Violation>>,
}

/// Locks, whatever became of others that held the lock.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether cutting before such an operation may leave what cutting before the last one did not.
pub fn changes(kind: OperationKind) -> bool {
    use OperationKind as K;
    matches!(
        kind,
        K::Open
            | K::Exchange
            | K::Link
            | K::Rename
            | K::Unlink
            | K::CreateDirectory
            | K::RemoveDirectory
            | K::FlushDirectory
            | K::Write
            | K::SetLen
            | K::Allocate
            | K::Initialize
            | K::WriteDurable
            | K::Flush
            | K::CloneRange
    )
}

/// At one flush in so many, all fates are tried,
const ALL_ONE_IN: u64 = 16;
/// if they are not more than ten writes have.
const ALL_MAX: u128 = 1024;

impl Explorer {
    /// Looks at one case.
    pub fn new(
        subject: &'static dyn Subject,
        variant: &'static str,
        plan: Plan,
        seen: Arc<Mutex<Seen>>,
    ) -> Arc<Self> {
        let setup =
            Setup { variant, page: plan.page, sizes: plan.sizes(), secure: plan.is_secure() };
        let steps = subject.commit_steps(&setup);
        let (checked, violation) = (Mutex::default(), Mutex::default());
        Arc::new(Self { subject, setup, steps, plan, seen, checked, violation })
    }

    /// What is known of a new database.
    pub fn model(&self) -> Model {
        Model::new(self.steps)
    }

    /// A new machine of the case's kind.
    pub fn machine(&self) -> Machine {
        let machine = Machine::new(self.plan.seed);
        machine.set_tearing_unit(self.plan.tear());
        machine.set_metadata(self.plan.metadata);
        machine.set_clone_supported(self.plan.seed % 5 == 4);
        // Half of a log that was cut is no log: SQLite, too, relies on that.
        machine.set_whole_cuts(self.plan.kind == Kind::Wal);
        self.subject.prepare(&machine, &self.setup);
        machine
    }

    /// What was found wrong while a machine was watched.
    pub fn result(&self) -> Checked<()> {
        lock(&self.violation).clone().map_or(Ok(()), Err)
    }

    /// Something is wrong after a cut of a machine that is watched.
    pub fn report(&self, machine: &Machine, Violation(what): Violation, fate: &str) {
        let steps = machine.steps();
        let told = format!("{what}\ncut before step {steps}, {fate}, after\n{}", tail(machine));
        lock(&self.violation).get_or_insert(Violation(told));
    }

    /// Opens the database in a process of its own.
    pub fn open(&self, machine: &Machine) -> Outcome<Box<dyn Session>> {
        self.subject.open(&machine.process(), DB, &self.setup)
    }

    /// Reads the committed content.
    pub fn read(&self, session: &mut dyn Session) -> Outcome<Content> {
        content::read(session, self.setup.page)
    }

    /// Cuts before every operation of a machine that changes something, from now on.
    pub fn watch(self: &Arc<Self>, machine: &Machine, model: &Arc<Mutex<Model>>, depth: usize) {
        let (explorer, model) = (Arc::clone(self), Arc::clone(model));
        let mut dice = Dice::new(self.plan.seed, 1 + depth as u64);
        machine.watch(move |machine, operation| {
            if !changes(operation.kind) || explorer.result().is_err() {
                return;
            }
            let model = lock(&model).clone();
            let flush =
                matches!(operation.kind, OperationKind::Flush | OperationKind::FlushDirectory);
            let fates = match (depth, flush) {
                (0, true) if dice.one_in(ALL_ONE_IN) => match machine.survivor_count() {
                    count @ ..=ALL_MAX => u64::try_from(count).unwrap_or_default(),
                    _ => explorer.plan.fates * 4,
                },
                (0, true) => explorer.plan.fates * 2,
                (0, false) => explorer.plan.fates.div_ceil(4),
                (1, true) => explorer.plan.fates.div_ceil(4),
                (_, true) => 1,
                (_, false) => u64::from(dice.one_in(2)),
            };
            explorer.cut(machine, &model, fates, depth, &mut dice);
        });
    }

    /// Cuts the power now, with so many fates: all that there are, if they are not more.
    pub fn cut(
        self: &Arc<Self>,
        machine: &Machine,
        model: &Model,
        fates: u64,
        depth: usize,
        dice: &mut Dice,
    ) {
        self.cut_and(machine, fates, dice, |after, _| self.check(after, model, depth + 1));
    }

    /// The same, with another check of each machine that lost its power; the first violation is
    /// reported.
    pub fn cut_and(
        &self,
        machine: &Machine,
        fates: u64,
        dice: &mut Dice,
        check: impl Fn(&Machine, &mut Dice) -> Checked<()>,
    ) {
        let mut all = Enumerate::new(fates);
        let few = machine.survivor_count() <= u128::from(fates);
        for _ in 0..fates {
            let (after, fate) = if few {
                if !all.advance() {
                    break;
                }
                (machine.power_loss(&mut all), format!("fate {}", all.walked()))
            } else {
                let seed = dice.below(1 << 40);
                (self.plan.kind.lose_power(machine, seed), format!("random fate {seed}"))
            };
            if let Err(violation) = check(&after, dice) {
                self.report(machine, violation, &fate);
                return;
            }
        }
    }

    /// Checks one machine that lost its power: what stock SQLite would see, what is recovered, and
    /// that it goes on from there.
    fn check(self: &Arc<Self>, machine: &Machine, model: &Model, depth: usize) -> Checked<()> {
        let hash = machine.state_hash();
        if !self.is_new(hash, model.floor(), depth) {
            return Ok(());
        }
        self.check_stock(machine, model)?;
        if hash & 0xc00 == 0 && machine.file_view(DB).is_none() {
            // A stock process opens it, and makes an empty file: the fence keeps it from more.
            drop(content::make_empty(machine));
        }
        let read_only = if hash & 0x300 == 0 { self.read_only(machine, model)? } else { None };
        let shared = Arc::new(Mutex::new(model.clone()));
        let rare = if depth == 1 { 192 } else { 64 };
        let again = hash.is_multiple_of((rare / self.plan.fates).max(1));
        if depth < self.plan.depth && again {
            self.watch(machine, &shared, depth);
        }
        let recovered = self
            .open(machine)
            .and_then(|mut session| self.read(&mut *session).map(|content| (session, content)));
        self.result()?;
        let (mut session, content) = match recovered {
            Ok(recovered) => recovered,
            Err(error) => return wrong!("not recovered: {error}"),
        };
        if !model.allows(&content) {
            return wrong!("recovered {}, not {}", short(&content), model.shown());
        }
        if let Some(seen) = read_only.filter(|seen| *seen != content) {
            let (seen, content) = (short(&seen), short(&content));
            return wrong!("a reader saw {seen}, then {content} was recovered");
        }
        lock(&shared).on_disk(&content);
        match (hash >> 16) % 4 {
            0 => self.check_rest(machine, session, &content),
            // What is recovered again must go on in any case.
            1 if depth == 1 => Ok(()),
            _ => self.go_on(machine, &mut session, &content, &shared, hash),
        }
    }

    /// Counts a state that is to be recovered; `false` if this program has had it, with the same
    /// of its commits acknowledged.
    pub fn is_new(&self, hash: u64, floor: u64, depth: usize) -> bool {
        if !lock(&self.checked).insert((hash, floor)) {
            return false;
        }
        let mut seen = lock(&self.seen);
        if depth >= 2 {
            seen.nested.insert(hash);
        }
        if depth >= 3 {
            seen.nested_twice.insert(hash);
        }
        seen.states.insert(hash);
        true
    }

    /// A stock reader under the name: refused, or shown a committed state.
    pub fn check_stock(&self, machine: &Machine, model: &Model) -> Checked<()> {
        if self.subject.stock_refuses(machine, DB).is_some() {
            return Ok(());
        }
        let Some(bytes) = machine.file_view(DB) else {
            return Ok(());
        };
        check_bytes(&bytes, model, "a stock reader")
    }

    /// A process that may not write opens it before it is recovered: it is refused, or shown what
    /// will be recovered.
    fn read_only(&self, machine: &Machine, model: &Model) -> Checked<Option<Content>> {
        let session = self.subject.open_for_reading(&machine.process(), DB);
        let Ok(content) = session.and_then(|mut session| self.read(&mut *session)) else {
            return Ok(None);
        };
        match model.allows(&content) {
            true => Ok(Some(content)),
            false => wrong!("a reader sees {}, not {}", short(&content), model.shown()),
        }
    }

    /// It must go on, and what is committed now must be durable.
    fn go_on(
        self: &Arc<Self>,
        machine: &Machine,
        session: &mut Box<dyn Session>,
        content: &Content,
        model: &Mutex<Model>,
        hash: u64,
    ) -> Checked<()> {
        let mut next = content.clone();
        next.push(1);
        for _ in 0..2 {
            next[0] = next[0] % 1000 + 1;
            let number = lock(model).tried(&next);
            let committed = content::commit(&mut **session, self.setup.page, &next);
            self.result()?;
            if let Err(error) = committed {
                return wrong!("committing after the recovery: {error}");
            }
            lock(model).acknowledged(number);
            // Before the next commit, which would write what is wrong anew.
            match self.read(&mut **session) {
                Ok(seen) if seen == next => {}
                Ok(seen) => return wrong!("{} after committing {}", short(&seen), short(&next)),
                Err(error) => return wrong!("reading what was committed: {error}"),
            }
        }
        machine.watch(|_, _| {});
        let after = machine.power_loss(&mut Random::new(hash));
        let found = self.open(&after).and_then(|mut session| self.read(&mut *session));
        match found {
            Ok(found) if found == next => Ok(()),
            Ok(found) => {
                let (found, next) = (short(&found), short(&next));
                wrong!("recovered, committed {next}, cut: then it was {found}")
            }
            Err(error) => wrong!("recovered, committed, cut: {error}"),
        }
    }

    /// It is closed: a plain database is left, and stays what it is.
    fn check_rest(
        self: &Arc<Self>,
        machine: &Machine,
        session: Box<dyn Session>,
        content: &Content,
    ) -> Checked<()> {
        let closed = session.close();
        self.result()?;
        if let Err(error) = closed {
            return wrong!("closing after the recovery: {error}");
        }
        machine.watch(|_, _| {});
        if let Err(what) = self.subject.check_at_rest(machine, DB, &[]) {
            return wrong!("closed after the recovery: {what}");
        }
        let bytes = machine.file_view(DB).unwrap_or_default();
        match as_stock(&bytes) {
            content::Stock::Content(seen) if seen == *content => Ok(()),
            other => wrong!("closed at {}, stock SQLite sees {other:?}", short(content)),
        }
    }
}

/// Whether bytes that stock SQLite is shown are a committed state, or refused.
pub fn check_bytes(bytes: &[u8], model: &Model, who: &str) -> Checked<()> {
    let stock = as_stock(bytes);
    match model.allows_stock(&stock) {
        true => Ok(()),
        false => wrong!("{who} sees {stock:?}, no committed state; now {}", model.shown()),
    }
}

/// Steps told of a machine on which something was found wrong.
const STEPS_TOLD: usize = 24;

/// The last steps that changed something.
fn tail(machine: &Machine) -> String {
    let entries = machine.journal().entries;
    let told = entries.iter().filter(|entry| changes(entry.operation.kind));
    let mut told: Vec<_> = told.rev().take(STEPS_TOLD).map(ToString::to_string).collect();
    told.reverse();
    told.join("\n")
}
