//! What the rings found, in words and for programs: one line an engine and variant, for each
//! failure the command that repeats it, and a verdict on the whole.

use std::fmt::{self, Display};

use dash_terminal::out::say;
use dash_torture::{Ring, Summary};
use serde_json::{Value, json};

/// What a whole run came to.
pub struct Verdict {
    /// Cases of all rings.
    pub cases: u64,
    /// Failures of all rings.
    pub failures: usize,
}

impl Verdict {
    /// Adds up.
    pub fn of(all: &[(Ring, Summary)]) -> Self {
        Self {
            cases: all.iter().map(|(_, summary)| summary.cases).sum(),
            failures: all.iter().map(|(_, summary)| summary.failures.len()).sum(),
        }
    }
}

impl Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cases = match self.cases {
            1 => "1 case".to_owned(),
            cases => format!("{cases} cases"),
        };
        write!(f, "{} in {cases}", count(self.failures))
    }
}

fn count(failures: usize) -> String {
    match failures {
        0 => "no failure".to_owned(),
        1 => "1 FAILURE".to_owned(),
        more => format!("{more} FAILURES"),
    }
}

/// The lines of a ring.
pub fn print(ring: Ring, summaries: &[Summary]) {
    let name = ring.name();
    let tried = |summary: &&Summary| summary.cases > 0 || !summary.failures.is_empty();
    let width = |text: fn(&Summary) -> String| {
        summaries.iter().filter(tried).map(|summary| text(summary).len()).max().unwrap_or(0)
    };
    let engines = width(|summary| summary.engine.clone());
    let (cases, states) =
        (width(|summary| summary.cases.to_string()), width(|summary| summary.states.to_string()));
    for summary in summaries {
        let Summary { engine, nested, nested_twice, failures, .. } = summary;
        if !tried(&summary) {
            say!("{name:<6} {engine:<engines$}  nothing tried");
        } else {
            let verdict = match (&summary.calibration, failures.len()) {
                (Some(calibration), 0) => calibration.clone(),
                _ => count(failures.len()),
            };
            let again = match (nested, nested_twice) {
                (0, 0) => String::new(),
                _ => format!(", {nested} of them cut inside a recovery, {nested_twice} twice"),
            };
            // The faults have none.
            let seen = match states {
                1 if summary.states == 0 => String::new(),
                _ => format!(", {:>states$} distinct states", summary.states),
            };
            say!(
                "{name:<6} {engine:<engines$}  {:>cases$} cases{seen}{again}: {verdict}",
                summary.cases
            );
        }
        details(summary);
    }
}

fn details(summary: &Summary) {
    for note in &summary.notes {
        say!("       {note}");
    }
    for reason in &summary.skipped {
        say!("       not run here: {reason}");
    }
    for failure in &summary.failures {
        say!("       {}", failure.what.replace('\n', "\n       "));
        if !failure.replay.is_empty() {
            say!("       again: {}", failure.replay);
        }
    }
}

/// For programs.
pub fn in_json(all: &[(Ring, Summary)]) -> Value {
    let one = |(ring, summary): &(Ring, Summary)| {
        json!({
            "ring": ring.name(),
            "engine": summary.engine,
            "cases": summary.cases,
            "states": summary.states,
            "nested": summary.nested,
            "nested_twice": summary.nested_twice,
            "calibration": summary.calibration,
            "notes": summary.notes,
            "skipped": summary.skipped,
            "failures": summary.failures.iter().map(|failure| json!({
                "what": failure.what,
                "replay": failure.replay,
            })).collect::<Vec<_>>(),
        })
    };
    Value::from(all.iter().map(one).collect::<Vec<_>>())
}
