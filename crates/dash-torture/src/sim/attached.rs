//! The program kind `attached`: transactions over two databases, under a super-journal (vdbeaux.c
//! `vdbeCommit`), cut at every step, killed between two, recovered in either order: both or
//! neither.

use std::ffi::OsStr;
use std::sync::{Arc, Mutex};

use dash_simulated::{Machine, Random, Simulated};
use dash_storage::{Directory, File, OpenMode, Storage};

use super::commit::undoable;
use super::content::{self, Content};
use super::explore::{Checked, Explorer, changes, lock, wrong};
use super::model::short;
use super::next::{next, unexpected};
use super::subject::{Outcome, Session, Trouble};
use crate::random::Dice;

/// The two databases.
const PATHS: [&str; 2] = ["/a.db", "/b.db"];
/// Fates tried at a step.
const FATES: u64 = 3;
/// Attempts at what somebody else may be in the way of.
const ATTEMPTS: usize = 4;

type Both = [Content; 2];
type Sessions = [Box<dyn Session>; 2];

/// What both were, and how far back they may go.
#[derive(Clone, Default)]
struct Pairs {
    history: Vec<Both>,
    floor: usize,
}

impl Pairs {
    fn allows(&self, both: &Both) -> bool {
        self.history[self.floor..].contains(both)
    }

    fn seen(&mut self, both: Both) {
        self.history.push(both);
        self.floor = self.history.len() - 1;
    }

    fn shown(&self) -> String {
        let shown = self.history[self.floor..].iter().map(show);
        shown.collect::<Vec<_>>().join(" or ")
    }
}

fn show(both: &Both) -> String {
    format!("({}, {})", short(&both[0]), short(&both[1]))
}

/// Runs it.
pub fn run(explorer: &Arc<Explorer>) -> Checked<()> {
    let machine = explorer.machine();
    let pairs = Arc::new(Mutex::new(Pairs::default()));
    let mut dice = Dice::new(explorer.plan.seed, 3000);
    let mut process = machine.process();
    let mut sessions = open(explorer, &process, [0, 1])?;
    let mut both = Both::default();
    for _ in 0..3 {
        for (session, content) in sessions.iter_mut().zip(&mut both) {
            *content = next(content.clone(), &explorer.plan, &mut dice);
            content::commit(&mut **session, explorer.setup.page, content)
                .map_err(|error| unexpected("committing one", &error))?;
        }
    }
    lock(&pairs).seen(both.clone());
    watch(explorer, &machine, &pairs, 0);
    for action in explorer.plan.keep.clone() {
        let mut dice = Dice::new(explorer.plan.seed, 3001 + action as u64);
        let new = both.clone().map(|content| next(content, &explorer.plan, &mut dice));
        lock(&pairs).history.push(new.clone());
        let steps = if dice.one_in(2) { dice.below(10) } else { u64::MAX };
        let name = format!("a.db-mj{:06X}9{:02X}", dice.below(1 << 24), dice.below(1 << 8));
        let done = commit_both(explorer, &process, &mut sessions, &new, &name, steps);
        explorer.result()?;
        done.map_err(|error| unexpected("committing both", &error))?;
        if steps == u64::MAX {
            lock(&pairs).seen(new.clone());
            both = new;
            continue;
        }
        machine.kill(&process);
        drop(sessions);
        process = machine.process();
        let order = if dice.one_in(2) { [0, 1] } else { [1, 0] };
        sessions = open(explorer, &process, order)?;
        both = read(explorer, &mut sessions)?;
        if !lock(&pairs).allows(&both) {
            return wrong!("after a kill {}, not {}", show(&both), lock(&pairs).shown());
        }
        lock(&pairs).seen(both.clone());
        explorer.result()?;
    }
    Ok(())
}

/// Opens both, in an order.
fn open(explorer: &Explorer, process: &Simulated, order: [usize; 2]) -> Checked<Sessions> {
    let one = |i: usize| {
        let mut opened = explorer.subject.open(process, PATHS[i], &explorer.setup);
        for _ in 0..ATTEMPTS {
            if !matches!(opened, Err(Trouble::Busy)) {
                break;
            }
            opened = explorer.subject.open(process, PATHS[i], &explorer.setup);
        }
        opened.map_err(|error| unexpected(&format!("opening {}", PATHS[i]), &error))
    };
    let (first, second) = (one(order[0])?, one(order[1])?);
    Ok(if order[0] == 0 { [first, second] } else { [second, first] })
}

