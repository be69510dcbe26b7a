//! Tidiness that a machine can keep: what every file begins with, how long it may be, words that
//! have no place in it, README commands that exist, invariants that code upholds and tests attack.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Lines a file may have.
const LONGEST: usize = 400;
/// Words that mean "not finished"; in two halves, so that this file passes its own test.
const UNFINISHED: [(&str, &str); 4] =
    [("TO", "DO"), ("FIX", "ME"), ("unimpl", "emented!"), ("to", "do!(")];
/// Folders that exist on one machine only.
const PLACES: [(&str, &str); 2] = [("/wo", "rk/"), ("/ro", "ot/")];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file below `folder` whose name ends so; build output aside.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !matches!(name.as_str(), "target" | "node_modules" | ".git") {
            found.extend(files(&path, ending));
        } else if path.is_file() && name.ends_with(ending) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn sources() -> Vec<PathBuf> {
    ["crates", "tests", "examples", "benches"]
        .iter()
        .flat_map(|folder| files(&root().join(folder), ".rs"))
        .collect()
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn none(offenders: &[String], rule: &str) {
    assert!(offenders.is_empty(), "{rule}:\n  {}", offenders.join("\n  "));
}

#[test]
fn every_source_file_says_first_what_it_is() {
    let silent = |path: &PathBuf| {
        let text = text(path);
        let first = text.lines().find(|line| !line.is_empty()).unwrap_or_default();
        !(first.starts_with("//!") || first.starts_with("#![doc = include_str!("))
    };
    let offenders: Vec<_> = sources().into_iter().filter(silent).map(|path| shown(&path)).collect();
    none(&offenders, "these files do not open with //! and what they own");
}

#[test]
fn no_source_file_is_longer_than_a_reader_can_hold() {
    let offenders: Vec<_> = sources()
        .into_iter()
        .map(|path| (text(&path).lines().count(), shown(&path)))
        .filter(|(lines, _)| *lines >= LONGEST)
        .map(|(lines, name)| format!("{name}: {lines} lines"))
        .collect();
    none(&offenders, "one idea a file, under 400 lines");
}

#[test]
fn nothing_is_left_unfinished() {
    let mut offenders = Vec::new();
    for path in sources() {
        for (number, line) in text(&path).lines().enumerate() {
            // The hidden lines of an example in the documentation need not do anything.
            let hidden = line.starts_with("//! #") || line.trim_start().starts_with("/// #");
            if !hidden && UNFINISHED.iter().any(|(a, b)| line.contains(&format!("{a}{b}"))) {
                offenders.push(format!("{}:{}: {}", shown(&path), number + 1, line.trim()));
            }
        }
    }
    none(&offenders, "finish it, or say in words what is not there");
}

#[test]
fn no_file_knows_the_machine_it_was_written_on() {
    let others = ["crates", "tests", "examples", "benches"].iter().flat_map(|folder| {
        [".md", ".toml", ".py", ".js", ".sh"]
            .iter()
            .flat_map(move |ending| files(&root().join(folder), ending))
    });
    let top =
        ["README.md", "CHANGELOG.md", "Cargo.toml", ".ci/run"].iter().map(|name| root().join(name));
    let mut offenders = Vec::new();
    for path in sources().into_iter().chain(others).chain(top).filter(|path| path.exists()) {
        let text = text(&path);
        if PLACES.iter().any(|(a, b)| text.contains(&format!("{a}{b}"))) {
            offenders.push(shown(&path));
        }
    }
    none(&offenders, "these files name a folder of one machine");
}

/// The commands in README's code blocks that begin with `cargo` or `dash`.
fn readme_commands() -> Vec<String> {
    let readme = text(&root().join("README.md"));
    let mut inside = false;
    let mut commands = Vec::new();
    for line in readme.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        }
        let line = line.trim_start().trim_start_matches("$ ");
        if inside && (line.starts_with("cargo ") || line.starts_with("dash ")) {
            commands.push(line.split(" #").next().unwrap_or(line).trim().to_owned());
        }
    }
    commands
}

#[test]
fn the_readme_names_only_commands_that_exist() {
    let commands = readme_commands();
    for first in ["cargo run --release -- demo", "cargo test --workspace"] {
        assert!(commands.iter().any(|command| command == first), "README lacks `{first}`");
    }
    let program = text(&root().join("crates/dash-cli/src/main.rs"));
    for command in &commands {
        let words: Vec<_> = command.split_whitespace().collect();
        let ours = match words[..] {
            ["dash", name, ..] => Some(name),
            ["cargo", ..] => command.split(" -- ").nth(1).and_then(|rest| rest.split(' ').next()),
            _ => None,
        };
        let Some(name) = ours.filter(|_| !command.contains("--example")) else {
            continue;
        };
        let variant: String =
            name.chars().take(1).flat_map(char::to_uppercase).chain(name.chars().skip(1)).collect();
        assert!(
            program.contains(&format!("    {variant}(")),
            "README: `{command}`: dash has no command {name}"
        );
    }
}

#[test]
fn every_invariant_has_code_that_upholds_it_and_a_test_that_attacks_it() {
    let mut offenders = Vec::new();
    for format in files(&root().join("crates"), "FORMAT.md") {
        let Some(home) = format.parent() else {
            continue;
        };
        let ids = ids(&text(&format));
        let (mut code, mut tests) = (BTreeSet::new(), BTreeSet::new());
        for path in files(&home.join("src"), ".rs") {
            let text = text(&path);
            let (upholds, attacks) = text.split_once("#[cfg(test)]").unwrap_or((&text, ""));
            let is_test = path.file_name().is_some_and(|name| name == "tests.rs");
            if is_test {
                tests.extend(self::ids(&text))
            } else {
                code.extend(self::ids(upholds))
            }
            tests.extend(self::ids(attacks));
        }
        let torture = root().join("crates/dash-torture/tests");
        for folder in [home.join("tests"), torture, root().join("tests")] {
            for path in files(&folder, ".rs") {
                tests.extend(self::ids(&text(&path)));
            }
        }
        offenders.extend(
            ids.difference(&code).map(|id| format!("{id}: no code of {} cites it", shown(home))),
        );
        offenders.extend(ids.difference(&tests).map(|id| format!("{id}: no test cites it")));
    }
    none(
        &offenders,
        "an invariant of a FORMAT.md is cited where it is upheld and where it is attacked",
    );
}

/// Words like `SHADOW-3`.
fn ids(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
        .filter(|word| {
            word.split_once('-').is_some_and(|(name, number)| {
                matches!(name, "SHADOW" | "WAL" | "STATEMENT" | "INPAGE")
                    && number.parse::<u32>().is_ok()
            })
        })
        .map(str::to_owned)
        .collect()
}
