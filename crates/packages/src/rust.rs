//! The crates: `sqlite-dash` and those of the workspace that it is made of, packed as the registry
//! wants them. `cargo publish --workspace` publishes the same ones.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::library::Built;
use crate::package::{Package, Place};
use crate::run::run;

/// See the module.
pub const PACKAGE: Package = Package { name: "rust", make };

fn make(_: &Built, place: &Place<'_>) -> Result<Vec<PathBuf>> {
    let packages = published(place)?;
    let build = place.out.join("build");
    let mut cargo = Command::new("cargo");
    // They are compiled by those who try them. Nothing of this needs the registry.
    cargo.args(["package", "--quiet", "--offline", "--no-verify", "--allow-dirty", "--target-dir"]);
    cargo.arg(&build).args(packages.iter().flat_map(|(name, _)| ["--package", name]));
    run(cargo.current_dir(place.root))?;
    let mut made = Vec::new();
    for (name, version) in packages {
        let file = format!("{name}-{version}.crate");
        let path = place.out.join(&file);
        std::fs::copy(build.join("package").join(&file), &path).context(file)?;
        made.push(path);
    }
    Ok(made)
}

/// Names and versions of the crates that are not kept from the registry.
fn published(place: &Place<'_>) -> Result<Vec<(String, String)>> {
    let arguments = ["metadata", "--no-deps", "--format-version", "1", "--offline"];
    let said = Command::new("cargo").args(arguments).current_dir(place.root).output();
    let said = said.context("starting cargo")?;
    ensure!(said.status.success(), "cargo: {}", String::from_utf8_lossy(&said.stderr));
    let said: Value = serde_json::from_slice(&said.stdout)?;
    let packages = said["packages"].as_array().context("cargo names no packages")?;
    let text = |package: &Value, key: &str| package[key].as_str().unwrap_or_default().to_owned();
    let is_published = |package: &&Value| package["publish"].is_null();
    Ok(packages
        .iter()
        .filter(is_published)
        .map(|package| (text(package, "name"), text(package, "version")))
        .collect())
}
