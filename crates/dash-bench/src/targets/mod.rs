//! `dash bench targets`: one file per row.

mod calls;
mod commit_time;
mod counts;
mod cpu;
mod cycles;
pub mod data;
mod opening;
mod reading;
mod recovery;
mod scanners;
mod scans;
mod snapshot;
mod tail;

use std::path::PathBuf;

use serde_json::json;

use crate::failure::{Failure, Result};
use crate::out::say;
use crate::place::Places;
use crate::report::Row;
use crate::session;
use crate::{interrupt, machine};

/// Arguments of `dash bench targets`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Where databases are made (and removed); choose the disk to measure
    #[arg(long, value_name = "PATH", default_value = ".")]
    dir: PathBuf,
    /// Only these rows, separated by commas
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// A tenth of the operations: to see whether it works
    #[arg(long)]
    quick: bool,
    /// Prints JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// What every row gets.
pub struct Bench {
    /// Where.
    pub places: Places,
    quick: bool,
}

impl Bench {
    /// So many, or a tenth of that.
    pub fn many(&self, number: usize) -> usize {
        if self.quick { (number / 10).max(2) } else { number }
    }
}

/// A row's name and what makes it.
type Measure = (&'static str, fn(&Bench) -> Result<Row>);

const ROWS: [Measure; 12] = [
    ("counts", counts::measure),
    ("commit-time", commit_time::measure),
    ("tail", tail::measure),
    ("cycles", cycles::measure),
    ("snapshot", snapshot::measure),
    ("scanners", scanners::measure),
    ("calls", calls::measure),
    ("cpu", cpu::measure),
    ("reading", reading::measure),
    ("scans", scans::measure),
    ("opening", opening::measure),
    ("recovery", recovery::measure),
];

/// Runs the command; whether every target is met.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let chosen = choose(&arguments.only)?;
    let session::Bench { places, extension, real_time, .. } =
        session::Bench::start(&arguments.dir)?;
    let bench = Bench { places, quick: arguments.quick };
    let mut head = machine::lines();
    head.push(format!(
        "dash {} ({}), SQLite {}",
        extension.version(),
        extension.path().display(),
        rusqlite::version()
    ));
    head.push(format!(
        "--dir {}: {}",
        bench.places.home().display(),
        machine::file_system(bench.places.home())
    ));
    head.push(match real_time {
        true => "the measuring thread has real-time priority".to_owned(),
        false => {
            "no real-time priority: others' load on the processors is in the figures".to_owned()
        }
    });
    if !arguments.json {
        head.iter().for_each(|line| say!("{line}"));
    }
    let mut rows = Vec::new();
    for (name, measure) in chosen {
        let row = measure(&bench).unwrap_or_else(|failure| {
            let mut row = Row::new(name, "could not be measured", "-");
            row.fail(failure.to_string());
            row
        });
        if interrupt::pressed() {
            break;
        }
        if !arguments.json {
            row.print();
        }
        rows.push(row);
    }
    interrupt::check()?;
    let places = bench.places.described();
    let met = rows.iter().all(Row::met);
    if arguments.json {
        let rows: Vec<_> = rows.iter().map(Row::json).collect();
        say!("{:#}", json!({ "machine": head, "places": places, "rows": rows, "met": met }));
    } else {
        say!("");
        places.iter().for_each(|place| say!("{place}"));
        say!("{}", if met { "every target is met" } else { "not every target is met" });
    }
    Ok(met)
}

fn choose(only: &[String]) -> Result<Vec<Measure>> {
    if let Some(unknown) = only.iter().find(|name| !ROWS.iter().any(|(row, _)| row == name)) {
        let known: Vec<_> = ROWS.iter().map(|(name, _)| *name).collect();
        return Err(Failure::new(format!(
            "there is no row {unknown}; there are {}",
            known.join(", ")
        )));
    }
    Ok(ROWS
        .into_iter()
        .filter(|(name, _)| only.is_empty() || only.iter().any(|wanted| wanted == name))
        .collect())
}
