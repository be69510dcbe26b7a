//! Opening a database in mode shadow: by the engine, for writing or for reading only; through the
//! host where only stock SQLite can make sense of it.

use std::sync::Arc;
use std::time::Instant;

use dash_ffi::{Code, Error, File, OpenFlags, Opened, Result, in_folder_of};
use dash_shadow::{Connection, Error as EngineError, is_open};
use dash_storage::real::Real;

use super::file::ShadowFile;
use super::name::MODE;
use super::read_only::ReadOnlyFile;
use crate::by_stock::{PATIENCE, PAUSE};
use crate::errors::to_sqlite;
use crate::leftovers::{self, HEADER, Neighbours};
use crate::main_file::opened;
use crate::mode::registry::Membership;
use crate::mode::{Request, Switching};
use crate::no_database::NoDatabase;
use crate::plain;
use crate::rollback::engine::{Failed, Patience, Rollback, ToOpen};
use crate::rollback::link::Link;

impl Request<'_> {
    /// `why`: what kept it from being opened for writing, if that was wanted.
    pub(super) fn read_only(&self, membership: Membership, why: Option<String>) -> Result<Opened> {
        let immutable = self.parameters.immutable || self.parameters.nolock;
        let begun = Instant::now();
        let file = loop {
            let shared = membership.shared().clone();
            match ReadOnlyFile::open(self.path, immutable, self.window.clone(), shared) {
                Err(EngineError::Busy) if begun.elapsed() < PATIENCE => {
                    self.host.sleep(PAUSE);
                }
                other => break other.map_err(to_sqlite),
            }
        };
        let mut file = match file {
            Err(error) if self.is_for_stock_to_refuse(&error) => {
                return self.no_database(membership, error);
            }
            other => other?,
        };
        let mut header = [0; HEADER];
        file.read(&mut header, 0)?;
        if leftovers::says_wal(&header) {
            let named = file.refuse_unnamed_wal();
            file.finish()?;
            named?;
            drop(membership);
            return self.plain(None);
        }
        if file.is_exposed() {
            self.note_exposed();
        }
        if let Some(why) = &why {
            self.note_read_only(why);
        }
        file.why = why;
        let flags = self.flags.without(OpenFlags::READWRITE | OpenFlags::CREATE);
        let flags = flags | OpenFlags::READONLY;
        Ok(opened(self, (MODE, Box::new(file)), flags, Some(membership)))
    }

    pub(super) fn for_writing(&self, membership: Membership) -> Result<Opened> {
        let asked = self.parameters.mode.is_some() || self.parameters.stays_in(MODE);
        let is_there = self.path.exists();
        let what = to_open(self, asked);
        match <Connection<Real> as Rollback>::open(&what) {
            Ok(engine) => {
                if engine.is_exposed() {
                    self.note_exposed();
                }
                Ok(self.linked(Some(engine), &what, membership))
            }
            Err(Failed::NoSpace(_)) if is_there => Ok(self.linked(None, &what, membership)),
            // As the stock VFS does: what can't be written may still be read.
            Err(Failed::Forbidden(error)) => {
                if self.stock_has_to_read()? {
                    drop(membership);
                    return self.plain(None);
                }
                let read_only = self.read_only(membership, Some(error.to_string()));
                read_only.or_else(|_| self.beside_unreadable_shadow(error))
            }
            Err(Failed::Other(error)) if self.is_for_stock_to_refuse(&error) => {
                self.no_database(membership, error)
            }
            Err(Failed::Other(error) | Failed::NoSpace(error)) => Err(error),
        }
    }

    /// At rest stock SQLite needs no shadow: one that may not be read is not in its way. `error`
    /// says why the engine can't have it.
    pub(super) fn beside_unreadable_shadow(&self, error: Error) -> Result<Opened> {
        let is_at_rest = || Ok::<_, Error>(!self.beside.has_fence()? && !is_open(&Real, self.path));
        if !(self.has_unreadable("-shadow") && is_at_rest()?) {
            return Err(error);
        }
        let Ok(opened) = self.plain_instead(&error.to_string()) else { return Err(error) };
        self.note_by_stock(&error, "");
        Ok(opened)
    }

    /// With no engine the database is at rest until there is space for one; it can be read.
    fn linked(
        &self,
        engine: Option<Connection<Real>>,
        what: &ToOpen<'_>,
        membership: Membership,
    ) -> Opened {
        let shared = membership.shared();
        let link = Link::new(engine, what, shared, self.window.clone());
        let file = ShadowFile::new(link, *self.host, shared.clone(), self.parameters.psow());
        opened(self, (MODE, Box::new(file)), self.flags, Some(membership))
    }

    /// Whether a file is no database, nor ever was one of dash's, as far as one can see.
    fn is_for_stock_to_refuse(&self, error: &Error) -> bool {
        error.code == Code::NOTADB
            && self.parameters.mode.is_none_or(|mode| mode != MODE)
            && leftovers::can_be_left_to_stock(self.path)
    }

    /// SQLite opens anything and looks at it when it first reads; ATTACH tells the one failure from
    /// the other. So it gets the file as it is, and refuses it then.
    fn no_database(&self, membership: Membership, error: Error) -> Result<Opened> {
        if !membership.switch(plain::MODE) {
            return Err(error);
        }
        let message = in_folder_of(self.path, error.message.as_deref().unwrap_or_default());
        self.host.log(error.code, &message);
        membership.shared().of::<NoDatabase>().is_found(message);
        self.plain(Some(membership))
    }
}

fn to_open<'a>(request: &'a Request<'_>, asked: bool) -> ToOpen<'a> {
    let Request { host, path, parameters, flags, beside, .. } = request;
    ToOpen { host, path, parameters, flags: *flags, beside, asked, patience: Patience::OPENING }
}

/// See [`crate::mode::Mode::can_open`].
pub(super) fn can_open(request: &Request<'_>) -> Result<bool> {
    match <Connection<Real> as Rollback>::open(&to_open(request, false)) {
        // Whoever opens it says so.
        Ok(engine) if engine.is_exposed() => engine.close().map(|()| false).map_err(to_sqlite),
        Ok(engine) => engine.close().map(|()| true).map_err(to_sqlite),
        Err(Failed::Other(error)) if error.code.primary() == Code::BUSY => Err(error),
        Err(_) => Ok(false),
    }
}

/// Under a connection that had the file open in another mode.
pub(super) fn entered(switching: &Switching<'_>) -> Result<ShadowFile> {
    let &Switching { host, path, parameters, window, membership, asked, .. } = switching;
    let (flags, beside) = (OpenFlags::READWRITE, &Neighbours::of(path));
    let patience = Patience::OPENING;
    let what = ToOpen { host, path, parameters, flags, beside, asked, patience };
    let engine = <Connection<Real> as Rollback>::open(&what)?;
    let shared = membership.shared();
    let link = Link::new(Some(engine), &what, shared, Arc::clone(window));
    Ok(ShadowFile::new(link, *host, shared.clone(), parameters.psow()))
}
