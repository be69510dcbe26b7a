//! Other processes: a test program started again in another role, and hosts in other languages.
//! They talk in lines of a word and a value.

use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// Names the role and its argument in the environment.
const ROLE: &str = "DASH_SUITE_ROLE";

/// The argument that this process was started with, if it was started for the role `name`. A role
/// is an ignored test of that name.
pub fn role(name: &str) -> Option<String> {
    let value = std::env::var(ROLE).ok()?;
    let (role, argument) = value.split_once('=')?;
    (role == name).then(|| argument.to_owned())
}

/// Gives `command`, which ends up in this test program, the role `name`.
pub fn cast(command: &mut Command, name: &str, argument: impl AsRef<OsStr>) {
    let mut value = OsString::from(format!("{name}="));
    value.push(argument);
    command.args(["--exact", name, "--nocapture", "--ignored"]).env(ROLE, value);
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

/// A process that plays a role.
pub struct Role {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Role {
    /// This test program again, in the role `name`.
    pub fn start(name: &str, argument: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("a test knows its own file"));
        cast(&mut command, name, argument);
        Self::spawn(&mut command)
    }

    /// Any program.
    pub fn spawn(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
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

/// A Python script with dash loaded, where `sys.argv[2:]` are the arguments, `open(path)` opens
/// through dash in autocommit mode, and `say(word, value)` talks to a [`Role`]. `None`, and a line
/// that says so, where no Python has an `sqlite3` that loads extensions.
pub fn python(script: &str, arguments: &[&Path]) -> Option<Command> {
    const PROBE: &str = "import sqlite3; sqlite3.connect(':memory:').enable_load_extension(True)";
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
    let loads = |name: &&str| {
        let found = Command::new(name).args(["-c", PROBE]).output();
        found.is_ok_and(|found| found.status.success())
    };
    let Some(name) = ["/usr/bin/python3", "python3"].into_iter().find(loads) else {
        eprintln!("skipped: no python3 here has an sqlite3 that loads extensions");
        return None;
    };
    let mut command = Command::new(name);
    command.arg("-c").arg(format!("{HEAD}{script}")).arg(super::library()).args(arguments);
    Some(command)
}
