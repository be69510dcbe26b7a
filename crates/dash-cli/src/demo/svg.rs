//! The comparisons as one SVG chart: nothing beside it is needed, there is no script in it, and its
//! colours follow the reader's light or dark setting.

use std::fmt::Write;

use super::compare::{Comparison, Figures};
use super::modes::Mode;
use super::words;
use crate::numbers::{count, float};

/// Pixels: the whole width, the margin, a line of text, a row of a panel.
const WIDTH: f64 = 980.0;
const MARGIN: f64 = 32.0;
const LINE: f64 = 19.0;
const ROW: f64 = 26.0;
/// Where bars begin, and how long the longest is.
const BARS: f64 = 140.0;
const LONGEST: f64 = 330.0;
/// Where the columns of figures end: the first one, and how far the next ones are.
const COLUMN: f64 = 620.0;
const COLUMNS_APART: f64 = 82.0;
/// Characters of a line of the text below, and of one beside a mode's name.
const CHARACTERS: usize = 132;
const CHARACTERS_BESIDE: usize = 114;

/// Light by default, dark where the reader's system is.
const STYLE: &str = "\
svg { color-scheme: light dark; font-family: system-ui, sans-serif; font-size: 13px }
text { fill: #1f2328; font-variant-numeric: tabular-nums }
.back { fill: #ffffff } .head { font-size: 20px; font-weight: 600 } .panel { font-weight: 600 }
.soft { fill: #59636e } .stock { fill: #8c959f } .dash { fill: #0969da } .end { text-anchor: end }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc } .back { fill: #0d1117 } .soft { fill: #9198a1 }
.stock { fill: #6e7681 } .dash { fill: #4493f8 }
}";

/// A drawing that grows downwards.
struct Drawing {
    body: String,
    y: f64,
}

impl Drawing {
    fn text(&mut self, x: f64, class: &str, text: &str) {
        let _ = writeln!(
            self.body,
            r#"<text x="{x:.0}" y="{:.0}" class="{class}">{}</text>"#,
            self.y,
            escaped(text)
        );
    }

    fn lines(&mut self, class: &str, text: &str) {
        for line in words::wrap(text, CHARACTERS) {
            self.y += LINE;
            self.text(MARGIN, class, &line);
        }
    }

    fn advice(&mut self, mode: &Mode, sentence: &str) {
        self.y += 5.0;
        for (at, line) in words::wrap(sentence, CHARACTERS_BESIDE).into_iter().enumerate() {
            self.y += LINE;
            if at == 0 {
                self.text(MARGIN, "panel", mode.name);
            }
            self.text(BARS, "", &line);
        }
    }

    fn figures(&mut self, class: &str, cells: &[String]) {
        for (at, cell) in cells.iter().enumerate() {
            let x = COLUMN + COLUMNS_APART * float(count(at));
            self.text(x, &format!("end {class}"), cell);
        }
    }

    fn panel(&mut self, comparison: &Comparison) {
        self.y += ROW * 1.5;
        self.text(MARGIN, "panel", &comparison.title);
        self.y += LINE + 3.0;
        self.text(BARS, "soft", "commits/s");
        let headings: Vec<_> = words::headings(comparison).into_iter().map(str::to_owned).collect();
        self.figures("soft", &headings);
        for side in &comparison.sides {
            self.row(comparison, side);
        }
        self.y += LINE + 5.0;
        self.text(MARGIN, "soft", &words::verdict(comparison));
    }

    fn row(&mut self, comparison: &Comparison, side: &Figures) {
        self.y += ROW;
        self.text(MARGIN, "", side.mode.name);
        let share = side.rate / comparison.top().max(f64::MIN_POSITIVE);
        let length = (LONGEST * share).max(1.0);
        let class = if side.mode.is_dash { "dash" } else { "stock" };
        let _ = writeln!(
            self.body,
            r#"<rect x="{BARS:.0}" y="{:.0}" width="{length:.1}" height="16" rx="2" class="{class}"/>"#,
            self.y - 12.5
        );
        let rate = dash_bench::present::cells::whole(side.rate);
        self.text(BARS + length + 6.0, "", &rate);
        self.figures("", &words::cells(comparison, side));
    }
}

/// The chart: where it was measured, a panel a comparison, the kills in a sentence, notes, and when
/// to take which mode.
pub fn chart(place: &[String], comparisons: &[Comparison], kills: &str) -> String {
    let title = "sqlite-dash demo: what each mode is best at";
    let mut drawing = Drawing { body: String::new(), y: MARGIN + 10.0 };
    drawing.text(MARGIN, "head", title);
    drawing.y += 4.0;
    place.iter().for_each(|line| drawing.lines("soft", line));
    comparisons.iter().for_each(|comparison| drawing.panel(comparison));
    drawing.y += ROW;
    for (mode, sentence) in words::advice(comparisons) {
        drawing.advice(mode, &sentence);
    }
    drawing.y += ROW - LINE;
    drawing.lines("soft", kills);
    words::notes(comparisons).iter().for_each(|note| drawing.lines("soft", note));
    let height = drawing.y + MARGIN;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH:.0} {height:.0}\" width=\"{WIDTH:.0}\" height=\"{height:.0}\" role=\"img\">\n<title>{title}</title>\n<style>\n{STYLE}\n</style>\n<rect class=\"back\" width=\"100%\" height=\"100%\"/>\n{}</svg>\n",
        drawing.body
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::super::compare::tests::of_rates;
    use super::super::kind::Kind;
    use super::*;

    #[test]
    fn every_side_has_a_bar_of_its_share() {
        let runs = [of_rates(Kind::Writer, [10.0, 100.0, 50.0, 0.0])];
        let chart = chart(&["here & there".into()], &runs, "");
        let widths: Vec<&str> = chart
            .lines()
            .filter(|line| line.starts_with("<rect x="))
            .filter_map(|line| line.split(" width=\"").nth(1)?.split('"').next())
            .collect();
        assert_eq!(widths, ["33.0", "330.0", "165.0", "1.0"]);
    }

    #[test]
    fn a_chart_stands_alone_and_is_well_formed() {
        let runs = [Kind::Writer, Kind::Processes].map(|kind| of_rates(kind, [1.0, 2.0, 3.0, 4.0]));
        let chart = chart(&["here & there".into()], &runs, "none < all");
        assert!(chart.contains("prefers-color-scheme: dark"));
        assert!(chart.contains("here &amp; there") && chart.contains("A &lt;title&gt;"));
        for word in ["script", "href", "url(", "import"] {
            assert!(!chart.contains(word), "{word}");
        }
        assert_eq!(chart.matches("http").count(), 1, "the name space alone");
        assert_eq!(chart.matches("<text").count(), chart.matches("</text>").count());
        let open = chart.lines().filter(|line| line.starts_with("<text"));
        assert!(open.clone().count() > 20 && open.clone().all(|line| line.ends_with("</text>")));
    }
}
