//! Mode wal: SQLite's own WAL mode, whose commits become durable in dash's log (the crate
//! `dash-wal`), as SQLite sees it.
//!
//! SQLite keeps `-wal` and the wal-index as ever; every call on them, and on the database, goes to
//! one connection of the engine ([`link`]), whichever file it is made on.

mod ahead;
mod control;
mod database;
mod file;
mod link;
mod log_file;
mod name;
mod opening;
mod paper;
mod parameters;
mod pragma;
mod region;
mod renewal;
mod reservations;
mod rest;
pub mod statement;
mod statements;
mod unfinished;
mod watch;

pub use name::{MODE, Wal};
use std::path::Path;

use dash_ffi::{FileKind, HostVfs, OpenFlags, Opened, Result};
use dash_storage::real::Real;

use crate::errors::to_sqlite;
use crate::leftovers;
use crate::mode::{Beside, Database, Mode, Parameter};
use crate::mode::{Opening, Place, Request, Switching};
use crate::mode::{Shared, registry};

impl Mode for Wal {
    fn engine(&self) -> &'static str {
        "wal"
    }

    fn names(&self) -> &'static [&'static str] {
        &["wal"]
    }

    fn is_sqlites(&self) -> bool {
        true
    }

    fn files(&self) -> &'static [&'static str] {
        &["-dashlog"]
    }

    fn pragmas(&self) -> &'static [&'static str] {
        pragma::ALL
    }

    fn parameters(&self) -> &'static [Parameter] {
        parameters::ALL
    }

    /// A file keeps this mode, as in stock SQLite.
    fn recognises(&self, place: &Place<'_>) -> Result<bool> {
        Ok(place.beside.has_wal()? || place.beside.says_wal(place.path))
    }

    fn holds(&self, place: &Place<'_>) -> Result<bool> {
        unfinished::is_unfinished(place)
    }

    fn is_open_elsewhere(&self, place: &Place<'_>) -> Result<bool> {
        dash_wal::is_open(&Real, place.path).map_err(to_sqlite)
    }

    /// Stock SQLite reads it where no session of dash's log is under way: what is durable may be in
    /// the log alone. Nor where it is kept out, and could not say by whom.
    fn stock_has_to_read(&self, request: &Request<'_>) -> Result<bool> {
        let parameters = &request.parameters;
        if parameters.immutable || parameters.nolock {
            return Ok(true);
        }
        unfinished::refuse_orphaned(request.path)?;
        let is_open_here = registry::mode_of(request.path).is_some_and(|mode| mode == MODE);
        let is_dashs = is_open_here || unfinished::is_unfinished(&request.place())?;
        Ok(!is_dashs && !dash_wal::is_in_memory(&Real, request.path).unwrap_or(false))
    }

    fn give_way(&self, host: &HostVfs, place: &Place<'_>, _: &dyn Mode) -> Result<()> {
        unfinished::finish(host, place)
    }

    fn forget(&self, path: &Path, held: bool) {
        unfinished::remove_log(path, held);
    }

    fn open(&self, opening: Opening<'_>) -> Result<Opened> {
        let Opening { request, reading, membership } = opening;
        unfinished::refuse_orphaned(request.path)?;
        match reading {
            true => request.wal_for_reading(membership),
            false => request.wal_for_writing(membership),
        }
    }

    fn enter(&self, switching: &Switching<'_>) -> Result<Box<dyn Database>> {
        Ok(Box::new(opening::entered(switching)?))
    }

    fn join(&self, switching: &Switching<'_>) -> Result<Option<Box<dyn Database>>> {
        let joined = opening::joined(switching, false)?;
        Ok(joined.map(|file| Box::new(file) as Box<dyn Database>))
    }

    /// The log, on behalf of the connection that this thread has just called; the rollback journal
    /// with which SQLite enters and leaves the mode is the host's.
    fn open_beside(
        &self,
        shared: &Shared,
        path: &Path,
        flags: OpenFlags,
    ) -> Result<Option<Opened>> {
        if flags.kind() != Some(FileKind::Wal) {
            return Ok(None);
        }
        match link::caller(&shared.of())? {
            Some(link) => log_file::open(link, path, flags).map(Some),
            None => Ok(None),
        }
    }

    fn delete_beside(&self, shared: &Shared, _: &Path, beside: Beside) -> Option<Result<()>> {
        if beside != Beside::Wal {
            return None;
        }
        match link::caller(&shared.of()) {
            Ok(link) => Some(link?.delete_log()),
            Err(error) => Some(Err(error)),
        }
    }

    /// Both are files; but a directory under the journal's name is the name fence.
    fn exists_beside(&self, _: &Shared, path: &Path, beside: Beside) -> Option<bool> {
        (beside == Beside::Journal && leftovers::is_no_journal(path)).then_some(false)
    }
}
