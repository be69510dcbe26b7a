//! The `dash` program: what a person does with dash outside of SQL.
//!
//! One file per command; `bench` is the crate `dash_bench`. What commands share is in the crate
//! `dash_terminal` and in `ask`. What they know of dash's modes is in the table `engines`. It is a
//! library so that the man pages are made of its own description.
//! Exit codes: 0 all is well; 1 the answer is bad news (damage, a refusal, a lost commit) or
//! something was left undone; 2 the command could not be carried out.

#![forbid(unsafe_code)]

mod access;
mod ask;
mod backup;
mod convert;
mod demo;
mod doctor;
mod engine;
mod engines;
mod holders;
mod inspect;
mod integrity;
mod log;
mod prompt;
mod recover;
mod replay;
mod shadow;
mod shell;
mod top;
mod wal;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use dash_terminal::{extension, failure, interrupt, numbers, out, progress, split};
use nix::sys::signal::{SigSet, Signal};
use out::say_aside;

/// One-flush durable commits for unmodified SQLite.
#[derive(Parser)]
#[command(name = "sqlite-dash", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Shows what stock DELETE, stock WAL, dash shadow and dash wal are each best at on your disk
    Demo(demo::Arguments),
    /// Says whether a folder is a good place for databases, and what is wrong in it; only reads
    Doctor(doctor::Arguments),
    /// Says what a database's files are and what opening it would do; only reads
    Inspect(inspect::Arguments),
    /// Shows who writes, waits and reads, and how much; only looks
    Top(top::Arguments),
    /// Shows the commits that a database's log holds, and what they ran; only reads
    Log(log::Arguments),
    /// Runs again what the log has recorded, on a copy, and says where it comes to something else
    Replay(replay::Arguments),
    /// Puts a database under dash, or makes it an ordinary SQLite file again
    Convert(convert::Arguments),
    /// Copies a database into a plain file while others use it, and checks the copy
    Backup(backup::Arguments),
    /// Mends a database after a crash, or says why it takes a person to decide
    Recover(recover::Arguments),
    /// Opens an SQL prompt on a database with dash loaded
    Shell(shell::Arguments),
    /// Measures commits on your disk: dash beside stock SQLite's journal modes
    Bench(Box<dash_bench::Arguments>),
    #[command(hide = true)]
    DemoWriter(demo::writer::Arguments),
}

/// What a command came to, apart from [`failure::Failure`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All is well.
    Good,
    /// It was carried out, and the answer is bad news.
    Bad,
}

impl Outcome {
    fn of(good: bool) -> Self {
        if good { Self::Good } else { Self::Bad }
    }
}

/// What the program takes, for man pages and for shells.
pub fn command() -> clap::Command {
    Arguments::command()
}

/// The program.
pub fn main() -> ExitCode {
    // A limit on the size of files is an error that is told, and nothing stays behind.
    let _ = SigSet::from(Signal::SIGXFSZ).thread_block();
    let outcome = match Arguments::parse().command {
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Top(arguments) => top::run(&arguments),
        Command::Log(arguments) => log::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Convert(arguments) => convert::run(&arguments),
        Command::Backup(arguments) => backup::run(&arguments),
        Command::Recover(arguments) => recover::run(&arguments),
        Command::Shell(arguments) => shell::run(&arguments),
        Command::Bench(arguments) => dash_bench::run(&arguments).map(Outcome::of),
        Command::DemoWriter(arguments) => demo::writer::run(&arguments),
    };
    match outcome {
        Ok(Outcome::Good) => ExitCode::SUCCESS,
        Ok(Outcome::Bad) => ExitCode::from(1),
        Err(failure) => {
            say_aside!("dash: {failure}");
            ExitCode::from(2)
        }
    }
}
