//! dash as a static library, for programs that link SQLite themselves. It has one object, in which
//! only the entry points are seen: a program may link other libraries that are written in Rust.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::facts::{ENTRIES, Target};
use crate::library::Built;
use crate::package::Place;
use crate::run::run;

/// The entries that are seen. The third one tells by the name of a file what is wanted of it.
const SEEN: [&str; 2] = [ENTRIES[0], ENTRIES[1]];

/// Builds it into the package's folder.
///
/// # Errors
///
/// If that fails.
pub fn build(built: &Built, place: &Place<'_>) -> Result<PathBuf> {
    let build = place.out.join("build");
    std::fs::create_dir_all(&build).with_context(|| format!("making {}", build.display()))?;
    let (profile, folder) = if built.taken { ("dev", "debug") } else { ("release", "release") };
    let mut cargo = Command::new("cargo");
    cargo.args([
        "rustc",
        "--quiet",
        "--locked",
        "--package",
        "libdash",
        "--crate-type",
        "staticlib",
    ]);
    cargo.args(["--profile", profile, "--target", built.target.triple, "--target-dir"]);
    cargo.arg(place.shared);
    run(cargo.current_dir(place.root))?;
    let whole = place.shared.join(built.target.triple).join(folder).join("libdash.a");
    let object = build.join("dash.o");
    let mut ld = Command::new(tool(&built.target, "ld"));
    ld.args(["-r", "--gc-sections", "-e", SEEN[0], "-u", SEEN[0], "-u", SEEN[1], "-o"]);
    ld.args([&object, &whole]);
    run(&mut ld)?;
    let mut objcopy = Command::new(tool(&built.target, "objcopy"));
    objcopy.arg("--strip-debug").args(SEEN.map(|entry| format!("--keep-global-symbol={entry}")));
    objcopy.args(["-R", ".llvmbc", "-R", ".llvmcmd"]).arg(&object);
    run(&mut objcopy)?;
    let archive = build.join("libdash.a");
    if archive.exists() {
        std::fs::remove_file(&archive)
            .with_context(|| format!("removing {}", archive.display()))?;
    }
    run(Command::new(tool(&built.target, "ar")).args(["rcsD"]).args([&archive, &object]))?;
    Ok(archive)
}

/// A program of binutils for that processor.
fn tool(target: &Target, name: &str) -> String {
    if target.processor.name == std::env::consts::ARCH {
        return name.to_owned();
    }
    format!("{}-linux-gnu-{name}", target.processor.name)
}
