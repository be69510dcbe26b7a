//! Opening a database in mode shadow: by the engine, for writing or for reading only; through the
//! host where only stock SQLite can make sense of it.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dash_ffi::{Code, Error, File, HostVfs, OpenFlags, Opened, Result, in_folder_of};
use dash_shadow::{Connection, Error as EngineError, OPEN_PATIENCE};
use dash_storage::real::Real;

use super::file::ShadowFile;
use super::link::Link;
use super::read_only::ReadOnlyFile;
use super::{MODE, leaving, orphans, parameters, secure_delete};
use crate::by_stock::{PATIENCE, PAUSE};
use crate::clearing;
use crate::errors::{forbids_writing, lacks_space, to_sqlite};
use crate::leftovers::{self, HEADER, Leftover, Neighbours};
use crate::main_file::opened;
use crate::mode::Parameters;
use crate::mode::registry::Membership;
use crate::mode::{Request, Switching};
use crate::plain;

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
        let beside = (&self.beside, asked);
        let is_there = self.path.exists();
        let patience = Patience::OPENING;
        match engine(self.host, self.path, &self.parameters, self.flags, beside, patience) {
            Ok(engine) => {
                if engine.is_exposed() {
                    self.note_exposed();
                }
                Ok(self.linked(Some(engine), asked, membership))
            }
            Err(Failed::NoSpace(_)) if is_there => Ok(self.linked(None, asked, membership)),
            // As the stock VFS does: what can't be written may still be read.
            Err(Failed::Forbidden(error)) => {
                if self.stock_has_to_read()? {
                    drop(membership);
                    return self.plain(None);
                }
                self.read_only(membership, Some(error.to_string())).map_err(|_| error)
            }
            Err(Failed::Other(error)) if self.is_for_stock_to_refuse(&error) => {
                self.no_database(membership, error)
            }
            Err(Failed::Other(error) | Failed::NoSpace(error)) => Err(error),
        }
    }

    /// With no engine the database is at rest until there is space for one; it can be read.
    fn linked(
        &self,
        engine: Option<Connection<Real>>,
        asked: bool,
        membership: Membership,
    ) -> Opened {
        let (shared, window) = (membership.shared(), self.window.clone());
        let place = (self.host, self.path);
        let link = Link::new(engine, place, shared, window, &self.parameters, asked);
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
        let message = error.message.as_deref().unwrap_or_default();
        self.host.note(error.code, &in_folder_of(self.path, message));
        self.plain(Some(membership))
    }
}

/// Why the engine could not open a database for writing.
pub enum Failed {
    /// Writing is not allowed here.
    Forbidden(Error),
    /// There is no space for what writing needs.
    NoSpace(Error),
    /// Anything else.
    Other(Error),
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Forbidden(error) | Failed::NoSpace(error) | Failed::Other(error) => error,
        }
    }
}

/// Who is waited for, and how long.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// A stock process that writes.
    pub stock: Duration,
    /// One of dash that opens, closes or recovers the database. A stopped one does so for good.
    pub others: Duration,
}

impl Patience {
    /// At the end of a rest: SQLite asks the busy handler after a stock writer.
    pub const AFTER_REST: Self = Self { stock: Duration::ZERO, others: OPEN_PATIENCE };
    /// Nobody.
    pub const NONE: Self = Self { stock: Duration::ZERO, others: Duration::ZERO };
    const OPENING: Self = Self { stock: PATIENCE, others: OPEN_PATIENCE };
}

