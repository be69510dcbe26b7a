//! `dash bench document`: `benches/BENCHMARKS.md`. Every table stands below the command that makes
//! it, and is made by that very command line.

use std::path::PathBuf;

use clap::Parser;

use crate::failure::{Explain, Failure, Result};
use crate::interrupt;
use crate::measure;
use crate::options::Options;
use crate::out::say;
use crate::papers;
use crate::present::text::markdown;
use crate::session::Bench;

/// Arguments of `dash bench document`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Where databases are made (and removed); choose the disk to measure
    #[arg(long, value_name = "PATH", default_value = ".")]
    dir: PathBuf,
    /// Recordings to replay: each folder in this one
    #[arg(long, value_name = "FOLDER")]
    traces: Option<PathBuf>,
    /// Only sections whose heading contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Options added to every command, such as `--rounds 3`: to see whether it works
    #[arg(long, value_name = "OPTIONS", default_value = "", allow_hyphen_values = true)]
    add: String,
}

/// A measurement's command line by itself.
#[derive(Parser)]
#[command(args_override_self = true)]
struct Command {
    #[command(flatten)]
    options: Options,
}

const MOBILE: &str =
    "--rows delete,persist,wal-growing,wal-recycled,dash-single,dash-exclusive,dash-paper";
const FEW: &str = "--rows delete,persist,wal,dash-single";

/// Heading, what to know before reading, commands; `MOBILE` and `FEW` stand for rows.
const SECTIONS: &[(&str, &str, &[&str])] = &[
    (
        "One commit",
        "Autocommit inserts of 100 bytes: on the file system of the folder, on ext4 with a journal on a loop device, and on a loop device over memory, where flushes cost nothing and what is left is processor time.",
        &["", "--on loop", "--on memory --rounds 60"],
    ),
    (
        "Mobibench: several operations per transaction",
        "Each operation works on its own table.",
        &[
            "--operations 3 MOBILE",
            "--operations 5 MOBILE",
            "--operations 10 MOBILE",
            "--operations 20 MOBILE",
            "--workload update MOBILE",
            "--workload update --operations 3 MOBILE",
            "--workload update --operations 5 MOBILE",
            "--workload update --operations 10 MOBILE",
            "--workload update --operations 20 MOBILE",
            "--workload delete MOBILE",
            "--workload delete --operations 3 MOBILE",
            "--workload delete --operations 5 MOBILE",
            "--workload delete --operations 10 MOBILE",
            "--workload delete --operations 20 MOBILE",
        ],
    ),
    ("AndroBench", "", &["--workload androbench", "--workload androbench --on loop"]),
    (
        "Without locality",
        "Long transactions that touch most of a database are what dash is not for.",
        &["--workload random-a MOBILE", "--workload random-b FEW"],
    ),
    (
        "Short-lived programs",
        "Open, one commit, close. The row without flush and without journal is SQLite's own share of the time.",
        &[
            "--workload cycles",
            "--workload cycles --on loop",
            "--workload cycles --size 10M",
            "--workload cycles --size 60M",
        ],
    ),
    ("Bulk load", "", &["--workload bulk FEW --rounds 10"]),
    (
        "Skew and size",
        "",
        &[
            "--workload update --size 100M --skew uniform FEW",
            "--workload update --size 100M --skew zipf FEW",
            "--workload update --size 10K FEW",
            "--workload update --size 80K FEW",
            "--workload update --size 1M FEW",
            "--workload update --size 4G FEW --rounds 10",
        ],
    ),
    (
        "Reading",
        "",
        &[
            "--workload reads",
            "--workload reads --skew zipf",
            "--workload scans",
            "--workload scans --size 100M --rounds 10",
        ],
    ),
    (
        "Many connections",
        "SQLite has one writer at a time: what differs is who waits how.",
        &[
            "--threads 4 FEW",
            "--threads 16 FEW",
            "--threads 64 FEW",
            "--processes 1 FEW",
            "--processes 4 FEW",
            "--processes 16 FEW",
            "--workload mixed --share 90 FEW",
            "--workload mixed --share 75 --threads 4 FEW",
            "--workload mixed --share 90 --threads 16 FEW",
            "--workload mixed --share 75 --processes 4 FEW",
            "--workload reads --threads 4 --rows delete,wal,dash-single",
        ],
    ),
    (
        "The shim by itself",
        "What a VFS in Rust costs that only passes through, beside SQLite's own.",
        &[
            "--on memory --rows delete,dash-plain,shim",
            "--workload reads --rows delete,dash-plain,shim",
        ],
    ),
    #[cfg(all(feature = "redb", feature = "fjall", feature = "heed"))]
    (
        "Other stores",
        "One durable put of 100 bytes per commit; these stores have no SQL to run for it.",
        &[
            "--rows wal-growing,wal-recycled,dash-single,redb,fjall,lmdb,limit --baseline wal-recycled",
        ],
    ),
];

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let bench = Bench::start(&arguments.dir)?;
    let head = bench.head(bench.places.v()?)?;
    say!("# Benchmarks\n");
    say!(
        "Made by `dash bench document`; each table by the command above it. Counts compare across machines, times do not: on yours, run `dash bench --quick`. Rows that beat dash are here like the others.\n"
    );
    head.lines().iter().for_each(|line| say!("- {line}"));
    say!("\nWhat columns and durability mean is said below the first table in which they stand.");
    let mut good = true;
    let mut said = Vec::new();
    for (heading, prose, commands) in SECTIONS {
        if !wanted(arguments, heading) {
            continue;
        }
        say!("\n## {heading}\n");
        if !prose.is_empty() {
            say!("{prose}\n");
        }
        for command in *commands {
            good &= table(&bench, arguments, command, None, &mut said)?;
        }
    }
    if let Some(traces) = arguments.traces.as_ref().filter(|_| wanted(arguments, "Recordings")) {
        say!("\n## Recordings\n\nSQL recorded on phones and by benchmarks, replayed.\n");
        for folder in folders(traces)? {
            good &= table(&bench, arguments, "", Some(&folder), &mut said)?;
        }
    }
    if wanted(arguments, "Papers") {
        say!("\n## Papers\n");
        papers::markdown(&bench, arguments.traces.as_deref(), !arguments.add.is_empty())?;
    }
    Ok(good)
}

