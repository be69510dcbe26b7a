//! Figures and explanations as words, the same in the terminal and in the chart.

use dash_bench::present::cells::whole;
use dash_bench::table::Source;

use super::advice;
use super::compare::{Comparison, Figures};
use super::crash::Cut;
use super::kind::Kind;
use super::modes::{MODES, Mode};
use crate::numbers::float;

/// A time as a person says it.
pub fn time(micros: f64) -> String {
    match micros {
        few if few < 999.5 => format!("{few:.0} µs"),
        some if some < 9_950.0 => format!("{:.1} ms", some / 1e3),
        many if many < 999_500.0 => format!("{:.0} ms", many / 1e3),
        long => format!("{:.2} s", long / 1e6),
    }
}

/// The columns after the rate: headings.
pub fn headings(comparison: &Comparison) -> Vec<&'static str> {
    let all = ["half within", "slowest", "flushes", "KiB"].into_iter();
    all.chain(comparison.kind.errors()).collect()
}

/// The columns after the rate: cells.
pub fn cells(comparison: &Comparison, side: &Figures) -> Vec<String> {
    let cost = |figure: fn((f64, f64)) -> String| side.cost.map_or("-".to_owned(), figure);
    let mut cells = vec![
        time(side.half_us),
        time(side.slowest_us),
        cost(|(flushes, _)| format!("{flushes:.2}")),
        cost(|(_, kib)| format!("{kib:.1}")),
    ];
    cells.extend(comparison.kind.errors().map(|_| whole(float(side.errors))));
    cells
}

/// Who won, and by how much over the best of the other camp.
pub fn verdict(comparison: &Comparison) -> String {
    let committed = || comparison.sides.iter().filter(|side| side.rate > 0.0);
    let is_fastest = |side: &Figures| comparison.is_fastest(side.mode);
    let best = |dash: bool| {
        let camp = committed().filter(|side| side.mode.is_dash == dash);
        camp.max_by(|one, other| one.rate.total_cmp(&other.rate))
    };
    let margin = match (best(true), best(false)) {
        (None, None) => return "nothing was committed".into(),
        (Some(dash), Some(stock)) if is_fastest(dash) && is_fastest(stock) => {
            ", within a twentieth of each other".to_owned()
        }
        (Some(dash), Some(stock)) => {
            let dash_won = dash.rate > stock.rate;
            let (more, less) = if dash_won { (dash, stock) } else { (stock, dash) };
            format!(", {:.1} times {}", more.rate / less.rate, less.mode.name)
        }
        _ => String::new(),
    };
    let fastest: Vec<_> =
        committed().filter(|side| is_fastest(side)).map(|side| side.mode.name).collect();
    // One that failed waited longer than any that was timed.
    let steadiest = committed()
        .filter(|side| side.errors == 0)
        .min_by(|one, other| one.slowest_us.total_cmp(&other.slowest_us))
        .map(|side| format!("; the shortest slowest commit: {}", side.mode.name));
    let fastest = fastest.join(" and ");
    format!("most commits: {fastest}{margin}{}", steadiest.unwrap_or_default())
}

/// What a reader must know about the figures.
pub fn notes(comparisons: &[Comparison]) -> Vec<String> {
    let mut notes = vec![
        "commits/s: stock's best round, dash's middle round; every side has synchronous=FULL; half within: half of the commits returned within this time".to_owned(),
    ];
    if comparisons.iter().any(|comparison| comparison.kind == Kind::Processes) {
        notes.push(
            "locked: commits that failed with \"database is locked\"; they are in no other column"
                .into(),
        );
    }
    notes.extend(comparisons.first().map(|first| match first.source {
        Source::OwnDevice => "flushes and KiB: of a commit, at the device; exact, nobody else writes to it".to_owned(),
        Source::SharedDevice => "flushes and KiB: of a commit in the middle round, at the device, which others write to as well (exact: --on memory, as root); KiB are with what was kept back and written later".to_owned(),
        Source::Calls | Source::Nothing => "flushes and KiB: by strace where it is installed, because this folder's disk can't be told or does not count".to_owned(),
    }));
    let mut said: Vec<&str> = Vec::new();
    for side in comparisons.iter().flat_map(|comparison| &comparison.sides) {
        if let Some(sentence) = side.may_lose.filter(|sentence| !said.contains(sentence)) {
            said.push(sentence);
            notes.push(format!("{}: {sentence}", side.mode.name));
        }
    }
    if comparisons.iter().any(|comparison| comparison.throttled) {
        notes.push(
            "THE DISK THROTTLED or the machine was busy, and did not stop: times are worth little"
                .into(),
        );
    }
    notes
}

