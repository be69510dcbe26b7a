//! Programs that use a package, and what they leave.

use std::path::{Path, PathBuf};
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

/// The folder of SQLite's own sources, which cargo has for rusqlite.
pub fn amalgamation() -> PathBuf {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["metadata", "--format-version", "1", "--offline", "--locked"]);
    let said: serde_json::Value = serde_json::from_str(&done(&mut cargo)).expect("JSON");
    let packages = said["packages"].as_array().expect("a list");
    let found = packages.iter().find(|package| package["name"] == "libsqlite3-sys");
    let manifest = found.and_then(|package| package["manifest_path"].as_str());
    PathBuf::from(manifest.expect("a path")).with_file_name("sqlite3")
}
