//! Packages that are made of what cargo has built for the tests, or of the binaries in the folder
//! that `DASH_BUILT` names: those for everybody take Zig and minutes.

pub mod programs;
pub mod python;

use std::path::PathBuf;
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
    let own = PathBuf::from(std::env::var_os("CARGO_BIN_EXE_dash-packages").expect("cargo says"));
    let beside = own.parent().expect("a program lies in a folder");
    let built = std::env::var_os("DASH_BUILT").map_or_else(|| beside.to_owned(), PathBuf::from);
    if !built.join("sqlite-dash").exists() {
        skip(Need::Program, "cargo has not built sqlite-dash: it does for --workspace");
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut maker = Command::new(&own);
    let abi = if cfg!(target_env = "musl") { "musl" } else { "gnu" };
    let here = format!("{}-unknown-linux-{abi}", std::env::consts::ARCH);
    maker.args([package, "--target", &here, "--out"]).arg(folder.path()).arg("--built").arg(built);
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