/// Opens the engine for writing, after stock SQLite has dealt with its own leftovers. Unless mode
/// shadow was `asked` for, it was chosen because the database was not in WAL mode: if others put it
/// into that meanwhile, the answer is `SQLITE_BUSY` at once, and the mode has to be chosen again.
pub fn engine(
    host: &HostVfs,
    path: &Path,
    parameters: &Parameters,
    flags: OpenFlags,
    (neighbours, asked): (&Neighbours, bool),
    patience: Patience,
) -> core::result::Result<Connection<Real>, Failed> {
    let options = dash_shadow::OpenOptions {
        create: flags.contains(OpenFlags::CREATE),
        permissions: parameters.permissions(),
        protocol: parameters::protocol_of(parameters),
        patience: patience.others,
        ..dash_shadow::OpenOptions::default()
    };
    let clear = |leftover| clear(host, path, flags, leftover, asked);
    neighbours.leave_the_fence_its_name().map_err(Failed::Other)?;
    secure_delete::ask(host);
    let begun = Instant::now();
    let mut takes_over = false;
    loop {
        // Beside the name fence of one that was killed the engine recovers first.
        if let Some(leftover) = neighbours.find().map_err(Failed::Other)?
            && !neighbours.has_fence().map_err(Failed::Other)?
        {
            clear(leftover)?;
        }
        let opened = match neighbours.folder() {
            Some(folder) => Connection::open_in(&Real, Arc::clone(folder), path, &options),
            None => Connection::open(&Real, path, &options),
        };
        match opened {
            Ok(mut engine) => {
                takes_over |= engine.takes_over();
                note_put_aside(host, path, &engine);
                // From here on stock SQLite leaves nothing: but it may have, until just now.
                let mut header = [0; HEADER];
                let read = engine.read(&mut header, 0).map_err(to_sqlite);
                read.map_err(Failed::Other)?;
                let wal = leftovers::says_wal(&header);
                if !wal && neighbours.find().map_err(Failed::Other)?.is_none() {
                    engine.set_kept_limit(parameters::kept_limit_of(parameters));
                    if takes_over {
                        orphans::remove(path, &mut |message| host.note(Code::WARNING, message));
                    }
                    return Ok(engine);
                }
                let closed = engine.close().map_err(to_sqlite);
                closed.map_err(Failed::Other)?;
                if wal {
                    clear(Leftover::Wal)?;
                }
            }
            Err(EngineError::Busy) => {}
            Err(error) if forbids_writing(&error) => {
                return Err(Failed::Forbidden(to_sqlite(error)));
            }
            Err(error) if lacks_space(&error) => return Err(Failed::NoSpace(to_sqlite(error))),
            Err(error) => return Err(Failed::Other(to_sqlite(error))),
        }
        if begun.elapsed() >= patience.stock {
            return Err(Failed::Other(Error::new(
                Code::BUSY,
                format!("{} is locked: a stock SQLite process is writing it", path.display()),
            )));
        }
        host.sleep(PAUSE);
    }
}

/// Says what became of the shadow of a database that was removed.
pub(super) fn note_put_aside(host: &HostVfs, path: &Path, engine: &Connection<Real>) {
    if !engine.has_put_aside() {
        return;
    }
    let shown = path.display();
    let message = format!(
        "{shown} was removed or moved away after a clean close, and a new one begins: its second copy is {shown}-shadow-old now. \
         Remove that; or, to have its content back, give it the name other.db-shadow and run `sqlite-dash recover other.db`"
    );
    host.note(Code::WARNING, &message);
}

/// Has stock SQLite deal with what it left.
fn clear(
    host: &HostVfs,
    path: &Path,
    flags: OpenFlags,
    leftover: Leftover,
    asked: bool,
) -> core::result::Result<(), Failed> {
    let cleared = leaving::is_unfinished(path)
        .and_then(|unfinished| clearing::clear(host, path, flags, leftover, asked || unfinished));
    cleared.map_err(|error| match error.code.primary() {
        Code::READONLY | Code::CANTOPEN => Failed::Forbidden(error),
        Code::FULL => Failed::NoSpace(error),
        _ => Failed::Other(error),
    })
}

/// See [`crate::mode::Mode::can_open`].
pub(super) fn can_open(request: &Request<'_>) -> Result<bool> {
    let Request { host, path, parameters, flags, beside, .. } = request;
    match engine(host, path, parameters, *flags, (beside, false), Patience::OPENING) {
        // Whoever opens it says so.
        Ok(engine) if engine.is_exposed() => engine.close().map(|()| false).map_err(to_sqlite),
        Ok(engine) => engine.close().map(|()| true).map_err(to_sqlite),
        Err(Failed::Other(error)) if error.code.primary() == Code::BUSY => Err(error),
        Err(_) => Ok(false),
    }
}

/// Under a connection that had the file open in another mode.
pub(super) fn entered(switching: &Switching<'_>) -> Result<ShadowFile> {
    let Switching { host, path, parameters, window, membership, asked, .. } = switching;
    let neighbours = (&Neighbours::of(path), *asked);
    let (flags, patience) = (OpenFlags::READWRITE, Patience::OPENING);
    let engine = engine(host, path, parameters, flags, neighbours, patience)?;
    let (shared, window) = (membership.shared(), (*window).clone());
    let link = Link::new(Some(engine), (host, path), shared, window, parameters, *asked);
    Ok(ShadowFile::new(link, **host, shared.clone(), parameters.psow()))
}
