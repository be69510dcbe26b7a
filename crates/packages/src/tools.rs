//! What builds against an old glibc: Zig's linker, which knows the symbols of each version, and the
//! cargo command that calls it. Installed below one folder where they are not there yet.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::run::run;

/// Zig, from PyPI.
const ZIG: &str = "ziglang==0.17.1";
/// The cargo command, from crates.io.
const ZIGBUILD: &str = "0.24.1";

/// Where they are.
#[derive(Debug)]
pub struct Tools {
    /// A Python with the module `ziglang`.
    pub python: PathBuf,
    /// The program `cargo-zigbuild`.
    pub zigbuild: PathBuf,
}

impl Tools {
    /// Finds them below `packages`, the folder of all that is made, or installs them there, which
    /// takes a network and minutes.
    ///
    /// # Errors
    ///
    /// If they can't be had.
    pub fn install(packages: &Path) -> Result<Self> {
        let folder = packages.join("tools");
        let venv = folder.join("python");
        let python = venv.join("bin/python");
        let zig = format!(
            "import importlib.metadata as m; assert m.version('ziglang') == '{}'",
            &ZIG[9..]
        );
        let has_zig = || {
            Command::new(&python).args(["-c", &zig]).output().is_ok_and(|it| it.status.success())
        };
        if !has_zig() {
            run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
            let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", ZIG];
            run(Command::new(&python).args(pip))?;
        }
        let root = folder.join(format!("cargo-zigbuild-{ZIGBUILD}"));
        let zigbuild = root.join("bin/cargo-zigbuild");
        if !zigbuild.exists() {
            let install =
                ["install", "cargo-zigbuild", "--locked", "--version", ZIGBUILD, "--root"];
            run(Command::new("cargo").args(install).arg(&root))?;
        }
        Ok(Self { python, zigbuild })
    }
}