fn wanted(arguments: &Arguments, heading: &str) -> bool {
    arguments.only.as_ref().is_none_or(|only| heading.contains(only.as_str()))
}

/// One table; what can't be measured here says why.
fn table(
    bench: &Bench,
    arguments: &Arguments,
    command: &str,
    replay: Option<&PathBuf>,
    said: &mut Vec<String>,
) -> Result<bool> {
    let command = command.replace("MOBILE", MOBILE).replace("FEW", FEW);
    let given: Vec<_> = ["dash", "bench"]
        .into_iter()
        .chain(command.split_whitespace())
        .chain(arguments.add.split_whitespace())
        .collect();
    let mut shown = given.join(" ");
    let mut words: Vec<std::ffi::OsString> = given[1..].iter().map(Into::into).collect();
    if let Some(folder) = replay {
        words.extend(["--replay".into(), folder.into()]);
        shown = format!("{shown} --replay {}", folder.file_name().unwrap_or_default().display());
    }
    let parsed = Command::try_parse_from(words).explain(format!("the command {shown}"))?;
    let made = parsed
        .options
        .place(&bench.places)
        .and_then(|place| measure::run(&parsed.options, place, shown.clone()));
    match made {
        Ok(made) => say!("{}", markdown(&made, said)),
        Err(failure) => {
            interrupt::check()?;
            say!("```\n{shown}\n```\n\nNot measured: {failure}\n");
            return Ok(false);
        }
    }
    Ok(true)
}

/// The folders in a folder, in order.
fn folders(of: &std::path::Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(of).explain(format!("reading {}", of.display()))?;
    let mut folders: Vec<_> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_dir()).collect();
    folders.sort();
    match folders.is_empty() {
        true => Err(Failure::new(format!("{} has no folders to replay", of.display()))),
        false => Ok(folders),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_of_the_document_can_be_given() {
        for (heading, _, commands) in SECTIONS {
            for command in *commands {
                let command = command.replace("MOBILE", MOBILE).replace("FEW", FEW);
                let words = std::iter::once("bench").chain(command.split_whitespace());
                assert!(Command::try_parse_from(words).is_ok(), "{heading}: {command}");
            }
        }
    }
}
