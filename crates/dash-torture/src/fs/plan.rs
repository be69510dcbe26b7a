//! What the ring does in which order, and what its findings come to.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use super::database::Opened;
use super::driver;
use super::job::{Found, Task};
use super::kind::Kind;
use super::rig;
use crate::{Failure, Options, Summary, Watch};

/// Images of stock SQLite in a mode from which on finding nothing means blindness.
const ENOUGH: u64 = 300;

/// What stock SQLite came to in one of its modes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Calibration {
    /// `stock/wal-full`.
    pub mode: String,
    /// Distinct images.
    pub images: u64,
    /// Of these, without an acknowledged commit.
    pub lost: u64,
    /// Of these, corrupt.
    pub broken: u64,
}

impl Calibration {
    /// What is wrong with a rig that finds this; `None`: nothing.
    pub fn verdict(&self) -> Option<&'static str> {
        let sound = matches!(self.mode.as_str(), "stock/wal-full" | "stock/delete-extra");
        match (self.lost, self.broken) {
            (0, 0) if sound => None,
            _ if sound => Some("over-strict: it finds fault with a mode that is durable"),
            _ if self.mode == "stock/delete-off" => match self.broken {
                0 => Some("blind: it sees no corruption where nothing is flushed"),
                _ => None,
            },
            (_, 1..) => Some("over-strict: it finds damage in a mode that only loses commits"),
            (0, 0) => Some("blind: it sees no commit lost in a mode that loses some"),
            _ => None,
        }
    }

    /// The finding in words, where nothing is wrong with the rig for it. Few images, and file
    /// systems other than ext4, may show nothing of what a mode loses.
    fn words(&self) -> String {
        let seen = format!("{} lost, {} corrupt", self.lost, self.broken);
        match self.verdict() {
            None => format!("{seen}, as expected of this mode"),
            Some(_) => format!("{seen}: no failure of this mode seen, which says nothing yet"),
        }
    }
}

/// Engine, variant and file system.
pub fn targets() -> Vec<String> {
    let of = |opened: Opened| Kind::ALL.map(|kind| format!("{}/{}", opened.name(), kind.name()));
    Opened::all().into_iter().flat_map(of).collect()
}

/// Runs the ring.
pub fn run(options: &Options, watch: &dyn Watch) -> Vec<Summary> {
    let (kinds, mut skipped) = here();
    let outcome = match &options.case {
        Some(case) => match of_case(case) {
            Some(task) => driver::run(options, [task], watch),
            None => {
                return vec![unknown(case)];
            }
        },
        None => driver::run(options, tasks(options, kinds), watch),
    };
    skipped.extend(outcome.missing);
    let mut summaries: BTreeMap<String, (Summary, HashSet<u64>, Calibration)> = BTreeMap::new();
    for (task, found) in outcome.found {
        let name = task.name();
        let entry = summaries.entry(name.clone()).or_default();
        entry.0.engine = name;
        add(entry, &task, found);
    }
    let mut all: Vec<Summary> = summaries
        .into_values()
        .map(|(summary, _, calibration)| judged(summary, &calibration))
        .collect();
    if !skipped.is_empty() {
        all.push(Summary { engine: "fs".to_owned(), skipped, ..Summary::default() });
    }
    all
}

/// The file systems that can be tried here, and why the others can't.
fn here() -> (Vec<Kind>, Vec<String>) {
    let mut skipped = Vec::new();
    let kinds = Kind::ALL
        .into_iter()
        .filter(|kind| match rig::missing(*kind) {
            None => true,
            Some(why) => {
                skipped.push(format!("{}: {why}", kind.name()));
                false
            }
        })
        .collect();
    (kinds, skipped)
}

fn unknown(case: &str) -> Summary {
    Summary {
        engine: "fs".to_owned(),
        failures: vec![Failure {
            what: format!(
                "no such case: {case}; a case is the folder of a saved image, or ENGINE:FILE-SYSTEM:SEED:IMAGES"
            ),
            replay: "dash-torture --ring fs".to_owned(),
        }],
        ..Summary::default()
    }
}

/// The task that a replay names.
fn of_case(case: &str) -> Option<Task> {
    let place = PathBuf::from(case);
    if place.is_dir() {
        return Some(Task::Saved(place));
    }
    let mut words = case.split(':');
    let (opened, kind) = (Opened::named(words.next()?)?, Kind::named(words.next()?)?);
    let seed = words.next()?.parse().ok()?;
    Some(match words.next() {
        None => Task::Faults { kind, opened, seed },
        Some(images) => Task::Images { kind, opened, seed, images: images.parse().ok()? },
    })
}

