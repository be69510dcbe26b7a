//! When to take which mode: a sentence of what holds on every disk and in every run, without what
//! the figures of this run contradict, and one of where it was the fastest here.

use super::compare::Comparison;
use super::modes::Mode;

/// The sentence.
pub fn of(mode: &Mode, comparisons: &[Comparison]) -> String {
    let contradicted = |kind| {
        comparisons.iter().any(|comparison| comparison.kind == kind && !comparison.is_fastest(mode))
    };
    let reasons = mode
        .reasons
        .iter()
        .filter(|reason| !reason.unless_slower_at.is_some_and(contradicted))
        .map(|reason| reason.text)
        .collect::<Vec<_>>();
    let places: Vec<String> = comparisons
        .iter()
        .filter(|comparison| comparison.is_fastest(mode))
        .map(|comparison| {
            let others = comparison.sides.iter().filter(|side| comparison.is_fastest(side.mode));
            let how = if others.count() == 1 { "the fastest" } else { "among the fastest" };
            format!("{how} {}", comparison.kind.short())
        })
        .collect();
    let here = match &places[..] {
        [] => String::new(),
        places => format!(" Here it was {}.", places.join(", and ")),
    };
    format!("Take it {}.{here}", reasons.join("; "))
}

#[cfg(test)]
mod tests {
    use super::super::compare::tests::of_rates;
    use super::super::kind::Kind;
    use super::super::modes::MODES;
    use super::*;

    #[test]
    fn what_a_run_contradicts_is_not_said() {
        let shadow = &MODES[2];
        let again = "again and again";
        assert!(of(shadow, &[]).contains(again));
        let first = of_rates(Kind::Sessions, [90.0, 60.0, 100.0, 70.0]);
        assert!(of(shadow, &[first]).contains(again));
        let last = of_rates(Kind::Sessions, [90.0, 60.0, 50.0, 70.0]);
        assert!(!of(shadow, &[last]).contains(again));
    }

    #[test]
    fn whoever_was_fastest_is_told_so() {
        let run = [
            of_rates(Kind::Writer, [10.0, 100.0, 50.0, 99.0]),
            of_rates(Kind::Processes, [10.0, 20.0, 50.0, 99.0]),
        ];
        let [delete, wal, shadow, dash_wal] = MODES.each_ref().map(|mode| of(mode, &run));
        assert!(!delete.contains("Here") && !shadow.contains("Here"), "{delete} {shadow}");
        assert!(wal.ends_with("Here it was among the fastest with one writer."), "{wal}");
        let both = "among the fastest with one writer, and the fastest with eight processes.";
        assert!(dash_wal.ends_with(both), "{dash_wal}");
    }
}
