//! A comparison in the terminal: a bar for each mode, figures beside it. Where nobody looks, the
//! bars are of plain characters and without colour.

use std::io::IsTerminal;

use dash_bench::present::cells::{Cells, whole};
use dash_bench::present::text::grid;

use super::compare::{Comparison, Figures};
use super::crash::Cut;
use super::words;
use crate::numbers::{count, float, per};

/// Characters of the longest bar.
const WIDTH: usize = 28;
/// Eighths of a block, none first.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
/// What a bar of dash begins with, of stock, and what both end with.
const DASH: &str = "\x1b[36m";
const STOCK: &str = "\x1b[90m";
const END: &str = "\x1b[0m";

/// How bars are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// ASCII.
    Plain,
    /// Blocks of eighths.
    Blocks,
    /// The same in colour.
    Colours,
}

impl Look {
    /// What standard output takes; `NO_COLOR` as at no-color.org.
    pub fn of_output() -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        match (std::io::stdout().is_terminal(), refused) {
            (false, _) => Self::Plain,
            (true, true) => Self::Blocks,
            (true, false) => Self::Colours,
        }
    }
}

/// A bar for `share` of the longest one; what is not nothing is seen.
fn bar(share: f64, look: Look) -> String {
    let share = share.clamp(0.0, 1.0);
    let steps = if look == Look::Plain { WIDTH } else { WIDTH * 8 };
    let least = usize::from(share > 0.0);
    let reached = |step: &usize| per(count(*step), count(steps)) <= share;
    let filled = (1..=steps).take_while(reached).count().max(least);
    match look {
        Look::Plain => "=".repeat(filled),
        _ => "█".repeat(filled / 8) + EIGHTHS.get(filled % 8).copied().unwrap_or_default(),
    }
}

/// The title, the bars, and who won.
pub fn comparison(comparison: &Comparison, look: Look) -> String {
    let top = comparison.top().max(f64::MIN_POSITIVE);
    let mut heading = vec![String::new(), "commits/s".to_owned(), String::new()];
    heading.extend(words::headings(comparison).into_iter().map(str::to_owned));
    let row = |side: &Figures| {
        let bar = bar(side.rate / top, look);
        let mut row = vec![side.mode.name.to_owned(), whole(side.rate), bar];
        row.extend(words::cells(comparison, side));
        row
    };
    let rows: Vec<Vec<String>> = comparison.sides.iter().map(row).collect();
    let bars: Vec<String> = rows.iter().filter_map(|row| row.get(2).cloned()).collect();
    let text = grid(&Cells { heading, rows });
    let mut lines = text.lines();
    let mut all = format!("{}\n{}\n", comparison.title, lines.next().unwrap_or_default());
    for ((line, bar), side) in lines.zip(bars).zip(&comparison.sides) {
        let colour = if side.mode.is_dash { DASH } else { STOCK };
        match look {
            Look::Colours => all += &line.replacen(&bar, &format!("{colour}{bar}{END}"), 1),
            _ => all += line,
        }
        all.push('\n');
    }
    all + "  " + &words::verdict(comparison) + "\n"
}

/// The table of the kills.
pub fn kills(cuts: &[Cut]) -> String {
    let heading = ["", "killed", "acknowledged", "found", "integrity_check"].map(String::from);
    let row = |cut: &Cut| {
        let whole = |figure| whole(float(figure));
        vec![
            cut.mode.name.to_owned(),
            cut.kills.to_string(),
            whole(cut.acknowledged),
            whole(cut.found),
            if cut.damage.is_none() { "ok" } else { "DAMAGED" }.to_owned(),
        ]
    };
    let rows = cuts.iter().map(row).collect();
    let title = "Writers killed in the middle of their commits (kill -9): acknowledged commits, and those found";
    let mut text = format!("{title}\n{}", grid(&Cells { heading: heading.to_vec(), rows }));
    for cut in cuts.iter().filter(|cut| !cut.is_clean()) {
        let damage = cut.damage.as_deref().unwrap_or("commits are missing");
        text += &format!("  {}: LOST OR DAMAGED: {damage}\n", cut.mode.name);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::compare::tests::of_rates;
    use super::super::kind::Kind;
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_share_and_never_invisible() {
        assert_eq!(bar(1.0, Look::Plain), "=".repeat(WIDTH));
        assert_eq!(bar(0.5, Look::Plain), "=".repeat(WIDTH / 2));
        assert_eq!(bar(0.5, Look::Blocks), "█".repeat(WIDTH / 2));
        assert_eq!(bar(1.0 / 56.0, Look::Blocks), "▌");
        assert_eq!(
            (bar(0.0001, Look::Plain).as_str(), bar(0.0001, Look::Blocks).as_str()),
            ("=", "▏")
        );
        assert_eq!(bar(0.0, Look::Plain), "");
    }

    #[test]
    fn colours_change_nothing_but_colours() {
        let run = of_rates(Kind::Processes, [1.0, 20.0, 50.0, 100.0]);
        let coloured = comparison(&run, Look::Colours);
        assert!(coloured.contains(DASH) && coloured.contains(STOCK));
        let bare = [DASH, STOCK, END].iter().fold(coloured, |text, code| text.replace(code, ""));
        assert_eq!(bare, comparison(&run, Look::Blocks));
    }

    #[test]
    fn the_plain_look_is_ascii_but_for_micro() {
        let plain = comparison(&of_rates(Kind::Writer, [1.0, 20.0, 50.0, 100.0]), Look::Plain);
        assert!(plain.chars().all(|c| c.is_ascii() || c == 'µ'), "{plain}");
        let line = plain.lines().find(|line| line.trim_start().starts_with("dash shadow"));
        assert!(line.is_some_and(|line| line.contains("==============  ")), "{plain}");
    }
}
