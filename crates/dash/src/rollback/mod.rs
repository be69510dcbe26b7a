//! What engines have in common under which SQLite is in its rollback mode: its journal, which lies
//! in memory ([`journal`]), transactions over several databases ([`super_journal`], [`orphans`]),
//! and a connection that is closed at rest ([`link`], [`mod@rest`]). What it asks of an engine is
//! [`engine::Rollback`].

mod at_rest;
pub mod engine;
mod journal;
pub mod link;
pub mod orphans;
pub mod rest;
mod state;
pub mod super_journal;

use std::path::Path;

use dash_ffi::{Code, Error, File, FileKind, OpenFlags, Opened, Result, Side};

use crate::leftovers;
use crate::mode::{Beside, Mode, Shared};
use journal::Journal;
use super_journal::{Marker, Prepared};

/// The journal lies in memory; asked for the super-journal that it names, a [`Marker`] stands
/// for it while the database is prepared. Connections that only read keep nobody from making a
/// journal.
pub fn open_beside(
    mode: &dyn Mode,
    shared: &Shared,
    path: &Path,
    flags: OpenFlags,
) -> Result<Option<Opened>> {
    if !shared.has_writers() {
        return Ok(None);
    }
    let file: Option<Box<dyn File>> = match flags.kind() {
        Some(FileKind::MainJournal) => {
            let folder = path.parent().unwrap_or(Path::new("/")).to_path_buf();
            Some(Box::new(Side(Journal::new(folder, shared.of()))))
        }
        Some(FileKind::SuperJournal) => {
            let under = shared.of::<Prepared>().super_journal().ok_or(Code::CANTOPEN)?;
            Some(Box::new(Side(Marker::new(&under))))
        }
        Some(FileKind::Wal) => return Err(no_log(mode, path)),
        _ => None,
    };
    Ok(file.map(|file| Opened { file, flags }))
}

/// There are none, except that a journal is claimed while the database is prepared under a
/// super-journal.
pub fn exists_beside(shared: &Shared, path: &Path, beside: Beside) -> Option<bool> {
    match (beside, shared.has_writers()) {
        (Beside::Journal, true) => Some(shared.of::<Prepared>().is_prepared()),
        (Beside::Wal, true) => Some(false),
        // A directory of that name is a name fence, and a file may be a stock writer's.
        (Beside::Journal, false) if leftovers::is_no_journal(path) => Some(false),
        _ => None,
    }
}

/// SQLite puts an attached database into WAL mode unseen, and even without shared memory where
/// locking_mode=EXCLUSIVE lets it do without. What it then wrote to a log of its own would be no
/// commit of the engine's.
fn no_log(mode: &dyn Mode, path: &Path) -> Error {
    let message = format!(
        "{}: a database {} has no such file; PRAGMA journal_mode=wal with the name of its schema puts it into \
         mode wal",
        path.display(),
        mode.described()
    );
    Error::new(Code::CANTOPEN, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::Writing;
    use crate::mode::registry::{self, join};
    use crate::shadow::MODE;

    #[test]
    fn side_files_are_answered_for_open_shadow_databases_only() {
        let path = Path::new("/nowhere/side.db");
        let journal = Path::new("/nowhere/side.db-journal");
        let wal = Path::new("/nowhere/side.db-wal");
        let exists = registry::exists_beside;
        assert_eq!(exists(journal), None);
        let (member, _) = join(path, None, MODE).expect("alone");
        assert_eq!(exists(journal), None, "who only reads keeps nobody from making one");
        let opens = || registry::open_beside(journal, OpenFlags::MAIN_JOURNAL);
        assert!(opens().expect("no error").is_none());
        let writing = Writing::new(member.shared());
        assert_eq!(exists(journal), Some(false));
        assert_eq!(exists(wal), Some(false));
        assert_eq!(exists(path), None);
        assert!(opens().expect("no error").is_some());
        member.shared().of::<Prepared>().set_super_journal(Some("/nowhere/side.db-mj1".into()));
        assert_eq!(exists(journal), Some(true));
        assert_eq!(exists(wal), Some(false));
        drop((writing, member));
        assert_eq!(exists(wal), None);
    }
}
