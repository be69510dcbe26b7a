//! The parts of the ring `faults` about blocks: all cases of each, or by seed until the time is
//! over.

use std::time::Instant;

use super::damage::Damage;
use super::original::Original;
use super::{decode, forged, originals};
use crate::again::Again;
use crate::faults::part::{GoOn, failed, shuffle};
use crate::random::mix;
use crate::shadow::subject::Simulation;
use crate::sim::subject::Subject;
use crate::{Options, Summary};

fn made(subject: &dyn Subject, summary: &mut Summary) -> Vec<Original> {
    originals(subject).unwrap_or_else(|error| {
        failed(summary, &format!("making databases to be damaged: {error}"), "originals");
        Vec::new()
    })
}

/// Flips every bit, and tries every length.
pub fn damage_part(options: &Options, _: &Again, summary: &mut Summary, go_on: &mut GoOn<'_>) {
    damage_all(&Simulation, options, summary, go_on);
}

/// The same to an engine that shadow's decoders can read, a broken one for instance.
pub fn damage_on(subject: &dyn Subject, options: &Options) -> Summary {
    let begun = Instant::now();
    let mut summary = Summary { engine: "damage".into(), ..Summary::default() };
    damage_all(subject, options, &mut summary, &mut || begun.elapsed() < options.time);
    summary
}

fn damage_all(
    subject: &dyn Subject,
    options: &Options,
    summary: &mut Summary,
    go_on: &mut GoOn<'_>,
) {
    let originals = made(subject, summary);
    let mut all: Vec<(&Original, Damage)> = originals
        .iter()
        .flat_map(|original| {
            Damage::all(original).into_iter().map(move |damage| (original, damage))
        })
        .collect();
    let count = all.len();
    let name = |original: &Original, damage: Damage| format!("{}/{}", original.name, damage.name());
    if let Some(case) = &options.case {
        all.retain(|(original, damage)| name(original, *damage) == *case);
    }
    shuffle(&mut all, options.seed);
    let mut opened = 0;
    for (number, (original, damage)) in (0..).zip(&all) {
        summary.cases += 1;
        let enough = match damage.run(subject, original, number) {
            Ok(was_opened) => {
                opened += u64::from(was_opened);
                false
            }
            Err(what) => failed(summary, &what, &name(original, *damage)),
        };
        if enough || !go_on() {
            break;
        }
    }
    summary.notes.push(format!(
        "{} of {count} damages in {} states: {opened} mended or harmless, {} refused",
        summary.cases,
        originals.len(),
        summary.cases - opened - summary.failures.len() as u64
    ));
}

/// Forges blocks until the time is over.
pub fn forged_part(options: &Options, _: &Again, summary: &mut Summary, go_on: &mut GoOn<'_>) {
    by_seed(options, summary, go_on, &|original, seed| forged::run(&Simulation, original, seed));
}

/// Gives the decoders what no dash wrote, until the time is over.
pub fn decode_part(options: &Options, _: &Again, summary: &mut Summary, go_on: &mut GoOn<'_>) {
    by_seed(options, summary, go_on, &decode::run);
}

/// Runs cases of random seeds until the time is over.
fn by_seed(
    options: &Options,
    summary: &mut Summary,
    go_on: &mut GoOn<'_>,
    case: &dyn Fn(&Original, u64) -> Result<(), String>,
) {
    let originals = made(&Simulation, summary);
    let named = options.case.as_deref().and_then(|case| case.rsplit_once('/'));
    for number in 0..u64::MAX {
        let seed = mix(options.seed ^ number << 20);
        for original in &originals {
            let seed = match named {
                Some((name, _)) if name != original.name => continue,
                Some((_, named)) => named.parse().unwrap_or(seed),
                None => seed,
            };
            summary.cases += 1;
            let enough = case(original, seed)
                .is_err_and(|what| failed(summary, &what, &format!("{}/{seed}", original.name)));
            if enough || !go_on() {
                return;
            }
        }
        if originals.is_empty() || options.case.is_some() {
            return;
        }
    }
}
