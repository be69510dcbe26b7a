//! Runs a random program on a simulated machine, looks at every step at what would be left if the
//! power went then, and recovers it.

#![allow(dead_code, clippy::unwrap_used, reason = "a part of tests")]

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

use dash_shadow::{Connection, OpenOptions, Protocol, Tuning};
use dash_storage::simulated::{Enumerate, Machine, Random};
use dash_storage::{Directory, Storage};

use crate::common::{Content, PAGE, changes, commit, read};

/// The database's path on the machine.
pub const DB: &str = "/app.db";

/// What the oracle knows.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    /// Every content that was ever committed or tried, in order.
    pub history: Vec<Content>,
    /// The last one whose commit returned: an index of `history`.
    pub acknowledged: usize,
}

/// What to run.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Seed of everything random.
    pub seed: u64,
    /// Flushes of a commit.
    pub protocol: Protocol,
    /// Transactions.
    pub transactions: usize,
    /// Fates tried at a step: all of them up to this number, else so many random ones.
    pub fates: u64,
    /// Power losses in one story: 2 cuts the recovery too.
    pub depth: usize,
    /// One process of two is killed now and then.
    pub kills: bool,
    /// Whether names can be exchanged.
    pub exchange: bool,
}

/// What was seen.
#[derive(Debug, Default)]
pub struct Seen {
    /// Hashes of distinct machines recovered.
    pub states: HashSet<u64>,
    /// Of these, those cut inside a recovery.
    pub nested: HashSet<u64>,
}

/// Small sizes, and the plan's protocol.
pub fn options(protocol: Protocol) -> OpenOptions {
    OpenOptions { protocol, tuning: Tuning::tiny(), ..OpenOptions::default() }
}

/// A small generator of random numbers.
pub struct Dice(pub u64);

