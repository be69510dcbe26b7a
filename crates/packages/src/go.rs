//! The Go module: the driver's sources, and dash as a static library, which cgo links into the
//! program. So the program stays one file, and may be linked statically as a whole; a library
//! inside that is loaded when it runs would need a file, a folder where files may be run, and a C
//! library that loads any.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::facts::{ENTRIES, Target};
use crate::library::Built;
use crate::package::{Package, Place, files, lay, licences, read};
use crate::run::run;

/// See the module.
pub const PACKAGE: Package = Package { name: "go", make };

fn make(built: &Built, place: &Place<'_>) -> Result<Vec<PathBuf>> {
    let archive = archive(built, place)?;
    let mut module = files(place.sources)?;
    let name = format!("libdash_{}_{}.a", built.target.processor.go, built.target.abi());
    module.push((name, read(&archive)?));
    module.extend(licences(place.root)?);
    let folder = place.out.join("module");
    lay(&folder, &module)?;
    Ok(vec![folder])
}

/// Builds the static library, which has one object, in which only one name is seen: a program may
/// link other libraries that are written in Rust.
fn archive(built: &Built, place: &Place<'_>) -> Result<PathBuf> {
    let build = place.out.join("build");
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
    cargo.args(["--profile", profile, "--target", built.target.triple, "--target-dir"]).arg(&build);
    run(cargo.current_dir(place.root))?;
    let whole = build.join(built.target.triple).join(folder).join("libdash.a");
    let object = build.join("dash.o");
    let entry = ENTRIES[0];
    let mut ld = Command::new(tool(&built.target, "ld"));
    ld.args(["-r", "--gc-sections", "-e", entry, "-u", entry, "-o"]).args([&object, &whole]);
    run(&mut ld)?;
    let mut objcopy = Command::new(tool(&built.target, "objcopy"));
    objcopy.args(["--strip-debug", "--keep-global-symbol", entry]);
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
