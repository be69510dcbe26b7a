//! Finding `libdash.so`, loading it into a stock SQLite, and opening databases through it.
//!
//! A VFS can't be loaded on the connection it serves, so a scratch connection is kept that loads
//! it for the whole process; it also answers `dash_last_error()` when an open fails.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use rusqlite::{Connection, OpenFlags};

use crate::failure::{Explain, Failure, Result};

/// Name of the library file: SQLite derives the entry point from it.
const LIBRARY: &str = "libdash.so";
/// What means something in a URI, or could.
const ESCAPED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'.').remove(b'_').remove(b'-').remove(b'~');
/// Overrides the search.
const VARIABLE: &str = "DASH_LIBRARY";

/// The loaded extension.
pub struct Extension {
    path: PathBuf,
    scratch: Connection,
}

impl Extension {
    /// Finds and loads it.
    ///
    /// # Errors
    ///
    /// If it is nowhere, or SQLite can't load it.
    pub fn load() -> Result<Self> {
        let path = find()?;
        let scratch = Connection::open_in_memory().explain("opening a scratch connection")?;
        load_into(&scratch, &path).explain(format!("loading {}", path.display()))?;
        Ok(Self { path, scratch })
    }

    /// Where it was found.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// `dash_version()`.
    pub fn version(&self) -> String {
        self.text("SELECT dash_version()").unwrap_or_default()
    }

    /// Opens a database through dash; an empty one is made if `create` and there is none.
    ///
    /// # Errors
    ///
    /// If it can't be opened, with dash's own reason.
    pub fn open(&self, path: &Path, create: bool) -> Result<Connection> {
        self.open_with(path, create, "")
    }

    /// The same with more parameters in the URI, such as `&dash_backup=on`.
    ///
    /// # Errors
    ///
    /// As of [`Self::open`].
    pub fn open_with(&self, path: &Path, create: bool, more: &str) -> Result<Connection> {
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_URI;
        if create {
            flags |= OpenFlags::SQLITE_OPEN_CREATE;
        }
        let mut uri = uri(path);
        uri.push(more);
        let opened = Connection::open_with_flags(uri, flags).and_then(|db| {
            // Opening is lazy: this reads the header, and asks the VFS itself.
            let engine: String = db.query_row("SELECT dash_engine()", [], |row| row.get(0))?;
            db.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
            Ok((db, engine))
        });
        match opened {
            Ok((db, engine)) if engine != "none" => Ok(db),
            Ok(_) => Err(Failure::new(format!(
                "{} was opened, but not through dash: this is a defect, please report it",
                path.display()
            ))),
            Err(error) => {
                let reason = self.last_error().unwrap_or_else(|| error.to_string());
                Err(Failure::new(format!("opening {} through dash: {reason}", path.display())))
            }
        }
    }

    /// `dash_last_error()`, if there was one.
    pub fn last_error(&self) -> Option<String> {
        self.text("SELECT dash_last_error()").filter(|text| !text.is_empty())
    }

    fn text(&self, sql: &str) -> Option<String> {
        self.scratch.query_row(sql, [], |row| row.get(0)).ok().flatten()
    }
}

/// Where `libdash.so` is.
///
/// # Errors
///
/// If it is nowhere.
pub fn find() -> Result<PathBuf> {
    if let Some(named) = std::env::var_os(VARIABLE) {
        let path = PathBuf::from(named);
        return match path.is_file() {
            true => Ok(path),
            false => Err(Failure::new(format!(
                "{VARIABLE} names {}, which is not a file",
                path.display()
            ))),
        };
    }
    let own = std::env::current_exe().explain("finding the folder this program is in")?;
    let home = own.parent().unwrap_or(Path::new("."));
    // `cargo run` leaves a dependency's library in deps; packages use lib, Debian's a folder there.
    let multiarch = format!("../lib/{}-linux-gnu", std::env::consts::ARCH);
    let places = ["", "deps", "../lib", &multiarch].map(|folder| home.join(folder).join(LIBRARY));
    let newest = places
        .iter()
        .filter_map(|place| Some((place.metadata().ok()?.modified().ok()?, place)))
        .min_by_key(|(modified, _)| std::cmp::Reverse(*modified));
    newest.map(|(_, place)| place.clone()).ok_or_else(|| {
        Failure::new(format!(
            "{LIBRARY} is not beside {}: build it with `cargo build --release`, or name it in {VARIABLE}",
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

/// The `file:` URI that opens `path` through dash.
pub fn uri(path: &Path) -> OsString {
    OsString::from(format!("file:{}?vfs=dash", escape(path)))
}

/// A path as part of a URI: every byte that means something there is escaped, so spaces, `?`, `#`,
/// `%` and names that are not UTF-8 all work.
pub fn escape(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    // Two slashes at the start would be taken for a host name.
    let before = if bytes.starts_with(b"//") { "//" } else { "" };
    format!("{before}{}", percent_encode(bytes, ESCAPED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn a_path_keeps_its_bytes_in_a_uri() {
        assert_eq!(escape(Path::new("a b/ü?#%.db")), "a%20b/%C3%BC%3F%23%25.db");
        assert_eq!(escape(Path::new(OsStr::from_bytes(b"/x\xff"))), "/x%FF");
        assert_eq!(escape(Path::new("//host/a")), "////host/a");
    }
}
