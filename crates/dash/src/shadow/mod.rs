//! Mode shadow: DASH's two copies (the crate `dash-shadow`), as SQLite sees it.
//!
//! SQLite runs in its rollback mode. Its journal is kept in memory ([`journal`]), as a crash never
//! needs it, and the copy that it reads is left alone; the commit is the file control behind it
//! ([`control`]).

mod at_rest;
mod control;
mod database;
mod engine;
mod file;
mod journal;
mod leaving;
mod link;
mod name;
mod opening;
mod orphans;
mod parameters;
mod pragma;
mod read_only;
mod readers;
mod rest;
mod secure_delete;
mod settle;
mod state;
mod super_journal;
mod waiting;
mod without_engine;

use std::path::Path;

use dash_ffi::{Code, Error, File, FileKind, HostVfs, OpenFlags, Opened, Result, Side};
use dash_storage::real::Real;

use crate::leftovers;
use crate::mode::Shared;
use crate::mode::{Beside, Database, Mode, Parameter};
use crate::mode::{Opening, Place, Request, Switching};
use journal::Journal;
pub use name::{MODE, Shadow};
use super_journal::{Marker, Prepared};

impl Mode for Shadow {
    fn engine(&self) -> &'static str {
        "shadow"
    }

    fn names(&self) -> &'static [&'static str] {
        &["shadow"]
    }

    fn described(&self) -> &'static str {
        "in mode shadow"
    }

    fn files(&self) -> &'static [&'static str] {
        &["-shadow"]
    }

    fn pragmas(&self) -> &'static [&'static str] {
        parameters::PRAGMAS
    }

    fn parameters(&self) -> &'static [Parameter] {
        parameters::ALL
    }

    /// `dash_default=shadow`: whatever it was left in.
    fn recognises(&self, place: &Place<'_>) -> Result<bool> {
        Ok(place.parameters.stays_in(self))
    }

    fn holds(&self, place: &Place<'_>) -> Result<bool> {
        leaving::is_unfinished(place.path)
    }

    fn give_way(&self, host: &HostVfs, place: &Place<'_>, to: &dyn Mode) -> Result<()> {
        leaving::give_way(host, place, to)
    }

    fn recover(&self, host: &HostVfs, path: &Path) -> Result<()> {
        leaving::recover(host, path, None)
    }

    fn refuse_stock(&self, path: &Path) -> Result<()> {
        leaving::refuse_older(path)
    }

    fn forget(&self, path: &Path, held: bool) {
        if !held {
            // What stays harms nobody.
            drop(dash_shadow::remove_coordination(&Real, path));
        }
    }

    fn can_open(&self, request: &Request<'_>) -> Result<bool> {
        opening::can_open(request)
    }

    fn open(&self, opening: Opening<'_>) -> Result<Opened> {
        let Opening { request, reading, membership } = opening;
        match reading {
            true => request.read_only(membership, None),
            false => request.for_writing(membership),
        }
    }

    fn enter(&self, switching: &Switching<'_>) -> Result<Box<dyn Database>> {
        Ok(Box::new(opening::entered(switching)?))
    }

    /// The journal lies in memory; asked for the super-journal that it names, a [`Marker`] stands
    /// for it while the database is prepared. Connections that only read keep nobody from making a
    /// journal.
    fn open_beside(
        &self,
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
            Some(FileKind::Wal) => return Err(no_log(path)),
            _ => None,
        };
        Ok(file.map(|file| Opened { file, flags }))
    }

    /// There are none, except that a journal is claimed while the database is prepared under a
    /// super-journal.
    fn exists_beside(&self, shared: &Shared, path: &Path, beside: Beside) -> Option<bool> {
        match (beside, shared.has_writers()) {
            (Beside::Journal, true) => Some(shared.of::<Prepared>().is_prepared()),
            (Beside::Wal, true) => Some(false),
            // A directory of that name is a name fence, and a file may be a stock writer's.
            (Beside::Journal, false) if leftovers::is_no_journal(path) => Some(false),
            _ => None,
        }
    }
}

/// SQLite puts an attached database into WAL mode unseen, and even without shared memory where
/// locking_mode=EXCLUSIVE lets it do without. What it then wrote to a log of its own would be no
/// commit of the engine's.
fn no_log(path: &Path) -> Error {
    let message = format!(
        "{}: a database in mode shadow has no such file; PRAGMA journal_mode=wal with the name of its schema puts it into \
         mode wal",
        path.display()
    );
    Error::new(Code::CANTOPEN, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::Writing;
    use crate::mode::registry::{self, join};

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
