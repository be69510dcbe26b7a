//! `dash-lab targets`: one file per section.

mod bench;
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
mod statement;
mod tail;
mod wal;

use std::path::PathBuf;

use serde_json::json;

use crate::failure::{Failure, Result};
use crate::out::say;
use crate::report::Section;
use crate::session;
use crate::{interrupt, machine};
use bench::{Bench, Measure};

/// Arguments of `dash-lab targets`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Where databases are made (and removed); choose the disk to measure
    #[arg(long, value_name = "PATH", default_value = ".")]
    dir: PathBuf,
    /// Only these rows, separated by commas; `wal` are all whose names begin with `wal-`
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Recordings: facebook and twitter in this folder
    #[arg(long, value_name = "FOLDER")]
    traces: Option<PathBuf>,
    /// A tenth of the operations: to see whether it works
    #[arg(long)]
    quick: bool,
    /// Prints JSON instead of a table
    #[arg(long)]
    json: bool,
}

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
    let session::Bench { volumes, extension, real_time, .. } =
        session::Bench::start(&arguments.dir)?;
    let bench = Bench { volumes, traces: arguments.traces.clone(), quick: arguments.quick };
    let mut header = machine::lines();
    header.push(format!(
        "dash {} ({}), SQLite {}",
        extension.version(),
        extension.path().display(),
        rusqlite::version()
    ));
    header.push(format!(
        "--dir {}: {}",
        bench.volumes.home().display(),
        machine::file_system(bench.volumes.home())
    ));
    header.push(match real_time {
        true => "the measuring thread has real-time priority".to_owned(),
        false => {
            "no real-time priority: others' load on the processors is in the figures".to_owned()
        }
    });
    if !arguments.json {
        header.iter().for_each(|line| say!("{line}"));
    }
    let mut sections = Vec::new();
    for (name, measure) in chosen {
        let section = measure(&bench).unwrap_or_else(|failure| {
            let mut section = Section::new(name, "could not be measured", "-");
            section.fail(failure.to_string());
            section
        });
        if interrupt::pressed() {
            break;
        }
        if !arguments.json {
            section.print();
        }
        sections.push(section);
    }
    interrupt::check()?;
    let volumes = bench.volumes.described();
    let met = sections.iter().all(Section::met);
    if arguments.json {
        let rows: Vec<_> = sections.iter().map(Section::json).collect();
        say!("{:#}", json!({ "machine": header, "places": volumes, "rows": rows, "met": met }));
    } else {
        say!("");
        volumes.iter().for_each(|volume| say!("{volume}"));
        say!("{}", if met { "every target is met" } else { "not every target is met" });
    }
    Ok(met)
}

fn choose(only: &[String]) -> Result<Vec<Measure>> {
    let all = || ROWS.into_iter().chain(wal::SECTIONS).chain(statement::SECTIONS);
    let names = |row: &str, wanted: &str| {
        row.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    if let Some(unknown) = only.iter().find(|name| !all().any(|(row, _)| names(row, name))) {
        let known: Vec<_> = all().map(|(name, _)| name).collect();
        return Err(Failure::new(format!(
            "there is no row {unknown}; there are {}",
            known.join(", ")
        )));
    }
    let chosen = |row: &Measure| only.is_empty() || only.iter().any(|name| names(row.0, name));
    Ok(all().filter(chosen).collect())
}
