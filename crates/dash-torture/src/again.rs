//! This program again, as another process that may be killed: how rings start workers, and where a
//! worker finds out what it is to do. What it does is in [`crate::worker`].

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;

const ROLE: &str = "DASH_WORKER_ROLE";
const FILE: &str = "DASH_WORKER_FILE";
const LIBRARY: &str = "DASH_WORKER_LIBRARY";
const SLOT: &str = "DASH_WORKER_SLOT";
const SEED: &str = "DASH_WORKER_SEED";
const ENGINE: &str = "DASH_WORKER_ENGINE";
const PARAMETERS: &str = "DASH_WORKER_PARAMETERS";
const CASE: &str = "DASH_WORKER_CASE";

/// Exit code of a worker that saw something that must never happen; its standard error says what.
pub const FOUND: u8 = 3;

/// How to start this program again as a worker.
#[derive(Debug, Clone)]
pub struct Again {
    /// The program.
    pub program: PathBuf,
    /// What makes it call [`crate::worker::run`].
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
            .env(ROLE, role)
            .env(FILE, file)
            .env(LIBRARY, library)
            .env(SLOT, task.slot.to_string())
            .env(SEED, task.seed.to_string())
            .env(ENGINE, &task.engine)
            .env(PARAMETERS, &task.parameters)
            .env(CASE, &task.case)
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
    /// The engine's name.
    pub engine: String,
    /// URI parameters for opening.
    pub parameters: String,
    /// One case only, where that is not empty.
    pub case: String,
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

/// The role that this process was started for, if it was started as a worker.
pub(crate) fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// What it is to do in that role.
pub(crate) fn assignment() -> Result<Assignment, String> {
    let path = |name: &str| {
        std::env::var_os(name).map(PathBuf::from).ok_or_else(|| format!("{name} is not set"))
    };
    let text = |name: &str| std::env::var(name).unwrap_or_default();
    Ok(Assignment {
        file: path(FILE)?,
        library: path(LIBRARY)?,
        task: Task {
            slot: number(SLOT)?,
            seed: number(SEED)?,
            engine: text(ENGINE),
            parameters: text(PARAMETERS),
            case: text(CASE),
        },
    })
}
