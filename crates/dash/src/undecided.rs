//! A database whose mode nobody has said yet: a new one, or a plain file that nobody uses.
//!
//! Programs open a database and say `PRAGMA journal_mode` next, and workers of a server do so all
//! at the same moment. An engine that one of them had for the time between would keep the others
//! from changing the mode. So such a file stays a plain one until it is locked (an empty one: until
//! it is written, or somebody else has put something there), or the program says its mode. A
//! question chooses none for an empty one.

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use dash_engine::error::Error as EngineError;
use dash_engine::names;
use dash_ffi::{
    AccessCheck, Code, ConnectionRef, Error, File, LockLevel, OpenFlags, Opened, Result, SyncFlags,
};
use dash_storage::real::{self, Real};
use dash_storage::{Directory, Storage};

use crate::by_stock::{PATIENCE, PAUSE};
use crate::errors::{inherited, to_sqlite};
use crate::leftovers::Neighbours;
use crate::main_file::MainFile;
use crate::mode::registry::{self, Membership};
use crate::mode::{Mode, Place, Request, Switching, in_use};
use crate::modes::MODES;
use crate::plain;

/// How long another one may have it open before it is taken to be in use, and not only looked at by
/// somebody who opens it, too.
const GLANCE: Duration = Duration::from_millis(100);

/// Whether the mode can wait: the file is plain, nothing is beside it, and a mode of dash's own
/// could be entered.
pub fn can_wait(request: &Request<'_>) -> Result<bool> {
    let Request { path, beside, flags, parameters, host, .. } = request;
    if parameters.mode.is_some() || registry::mode_of(path).is_some() {
        return Ok(false);
    }
    let is_new = flags.contains(OpenFlags::CREATE) && is_empty(path, beside)?;
    if !is_new && !is_at_rest(path, beside)? {
        return Ok(false);
    }
    let may_write = host.access(path.parent().unwrap_or(Path::new("/")), AccessCheck::ReadWrite)?;
    // What would be in the way of an engine is an error of opening, or makes it read-only.
    Ok(may_write && (is_new || MODES.0[0].can_open(request)?))
}

