//! The files of the repository.

use std::fs;
use std::path::{Path, PathBuf};

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file below `folder` whose name ends so; build output aside.
pub(crate) fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
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

/// Every Rust source.
pub(crate) fn sources() -> Vec<PathBuf> {
    ["crates", "tests", "examples", "benches"]
        .iter()
        .flat_map(|folder| files(&root().join(folder), ".rs"))
        .collect()
}

/// Its path in the repository.
pub(crate) fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

pub(crate) fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Fails with the `rule` if anybody offends it.
pub(crate) fn none(offenders: &[String], rule: &str) {
    assert!(offenders.is_empty(), "{rule}:\n  {}", offenders.join("\n  "));
}

/// Files beside the sources that are written by hand: documents, scripts, settings.
pub(crate) fn others() -> Vec<PathBuf> {
    let folders = ["crates", "tests", "examples", "benches", ".github"];
    let below = folders.iter().flat_map(|folder| {
        [".md", ".toml", ".py", ".js", ".sh"]
            .iter()
            .flat_map(move |ending| files(&root().join(folder), ending))
    });
    let top =
        ["README.md", "CHANGELOG.md", "Cargo.toml", ".ci/run"].iter().map(|name| root().join(name));
    below.chain(top).filter(|path| path.exists()).collect()
}

/// The crates of the workspace, with a folder `src` each.
pub(crate) fn crates() -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(root().join("crates")) else {
        return Vec::new();
    };
    let mut found: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join("src").is_dir())
        .collect();
    found.sort();
    found
}