/// What was found after the kills, of all modes in one sentence.
pub fn kills(cuts: &[Cut]) -> String {
    let sum = |of: fn(&Cut) -> u64| whole(float(cuts.iter().map(of).sum()));
    let kills: usize = cuts.iter().map(|cut| cut.kills).sum();
    let lost: Vec<_> = cuts.iter().filter(|cut| !cut.is_clean()).map(|cut| cut.mode.name).collect();
    let found = format!(
        "{kills} writers were killed (kill -9) in the middle of their commits: of {} commits that they had acknowledged {} were found",
        sum(|cut| cut.acknowledged),
        sum(|cut| cut.found)
    );
    match &lost[..] {
        [] => format!("{found}, and every database was whole."),
        lost => format!("{found}. LOST OR DAMAGED: {}.", lost.join(", ")),
    }
}

/// Name and sentence of every mode.
pub fn advice(comparisons: &[Comparison]) -> Vec<(&'static Mode, String)> {
    MODES.iter().map(|mode| (mode, advice::of(mode, comparisons))).collect()
}

/// Cut into lines of at most `width` characters, at spaces.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let Some(line) = lines.last_mut() else { break };
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::compare::tests::of_rates;
    use super::*;

    #[test]
    fn times_have_two_or_three_digits() {
        let times = [0.4, 206.0, 999.7, 4_394.0, 13_042.0, 999_700.0, 1_025_507.0].map(time);
        assert_eq!(times, ["0 µs", "206 µs", "1.0 ms", "4.4 ms", "13 ms", "1.00 s", "1.03 s"]);
    }

    #[test]
    fn the_verdict_names_the_winner_whoever_it_is() {
        let says = |rates| verdict(&of_rates(Kind::Writer, rates));
        let stock = says([10.0, 100.0, 50.0, 20.0]);
        assert!(stock.starts_with("most commits: stock WAL, 2.0 times dash shadow;"), "{stock}");
        let dash = says([10.0, 20.0, 50.0, 100.0]);
        assert!(dash.starts_with("most commits: dash wal, 5.0 times stock WAL;"), "{dash}");
        let both = says([10.0, 99.0, 50.0, 100.0]);
        assert!(both.contains("stock WAL and dash wal, within a twentieth"), "{both}");
        assert_eq!(says([0.0; 4]), "nothing was committed");
        let alone = says([0.0, 0.0, 0.0, 5.0]);
        assert!(alone.starts_with("most commits: dash wal; "), "{alone}");
    }

    #[test]
    fn a_mode_whose_commits_failed_has_no_short_slowest_commit() {
        let mut run = of_rates(Kind::Processes, [1.0, 2.0, 3.0, 4.0]);
        for (side, slowest_us) in run.sides.iter_mut().zip([10.0, 20.0, 40.0, 30.0]) {
            side.slowest_us = slowest_us;
            side.errors = u64::from(!side.mode.is_dash);
        }
        let verdict = verdict(&run);
        assert!(verdict.ends_with("shortest slowest commit: dash wal"), "{verdict}");
    }

    #[test]
    fn lines_are_cut_at_spaces_and_keep_every_word() {
        let text = "one sentence of several words, anunusuallylongone among them";
        let lines = wrap(text, 12);
        assert_eq!(lines.join(" "), text);
        assert!(lines.iter().all(|line| line.chars().count() <= 12 || !line.contains(' ')));
    }
}
