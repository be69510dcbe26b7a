//! The visitor that comes to an image before dash opens the database to write: a stock reader, a
//! stock writer, a user that copies the files by hand, a member that only reads, a connection of
//! dash that takes the database for a plain file. The image's hash says which.

use std::fs;
use std::path::Path;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::check::{Look, Wrong};
use super::database::{self, Opened, explained};
use super::ledger::{Allowed, State};
use super::rig::Rig;
use crate::sqlite;

/// A visitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visit {
    /// A stock reader. It must not change anything.
    Reads,
    /// A stock process that writes, if it is let in: it starts with the machine, earlier than those
    /// that use dash.
    Writes,
    /// A user copies the files.
    Copies(Way),
    /// A connection of dash that only reads.
    Member,
    /// A connection of dash that wants the database as a plain file, and writes it.
    Plain,
}

/// How a user copies the files; some ways use an inode number again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// All into a folder, the old ones removed, all back (`cp -a`).
    Back,
    /// The same, the last first.
    BackReversed,
    /// Into an archive, the old ones removed, something else made, all unpacked.
    Unpacked,
    /// `app.db` copied, and the copy put into its place.
    OnlyDatabase,
    /// The same with a file beside it, of this ending.
    OnlyBeside(&'static str),
}

/// What is to be expected after a visit.
#[derive(Debug, Clone)]
pub struct Visited {
    /// What may be found.
    pub allowed: Allowed,
    /// Events in the log until the visitor had gone.
    pub from: u64,
    /// Whether dash may refuse, and leave the choice to the user: the visitor wrote on an older
    /// state.
    pub is_users_choice: bool,
}

impl Visited {
    /// Nobody came.
    pub fn of_nobody(allowed: &Allowed) -> Self {
        Self { allowed: allowed.clone(), from: 0, is_users_choice: allowed.is_users_choice }
    }
}

impl Visit {
    /// The visitor of an image of this hash.
    pub fn of(opened: Opened, hash: u64) -> Self {
        if !matches!(opened, Opened::Guests(_)) {
            return Self::Reads;
        }
        let beside = opened.beside();
        let at = usize::try_from(hash / 16 % beside.len().max(1) as u64).unwrap_or_default();
        match hash % 16 {
            0..5 => Self::Reads,
            5 => Self::Plain,
            6..10 => Self::Writes,
            10 => Self::Copies(Way::Back),
            11 => Self::Copies(Way::BackReversed),
            12 => Self::Copies(Way::Unpacked),
            13 => Self::Copies(Way::OnlyDatabase),
            14 => match beside.get(at) {
                Some(ending) => Self::Copies(Way::OnlyBeside(ending)),
                None => Self::Reads,
            },
            _ => Self::Member,
        }
    }

    /// The visit.
    pub fn make(self, look: &Look<'_>, rig: &Rig, folder: &Path) -> Result<Visited, Wrong> {
        let broken = |error: std::io::Error| Wrong::Broken(format!("{self:?}: {error}"));
        let mut visited = Visited::of_nobody(look.allowed);
        match self {
            Self::Reads => {
                as_stock(look.allowed, &folder.join("app.db"), |state| state.0)?;
                if look.is_attached {
                    as_stock(look.allowed, &folder.join("aux.db"), |state| state.1)?;
                }
                return Ok(visited);
            }
            Self::Writes => writes(look, &mut visited, &folder.join("app.db"))?,
            Self::Copies(way) => {
                way.copy(folder).map_err(broken)?;
                nix::unistd::syncfs(fs::File::open(folder).map_err(broken)?)
                    .map_err(|error| broken(error.into()))?;
            }
            Self::Plain => plainly(look, &mut visited, &folder.join("app.db"))?,
            Self::Member => {
                member(look, &folder.join("app.db"))?;
                return Ok(visited);
            }
        }
        visited.from = rig.log.position().map_err(broken)?;
        Ok(visited)
    }
}

