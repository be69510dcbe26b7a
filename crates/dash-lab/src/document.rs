//! `dash-lab document`: `benches/BENCHMARKS.md`. Every table stands below the command that makes
//! it, and is made by that very command line.

use std::path::PathBuf;

use clap::Parser;

use crate::failure::{Explain, Failure, Result};
use crate::interrupt;
use crate::measure;
use crate::options::{Choice, Options};
use crate::out::say;
use crate::present::text::markdown;
use crate::recovery;
use crate::services;
use crate::session::Bench;
use crate::sides::{DASH_WAL, PAPER, PERSIST, SINGLE, WAL};
use crate::workload::Name;

/// Arguments of `dash-lab document`.
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

/// Words of a command that stand for rows.
const SETS: [(&str, &str); 4] = [
    (
        "MOBILE",
        "--rows delete,persist,wal-growing,wal-recycled,dash-single,dash-exclusive,dash-paper,dash-wal",
    ),
    ("FEW", "--rows delete,persist,wal,dash-single,dash-wal"),
    ("REGIMES", "--rows wal-growing,wal-recycled,wal-normal,dash-wal,limit --baseline wal-growing"),
    ("LOGS", "--rows wal,dash-wal --baseline wal"),
];

/// Heading, what to know before reading, commands with the words of [`SETS`].
const SECTIONS: &[(&str, &str, &[&str])] = &[
    (
        "Mode wal: one writer",
        "dash in WAL mode beside stock WAL in both regimes of its log: on the file system of the folder, then on ext4 with a journal.",
        &["REGIMES", "REGIMES --on loop"],
    ),
    (
        "Mode wal: flushes, writes and bytes per commit",
        "Inserts of 100 bytes, into one table and into five, and updates; checkpoints are among the commits. What the log takes depends on the device's blocks: 512 bytes, then 4 KiB. dash leaves `-wal` to the page cache: after each block it is written by force here (later KiB); in one long run most of it is overwritten first, which `dash-lab targets --only wal-counts` measures. The last table tells what the file system writes to its own journal.",
        &[
            "--on memory LOGS --rounds 50",
            "--on memory --operations 5 LOGS --rounds 50",
            "--on memory --workload update LOGS --rounds 50",
            "--on memory-4k LOGS --rounds 50",
            "--on memory-4k --operations 5 LOGS --rounds 50",
            "--on journal --rows delete,wal,wal-growing,dash-wal --baseline wal --rounds 20",
        ],
    ),
    (
        "Mode wal: many writers",
        "Fixed work: stock's writers must all come to their end, too. Flushes below 1.00 are shared ones.",
        &[
            "--threads 4 --work 200 LOGS --rounds 5",
            "--threads 16 --work 200 LOGS --rounds 5",
            "--processes 16 --work 200 LOGS --rounds 5",
        ],
    ),
    (
        SERVICES,
        "Django below gunicorn and Go (mattn/go-sqlite3), which answer each request behind a durable commit. Where Django opens a connection for each request, opening through dash takes longer than what the commit gains: keep connections (`CONN_MAX_AGE`).",
        &[],
    ),
    ("One commit", "Autocommit inserts of 100 bytes, on the file system of the folder.", &[""]),
    (
        "Flushes, writes and bytes per commit",
        "The same on a loop device over memory, where counts are exact and flushes cost nothing: what is left of the times is processor time. KiB are also what wears flash out.",
        &["--on memory --rounds 60"],
    ),
    (
        "Stalls",
        "Updates in a large table: WAL stops for a checkpoint now and then (p99.9), stock's and dash's; mode shadow has no checkpoints.",
        &["--workload update --size 100M --skew uniform FEW"],
    ),
    (
        "Many connections",
        "SQLite has one writer at a time: what differs is who waits how, and what readers cost a writer.",
        &["--threads 16 FEW", "--workload mixed --share 90 --threads 16 FEW"],
    ),
    (
        "Short-lived programs",
        "Open, one commit, close, on ext4 with a journal. The row without flush and without journal is SQLite's own share of the time.",
        &["--workload cycles --on loop"],
    ),
    (
        "Reading",
        "One connection that reads, nothing is written: points by key, then scans.",
        &["--workload reads", "--workload scans"],
    ),
    (
        RECOVERY,
        "From opening a database whose writer was killed at any moment to its first row read, and on to its first commit; the page cache stays, the log of WAL is about half full (500 pages).",
        &[],
    ),
    (
        "Larger transactions",
        "Ten operations a transaction; and bulk load, which dash is not for.",
        &["--operations 10 MOBILE", "--workload bulk FEW"],
    ),
    #[cfg(feature = "stores")]
    (
        "Other stores",
        "One durable put of 100 bytes per commit; these stores have no SQL to run for it.",
        &[
            "--rows wal-growing,wal-recycled,dash-single,redb,fjall,lmdb,limit --baseline wal-recycled",
        ],
    ),
];

