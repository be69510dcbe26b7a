//! Opening the engine for writing, after stock SQLite has dealt with its own leftovers.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dash_ffi::{Code, Error, HostVfs, OpenFlags};
use dash_shadow::{Connection, Error as EngineError, OPEN_PATIENCE};
use dash_storage::real::Real;

use super::{leaving, orphans, parameters, secure_delete};
use crate::by_stock::{PATIENCE, PAUSE};
use crate::clearing;
use crate::errors::{forbids_writing, lacks_space, to_sqlite};
use crate::leftovers::{self, HEADER, Leftover, Neighbours};
use crate::mode::Parameters;

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
    /// As it is opened.
    pub const OPENING: Self = Self { stock: PATIENCE, others: OPEN_PATIENCE };
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
                leaving::note_put_aside(host, path, &engine);
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
