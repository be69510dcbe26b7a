//! `dash-lab repeat`: the same measurement twice. Counts must agree to 1 %, ratios to 10 %;
//! figures that don't repeat are no figures.

use crate::failure::Result;
use crate::measure;
use crate::options::Options;
use crate::out::say;
use crate::present::cells::Cells;
use crate::present::text::grid;
use crate::session::{Bench, command};
use crate::table::{Line, Source, Table};

/// What counts may differ by.
const COUNTS: f64 = 0.01;
/// What ratios may differ by.
const RATIOS: f64 = 0.10;

/// Arguments of `dash-lab repeat`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    options: Options,
}

/// A figure of both runs.
struct Pair {
    row: String,
    what: &'static str,
    first: f64,
    second: f64,
    allowed: f64,
}

impl Pair {
    /// How far apart, as a share of the larger one.
    fn apart(&self) -> f64 {
        let larger = self.first.abs().max(self.second.abs());
        if larger > 0.0 { (self.first - self.second).abs() / larger } else { 0.0 }
    }

    fn agrees(&self) -> bool {
        self.apart() <= self.allowed
    }
}

/// Runs the command; whether everything agrees.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let bench = Bench::start(&arguments.options.dir)?;
    let volume = arguments.options.volume(&bench.volumes)?;
    bench.header(volume)?.lines().iter().for_each(|line| say!("{line}"));
    let first = measure::run(&arguments.options, volume, command())?;
    let second = measure::run(&arguments.options, volume, command())?;
    let pairs = pairs(&first, &second);
    say!("\n{}", first.about);
    say!("{}", grid(&cells(&pairs)).trim_end());
    if first.source == Source::SharedDevice {
        say!("counts are of a device that others write to: --on memory counts exactly");
    }
    let good = pairs.iter().all(Pair::agrees);
    say!("{}", if good { "the two runs agree" } else { "the two runs do NOT agree" });
    Ok(good)
}

fn pairs(first: &Table, second: &Table) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (one, two) in first.lines.iter().zip(&second.lines) {
        let mut push = |what, figure: &dyn Fn(&Line) -> f64, allowed| {
            pairs.push(Pair {
                row: one.name.clone(),
                what,
                first: figure(one),
                second: figure(two),
                allowed,
            });
        };
        push("speed", &|line| line.speed.median, RATIOS);
        if one.cost.is_some() && two.cost.is_some() {
            push("flushes", &|line| line.cost.map_or(0.0, |cost| cost.flushes), COUNTS);
            // What was kept back is written at one moment or at another: the sum is what repeats.
            push("KiB", &|line| line.cost.map_or(0.0, |cost| cost.kib + cost.later_kib), COUNTS);
        }
    }
    pairs
}

fn cells(pairs: &[Pair]) -> Cells {
    Cells {
        heading: ["row", "figure", "first", "second", "apart", "allowed", ""]
            .map(String::from)
            .to_vec(),
        rows: pairs
            .iter()
            .map(|pair| {
                vec![
                    pair.row.clone(),
                    pair.what.to_owned(),
                    format!("{:.3}", pair.first),
                    format!("{:.3}", pair.second),
                    format!("{:.2} %", pair.apart() * 100.0),
                    format!("{:.0} %", pair.allowed * 100.0),
                    if pair.agrees() { "agrees" } else { "DIFFERS" }.to_owned(),
                ]
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_agree_within_what_is_allowed_and_not_beyond() {
        let pair =
            |first, second, allowed| Pair { row: String::new(), what: "", first, second, allowed };
        assert!(pair(1.0, 1.0099, COUNTS).agrees());
        assert!(!pair(1.0, 1.02, COUNTS).agrees());
        assert!(pair(0.0, 0.0, COUNTS).agrees());
        assert!(pair(2.0, 1.81, RATIOS).agrees());
        assert!(!pair(2.0, 1.7, RATIOS).agrees());
    }
}
