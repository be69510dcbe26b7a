//! `dash-packages`: makes what people install, in each language, from one build. It is not shipped.
//!
//! `facts` holds names, versions and systems, once for all packages; `library` builds the binaries
//! with `tools`, and looks at them by `elf`. Each package is a file here, whose sources lie in a
//! folder of its name beside `src`, and a line in [`PACKAGES`].

#![forbid(unsafe_code)]

mod archive;
mod deb;
mod elf;
mod facts;
mod go;
mod java;
mod library;
mod node;
mod package;
mod pages;
mod php;
mod python;
mod ruby;
mod run;
mod rust;
mod tarball;
mod tools;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use clap::builder::PossibleValuesParser;

use facts::TARGETS;
use library::Built;
use package::{Package, Place};
use tools::Tools;

/// All of them, in the order in which they are made.
const PACKAGES: &[Package] = &[
    python::PACKAGE,
    node::PACKAGE,
    go::PACKAGE,
    rust::PACKAGE,
    java::PACKAGE,
    ruby::PACKAGE,
    php::PACKAGE,
    deb::PACKAGE,
    tarball::PACKAGE,
];

/// Makes the packages of dash, in target/packages.
#[derive(Parser)]
#[command(name = "dash-packages", version, max_term_width = 100)]
struct Arguments {
    /// Which ones; `library` only builds the binaries, `tools` only installs what builds them
    #[arg(required = true, value_parser = PossibleValuesParser::new(names()))]
    packages: Vec<String>,
    /// For which system
    #[arg(long, default_value = TARGETS[0].triple, value_parser = PossibleValuesParser::new(TARGETS.map(|target| target.triple)))]
    target: String,
    /// Packs the binaries of this folder, and builds none
    #[arg(long, value_name = "FOLDER")]
    built: Option<PathBuf>,
    /// Where they are left, in place of target/packages
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

/// What can be asked for.
fn names() -> impl Iterator<Item = &'static str> {
    ["all", "library", "tools"].into_iter().chain(PACKAGES.iter().map(|package| package.name))
}

fn make(arguments: &Arguments) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root =
        root.canonicalize().context("finding the sources, which this program is made with")?;
    let packages = target_folder(&root)?.join("packages");
    let shared = packages.join("static");
    let out = arguments.out.clone().unwrap_or(packages);
    if arguments.packages == ["tools"] {
        return Tools::install(&out).map(drop);
    }
    let target = TARGETS.into_iter().find(|target| target.triple == arguments.target);
    let target = target.context("no such target")?;
    let built = match &arguments.built {
        Some(folder) => Built::take(target, folder)?,
        None => library::build(&root, &out, target)?,
    };
    println!("{}", built.library.display());
    let asked = |name: &str| arguments.packages.iter().any(|word| word == name || word == "all");
    for package in PACKAGES.iter().filter(|package| asked(package.name)) {
        let sources = root.join("crates/packages").join(package.name);
        let folder = out.join(package.name);
        std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        let place = Place { root: &root, sources: &sources, out: &folder, shared: &shared };
        let made = (package.make)(&built, &place).with_context(|| package.name.to_owned())?;
        for file in made {
            println!("{}", file.display());
        }
    }
    Ok(())
}

/// Where cargo leaves what it makes of these sources.
fn target_folder(root: &Path) -> Result<PathBuf> {
    let arguments = ["metadata", "--no-deps", "--format-version", "1", "--offline"];
    let said = Command::new("cargo").args(arguments).current_dir(root).output();
    let said = said.context("starting cargo")?;
    ensure!(said.status.success(), "cargo: {}", String::from_utf8_lossy(&said.stderr));
    let said: serde_json::Value = serde_json::from_slice(&said.stdout)?;
    Ok(said["target_directory"].as_str().context("cargo names no folder")?.into())
}

fn main() -> ExitCode {
    match make(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dash-packages: {error:#}");
            ExitCode::FAILURE
        }
    }
}
