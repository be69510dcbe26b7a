//! The wheel, installed.

#![allow(dead_code, reason = "each program of tests takes some of it")]

use std::path::{Path, PathBuf};
use std::process::Command;

use dash_testing::drivers::installed;
use dash_testing::machine::runs;
use dash_testing::{Need, skip};

use super::{Made, done, make};

/// Debian's Python, which loads extensions.
pub const PYTHON: &str = "/usr/bin/python3";

/// The wheel where a Python finds it, and a folder to work in.
pub struct Installed {
    made: Made,
    /// The Python.
    pub python: PathBuf,
    /// Where the package lies.
    pub packages: PathBuf,
}

impl Installed {
    /// Into an empty environment, by one command.
    pub fn alone() -> Option<Self> {
        if !runs(PYTHON, &["-c", "import ensurepip, sqlite3"]) {
            skip(Need::Python, "there is no Python with venv and sqlite3");
            return None;
        }
        let made = make("python")?;
        let venv = made.folder.path().join("venv");
        done(Command::new(PYTHON).args(["-m", "venv"]).arg(&venv));
        let mut it = Self { made, python: venv.join("bin/python"), packages: PathBuf::new() };
        it.pip(&[]);
        let said = it.says("import sqlite_dash; print(sqlite_dash.__path__[0])");
        it.packages = Path::new(said.trim()).parent().expect("a folder").to_owned();
        Some(it)
    }

    /// Unpacked, which is quicker, for Debian's Python.
    pub fn unpacked() -> Option<Self> {
        if !runs(PYTHON, &["-c", "import sqlite3"]) {
            skip(Need::Python, "there is no Python with sqlite3");
            return None;
        }
        let made = make("python")?;
        let packages = made.folder.path().join("packages");
        let it = Self { made, python: PYTHON.into(), packages };
        let mut unzip = it.run(PYTHON);
        done(unzip.args(["-m", "zipfile", "-e"]).args([&it.made.files[0], &it.packages]));
        Some(it)
    }

    /// Beside Django and others, which are left as they are.
    pub fn beside_drivers() -> Option<Self> {
        let python = installed(Need::PythonDrivers, "python/bin/python")?;
        let made = make("python")?;
        let packages = made.folder.path().join("packages");
        let it = Self { made, python, packages };
        it.pip(&["--no-deps", "--target", &it.packages.to_string_lossy()]);
        Some(it)
    }

    fn pip(&self, options: &[&str]) {
        let pip = ["-m", "pip", "install", "--no-index", "--disable-pip-version-check", "-q"];
        done(self.run(&self.python).args(pip).args(options).arg(&self.made.files[0]));
    }

    /// The folder to work in.
    pub fn folder(&self) -> &Path {
        self.made.folder.path()
    }

    /// A program in that folder, in no other environment.
    pub fn run(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.current_dir(self.folder());
        for name in ["PYTHONPATH", "DASH_LIBRARY", "DASH_ERRORS", "SQLITE_DASH"] {
            command.env_remove(name);
        }
        command
    }

    /// What a script says in a Python that finds the package.
    pub fn says_in(&self, python: impl AsRef<Path>, script: &str) -> String {
        done(self.with(python).args(["-B", "-c", script]))
    }

    /// A program that finds the package.
    pub fn with(&self, program: impl AsRef<Path>) -> Command {
        let mut command = self.run(program);
        command.env("PYTHONPATH", &self.packages).env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }

    /// The same in the Python here.
    pub fn says(&self, script: &str) -> String {
        self.says_in(&self.python, script)
    }

    /// What stock SQLite reads.
    pub fn stock(&self, database: &str, sql: &str) -> String {
        let script = "import sqlite3, sys
print(*sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchone())";
        done(self.run(PYTHON).args(["-c", script, database, sql])).trim().to_owned()
    }
}