/// A refusal is as good as a committed state; damage and a mix are neither.
fn as_stock(allowed: &Allowed, path: &Path, of: fn(&State) -> u64) -> Result<(), Wrong> {
    let looked = database::read_only(path)
        .and_then(|db| Ok((database::content(&db, "main")?, database::damage(&db, "main")?)));
    let what = match looked {
        Ok((content, None)) if allowed.was_ever(content, of) => return Ok(()),
        Ok((_, None)) => "sees a state that no commit made".to_owned(),
        Ok((_, Some(damage))) => damage,
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
            error.to_string()
        }
        Err(_) => return Ok(()),
    };
    Err(Wrong::Broken(format!("stock SQLite before recovery, {}: {what}", path.display())))
}

/// The rest of a transaction that a visitor has begun: the content before, and the one that it
/// makes. Damage is an error without a code.
fn guest_commits(db: &Connection) -> rusqlite::Result<(u64, u64)> {
    let before = database::content(db, "main")?;
    if let Some(damage) = database::damage(db, "main")? {
        return Err(rusqlite::Error::InvalidParameterName(damage));
    }
    db.execute_batch("CREATE TABLE IF NOT EXISTS guest(n INT); INSERT INTO guest VALUES (1)")?;
    let after = database::content(db, "main")?;
    db.execute_batch("COMMIT")?;
    Ok((before, after))
}

/// A stock writer is refused, or writes on a committed state, which is not a file without a byte if
/// a commit was acknowledged. An empty database that stock SQLite has made, of one page, is a
/// committed state like others.
fn writes(look: &Look<'_>, visited: &mut Visited, path: &Path) -> Result<(), Wrong> {
    let has_no_byte = std::fs::metadata(path).is_ok_and(|found| found.len() == 0);
    let wrote = || -> rusqlite::Result<(u64, u64)> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
        let db = Connection::open_with_flags(path, flags)?;
        db.execute_batch("PRAGMA synchronous = EXTRA; BEGIN IMMEDIATE; PRAGMA user_version = 7")?;
        guest_commits(&db)
    };
    let (before, after) = match wrote() {
        Ok(both) => both,
        Err(error)
            if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt)
                || error.sqlite_error().is_none() =>
        {
            return Err(Wrong::Broken(format!("a stock writer before recovery: {error}")));
        }
        Err(_) => return Ok(()),
    };
    let allowed = &visited.allowed;
    let is_current = allowed.now.iter().any(|state| state.0 == before);
    if !is_current && !allowed.was_ever(before, |state| state.0) {
        let what = "a stock writer before recovery sees a state that no commit made";
        return Err(Wrong::Broken(what.to_owned()));
    }
    if !is_current && look.opened.choice().is_none() {
        let what = "a stock writer before recovery is let in on an older state";
        return Err(Wrong::Lost(what.to_owned()));
    }
    if !is_current && has_no_byte && allowed.lost.first().is_some_and(|empty| empty.0 == before) {
        let what = "a stock writer is let into an empty file after a commit was acknowledged";
        return Err(Wrong::Lost(what.to_owned()));
    }
    // Beside a newer state, or one that may have been acknowledged: the user has to say which is to
    // stay.
    visited.is_users_choice |= !is_current || allowed.now.iter().any(|state| state.0 != before);
    visited.allowed = allowed.after((after, 0), true);
    Ok(())
}

/// A member that can't recover finds what may be found, or is refused.
fn member(look: &Look<'_>, path: &Path) -> Result<(), Wrong> {
    let allowed = look.allowed;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let looked = Connection::open_with_flags(look.opened.uri(path, "&mode=ro"), flags)
        .and_then(|db| Ok((database::content(&db, "main")?, database::damage(&db, "main")?)));
    let what = match looked {
        Ok((content, None)) if allowed.now.iter().any(|state| state.0 == content) => return Ok(()),
        Ok((content, None)) if allowed.was_ever(content, |state| state.0) => {
            return Err(Wrong::Lost("a member that only reads finds an older state".to_owned()));
        }
        Ok((_, None)) => "finds a state that no commit made".to_owned(),
        Ok((_, Some(damage))) => damage,
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
            explained(&error)
        }
        Err(_) => return Ok(()),
    };
    Err(Wrong::Broken(format!("a member that only reads, before recovery: {what}")))
}