/// The sections that are no workload's.
const RECOVERY: &str = "Recovery";
const SERVICES: &str = "Services";
/// Writers killed for a line of it.
const KILLS: usize = 20;

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let bench = Bench::start(&arguments.dir)?;
    let header = bench.header(bench.volumes.v()?)?;
    say!("# Benchmarks\n");
    say!(
        "Made by `dash-lab document`; each table by the command above it. Counts compare across machines, times do not: on yours, run `sqlite-dash bench --quick`. Rows that beat dash are here like the others. `dash-lab papers` sets the papers' figures beside measured ones, `dash-lab targets` says which of dash's own targets are met.\n"
    );
    header.lines().iter().for_each(|line| say!("- {line}"));
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
        if *heading == RECOVERY {
            recovery(&bench, if arguments.add.is_empty() { KILLS } else { 2 })?;
        }
        if *heading == SERVICES {
            good &= services(&bench, arguments)?;
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
    Ok(good)
}

/// How long it takes to be back, in milliseconds.
fn recovery(bench: &Bench, kills: usize) -> Result<()> {
    say!("```\ndash-lab document --only {RECOVERY}\n```\n");
    say!("| updates a transaction, row | first read ms | shortest | longest | first commit ms |");
    say!("| --- | --: | --: | --: | --: |");
    for many in [1, 5, 20] {
        for row in [WAL, PERSIST, DASH_WAL, PAPER, SINGLE] {
            let choice = Choice::of(Name::Update, many);
            let times = recovery::times(bench.volumes.v()?, choice, row, kills)?;
            say!(
                "| {many}, {} | {:.2} | {:.2} | {:.2} | {:.2} |",
                row.name,
                times.average,
                times.shortest,
                times.longest,
                times.with_commit
            );
        }
    }
    Ok(())
}

/// What a service sees; what can't be measured here says why.
fn services(bench: &Bench, arguments: &Arguments) -> Result<bool> {
    let rounds = if arguments.add.is_empty() { 5 } else { 1 };
    let dir = arguments.dir.clone();
    say!("```");
    let made =
        services::tables(bench, &services::Arguments { dir, seconds: 5, rounds, only: None });
    let good = made.or_else(|failure| {
        interrupt::check()?;
        say!("Not measured: {failure}");
        Ok(false)
    });
    say!("```\n");
    good
}

fn wanted(arguments: &Arguments, heading: &str) -> bool {
    arguments.only.as_ref().is_none_or(|only| heading.contains(only.as_str()))
}

/// A command with the rows that its words stand for.
fn spelt(command: &str) -> String {
    let set = |word| SETS.iter().find(|(name, _)| *name == word).map(|(_, rows)| *rows);
    let words = command.split_whitespace().map(|word| set(word).unwrap_or(word));
    words.collect::<Vec<_>>().join(" ")
}

/// One table; what can't be measured here says why.
fn table(
    bench: &Bench,
    arguments: &Arguments,
    command: &str,
    replay: Option<&PathBuf>,
    said: &mut Vec<String>,
) -> Result<bool> {
    let command = spelt(command);
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
        .volume(&bench.volumes)
        .and_then(|volume| measure::run(&parsed.options, volume, shown.clone()));
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
                let command = spelt(command);
                let words = std::iter::once("bench").chain(command.split_whitespace());
                assert!(Command::try_parse_from(words).is_ok(), "{heading}: {command}");
            }
        }
    }
}
