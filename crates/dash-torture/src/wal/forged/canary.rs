//! Files that are nobody's business, in the folder that forged texts name and that is the current
//! one: they stay as they are, and no file is added.

use std::ffi::OsString;
use std::fs;
use std::io::Result;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

/// See the module.
pub struct Canary {
    /// The folder.
    pub folder: PathBuf,
    content: Vec<(OsString, Vec<u8>)>,
}

fn content(folder: &Path) -> Result<Vec<(OsString, Vec<u8>)>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // A folder that was made is as bad as a file.
        all.push((entry.file_name(), fs::read(entry.path()).unwrap_or_default()));
    }
    all.sort();
    Ok(all)
}

impl Canary {
    /// Makes it anew, and the folder the current one.
    pub fn new(parent: &Path) -> std::result::Result<Self, String> {
        let folder = parent.join("canary");
        Self::make(&folder).map_err(|error| format!("the canary: {error}"))
    }

    fn make(folder: &Path) -> Result<Self> {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir(folder)?;
        std::env::set_current_dir(folder)?;
        fs::write(folder.join("authorized_keys"), "ssh-ed25519 AAAA canary\n")?;
        Connection::open(folder.join("secret.db"))
            .and_then(|db| db.execute_batch("CREATE TABLE secret(s); INSERT INTO secret VALUES(1)"))
            .map_err(std::io::Error::other)?;
        Ok(Self { folder: folder.to_owned(), content: content(folder)? })
    }

    /// What has become of it, if it is not as it was.
    pub fn check(&self) -> std::result::Result<(), String> {
        let now = content(&self.folder).map_err(|error| format!("the canary: {error}"))?;
        let added = now.iter().filter(|file| !self.content.contains(file));
        match (now == self.content, added.map(|(name, _)| name).collect::<Vec<_>>()) {
            (true, _) => Ok(()),
            (false, added) => Err(format!("files of others were changed: {added:?}")),
        }
    }
}
