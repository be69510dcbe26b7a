//! The command line of a measurement, and what it means.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use crate::failure::{Failure, Result};
use crate::row::Row;
use crate::rows::{self, named};
use crate::volume::{Volume, Volumes};
use crate::workers::Workers;
use crate::workload::{Name, Settings, Skew};

/// Which workload.
#[derive(Debug, Clone, clap::Args)]
pub struct Choice {
    /// What is run
    #[arg(long, value_name = "NAME", default_value = "insert")]
    pub workload: Name,
    /// Operations of a transaction, each in its own table (the papers use 1, 3, 5, 10, 20)
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub operations: usize,
    /// About how large the database is at the start, such as 10K, 80K, 1M, 100M, 4G
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub size: Option<u64>,
    /// Which rows are chosen
    #[arg(long, default_value = "uniform")]
    pub skew: Skew,
    /// Per cent of the transactions of `mixed` that read, of the tables of `duplication` that are
    /// shared
    #[arg(long, value_name = "PER CENT", default_value_t = 50)]
    pub share: usize,
    /// Recorded SQL: loading.sql once, then one connection per file of benchset/; or plain *.sql
    #[arg(long, value_name = "FOLDER")]
    pub replay: Option<PathBuf>,
    /// How long one of several connections waits for another one (insert, update)
    #[arg(long, value_name = "SECONDS", default_value_t = BUSY)]
    pub busy: u64,
}

/// Seconds that a connection waits for another one.
const BUSY: u64 = 20;

impl Choice {
    /// A workload with so many operations per transaction, else as usual.
    pub fn of(workload: Name, operations: usize) -> Self {
        Self {
            workload,
            operations,
            size: None,
            skew: Skew::Uniform,
            share: 50,
            replay: None,
            busy: BUSY,
        }
    }

    /// As settings; a folder to replay chooses the workload.
    pub fn settings(&self) -> Result<Settings> {
        if !(1..=64).contains(&self.operations) {
            return Err(Failure::new("--operations must be between 1 and 64"));
        }
        Ok(Settings {
            name: if self.replay.is_some() { Name::Replay } else { self.workload },
            operations: self.operations,
            size: self.size,
            skew: self.skew,
            share: self.share,
            replay: self.replay.clone(),
            busy: self.busy,
        })
    }
}

/// Where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Where {
    /// The file system of --dir.
    Dir,
    /// ext4 with a journal on a loop device over a file in --dir: exact counts (needs root).
    Loop,
    /// The same over memory: exact counts, no times of a disk (needs root).
    Memory,
    /// As memory, on a device whose blocks are of 4 KiB.
    #[value(name = "memory-4k")]
    Blocks,
    /// As memory, with the file system's journal on a device of its own, whose bytes are a column.
    Journal,
}

impl Where {
    /// The volume.
    ///
    /// # Errors
    ///
    /// If it can't be made, with the reason.
    pub fn volume(self, volumes: &Volumes) -> Result<&Volume> {
        match self {
            Self::Dir => volumes.v(),
            Self::Loop => volumes.j(),
            Self::Memory => volumes.l(),
            Self::Blocks => volumes.b(),
            Self::Journal => volumes.e(),
        }
    }
}

/// How a measurement is made.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// What is run.
    #[command(flatten)]
    pub choice: Choice,
    /// Rows of the table, separated by commas; the usual ones if none is named
    #[arg(long, value_name = "ROW", value_delimiter = ',', value_parser = rows::parser())]
    pub rows: Vec<&'static Row>,
    /// The row that others are compared with
    #[arg(long, value_name = "ROW", default_value = "delete", value_parser = rows::parser())]
    pub baseline: &'static Row,
    /// Connections at the same time, each on its own thread (1 to 64)
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "processes")]
    pub threads: usize,
    /// Connections at the same time, each in its own process (1 to 16)
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub processes: usize,
    /// Fixed work: each of several connections commits so many transactions, however long that
    /// takes; else all of them work for 100 ms a block
    #[arg(long, value_name = "N")]
    pub work: Option<usize>,
    /// For how long several connections work in a block, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = SHIFT)]
    pub shift: u64,
    /// Where databases are made (and removed); choose the disk to measure
    #[arg(long, value_name = "PATH", default_value = ".")]
    pub dir: PathBuf,
    /// On what
    #[arg(long, value_name = "PLACE", default_value = "dir")]
    pub on: Where,
    /// Rounds; in each, every row runs a block [default: 30, as many as patience allows]
    #[arg(long, value_name = "N")]
    pub rounds: Option<usize>,
    /// Transactions of a block [default: some, by workload]
    #[arg(long, value_name = "N")]
    pub block: Option<usize>,
    /// No round is begun after so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    pub patience: u64,
    /// Counts system calls too, by strace
    #[arg(long)]
    pub calls: bool,
    /// A plain database that the workload's tables are added to, in place of an empty one.
    #[arg(skip)]
    pub base: Option<PathBuf>,
}

/// How long workers work at a time, in milliseconds.
const SHIFT: u64 = 100;
/// Rounds unless another number is named.
const ROUNDS: usize = 30;

impl Options {
    /// One connection, else as usual; compared with the first row.
    pub fn of(choice: Choice, rows: &[&'static Row], on: Where) -> Self {
        Self {
            choice,
            rows: rows.to_vec(),
            baseline: rows.first().copied().unwrap_or(named("delete")),
            threads: 1,
            processes: 0,
            work: None,
            shift: SHIFT,
            dir: PathBuf::from("."),
            on,
            rounds: None,
            block: None,
            patience: 120,
            calls: false,
            base: None,
        }
    }

    /// How many connections at the same time.
    pub fn workers(&self) -> Result<Workers> {
        match (self.threads, self.processes) {
            (1, 0) => Ok(Workers::Alone),
            (threads @ 2..=64, 0) => Ok(Workers::Threads(threads)),
            (_, processes @ 1..=16) => Ok(Workers::Processes(processes)),
            _ => Err(Failure::new("--threads must be 1 to 64, --processes 1 to 16")),
        }
    }

    /// How many rounds.
    pub fn rounds(&self) -> usize {
        self.rounds.unwrap_or(ROUNDS).max(1)
    }

    /// For how long.
    pub fn patience(&self) -> Duration {
        Duration::from_secs(self.patience)
    }

    /// The volume.
    pub fn volume<'a>(&self, volumes: &'a Volumes) -> Result<&'a Volume> {
        self.on.volume(volumes)
    }
}

/// `80K` and the like.
fn bytes(text: &str) -> std::result::Result<u64, String> {
    let (digits, factor) = match text.to_ascii_uppercase().trim_end_matches(['B', 'I']) {
        number if number.ends_with('K') => (number[..number.len() - 1].to_owned(), 1 << 10),
        number if number.ends_with('M') => (number[..number.len() - 1].to_owned(), 1 << 20),
        number if number.ends_with('G') => (number[..number.len() - 1].to_owned(), 1 << 30),
        number => (number.to_owned(), 1),
    };
    let number: u64 = digits.trim().parse().map_err(|_| "a number, with K, M or G".to_owned())?;
    number.checked_mul(factor).ok_or_else(|| "too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_their_letters() {
        assert_eq!(bytes("10K"), Ok(10_240));
        assert_eq!(bytes("4GiB"), Ok(4 << 30));
        assert_eq!(bytes("100mb"), Ok(100 << 20));
        assert_eq!(bytes("7"), Ok(7));
        assert!(bytes("many").is_err());
    }
}
