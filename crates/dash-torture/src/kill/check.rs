//! What must hold after processes were killed: looked at with stock SQLite, as it is, then opened
//! with dash.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use super::ledger;
use super::worker::is_refusal;
use super::workload::{self, SLOTS, State};
use crate::engine::Loaded;
use crate::sqlite::{self, Wrong};

/// A number that stands for all that processes left on disk, the memory they shared aside.
pub fn fingerprint(loaded: &dyn Loaded, database: &Path) -> u64 {
    let mut hash = DefaultHasher::new();
    for ending in std::iter::once(&"").chain(loaded.may_be_left()) {
        let mut name = database.as_os_str().to_owned();
        name.push(ending);
        let name = Path::new(&name);
        // What can't be read is missing or a directory; both leave their trace.
        (name.exists(), std::fs::read(name).ok()).hash(&mut hash);
    }
    hash.finish()
}

/// Copies the database, and what is beside it, as killed processes left them: whoever looks at a
/// failure needs that, and recovery changes it. Into the folder `left`, as it was last.
pub fn keep_what_was_left(database: &Path) -> std::io::Result<()> {
    copy_all(database, "left").map(drop)
}

/// Copies the database, and what is beside it, into a folder beside that, which is made anew.
fn copy_all(database: &Path, to: &str) -> std::io::Result<PathBuf> {
    let (Some(folder), Some(name)) = (database.parent(), database.file_name()) else {
        return Ok(database.into());
    };
    let left = folder.join(to);
    if left.exists() {
        std::fs::remove_dir_all(&left)?;
    }
    std::fs::create_dir(&left)?;
    let copied = left.join(name);
    let name = name.as_encoded_bytes();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_name().as_encoded_bytes().starts_with(name) {
            continue;
        }
        let copy = left.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => std::fs::create_dir(copy)?,
            false => std::fs::copy(entry.path(), copy).map(drop)?,
        }
    }
    Ok(copied)
}

/// All files together are the database, wherever they are copied: dash opens a copy of what was
/// left, and finds in it what it has to find in the database.
pub fn a_copy_recovers(database: &Path, parameters: &str) -> Result<(), String> {
    let copy = copy_all(database, "copy").map_err(|error| format!("copying: {error}"))?;
    dash_sees(&copy, database, parameters, "after the kill, in a copy").map(drop)
}

/// What dash finds at `path`: as much as the workers of `database` were told. `when` is for
/// messages.
fn dash_sees(path: &Path, database: &Path, parameters: &str, when: &str) -> Result<State, String> {
    let failed = |what: &str, error: rusqlite::Error| {
        format!("{what} {when}: {error}; {}", sqlite::last_error())
    };
    let db = sqlite::open(path, parameters).map_err(|error| failed("opening", error))?;
    let state = match workload::sound_state(&db) {
        Ok(state) => state,
        Err(Wrong::Sql(error)) => return Err(failed("reading", error)),
        Err(Wrong::Content(what)) => return Err(format!("dash, {when}, sees {what}")),
    };
    within(&state, database).map_err(|what| format!("{when}: {what}"))?;
    db.close().map_err(|(_, error)| failed("closing", error))?;
    Ok(state)
}

fn within(found: &State, database: &Path) -> Result<(), String> {
    let ledgers = ledger::read_all(database, SLOTS).map_err(|error| error.to_string())?;
    for (slot, &n) in found.iter().enumerate() {
        if !(ledgers[slot].acknowledged..=ledgers[slot].begun).contains(&n) {
            return Err(format!(
                "commit {n} of worker {slot} is the newest, after {:?}",
                ledgers[slot]
            ));
        }
    }
    Ok(())
}

/// Stock SQLite is refused, or sees a committed state, before dash has opened the database;
/// whether it saw one.
pub fn stock_looks(database: &Path) -> Result<bool, String> {
    let looked =
        sqlite::open_stock(database).map_err(Wrong::Sql).and_then(|db| workload::sound_state(&db));
    match looked {
        Ok(state) => within(&state, database)
            .map(|()| true)
            .map_err(|what| format!("stock SQLite, after the kill: {what}")),
        Err(Wrong::Sql(error)) if is_refusal(&error) => Ok(false),
        Err(Wrong::Sql(error)) => Err(format!("stock SQLite, after the kill: {error}")),
        Err(Wrong::Content(what)) => Err(format!("stock SQLite, after the kill, sees {what}")),
    }
}

/// Dash opens the database: every acknowledged commit is there, nothing is there that was never
/// committed, and the database is at rest afterwards. `is_read`: others may have it open.
pub fn dash_recovers(
    loaded: &dyn Loaded,
    database: &Path,
    parameters: &str,
    is_read: bool,
) -> Result<State, String> {
    let state = dash_sees(database, database, parameters, "after the kill")?;
    let rests = !is_read || loaded.rests_beside_readers();
    if rests && loaded.needs_recovery(database)? {
        return Err("the database was closed, and is not at rest".into());
    }
    let stock = sqlite::open_stock(database)
        .map_err(|error| format!("stock: opening after the kill: {error}"))?;
    match workload::sound_state(&stock) {
        Ok(seen) if seen == state => {}
        other => return Err(format!("at rest stock sees {other:?} instead of {state:?}")),
    }
    for (slot, &found) in state.iter().enumerate() {
        ledger::settle(database, slot, found).map_err(|error| error.to_string())?;
    }
    Ok(state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kill::ledger::Ledger;
    use crate::random::Dice;

    /// A plain database with five acknowledged commits of worker 0, tampered with.
    fn after(tamper: &str) -> Result<bool, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        let db = rusqlite::Connection::open(&path).unwrap();
        workload::make(&db).unwrap();
        let mut ledger = Ledger::open(&path, 0).unwrap();
        for _ in 0..5 {
            let n = workload::work(&db, 0, &mut Dice::new(1, 0)).unwrap();
            ledger.begin(n).unwrap();
            db.execute_batch("COMMIT").unwrap();
            ledger.acknowledge(n).unwrap();
        }
        db.execute_batch(tamper).unwrap();
        drop(db);
        stock_looks(&path)
    }

    #[test]
    fn what_must_never_happen_is_seen() {
        assert_eq!(after("SELECT 1"), Ok(true));
        let lost = "UPDATE counters SET n = 4 WHERE worker = 0; UPDATE total SET n = 4; DELETE FROM entries WHERE n = 5";
        assert!(after(lost).unwrap_err().contains("commit 4"));
        let forged = "UPDATE counters SET n = 1 WHERE worker = 1; UPDATE total SET n = 6";
        assert!(after(forged).unwrap_err().contains("missing"));
        assert!(after("UPDATE counters SET n = 4 WHERE worker = 0").unwrap_err().contains("total"));
        assert!(after("DELETE FROM entries WHERE n = 3").unwrap_err().contains("belongs"));
        let bytes = "UPDATE entries SET body = zeroblob(length(body)) WHERE n = 3";
        assert!(after(bytes).unwrap_err().contains("other bytes"));
    }
}
