//! What a package is to this program.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::library::Built;

/// A kind of package.
pub struct Package {
    /// Its name as an argument, and that of its folder of sources.
    pub name: &'static str,
    /// Makes it and answers its files.
    pub make: fn(&Built, &Place<'_>) -> Result<Vec<PathBuf>>,
}

/// Where things are.
pub struct Place<'a> {
    /// The root of the repository.
    pub root: &'a Path,
    /// The sources of this package.
    pub sources: &'a Path,
    /// The folder for what is made.
    pub out: &'a Path,
}

/// All files below a folder, by their names in it, in order. What programs leave behind is passed
/// over.
///
/// # Errors
///
/// If they can't be read.
pub fn files(folder: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let mut found = Vec::new();
    gather(folder, "", &mut found)?;
    found.sort();
    Ok(found)
}

fn gather(folder: &Path, above: &str, found: &mut Vec<(String, Vec<u8>)>) -> Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| format!("{}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && !matches!(&*name, "__pycache__" | "node_modules" | "target") {
            gather(&path, &format!("{above}{name}/"), found)?;
        } else if path.is_file() {
            let data = std::fs::read(&path).with_context(|| format!("{}", path.display()))?;
            found.push((format!("{above}{name}"), data));
        }
    }
    Ok(())
}
