//! Other processes: a test program started again in another role, and hosts in other languages.
//! They talk in lines of a word and a value.

use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{PoisonError, RwLock};

use crate::extension::library;
use crate::machine::runs;
use crate::{Need, skip};

/// Names the role and its argument in the environment.
const ROLE: &str = "DASH_TEST_ROLE";

/// The argument that this process was started with, if it was started for the role `name`. A role
/// is an ignored test of that name.
pub fn role(name: &str) -> Option<String> {
    role_bytes(name).map(|argument| argument.into_string().expect("text"))
}

/// The same of an argument that is any bytes.
pub fn role_bytes(name: &str) -> Option<OsString> {
    let value = std::env::var_os(ROLE)?;
    let at = value.as_bytes().iter().position(|byte| *byte == b'=')?;
    let (role, argument) = value.as_bytes().split_at(at);
    (role == name.as_bytes()).then(|| OsString::from_vec(argument[1..].to_vec()))
}

/// Gives `command`, which ends up in this test program, the role `name`.
pub fn cast(command: &mut Command, name: &str, argument: impl AsRef<OsStr>) {
    let mut value = OsString::from(format!("{name}="));
    value.push(argument);
    command.args(["--exact", name, "--nocapture", "--ignored"]).env(ROLE, value);
}

/// This test program again, in the role `name`.
pub fn again(name: &str, argument: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a test knows its own file"));
    cast(&mut command, name, argument);
    command
}

/// Says a line to the process that started this one.
pub fn say(word: &str, value: impl Display) {
    let mut output = std::io::stdout().lock();
    // The test harness leaves a line without an end behind.
    writeln!(output, "\n{word}: {value}").expect("somebody listens");
    output.flush().expect("somebody listens");
}

/// Waits for a line from the process that started this one; `None` when it is gone.
pub fn told() -> Option<String> {
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line).expect("text");
    (read > 0).then(|| line.trim_end().to_owned())
}

/// Taken while a process is started, and by whoever must not meet that.
static STARTING: RwLock<()> = RwLock::new(());

/// Starts a process.
pub fn start(command: &mut Command) -> Child {
    let _starting = STARTING.read().unwrap_or_else(PoisonError::into_inner);
    // It returns when the new process has the files that it is meant to have, and no others.
    command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Does something while no other thread starts a process. A new process has all files of this one
/// open for a moment, so a database that is closed in that moment is one that somebody has open.
pub fn while_nobody_starts<T>(something: impl FnOnce() -> T) -> T {
    let _nobody = STARTING.write().unwrap_or_else(PoisonError::into_inner);
    something()
}

/// A process that plays a role. It is killed when this goes out of scope.
pub struct Role {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Role {
    /// This test program again, in the role `name`.
    pub fn start(name: &str, argument: impl AsRef<OsStr>) -> Self {
        Self::spawn(&mut again(name, argument))
    }

    /// Any program.
    pub fn spawn(command: &mut Command) -> Self {
        let mut child = start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let output = BufReader::new(child.stdout.take().expect("piped"));
        Self { child, output }
    }

    /// The value of the next line that begins with `word`; others are passed over. `None` at the
    /// end.
    pub fn listen(&mut self, word: &str) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line).expect("text") == 0 {
                return None;
            }
            if let Some((found, value)) = line.split_once(": ")
                && found == word
            {
                return Some(value.trim_end().to_owned());
            }
        }
    }

    /// The same, of a process that has to say it.
    pub fn hear(&mut self, word: &str) -> String {
        self.listen(word).unwrap_or_else(|| panic!("the process ended without saying {word}"))
    }

    /// Sends a line.
    pub fn tell(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().expect("piped"), "{line}").expect("the process listens");
    }

    /// Ends it as `kill -9` does.
    pub fn kill(mut self) {
        self.end();
    }

    /// The same; what it had said until then with `word`, and nobody has heard yet.
    pub fn kill_and_hear(mut self, word: &str) -> Vec<String> {
        self.end();
        std::iter::from_fn(|| self.listen(word)).collect()
    }

    fn end(&mut self) {
        self.child.kill().expect("it is ours");
        self.child.wait().expect("it is ours");
    }

    /// Waits for its end, which has to be a success.
    pub fn finish(mut self) {
        drop(self.child.stdin.take());
        while self.listen("").is_some() {}
        let status = self.child.wait().expect("it is ours");
        assert!(status.success(), "the process failed: {status}");
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Debian's Python comes first: its SQLite can load extensions.
const PYTHONS: [&str; 2] = ["/usr/bin/python3", "python3"];

/// The first Python that runs `probe`; otherwise the test is skipped.
pub fn python_that_runs(probe: &str) -> Option<&'static str> {
    let found = PYTHONS.into_iter().find(|name| runs(name, &["-c", probe]));
    if found.is_none() {
        skip(Need::Python, &format!("no python3 here runs {probe}"));
    }
    found
}

/// Every Python that runs `probe`; where there is none the test is skipped.
pub fn pythons_that_run(probe: &str) -> Vec<&'static str> {
    let first = python_that_runs(probe);
    let others = PYTHONS.into_iter().filter(|name| Some(*name) != first);
    let others = others.filter(|name| first.is_some() && runs(name, &["-c", probe]));
    first.into_iter().chain(others).collect()
}

/// What a Python must run to load extensions into its SQLite.
pub const LOADS_EXTENSIONS: &str =
    "import sqlite3; sqlite3.connect(':memory:').enable_load_extension(True)";

/// A Python script with dash loaded, where `sys.argv[2:]` are the arguments, `open(path)` opens
/// through dash in autocommit mode, and `say(word, value)` talks to a [`Role`]. `None`, and the
/// test is skipped, where no Python has an `sqlite3` that loads extensions.
pub fn python(script: &str, arguments: &[&Path]) -> Option<Command> {
    const HEAD: &str = "
import os, sqlite3, sys
scratch = sqlite3.connect(':memory:')
scratch.enable_load_extension(True)
scratch.load_extension(sys.argv[1])
def open(path, more=''):
    return sqlite3.connect('file:' + path + '?vfs=dash' + more, uri=True, isolation_level=None, timeout=30)
def say(word, value=''):
    print(word + ': ' + str(value), flush=True)
";
    let mut command = Command::new(python_that_runs(LOADS_EXTENSIONS)?);
    command.arg("-c").arg(format!("{HEAD}{script}")).arg(library()).args(arguments);
    Some(command)
}
