//! `dash-torture` ends with a verdict, and refuses a run that would try nothing.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

use std::path::PathBuf;
use std::process::{Command, Output};

use dash_testing::long::moment;
use dash_testing::{Need, skip};

/// The program under test. Asked for when a test runs: a shell between cargo and rustc
/// (`.cargo/rustc`) drops a name with a hyphen.
fn program() -> PathBuf {
    std::env::var_os("CARGO_BIN_EXE_dash-torture").unwrap().into()
}

/// What a run of it came to.
struct Run(Output);

fn torture(arguments: &[&[&str]]) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(program());
    Run(command.args(arguments.concat()).current_dir(folder.path()).output().unwrap())
}

impl Run {
    fn out(&self) -> String {
        String::from_utf8_lossy(&self.0.stdout).into_owned()
    }

    fn errors(&self) -> String {
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }

    /// Asserts the exit code, and that something is said in an error.
    fn is(self, code: i32, error: &str) -> Self {
        let (out, errors) = (self.out(), self.errors());
        assert_eq!(self.0.status.code(), Some(code), "{out}{errors}");
        assert!(errors.contains(error), "{error:?} is not in:\n{errors}");
        self
    }
}

#[test]
fn a_name_of_nothing_stops_before_anything_runs() {
    for engine in ["bogus", "shadow/singel", "shadow/single/513"] {
        let engine = ["--engine", engine];
        for ring in ["sim", "fs", "faults", "kill"] {
            let run = torture(&[&["--ring", ring, "--seconds", "1"], &engine]);
            let run = run.is(2, "there are");
            assert!(run.errors().contains("shadow/"), "{}", run.errors());
            assert_eq!(run.out(), "");
        }
        torture(&[&engine]).is(2, "shadow/single");
    }
}

#[test]
fn a_folder_that_is_not_there_is_one_error() {
    let run = torture(&[&["--ring", "kill", "--dir", "missing", "--seconds", "1"]]);
    let run = run.is(2, "missing");
    assert_eq!(run.errors().lines().count(), 1, "{}", run.errors());
    assert_eq!(run.out(), "");
}

#[test]
fn a_run_that_tried_nothing_is_no_good_news() {
    torture(&[&["--seconds", "0"]]).is(2, "");
    // The page size of the case is not that of the engine.
    let case = ["--engine", "shadow/single/4096", "--case", "pair/page=512"];
    let run = torture(&[&["--ring", "sim"], &case]).is(2, "nothing was tried");
    assert!(!run.out().contains("no failure"), "{}", run.out());
}

#[test]
fn a_run_ends_with_a_verdict() {
    let case = ["--engine", "shadow/single/512", "--case", "attached/page=512"];
    let run = torture(&[&["--ring", "sim"], &case]).is(0, "");
    assert_eq!(run.out().lines().last(), Some("no failure in 1 case"), "{}", run.out());
}

/// On files that somebody has forged no tool crashes, touches what is others', or prints commands
/// to a terminal or a shell. SEC S2-2, S2-3, S2-7, S2-10
#[test]
fn tools_do_no_harm_with_forged_files() {
    if !program().with_file_name("sqlite-dash").exists() {
        skip(Need::Program, "cargo has not built sqlite-dash: it does for --workspace");
        return;
    }
    let part = ["--ring", "faults", "--engine", "wal/tools", "--seconds", moment("4", "20")];
    torture(&[&part]).is(0, "");
}
