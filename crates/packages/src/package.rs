//! What a package is to this program.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::facts::LICENCE_FILES;
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
    /// Where cargo keeps what more than one package is made of, compiled once.
    pub shared: &'a Path,
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

/// A file's bytes.
///
/// # Errors
///
/// If it can't be read.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("reading {}", path.display()))
}

/// The licences' texts, as `files` gives them.
///
/// # Errors
///
/// If they can't be read.
pub fn licences(root: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let texts = LICENCE_FILES.iter().map(|name| Ok(((*name).to_owned(), read(&root.join(name))?)));
    texts.collect()
}

/// Makes a folder that holds these files and no others.
///
/// # Errors
///
/// If it can't be written.
pub fn lay(folder: &Path, files: &[(String, Vec<u8>)]) -> Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)
            .with_context(|| format!("emptying {}", folder.display()))?;
    }
    for (name, data) in files {
        let path = folder.join(name);
        let home = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(home).with_context(|| format!("making {}", home.display()))?;
        std::fs::write(&path, data).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}
