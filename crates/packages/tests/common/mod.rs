//! Packages that are made of what cargo has built for the tests: those for everybody are made of
//! another build, which takes Zig and minutes.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use dash_testing::{Need, skip};
use tempfile::TempDir;

/// A package, in a folder of the test's own.
pub struct Made {
    /// Where there is room for more.
    pub folder: TempDir,
    /// Its files.
    pub files: Vec<PathBuf>,
}

/// Makes the package of that name; none if there is nothing to pack.
pub fn make(package: &str) -> Option<Made> {
    let own = Path::new(env!("CARGO_BIN_EXE_dash-packages"));
    let built = own.parent().expect("a program lies in a folder");
    if !built.join("sqlite-dash").exists() {
        skip(Need::Program, "cargo has not built sqlite-dash: it does for --workspace");
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut maker = Command::new(own);
    maker.args([package, "--built"]).arg(built).arg("--out").arg(folder.path());
    let said = done(&mut maker);
    // The first line is that of the library.
    let files = said.lines().skip(1).map(PathBuf::from).collect();
    Some(Made { folder, files })
}

/// What a program says that has to succeed.
pub fn done(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{command:?}: {}\n{out}{err}", output.status);
    out.into_owned()
}