fn read(explorer: &Explorer, sessions: &mut Sessions) -> Checked<Both> {
    let mut both = Both::default();
    for (session, content) in sessions.iter_mut().zip(&mut both) {
        let read = explorer.read(&mut **session);
        *content = read.map_err(|error| unexpected("reading one", &error))?;
    }
    Ok(both)
}

/// What SQLite does at such a commit; no more than so many of its steps.
fn commit_both(
    explorer: &Explorer,
    process: &Simulated,
    sessions: &mut Sessions,
    new: &Both,
    name: &str,
    steps: u64,
) -> Outcome<()> {
    let failed = |error: std::io::Error| Trouble::Failed(error.to_string());
    let root = process.open_directory("/".as_ref()).map_err(failed)?;
    let super_journal = OsStr::new(name);
    let mut left = steps;
    let mut go_on = || {
        left = left.saturating_sub(1);
        left > 0
    };
    for (session, content) in sessions.iter_mut().zip(new) {
        content::write(&mut **session, explorer.setup.page, content)?;
    }
    if !go_on() {
        return Ok(());
    }
    let file = root.open(super_journal, OpenMode::CreateNew { permissions: 0o644 });
    let file = file.map_err(failed)?;
    let names = PATHS.map(|path| format!("{path}-journal\0")).concat();
    file.write_at(names.as_bytes(), 0).map_err(failed)?;
    file.flush().and_then(|()| root.flush()).map_err(failed)?;
    let decided = undoable(explorer.steps);
    for session in sessions.iter_mut() {
        for step in 0..decided {
            if !go_on() {
                return Ok(());
            }
            session.commit_step(step, Some(name))?;
        }
    }
    if !go_on() {
        return Ok(());
    }
    root.unlink(super_journal).map_err(failed)?;
    if !go_on() {
        return Ok(());
    }
    root.flush().map_err(failed)?;
    for session in sessions.iter_mut() {
        for step in decided..explorer.steps.len() {
            if !go_on() {
                return Ok(());
            }
            session.commit_step(step, Some(name))?;
        }
        session.end()?;
    }
    Ok(())
}

fn watch(explorer: &Arc<Explorer>, machine: &Machine, pairs: &Arc<Mutex<Pairs>>, depth: usize) {
    let (explorer, pairs) = (Arc::clone(explorer), Arc::clone(pairs));
    let mut dice = Dice::new(explorer.plan.seed, 3100 + depth as u64);
    machine.watch(move |machine, operation| {
        if !changes(operation.kind) || explorer.result().is_err() {
            return;
        }
        let pairs = lock(&pairs).clone();
        let fates = if depth == 0 { FATES } else { 1 };
        explorer.cut_and(machine, fates, &mut dice, |after, dice| {
            check(&explorer, after, &pairs, depth + 1, dice.one_in(2))
        });
    });
}

fn check(
    explorer: &Arc<Explorer>,
    machine: &Machine,
    pairs: &Pairs,
    depth: usize,
    turned: bool,
) -> Checked<()> {
    let hash = machine.state_hash();
    if !explorer.is_new(hash, pairs.floor as u64, depth) {
        return Ok(());
    }
    let pairs = Arc::new(Mutex::new(pairs.clone()));
    if depth < explorer.plan.depth && hash.is_multiple_of(6) {
        watch(explorer, machine, &pairs, depth);
    }
    let process = machine.process();
    let opened = open(explorer, &process, if turned { [1, 0] } else { [0, 1] });
    explorer.result()?;
    let mut sessions = opened?;
    let both = read(explorer, &mut sessions)?;
    if !lock(&pairs).allows(&both) {
        return wrong!("recovered {}, not {}", show(&both), lock(&pairs).shown());
    }
    machine.watch(|_, _| {});
    // Both go on, and nothing of the old transaction comes back.
    let new = both.map(|mut content| {
        content[0] = content[0] % 1000 + 1;
        content
    });
    for (session, content) in sessions.iter_mut().zip(&new) {
        content::commit(&mut **session, explorer.setup.page, content)
            .map_err(|error| unexpected("committing one after the recovery", &error))?;
    }
    let after = machine.power_loss(&mut Random::new(hash));
    let both = read(explorer, &mut open(explorer, &after.process(), [0, 1])?)?;
    match both == new {
        true => Ok(()),
        false => wrong!("recovered, committed {}, cut: then {}", show(&new), show(&both)),
    }
}
