//! The packages of npm: `sqlite-dash`, which is the same everywhere, and one for each system with
//! nothing but the library, of which npm installs the one that fits.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use serde_json::{Map, Value, json};

use crate::facts::{LIBRARY, LICENCE, NAME, SUMMARY, TARGETS, Target, VERSION};
use crate::library::Built;
use crate::package::{Package, Place, files, lay, licences, read};
use crate::run::run;

/// See the module.
pub const PACKAGE: Package = Package { name: "node", make };

fn make(built: &Built, place: &Place<'_>) -> Result<Vec<PathBuf>> {
    let mut common = files(place.sources)?;
    common.push(("package.json".to_owned(), pretty(&description())));
    let library = vec![
        (LIBRARY.to_owned(), read(&built.library)?),
        ("package.json".to_owned(), pretty(&description_for(&built.target))),
    ];
    let name = name_for(&built.target);
    Ok(vec![pack(place, NAME, common)?, pack(place, &name, library)?])
}

/// What the package for a system is called, as index.js has it.
fn name_for(target: &Target) -> String {
    format!("{NAME}-linux-{}-{}", target.processor.npm, target.abi())
}

/// What both kinds say of themselves.
fn common(name: &str) -> Map<String, Value> {
    let said =
        json!({"name": name, "version": VERSION, "description": SUMMARY, "license": LICENCE});
    said.as_object().cloned().unwrap_or_default()
}

fn description() -> Value {
    let mut said = common(NAME);
    let one = |target: &Target| (name_for(target), VERSION.into());
    let systems: Map<_, Value> = TARGETS.iter().map(one).collect();
    let more = json!({
        "keywords": ["sqlite", "better-sqlite3", "wal", "durability"],
        "main": "index.js",
        "types": "index.d.ts",
        "exports": {
            ".": {"types": "./index.d.ts", "default": "./index.js"},
            "./register": "./register.js",
            "./package.json": "./package.json",
        },
        "engines": {"node": ">=18"},
        "optionalDependencies": systems,
    });
    said.extend(more.as_object().cloned().unwrap_or_default());
    said.into()
}

fn description_for(target: &Target) -> Value {
    let mut said = common(&name_for(target));
    let more = json!({"os": ["linux"], "cpu": [target.processor.npm], "libc": [target.npm_libc()]});
    said.extend(more.as_object().cloned().unwrap_or_default());
    said.into()
}

fn pretty(value: &Value) -> Vec<u8> {
    format!("{value:#}\n").into_bytes()
}

/// Has npm pack a folder of those files and the licences.
fn pack(place: &Place<'_>, name: &str, mut files: Vec<(String, Vec<u8>)>) -> Result<PathBuf> {
    files.extend(licences(place.root)?);
    let folder = place.out.join("unpacked").join(name);
    lay(&folder, &files)?;
    let pack = ["pack", "--silent", "--pack-destination"];
    run(Command::new("npm")
        .args(pack)
        .arg(place.out)
        .arg(absolute(&folder)?)
        .stdout(std::io::stderr()))?;
    Ok(place.out.join(format!("{name}-{VERSION}.tgz")))
}

/// npm takes a path without a `/` at its beginning for a name in the registry.
fn absolute(path: &Path) -> Result<PathBuf> {
    Ok(path.canonicalize()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_names_one_for_each_system() {
        let said = description();
        let systems = said["optionalDependencies"].as_object().map(Map::len);
        assert_eq!(systems, Some(TARGETS.len()));
        let said = description_for(&TARGETS[2]);
        assert_eq!(said["name"], "sqlite-dash-linux-x64-musl");
        assert_eq!(said["libc"], json!(["musl"]));
    }
}