impl Dice {
    /// A number below `n`.
    pub fn roll(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Checks one machine that lost its power: what stock SQLite would see, what dash recovers, and
/// that it goes on from there. Returns what it recovered.
fn check(
    machine: &Machine,
    progress: &Progress,
    plan: &Plan,
    depth: usize,
    seen: &Arc<Mutex<Seen>>,
    story: &str,
) {
    let hash = machine.state_hash();
    {
        let mut seen = seen.lock().unwrap();
        let set = if depth > 1 { &mut seen.nested } else { &mut seen.states };
        if !set.insert(hash) {
            return;
        }
    }
    check_stock(machine, progress, story);
    let process = machine.process();
    let shared = Arc::new(Mutex::new(progress.clone()));
    if depth < plan.depth {
        watch(machine, &shared, plan, depth, seen, story);
    }
    let recovered = Connection::open(&process, Path::new(DB), &options(plan.protocol))
        .and_then(|mut connection| read(&mut connection).map(|content| (connection, content)));
    let (mut connection, content) = match recovered {
        Ok(recovered) => recovered,
        Err(error) => panic!("{story}: not recovered: {error}\n{}", tail(machine)),
    };
    let fits = progress.history[progress.acknowledged..].contains(&content);
    assert!(
        fits,
        "{story}: recovered {content:?}, acknowledged {:?} of {:?}\n{}",
        progress.acknowledged,
        progress.history,
        tail(machine)
    );
    // It must go on, and what is committed now must be durable.
    let mut next = content.clone();
    next.push(201);
    next[0] = next[0].wrapping_add(1);
    let tell = |content: &Content| {
        let mut progress = shared.lock().unwrap();
        progress.history.push(content.clone());
        progress.history.len() - 1
    };
    let number = tell(&content);
    shared.lock().unwrap().acknowledged = number;
    for _ in 0..2 {
        next[0] = next[0].wrapping_add(1);
        let number = tell(&next);
        commit(&mut connection, &next)
            .unwrap_or_else(|error| panic!("{story}: after recovery: {error}\n{}", tail(machine)));
        shared.lock().unwrap().acknowledged = number;
        // Before the next commit, which would write what is wrong anew.
        let seen = read(&mut connection).unwrap();
        assert_eq!(seen, next, "{story}: wrong after a commit that followed\n{}", tail(machine));
    }
    drop(connection);
    let after = machine.power_loss(&mut Random::new(hash));
    let process = after.process();
    let mut connection = Connection::open(&process, Path::new(DB), &options(plan.protocol))
        .unwrap_or_else(|error| {
            panic!("{story}: recovered, committed, cut: {error}\n{}", tail(machine))
        });
    assert_eq!(
        read(&mut connection).unwrap(),
        next,
        "{story}: lost a commit made after recovery\n{}",
        tail(machine)
    );
}

/// A stock reader under the name: refused, or a committed state.
fn check_stock(machine: &Machine, progress: &Progress, story: &str) {
    let root = machine.process().open_directory(Path::new("/")).unwrap();
    if root.metadata("app.db-journal".as_ref()).unwrap().is_some() {
        return; // the name fence: "disk I/O error", nothing touched
    }
    let Some(bytes) = machine.file_view(DB) else {
        return;
    };
    assert_committed(&bytes, progress, &format!("{story}: stock reader"), machine);
}

/// Whether bytes that stock SQLite would take for a database are a committed state.
pub fn assert_committed(bytes: &[u8], progress: &Progress, story: &str, machine: &Machine) {
    if bytes.is_empty() || bytes[19] == 3 {
        return;
    }
    let pages = u32::from_be_bytes(bytes[28..32].try_into().unwrap()) as usize;
    let content: Option<Content> = bytes
        .chunks_exact(PAGE)
        .take(pages)
        .map(|page| {
            page[100..].iter().all(|&byte| byte == page[PAGE - 1]).then_some(page[PAGE - 1])
        })
        .collect();
    assert!(
        content.as_ref().is_some_and(|content| progress.history.contains(content)),
        "{story} sees {content:?} of {:?}\n{}",
        progress.history,
        tail(machine)
    );
}

thread_local! {
    /// The machines that lost their power before, to tell the whole story of a failure.
    static BEFORE: std::cell::RefCell<Vec<Machine>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// The end of the story so far, operation by operation.
pub fn tail(machine: &Machine) -> String {
    let mut story = String::new();
    let before = BEFORE.with_borrow(Clone::clone);
    for machine in before.iter().chain([machine]) {
        let journal = machine.journal().to_string();
        let lines: Vec<_> = journal
            .lines()
            .filter(|line| !line.contains("lock inode") && !line.contains("read inode"))
            .collect();
        story += &lines[lines.len().saturating_sub(60)..].join("\n");
        story += "\n--- power loss ---\n";
    }
    story
}

/// Tries fates before every operation that changes something.
pub fn watch(
    machine: &Machine,
    progress: &Arc<Mutex<Progress>>,
    plan: &Plan,
    depth: usize,
    seen: &Arc<Mutex<Seen>>,
    story: &str,
) {
    let (progress, plan, seen, story) = (progress.clone(), *plan, seen.clone(), story.to_owned());
    let mut dice = Dice(plan.seed ^ (depth as u64) << 32);
    machine.watch(move |machine, operation| {
        if !changes(operation.kind) {
            return;
        }
        let progress = progress.lock().unwrap().clone();
        BEFORE.with_borrow_mut(|before| before.push(machine.clone()));
        let step = machine.steps();
        let possible = machine.survivor_count();
        let fates = if depth > 0 { plan.fates.min(3) } else { plan.fates };
        if possible <= u128::from(fates) {
            let mut all = Enumerate::new(fates);
            while all.advance() {
                let after = machine.power_loss(&mut all);
                let story = format!("{story} / step {step} fate {}", all.walked());
                check(&after, &progress, &plan, depth + 1, &seen, &story);
            }
        } else {
            for _ in 0..fates {
                let seed = dice.roll(1 << 31);
                let after = machine.power_loss(&mut Random::new(seed));
                let story = format!("{story} / step {step} random {seed}");
                check(&after, &progress, &plan, depth + 1, &seen, &story);
            }
        }
        BEFORE.with_borrow_mut(Vec::pop);
    });
}
