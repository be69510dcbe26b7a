//! Mode shadow: DASH's two copies (the crate `dash-shadow`), as SQLite sees it.
//!
//! SQLite runs in its rollback mode. Its journal is kept in memory ([`rollback`]), as a crash never
//! needs it, and the copy that it reads is left alone; the commit is the file control behind it
//! ([`control`]).

mod control;
mod database;
mod engine;
mod file;
mod leaving;
mod name;
mod opening;
mod parameters;
mod pragma;
mod read_only;
mod readers;
mod secure_delete;
mod settle;
mod waiting;
mod without_engine;

use std::path::Path;

use dash_ffi::{HostVfs, OpenFlags, Opened, Result};
use dash_storage::real::Real;

use crate::mode::Shared;
use crate::mode::{Beside, Database, Mode, Parameter};
use crate::mode::{Opening, Place, Request, Switching};
use crate::rollback;
pub use name::{MODE, Shadow};

impl Mode for Shadow {
    fn engine(&self) -> &'static str {
        "shadow"
    }

    fn names(&self) -> &'static [&'static str] {
        &["shadow"]
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
            true => {
                let read_only = request.read_only(membership, None);
                read_only.or_else(|error| request.beside_unreadable_shadow(error))
            }
            false => request.for_writing(membership),
        }
    }

    fn enter(&self, switching: &Switching<'_>) -> Result<Box<dyn Database>> {
        Ok(Box::new(opening::entered(switching)?))
    }

    fn open_beside(
        &self,
        shared: &Shared,
        path: &Path,
        flags: OpenFlags,
    ) -> Result<Option<Opened>> {
        rollback::open_beside(self, shared, path, flags)
    }

    fn exists_beside(&self, shared: &Shared, path: &Path, beside: Beside) -> Option<bool> {
        rollback::exists_beside(shared, path, beside)
    }
}
