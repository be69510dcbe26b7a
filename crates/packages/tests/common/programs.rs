//! Programs that use a package, and what they leave.

use std::path::Path;
use std::process::{Command, Stdio};

use super::done;

/// What a program says that is killed in the end, or kills itself.
pub fn killed(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(!output.status.success(), "{command:?}: it ended well\n{out}{err}");
    assert!(err.is_empty(), "{command:?}: {err}");
    out.into_owned()
}

/// What stock SQLite reads, by its own program.
pub fn stock(folder: &Path, database: &str, sql: &str) -> String {
    done(Command::new("sqlite3").args([database, sql]).current_dir(folder))
}
