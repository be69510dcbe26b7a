//! Opening the engine for writing, after stock SQLite has dealt with its own leftovers.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use dash_ffi::{Code, Error, OpenFlags};
use dash_shadow::{Connection, Error as EngineError, LockLevel, Result};
use dash_storage::FileId;
use dash_storage::real::{PerProcess, Real};

use super::name::MODE;
use super::{leaving, parameters, secure_delete, settle};
use crate::by_stock::PAUSE;
use crate::clearing;
use crate::errors::{forbids_writing, lacks_space, to_sqlite};
use crate::leftovers::{self, HEADER, Leftover};
use crate::mode::{COMMIT, Mode, Parameters, Shared};
use crate::rollback::engine::{Counter, Failed, Identity, Rollback, ToOpen};
use crate::rollback::orphans;
use crate::rollback::rest::{Keeper, Rests};

impl Rollback for Connection<Real> {
    const MODE: &'static dyn Mode = MODE;
    const CHOSEN: &'static [&'static str] = &[COMMIT, parameters::KEPT_LIMIT];

    fn open(what: &ToOpen<'_>) -> core::result::Result<Self, Failed> {
        let ToOpen { host, path, parameters, flags, beside, patience, .. } = *what;
        let options = dash_shadow::OpenOptions {
            create: flags.contains(OpenFlags::CREATE),
            permissions: parameters.permissions(),
            protocol: parameters::protocol_of(parameters),
            patience: patience.others,
            ..dash_shadow::OpenOptions::default()
        };
        beside.leave_the_fence_its_name().map_err(Failed::Other)?;
        secure_delete::ask(host);
        let begun = Instant::now();
        let mut takes_over = false;
        loop {
            // Beside the name fence of one that was killed the engine recovers first.
            if let Some(leftover) = beside.find().map_err(Failed::Other)?
                && !beside.has_fence().map_err(Failed::Other)?
            {
                clear(what, leftover)?;
            }
            let opened = match beside.folder() {
                Some(folder) => Self::open_in(&Real, Arc::clone(folder), path, &options),
                None => Self::open(&Real, path, &options),
            };
            match opened {
                Ok(engine) => {
                    takes_over |= engine.takes_over();
                    if let Some(engine) = unless_stock_left(what, engine, takes_over)? {
                        return Ok(engine);
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
                    format!(
                        "{} is locked: stock SQLite writes it, or keeps it (locking_mode=EXCLUSIVE). Opening waits 2 s for \
                         that, whatever busy_timeout is: open it again once it has ended",
                        path.display()
                    ),
                )));
            }
            host.sleep(PAUSE);
        }
    }

    fn choose(&mut self, parameters: &Parameters) {
        self.set_protocol(parameters::protocol_of(parameters));
        self.set_kept_limit(parameters::kept_limit_of(parameters));
    }

    fn close_telling(self, tell: &mut dyn FnMut(&str)) -> Result<()> {
        Self::close_telling(self, tell)
    }

    fn is_open(path: &Path) -> bool {
        dash_shadow::is_open(&Real, path)
    }

    fn is_at_rest(path: &Path) -> Result<bool> {
        dash_shadow::is_at_rest(&Real, path)
    }

    fn remove_orphan(path: &Path, name: &OsStr) -> Result<()> {
        dash_shadow::remove_orphan(&Real, path, name).map(drop)
    }

    fn is_at_work(shared: &Shared) -> bool {
        settle::is_at_work(shared)
    }

    fn finish_work(shared: &Shared) {
        settle::finish(shared);
    }

    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        Self::read(self, buffer, offset)
    }

    fn level(&self) -> LockLevel {
        Self::level(self)
    }

    fn sequence(&self) -> u64 {
        Self::sequence(self)
    }

    fn is_idle(&self) -> bool {
        Self::is_idle(self)
    }

    fn is_written(&self) -> bool {
        Self::is_written(self)
    }

    fn has_had_several(&self) -> bool {
        Self::has_had_several(self)
    }

    fn identity(&self) -> Identity {
        let found = Self::identity(self);
        Identity { database: found.pair, commit: found.commit }
    }

    fn files(&self) -> Vec<FileId> {
        Self::files(self).collect()
    }

    fn counters(&self) -> (Vec<Counter>, Vec<u64>) {
        (self.statistics().rows().to_vec(), self.totals())
    }

    fn kept_bytes(&self) -> u64 {
        Self::kept_bytes(self)
    }
}

impl Rests for Connection<Real> {
    fn keeper() -> &'static PerProcess<Keeper<Self>> {
        static KEEPER: PerProcess<Keeper<Connection<Real>>> = PerProcess::new();
        &KEEPER
    }
}

/// What was opened, unless stock SQLite had left something until just now. From here on it leaves
/// nothing.
fn unless_stock_left(
    what: &ToOpen<'_>,
    mut engine: Connection<Real>,
    takes_over: bool,
) -> core::result::Result<Option<Connection<Real>>, Failed> {
    let ToOpen { host, path, .. } = *what;
    leaving::note_put_aside(host, path, &engine);
    let mut header = [0; HEADER];
    engine.read(&mut header, 0).map_err(|error| Failed::Other(to_sqlite(error)))?;
    let wal = leftovers::says_wal(&header);
    if !wal && what.beside.find().map_err(Failed::Other)?.is_none() {
        engine.set_kept_limit(parameters::kept_limit_of(what.parameters));
        if takes_over {
            let mut tell = |message: &str| host.note(Code::WARNING, message);
            orphans::remove::<Connection<Real>>(path, &mut tell);
        }
        return Ok(Some(engine));
    }
    engine.close().map_err(|error| Failed::Other(to_sqlite(error)))?;
    if wal {
        clear(what, Leftover::Wal)?;
    }
    Ok(None)
}

/// Has stock SQLite deal with what it left.
fn clear(what: &ToOpen<'_>, leftover: Leftover) -> core::result::Result<(), Failed> {
    let ToOpen { host, path, flags, asked, .. } = *what;
    let cleared = leaving::is_unfinished(path)
        .and_then(|unfinished| clearing::clear(host, path, flags, leftover, asked || unfinished));
    cleared.map_err(|error| match error.code.primary() {
        Code::READONLY | Code::CANTOPEN => Failed::Forbidden(error),
        Code::FULL => Failed::NoSpace(error),
        _ => Failed::Other(error),
    })
}
