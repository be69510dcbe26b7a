//! The part `calls`: all series, shuffled.

use super::Series;
use crate::faults::part::{GoOn, failed, shuffle};
use crate::sim::subject::Subject;
use crate::{Options, Summary};

/// Lets every call of every operation fail.
pub fn run(subject: &dyn Subject, options: &Options, summary: &mut Summary, go_on: &mut GoOn<'_>) {
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
