//! Super-journals that a killed process left behind before any database was prepared under them.
//!
//! No block names them, so only their own name leads to them: that of the connection's main
//! database, `-mj` and nine digits. They are looked for when that database is opened and whoever
//! had it last did not close it; and when it is closed, or comes to rest, after transactions over
//! several databases: somebody may have been killed in one whom others outlived.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use dash_engine::error::Result;

use super::engine::Rollback;

/// Closes a connection, and removes what was left if it was the last one.
///
/// # Errors
///
/// Those of closing.
pub fn close<E: Rollback>(engine: E, path: &Path, tell: &mut dyn FnMut(&str)) -> Result<()> {
    let looks = engine.has_had_several();
    engine.close_telling(tell)?;
    if looks && !E::is_open(path) {
        remove::<E>(path, tell);
    }
    Ok(())
}

/// Removes those of the database at `path`, which this thread does not write. What fails leaves a
/// file that harms nobody, as it does with stock SQLite; `tell` hears so.
pub fn remove<E: Rollback>(path: &Path, tell: &mut dyn FnMut(&str)) {
    let (Some(folder), Some(db)) = (path.parent(), path.file_name()) else {
        return;
    };
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for name in entries.filter_map(|entry| Some(entry.ok()?.file_name())) {
        if !is_super_journal(&name, db) {
            continue;
        }
        if let Err(error) = E::remove_orphan(path, &name) {
            tell(&format!("{} is left: {error}", name.to_string_lossy()));
        }
    }
}

/// Whether SQLite would give this name to a super-journal of `db` (vdbeaux.c: `"%s-mj%06X9%02X"`).
fn is_super_journal(name: &OsStr, db: &OsStr) -> bool {
    let digits = || name.as_bytes().strip_prefix(db.as_bytes())?.strip_prefix(b"-mj");
    let upper = |digit: &u8| matches!(digit, b'0'..=b'9' | b'A'..=b'F');
    digits().is_some_and(|digits| {
        digits.len() == 9 && digits.iter().all(upper) && digits.get(6) == Some(&b'9')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_names_that_sqlite_gives_are_looked_at() {
        let of = |name: &str| is_super_journal(OsStr::new(name), OsStr::new("a.db"));
        assert!(of("a.db-mj0A1B2C9FF"));
        for other in [
            "a.db-mj0A1B2C8FF", // no 9 where SQLite has one
            "a.db-mj0A1B2C9FFF",
            "a.db-mj0a1b2c9ff",
            "a.db-mj",
            "a.db-mj1",
            "b.db-mj0A1B2C9FF",
            "xa.db-mj0A1B2C9FF",
            "a.db",
        ] {
            assert!(!of(other), "{other}");
        }
    }
}
