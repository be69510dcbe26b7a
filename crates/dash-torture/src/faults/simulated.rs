//! The parts that run on simulated storage.

use super::blocks::{self, damage::Damage, decode, forged, original::Original};
use super::calls::Series;
use super::{GoOn, failed, shuffle};
use crate::random::mix;
use crate::sim::subject::Subject;
use crate::{Options, Summary};

/// Lets every call of every operation fail.
pub fn calls(
    subject: &dyn Subject,
    options: &Options,
    summary: &mut Summary,
    go_on: &mut GoOn<'_>,
) {
    let mut all = Series::all(subject);
    let series = all.len();
    if let Some(case) = &options.case {
        // A case, or the beginning of the names of several.
        all.retain(|series| {
            let name = series.name();
            case.starts_with(&format!("{name}/")) || name.starts_with(case)
        });
    }
    shuffle(&mut all, options.seed);
    let mut done = 0;
    'all: for series in &all {
        for number in 0.. {
            let case = format!("{}/{number}", series.name());
            let wanted = options
                .case
                .as_ref()
                .is_none_or(|wanted| case == *wanted || series.name().starts_with(wanted));
            if !wanted && number < 10_000 {
                continue;
            }
            let result = series.run(subject, number);
            summary.cases += 1;
            let enough = match &result {
                Err(what) => failed(summary, what, &case),
                Ok(_) => false,
            };
            if enough || !go_on() {
                break 'all;
            }
            let one = options.case.as_ref() == Some(&case);
            if one || matches!(result, Ok(false)) {
                break;
            }
        }
        done += 1;
    }
    summary
        .notes
        .push(format!("{done} of {series} series of calls made to fail, one after the other"));
}

fn originals(subject: &dyn Subject, summary: &mut Summary) -> Vec<Original> {
    blocks::originals(subject).unwrap_or_else(|error| {
        failed(summary, &format!("making databases to be damaged: {error}"), "originals");
        Vec::new()
    })
}

/// Flips every bit, and tries every length.
pub fn damage(
    subject: &dyn Subject,
    options: &Options,
    summary: &mut Summary,
    go_on: &mut GoOn<'_>,
) {
    let originals = originals(subject, summary);
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
pub fn forged(
    subject: &dyn Subject,
    options: &Options,
    summary: &mut Summary,
    go_on: &mut GoOn<'_>,
) {
    by_seed(subject, options, summary, go_on, &|original, seed| {
        forged::run(subject, original, seed)
    });
}

/// Gives the decoders what no dash wrote, until the time is over.
pub fn decoded(
    subject: &dyn Subject,
    options: &Options,
    summary: &mut Summary,
    go_on: &mut GoOn<'_>,
) {
    by_seed(subject, options, summary, go_on, &decode::run);
}

/// Runs cases of random seeds until the time is over.
fn by_seed(
    subject: &dyn Subject,
    options: &Options,
    summary: &mut Summary,
    go_on: &mut GoOn<'_>,
    case: &dyn Fn(&Original, u64) -> Result<(), String>,
) {
    let originals = originals(subject, summary);
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
