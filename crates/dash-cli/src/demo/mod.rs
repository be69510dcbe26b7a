//! `dash demo`: the same durable transactions under stock WAL and under dash, side by side; then
//! writers are killed, and what they had acknowledged is looked for.
//!
//! Both sides start from byte-identical files, run in one process on one SQLite, in alternating
//! blocks, so that a slow moment of the disk hits both. Nothing outside a folder of the demo's own
//! is written.

mod crash;
mod measure;
mod side;
mod source;
mod table;
mod trace;
mod workload;
pub mod writer;

use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::statfs::{TMPFS_MAGIC, statfs};

use crate::Outcome;
use crate::device::Device;
use crate::extension::Extension;
use crate::failure::{Explain, Failure, Result};
use crate::interrupt::Interrupt;
use crate::out::say;
use side::Side;
use workload::Workload;

/// How many transactions each side runs if nobody says how many.
const TRANSACTIONS: u32 = 4000;
/// And how long that may take: it is a demonstration, not a benchmark.
const PATIENCE: Duration = Duration::from_secs(12);

/// Arguments of `dash demo`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Runs on a copy of this database; the file itself is only read
    #[arg(value_name = "FILE.db", conflicts_with = "replay")]
    file: Option<PathBuf>,
    /// Replays recorded SQL: loading.sql once, then one connection per file of benchset/; or plain
    /// *.sql
    #[arg(long, value_name = "FOLDER")]
    replay: Option<PathBuf>,
    /// How many transactions each side runs [default: 4000, fewer where the disk is slow]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "replay")]
    transactions: Option<u32>,
    /// Where the demo's databases are made (and removed); choose the disk to try
    #[arg(long, value_name = "PATH", default_value = ".")]
    dir: PathBuf,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let interrupt = Interrupt::catch()?;
    let extension = Extension::load()?;
    let making =
        || format!("making a folder in {} (choose another with --dir)", arguments.dir.display());
    let home = arguments.dir.canonicalize().explain(making())?;
    let folder = tempfile::Builder::new().prefix("dash-demo-").tempdir_in(home).explain(making())?;
    let workload = prepare(arguments, &extension, folder.path())?;
    say!(
        "dash {} loaded from {} into a stock SQLite {}",
        extension.version(),
        extension.path().display(),
        rusqlite::version()
    );
    say!("{}", workload.title);
    let device = Device::of(folder.path());
    say!(
        "in {}, on {}",
        folder.path().display(),
        device.as_ref().map_or("a disk that can't be told", |device| &device.name)
    );
    if is_memory(folder.path()) {
        say!(
            "this folder is in memory, so a flush costs nothing and proves nothing: name a disk with --dir"
        );
    }
    say!("");
    let both = [Side::Stock, Side::Dash].map(|side| (side, folder.path().join(side.file_name())));
    for (_, path) in &both {
        std::fs::copy(&workload.base, path).explain(format!("copying to {}", path.display()))?;
    }
    let asked = arguments.replay.is_some() || arguments.transactions.is_some();
    let patience = if asked { Duration::MAX } else { PATIENCE };
    let tallies =
        measure::run(&extension, &both, &workload, patience, device.as_ref(), &interrupt)?;
    if let Some(words) = tallies.first().and_then(|tally| stopped(tally.transactions(), &workload))
    {
        say!("{words}");
        say!("");
    }
    let cuts = crash::run(&extension, &both, &interrupt)?;
    table::print(&tallies, &cuts, device.as_ref());
    let lost = cuts.iter().any(|cut| !cut.is_clean());
    Ok(if lost { Outcome::Bad } else { Outcome::Good })
}

fn prepare(arguments: &Arguments, extension: &Extension, folder: &Path) -> Result<Workload> {
    let base = folder.join("base.db");
    let count = usize::try_from(arguments.transactions.unwrap_or(TRANSACTIONS))
        .explain("counting transactions")?;
    let many = match arguments.transactions {
        Some(count) => count.to_string(),
        None => format!("{TRANSACTIONS}, or as many as {} seconds allow,", PATIENCE.as_secs()),
    };
    match (&arguments.replay, &arguments.file) {
        (Some(replay), _) => trace::read(replay, &base),
        (None, Some(file)) => {
            source::copy(extension, file, &base)?;
            let title = format!(
                "{many} transactions of one 100-byte insert or update each, in a table dash_demo added to a copy of {}",
                file.display()
            );
            workload::made(base, count, title)
        }
        (None, None) => {
            let title = format!(
                "{many} transactions of one 100-byte insert or update each, made up, on one connection"
            );
            workload::made(base, count, title)
        }
    }
}

/// What to say where time was over before all was run.
fn stopped(transactions: u64, workload: &Workload) -> Option<String> {
    let all = workload.transactions();
    (transactions < all).then(|| {
        format!(
            "stopped for time: each side ran the same {transactions} of {all} transactions; --transactions {all} runs them all"
        )
    })
}

/// Whether a folder loses everything with the power.
fn is_memory(folder: &Path) -> bool {
    statfs(folder).is_ok_and(|found| found.filesystem_type() == TMPFS_MAGIC)
}

/// A database error, with which side and what it was doing.
fn failed(side: Side, doing: &str, error: &rusqlite::Error) -> Failure {
    Failure::new(format!("{}: {doing}: {error}", side.name()))
}

/// What ends a demo at Ctrl-C; its folder is removed on the way out.
fn stop_if_pressed(interrupt: &Interrupt) -> Result<()> {
    match interrupt.pressed() {
        true => Err(Failure::new("stopped; the demo's folder is removed")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_demo_that_did_not_run_all_says_so() {
        let workload = Workload {
            title: String::new(),
            base: PathBuf::new(),
            streams: vec![vec![Vec::new(); 5]; 2],
        };
        assert_eq!(stopped(10, &workload), None);
        let words = stopped(4, &workload).unwrap();
        assert!(words.contains("stopped for time") && words.contains("4 of 10"), "{words}");
    }
}
