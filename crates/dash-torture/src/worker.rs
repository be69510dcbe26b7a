//! This program again, as another process that may be killed: how rings start workers, and where a
//! worker finds out what it is to do.
//!
//! A program that runs rings has to call [`run`] when it is started with what its [`Again`] says:
//! `dash` in a hidden subcommand, a test in an ignored test.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;

/// Exit code of a worker that saw something that must never happen; its standard error says what.
pub const FOUND: u8 = 3;

const VARIABLE: &str = "DASH_TORTURE_WORKER";

/// How to start this program again as a worker.
#[derive(Debug, Clone)]
pub struct Again {
    /// The program.
    pub program: PathBuf,
    /// What makes it call [`run`].
    pub arguments: Vec<OsString>,
}

impl Again {
    /// This very program with these arguments.
    ///
    /// # Errors
    ///
    /// If the system does not say which program this is.
    pub fn this(arguments: &[&str]) -> std::io::Result<Self> {
        let arguments = arguments.iter().map(OsString::from).collect();
        Ok(Self { program: std::env::current_exe()?, arguments })
    }

    /// A worker on a database: its standard output is a pipe, its standard error too.
    pub(crate) fn command(&self, role: &str, file: &Path, library: &Path, task: &Task) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            // Ctrl-C is for the driver; it ends its workers itself.
            .process_group(0)
            .env(VARIABLE, role)
            .env("DASH_TORTURE_FILE", file)
            .env("DASH_TORTURE_LIBRARY", library)
            .env("DASH_TORTURE_SLOT", task.slot.to_string())
            .env("DASH_TORTURE_SEED", task.seed.to_string())
            .env("DASH_TORTURE_PARAMETERS", &task.parameters)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

/// What a worker is told besides its role and its database.
#[derive(Debug, Clone, Default)]
pub(crate) struct Task {
    /// Which of several it is.
    pub slot: usize,
    /// Of all its random choices.
    pub seed: u64,
    /// URI parameters for opening.
    pub parameters: String,
}

/// What this process was started for.
#[derive(Debug, Clone)]
pub(crate) struct Assignment {
    pub file: PathBuf,
    pub library: PathBuf,
    pub task: Task,
}

fn number<T: FromStr>(name: &str) -> Result<T, String> {
    let text = std::env::var(name).map_err(|error| format!("{name}: {error}"))?;
    text.parse().map_err(|_| format!("{name}: {text} is no number"))
}

fn assignment() -> Result<Assignment, String> {
    let path = |name: &str| {
        std::env::var_os(name).map(PathBuf::from).ok_or_else(|| format!("{name} is not set"))
    };
    Ok(Assignment {
        file: path("DASH_TORTURE_FILE")?,
        library: path("DASH_TORTURE_LIBRARY")?,
        task: Task {
            slot: number("DASH_TORTURE_SLOT")?,
            seed: number("DASH_TORTURE_SEED")?,
            parameters: std::env::var("DASH_TORTURE_PARAMETERS").unwrap_or_default(),
        },
    })
}

/// Plays the part that this process was started for, and answers the exit code to end with; `None`
/// if it was not started as a worker.
#[must_use]
pub fn run() -> Option<u8> {
    let role = std::env::var(VARIABLE).ok()?;
    let done = assignment().and_then(|assignment| {
        let of_faults = crate::faults::worker(&role, &assignment);
        of_faults.unwrap_or_else(|| crate::kill::worker(&role, &assignment))
    });
    Some(match done {
        Ok(()) => 0,
        Err(what) => {
            eprintln!("{what}");
            FOUND
        }
    })
}