/// All tasks of a run, without end: of eight, six are images of an engine, one is its faults, one
/// is stock SQLite.
fn tasks(options: &Options, kinds: Vec<Kind>) -> impl Iterator<Item = Task> + Send {
    // Without end, so there has to be something that is wanted.
    let wants = |opened: &Opened| {
        kinds.iter().any(|kind| options.wants(&format!("{}/{}", opened.name(), kind.name())))
    };
    let engines: Vec<Opened> = Opened::all().into_iter().filter(wants).collect();
    let of = |is_wanted: fn(&Opened) -> bool| -> Vec<Opened> {
        engines.iter().copied().filter(is_wanted).collect()
    };
    let dash = of(|opened| matches!(opened, Opened::Dash(..)));
    let guests = of(|opened| matches!(opened, Opened::Guests(_)));
    let stock = of(|opened| matches!(opened, Opened::Stock(..)));
    // Every other program has guests.
    let of_one = |a: &Opened, b: &Opened| a.engine() == b.engine();
    let beside = |opened: &Opened| -> Vec<Opened> {
        let with = guests.iter().filter(|guests| of_one(guests, opened));
        with.chain([opened]).copied().collect()
    };
    let mut ours: Vec<Opened> = dash.iter().flat_map(beside).collect();
    ours.extend(guests.iter().filter(|guests| !dash.iter().any(|dash| of_one(dash, guests))));
    // Short runs see every file system too.
    let images = options.time.as_secs().clamp(16, 200);
    let seed = options.seed.wrapping_mul(1 << 20);
    let options = options.clone();
    let all = (0..if engines.is_empty() { 0 } else { u64::MAX }).filter_map(move |number| {
        let pick = |list: &[Opened], at: u64| {
            list.get(usize::try_from(at % (list.len().max(1) as u64)).ok()?).copied()
        };
        let count = kinds.len() as u64;
        let kind = |at: u64| kinds[usize::try_from(at % count).unwrap_or(0)];
        let seed = seed.wrapping_add(number);
        let (round, turn) = (number / 8, number % 8);
        match turn {
            0..6 => {
                let at = round * 6 + turn;
                let kind = kind(at);
                let images = if kind == Kind::Xfs { images / 2 } else { images };
                Some(Task::Images { kind, opened: pick(&ours, at / count)?, seed, images })
            }
            6 => {
                Some(Task::Faults { kind: kind(round), opened: pick(&dash, round / count)?, seed })
            }
            _ => {
                let opened = pick(&stock, round)?;
                Some(Task::Images { kind: kind(round / 5), opened, seed, images })
            }
        }
    });
    all.filter(move |task| options.wants(&task.name()))
}

fn add(
    (summary, hashes, calibration): &mut (Summary, HashSet<u64>, Calibration),
    task: &Task,
    found: Found,
) {
    summary.cases += found.hashes.len() as u64 + found.faults;
    hashes.extend(&found.hashes);
    summary.states = hashes.len() as u64;
    summary.nested += found.nested.0;
    summary.nested_twice += found.nested.1;
    summary.failures.extend(found.failures);
    if let Task::Images { opened: opened @ Opened::Stock(..), .. } = task {
        calibration.mode = opened.name();
        calibration.images = summary.states;
        calibration.lost += found.lost;
        calibration.broken += found.broken;
    }
}

/// With the verdict on the rig, where this is about stock SQLite.
fn judged(mut summary: Summary, calibration: &Calibration) -> Summary {
    if calibration.mode.is_empty() {
        return summary;
    }
    let Calibration { images, lost, broken, .. } = calibration;
    let blind_is_news = summary.engine.ends_with("/ext4") && *images >= ENOUGH;
    if let Some(verdict) = calibration.verdict()
        && (blind_is_news || !verdict.starts_with("blind"))
    {
        summary.failures.push(Failure {
            what: format!("the rig is {verdict} ({images} images, {lost} lost, {broken} corrupt)"),
            replay: format!("dash-torture --ring fs --engine {}", calibration.mode),
        });
    }
    summary.calibration = summary.failures.is_empty().then(|| calibration.words());
    summary
}

/// How often a mode that must be seen to fail is looked at again before the rig is called blind.
const LOOKS: u64 = 5;

/// Stock SQLite only, on ext4.
pub fn calibrate(
    options: &Options,
    images: u64,
    watch: &dyn Watch,
) -> Result<Vec<Calibration>, String> {
    if let Some(why) = rig::missing(Kind::Ext4Ordered) {
        return Err(why);
    }
    let mut modes: Vec<Opened> =
        Opened::all().into_iter().filter(|opened| matches!(opened, Opened::Stock(..))).collect();
    let per = images.div_ceil(3);
    let mut all: BTreeMap<String, (Summary, HashSet<u64>, Calibration)> = BTreeMap::new();
    for look in 0..LOOKS {
        let rounds = (0..3).map(|round| options.seed.wrapping_add(3 * look + round));
        let tasks = rounds.flat_map(|seed| {
            let task =
                move |&opened| Task::Images { kind: Kind::Ext4Ordered, opened, seed, images: per };
            modes.iter().map(task)
        });
        let outcome = driver::run(options, tasks.collect::<Vec<_>>(), watch);
        if let Some(why) = outcome.missing {
            return Err(why);
        }
        for (task, found) in outcome.found {
            add(all.entry(task.name()).or_default(), &task, found);
        }
        let is_blind = |calibration: &Calibration| {
            calibration.verdict().is_some_and(|verdict| verdict.starts_with("blind"))
        };
        modes.retain(|opened| {
            all.values().any(|(.., found)| found.mode == opened.name() && is_blind(found))
        });
        if modes.is_empty() {
            break;
        }
    }
    if let Some(failure) = all.values().flat_map(|(summary, ..)| &summary.failures).next() {
        return Err(failure.what.clone());
    }
    Ok(all.into_values().map(|(.., calibration)| calibration).collect())
}