/// Recovery comes first for a plain file, too: dash finds what may be found, and goes on from
/// there.
fn plainly(look: &Look<'_>, visited: &mut Visited, path: &Path) -> Result<(), Wrong> {
    let wrote = || -> rusqlite::Result<(u64, u64)> {
        let db = Connection::open(sqlite::uri(path, "&journal_mode=delete"))?;
        db.execute_batch("PRAGMA synchronous = EXTRA; BEGIN IMMEDIATE")?;
        let both = guest_commits(&db)?;
        db.close().map_err(|(_, error)| error)?;
        Ok(both)
    };
    let allowed = &visited.allowed;
    let what = match wrote() {
        Ok((before, after)) if allowed.now.iter().any(|state| state.0 == before) => {
            visited.allowed = allowed.after((after, 0), true);
            return Ok(());
        }
        Ok((before, _)) if allowed.was_ever(before, |state| state.0) => {
            return Err(Wrong::Lost("dash finds an older state in a plain file".to_owned()));
        }
        Ok(_) => "finds a state that no commit made".to_owned(),
        Err(error) => {
            let what = explained(&error);
            let chooses = look.opened.choice().is_some_and(|words| what.contains(words));
            if visited.is_users_choice && chooses {
                return Ok(());
            }
            what
        }
    };
    Err(Wrong::Broken(format!("dash with a plain file, before recovery: {what}")))
}

/// A file, or a folder (`None`), by its name.
type Entry = (String, Option<Vec<u8>>);

impl Way {
    fn copy(self, folder: &Path) -> std::io::Result<()> {
        match self {
            Self::OnlyDatabase => return replace(folder, "app.db"),
            Self::OnlyBeside(ending) => return replace(folder, &format!("app.db{ending}")),
            _ => {}
        }
        let mut entries = read(folder)?;
        if self == Self::BackReversed {
            entries.reverse();
        }
        let backup = folder.join("backup");
        if self != Self::Unpacked {
            fs::create_dir(&backup)?;
            write(&backup, &entries)?;
        }
        remove(folder, &entries)?;
        if self == Self::Unpacked {
            fs::write(folder.join("other"), b"other")?;
        }
        write(folder, &entries)?;
        if self != Self::Unpacked {
            remove(&backup, &entries)?;
            fs::remove_dir(&backup)?;
        }
        Ok(())
    }
}

fn replace(folder: &Path, name: &str) -> std::io::Result<()> {
    if folder.join(name).exists() {
        fs::copy(folder.join(name), folder.join("copy"))?;
        fs::rename(folder.join("copy"), folder.join(name))?;
    }
    Ok(())
}

/// What belongs to the database, in the order of the names.
fn read(folder: &Path) -> std::io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with("app.db") {
            let path = folder.join(&name);
            let bytes = if path.is_dir() { None } else { Some(fs::read(path)?) };
            entries.push((name, bytes));
        }
    }
    entries.sort();
    Ok(entries)
}

fn write(folder: &Path, entries: &[Entry]) -> std::io::Result<()> {
    for (name, bytes) in entries {
        match bytes {
            Some(bytes) => fs::write(folder.join(name), bytes)?,
            None => fs::create_dir(folder.join(name))?,
        }
    }
    Ok(())
}

fn remove(folder: &Path, entries: &[Entry]) -> std::io::Result<()> {
    for (name, bytes) in entries {
        match bytes {
            Some(_) => fs::remove_file(folder.join(name))?,
            None => fs::remove_dir_all(folder.join(name))?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_copies_by_hand_leaves_what_was_there() {
        use Way::{Back, BackReversed, OnlyBeside, OnlyDatabase, Unpacked};
        for way in [Back, BackReversed, Unpacked, OnlyDatabase, OnlyBeside("-shadow")] {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join("app.db"), b"one").unwrap();
            fs::write(folder.path().join("app.db-shadow"), b"two").unwrap();
            fs::create_dir(folder.path().join("app.db-journal")).unwrap();
            let before = read(folder.path()).unwrap();
            way.copy(folder.path()).unwrap();
            assert_eq!(read(folder.path()).unwrap(), before, "{way:?}");
        }
    }
}
