//! The binaries that all packages have in common: `libdash.so` and the program `sqlite-dash`, built
//! against an old glibc, and looked at before anybody gets them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::elf::Elf;
use crate::facts::{ENTRIES, LIBRARY, LIBRARY_DEFAULT, Libc, NAME, Target};
use crate::run::run;
use crate::tools::Tools;

/// The binaries of one target.
#[derive(Debug)]
pub struct Built {
    /// For which system they are.
    pub target: Target,
    /// `libdash.so`.
    pub library: PathBuf,
    /// The program `sqlite-dash`.
    pub program: PathBuf,
    /// The oldest glibc that both run on; none where they ask for none.
    pub glibc: Option<(u32, u32)>,
    /// Whether they were there already, such as those of a test, and may be slow.
    pub taken: bool,
}

impl Built {
    /// Takes binaries that are there already, such as those of a test.
    ///
    /// # Errors
    ///
    /// If they are not for that target, or not what they should be.
    pub fn take(target: Target, folder: &Path) -> Result<Self> {
        let library = folder.join(LIBRARY);
        // Cargo leaves there the library that others depend on.
        let library = if library.exists() { library } else { folder.join("deps").join(LIBRARY) };
        Ok(Self { taken: true, ..Self::check(target, library, folder.join(NAME))? })
    }

    fn check(target: Target, library: PathBuf, program: PathBuf) -> Result<Self> {
        let mut glibc = None;
        for path in [&library, &program] {
            let found = Elf::read(path)?;
            ensure!(
                found.machine == target.processor.elf_machine,
                "{} is for another processor than {}",
                path.display(),
                target.triple
            );
            glibc = glibc.max(found.glibc);
        }
        let found = Elf::read(&library)?;
        ensure!(
            found.exports.iter().eq(&ENTRIES),
            "{} exports {:?}, and should {ENTRIES:?}",
            library.display(),
            found.exports
        );
        ensure!(found.stays, "{} could be unloaded (crates/libdash/build.rs)", library.display());
        Ok(Self { target, library, program, glibc, taken: false })
    }

    /// What a package for all machines must hold beyond that: an old glibc will do, and nothing of
    /// the compiler's has to be installed.
    fn check_for_everybody(&self) -> Result<()> {
        if let Libc::Gnu(major, minor) = self.target.libc {
            let floor = self.glibc.unwrap_or_default();
            ensure!(
                floor <= (major, minor),
                "glibc {}.{} is asked for, and {major}.{minor} has to do",
                floor.0,
                floor.1
            );
        }
        for path in [&self.library, &self.program] {
            let found = Elf::read(path)?;
            ensure!(
                found.needed.iter().any(|name| name.starts_with("libc.")),
                "{} has a C library linked in, and would load no other library",
                path.display()
            );
            // musl has no versions.
            if let (Libc::Gnu(..), Some(symbol)) = (self.target.libc, found.nowhere.first()) {
                bail!("{} asks for {symbol}, which that glibc lacks", path.display());
            }
            let more = found.needed.iter().find(|name| {
                !["libc.", "libm.", "libdl.", "libpthread.", "librt.", "ld-linux"]
                    .iter()
                    .any(|own| name.starts_with(own))
            });
            if let Some(more) = more {
                bail!("{} needs {more}", path.display());
            }
        }
        Ok(())
    }
}

/// Builds them below `packages`, the folder of all that is made.
///
/// # Errors
///
/// If they can't be built, or are not what packages need.
pub fn build(root: &Path, packages: &Path, target: Target) -> Result<Built> {
    let tools = Tools::install(packages)?;
    let goal = match target.libc {
        Libc::Gnu(major, minor) => format!("{}.{major}.{minor}", target.triple),
        Libc::Musl => target.triple.to_owned(),
    };
    let made = packages.join("build");
    let mut cargo = Command::new(&tools.zigbuild);
    cargo.args(["zigbuild", "--release", "--locked", "--package", "libdash"]);
    cargo.args(["--package", "dash-cli", "--target", &goal, "--target-dir"]).arg(&made);
    cargo.env("CARGO_ZIGBUILD_PYTHON_PATH", &tools.python).current_dir(root);
    if target.libc == Libc::Musl {
        // A library can't be loaded into a program that has another C library linked in, as Zig
        // would do with programs.
        cargo.env("RUSTFLAGS", "-C target-feature=-crt-static -C link-arg=-dynamic");
    }
    run(&mut cargo)?;
    let folder = made.join(target.triple).join("release");
    let built = Built::check(target, folder.join(LIBRARY), folder.join(NAME))?;
    built.check_for_everybody()?;
    // A hard link: PHP follows symbolic ones, and would load the file by its other name.
    let link = folder.join(LIBRARY_DEFAULT);
    if link.exists() {
        std::fs::remove_file(&link).with_context(|| format!("removing {}", link.display()))?;
    }
    std::fs::hard_link(&built.library, &link)
        .with_context(|| format!("linking {}", link.display()))?;
    Ok(built)
}
