//! Finding `libdash.so` and loading it into the stock SQLite of this process.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::failure::{Explain, Failure, Result};

/// Name of the library file.
const LIBRARY: &str = "libdash.so";
/// Overrides the search.
const VARIABLE: &str = "DASH_LIBRARY";

/// The loaded extension; the VFS stays registered for the life of the process.
pub struct Extension {
    /// Where it was found.
    pub path: PathBuf,
    /// `dash_version()`.
    pub version: String,
}

impl Extension {
    /// Finds and loads it.
    pub fn load() -> Result<Self> {
        let path = find()?;
        let scratch = Connection::open_in_memory().explain("opening a scratch connection")?;
        load_into(&scratch, &path).explain(format!("loading {}", path.display()))?;
        let version = scratch
            .query_row("SELECT dash_version()", [], |row| row.get(0))
            .explain("asking for dash's version")?;
        Ok(Self { path, version })
    }
}

/// The newest of the places where a build or a package leaves it.
fn find() -> Result<PathBuf> {
    if let Some(named) = std::env::var_os(VARIABLE) {
        return Ok(PathBuf::from(named));
    }
    let own = std::env::current_exe().explain("finding the folder this program is in")?;
    let home = own.parent().unwrap_or(Path::new("."));
    let newest = [home.join(LIBRARY), home.join("deps").join(LIBRARY)]
        .into_iter()
        .filter_map(|place| Some((place.metadata().ok()?.modified().ok()?, place)))
        .max();
    newest.map(|(_, place)| place).ok_or_else(|| {
        Failure::new(format!(
            "{LIBRARY} is not beside {}: build it with `cargo build --release -p libdash`, or name it in {VARIABLE}",
            own.display()
        ))
    })
}

#[expect(unsafe_code, reason = "loading a shared library runs its code, and this one is our own")]
fn load_into(db: &Connection, path: &Path) -> rusqlite::Result<()> {
    // SAFETY: the file is the extension of this project, or one the user named in its place; its
    // entry point follows SQLite's contract for loadable extensions.
    unsafe {
        let _guard = rusqlite::LoadExtensionGuard::new(db)?;
        db.load_extension(path, Some("sqlite3_dash_init"))
    }
}