fn is_empty(path: &Path, beside: &Neighbours) -> Result<bool> {
    let is_empty = match path.symlink_metadata() {
        Ok(found) => found.is_file() && found.len() == 0,
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    Ok(is_empty && is_alone(path, beside)?)
}

/// Whether it is a database in rollback mode, and neither an engine nor stock SQLite has begun
/// anything beside it.
fn is_at_rest(path: &Path, beside: &Neighbours) -> Result<bool> {
    let is_plain = path.symlink_metadata().is_ok_and(|found| found.is_file())
        && beside.says_rollback_mode(path);
    Ok(is_plain && is_alone(path, beside)?)
}

fn is_alone(path: &Path, beside: &Neighbours) -> Result<bool> {
    Ok(beside.find()?.is_none() && !beside.has_fence()? && nothing_is_left(path))
}

/// Whether no engine has left a file that its database belongs to. No, if that can't be told; nor
/// beside a name that is too long for one, which is refused at once.
fn nothing_is_left(path: &Path) -> bool {
    if names::split(path, "-dash-fence").is_err() {
        return false;
    }
    let Some(folder) = path.parent().and_then(|folder| Real.open_directory(folder).ok()) else {
        return false;
    };
    let is_absent = |name: &OsString| matches!(folder.metadata(name), Ok(None));
    MODES.all().flat_map(|mode| mode.files_beside(path)).all(|name| is_absent(&name))
}

/// Opens it as a plain file; `None`: it can't be written.
pub fn open(request: &Request<'_>) -> Result<Option<Opened>> {
    let Some(mut opened) = request.plain_undecided()? else { return Ok(None) };
    if let Some(file) = opened.file.downcast_mut::<MainFile>() {
        file.undecided = true;
    }
    Ok(Some(opened))
}

impl MainFile {
    /// Chooses the mode, if that was left open: the one wanted, or that in which others have the
    /// database, or the first.
    ///
    /// # Errors
    ///
    /// Why it can't be had; it stays open then.
    pub(crate) fn decide(&mut self, wanted: Option<&'static dyn Mode>) -> Result<()> {
        let begun = Instant::now();
        loop {
            match self.decide_once(wanted) {
                Err(error) if passes(&error) && begun.elapsed() < PATIENCE => {
                    self.host.sleep(PAUSE);
                }
                other => return other,
            }
        }
    }

    /// Whether it is empty still, and nobody has said the mode. By its name: an engine may have put
    /// another file there.
    pub(crate) fn is_still_new(&self) -> Result<bool> {
        Ok(self.undecided && is_empty(&self.path, &Neighbours::of(&self.path))?)
    }

    /// The mode that an empty database is going to be in if nobody says another one. None: it is
    /// chosen.
    pub(crate) fn mode_to_be(&self) -> Result<Option<&'static dyn Mode>> {
        if !self.is_still_new()? || self.forks != real::forks() {
            return Ok(None);
        }
        let beside = Neighbours::of(&self.path);
        let (path, parameters) = (&*self.path, &self.parameters);
        let place = Place { path, parameters, beside: &beside, creates: false };
        self.left_in(&place).map(Some)
    }

    /// That in which others have the database, or that it was left in. One that was left in none
    /// goes where `main` is, if that is a plain mode: a transaction over both needs one of one
    /// kind.
    fn left_in(&self, place: &Place<'_>) -> Result<&'static dyn Mode> {
        if let Some(mode) = registry::mode_of(place.path) {
            return Ok(mode);
        }
        let (left, first) = (MODES.left_in(place)?, MODES.0[0]);
        let is_open = left == first && !place.parameters.stays_in(first);
        Ok(if is_open && self.is_beside_plain() { plain::MODE } else { left })
    }

    /// Whether it is attached to a `main` of dash that is in a plain mode, by choice.
    fn is_beside_plain(&self) -> bool {
        let look = |file: &mut dyn File| {
            let main = file.downcast_mut::<Self>()?;
            Some(!main.undecided && main.membership.is_some() && main.mode.is_plain())
        };
        let visit = |connection: &ConnectionRef<'_>| connection.with_file_below("main", look);
        let seen = self.connection.as_ref().and_then(|connection| connection.visit(visit));
        seen.flatten().flatten() == Some(true)
    }

    /// Whether the mode that this connection asks for can be the first one: nobody has the database
    /// in another.
    pub(crate) fn may_choose(&self) -> Result<bool> {
        let begun = Instant::now();
        while !self.is_still_new()? {
            if !self.undecided || !is_at_rest(&self.path, &Neighbours::of(&self.path))? {
                return Ok(false);
            }
            if !dash_shadow::is_open(&Real, &self.path) {
                break;
            }
            if begun.elapsed() >= GLANCE {
                return Ok(false);
            }
            self.host.sleep(PAUSE);
        }
        Ok(true)
    }

    fn decide_once(&mut self, wanted: Option<&'static dyn Mode>) -> Result<()> {
        if !self.undecided {
            return Ok(());
        }
        if self.forks != real::forks() {
            return Err(inherited(&self.path));
        }
        self.database.may_leave()?;
        let beside = Neighbours::of(&self.path);
        let (path, parameters) = (&*self.path, &self.parameters);
        let place = Place { path, parameters, beside: &beside, creates: false };
        let is_copy = wanted.is_none() && self.is_vacuumed_into();
        let mode = match wanted.or_else(|| registry::mode_of(&self.path)) {
            Some(mode) => mode,
            None if is_copy => plain::MODE,
            None => self.left_in(&place)?,
        };
        let joined = registry::join(&self.path, wanted, mode);
        let (membership, mode) = joined.map_err(|_| in_use(&self.path))?;
        // Others may have come since this one looked, and been killed.
        for other in MODES.others(mode).filter(|_| membership.is_alone()) {
            other.give_way(&self.host, &place, mode)?;
        }
        match mode.is_plain() {
            true => self.refuse_engines()?,
            false => self.take_over(&membership, mode, wanted.is_some())?,
        }
        (self.membership, self.mode, self.undecided) = (Some(membership), mode, false);
        self.is_copy = is_copy && mode.is_plain();
        self.note_ignored(mode, false);
        Ok(())
    }

    /// Whether it is a copy that SQLite makes for somebody to take away: that is a plain file.
    fn is_vacuumed_into(&self) -> bool {
        let asked = self.connection.as_ref().and_then(|connection| {
            connection.visit(|connection| connection.vacuums_into(&self.path))
        });
        asked == Some(true)
    }

    /// Makes the copy and its name durable, as a backup is: before 3.45 SQLite itself never does.
    pub(crate) fn flush_copy(&mut self) -> Result<()> {
        self.database.sync(SyncFlags::FULL)?;
        Neighbours::of(&self.path).flush_folder()
    }

    /// A plain file is no other process's in a mode of dash's own.
    fn refuse_engines(&self) -> Result<()> {
        match dash_shadow::while_closed(&Real, &self.path, || ()) {
            Err(EngineError::Busy) => Err(in_use(&self.path)),
            other => other.map_err(to_sqlite),
        }
    }

    /// The engine in place of the plain file, with what SQLite has set there.
    fn take_over(
        &mut self,
        membership: &Membership,
        mode: &'static dyn Mode,
        asked: bool,
    ) -> Result<()> {
        let carried = self.carried()?;
        let mut engine = mode.enter(&Switching { asked, ..self.switching(membership) })?;
        carried.set(&mut *engine)?;
        let plain = std::mem::replace(&mut self.database, engine);
        plain.end(&self.host)
    }

    /// Before a lock is raised: the mode can wait as long as an empty file is only read.
    pub(crate) fn decide_for(&mut self, level: LockLevel) -> Result<()> {
        if !self.undecided {
            return Ok(());
        }
        if level == LockLevel::Shared {
            return if self.is_still_new()? { Ok(()) } else { self.decide_at_lock() };
        }
        // SHARED of the plain file is in nobody's way for the moment without it.
        self.database.unlock(LockLevel::None)?;
        let decided = self.decide_at_lock();
        self.database.lock(LockLevel::Shared)?;
        decided?;
        match self.database.size()? {
            0 => Ok(()),
            // What was read is no longer so.
            _ => Err(Code::BUSY.into()),
        }
    }

    /// SQLite's busy handler does the waiting. It counts what it asked to sleep, not how long an
    /// attempt took: one that has waited in vain for others is not to be made again.
    fn decide_at_lock(&mut self) -> Result<()> {
        let begun = Instant::now();
        self.decide_once(None).map_err(|error| match passes(&error) {
            true if begun.elapsed() >= PATIENCE => Error { code: Code::CANTOPEN, ..error },
            _ => error,
        })
    }
}

/// Whether others may be about to change the mode.
fn passes(error: &Error) -> bool {
    error.code.primary() == Code::BUSY
}
