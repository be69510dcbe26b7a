//! A main database, in whatever mode it is: the one file type that SQLite gets for it, because a
//! PRAGMA can change the mode under an open connection.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dash_ffi::{
    BusyHandler, Code, Error, File, FileControl, Handled, HostVfs, KeptConnection, LockLevel,
    OpenFlags, Opened, Result, ShmLock, SyncFlags, Window,
};
use dash_storage::real;

use crate::carried::Said;
use crate::delegate::delegate;
use crate::errors::inherited;
use crate::holders::{Wanted, name_holders};
use crate::mode::caller::Caller;
use crate::mode::registry::Membership;
use crate::mode::{Database, Mode, Parameters, Request};
use crate::refused::{Refusal, Refused};

/// The unit in which devices tear writes, for a user who said `psow=0`; with powersafe overwrite
/// SQLite does not ask.
pub const SECTOR: u32 = 4096;

/// The slots of the wal-index that a writer and a checkpoint have (wal.c).
const WRITER: u16 = 1 << 0;
const CHECKPOINT: u16 = 1 << 1;
const READERS: u16 = 0b1_1111 << 3;

/// For how long a transaction that has read waits for a checkpoint, which may wait for that
/// transaction.
const OF_CHECKPOINT: Duration = Duration::from_millis(100);

/// A database that SQLite has open through dash.
pub struct MainFile {
    pub(crate) mode: &'static dyn Mode,
    pub(crate) database: Box<dyn Database>,
    pub(crate) path: PathBuf,
    pub(crate) host: HostVfs,
    /// What the URI asked for.
    pub(crate) parameters: Parameters,
    /// Where SQLite finds mapped pages.
    pub(crate) window: Arc<Window>,
    /// What was set, also for a file that is there only later.
    pub(crate) said: Said,
    /// SQLite's own connection, to be asked about its other databases.
    pub(crate) connection: Option<KeptConnection>,
    /// [`real::forks`] when it was opened.
    pub(crate) forks: u64,
    /// By which it is known when SQLite opens a file beside it.
    pub(crate) caller: Caller,
    /// Nobody has said the mode yet: see [`crate::undecided`].
    pub(crate) undecided: bool,
    /// SQLite is giving its lock up for the mode to be chosen.
    pub(crate) is_unlocking: bool,
    /// The mode that SQLite has given up for another one, which dash is to enter.
    pub(crate) left: Option<&'static dyn Mode>,
    /// `VACUUM INTO` makes it.
    pub(crate) is_copy: bool,
    /// The place in the process's list. None: read by stock SQLite's rules, whatever others do; or
    /// the mode is not chosen yet.
    pub(crate) membership: Option<Membership>,
    /// The lock that SQLite has.
    pub(crate) level: LockLevel,
    /// Bit i: it has slot i of the wal-index.
    pub(crate) slots: u16,
    /// What it asked for last and did not get.
    pub(crate) refused: Refused,
}

/// What SQLite gets: a database, open in a mode.
pub(crate) fn opened(
    request: &Request<'_>,
    (mode, database): (&'static dyn Mode, Box<dyn Database>),
    flags: OpenFlags,
    membership: Option<Membership>,
) -> Opened {
    let file = MainFile {
        mode,
        database,
        path: request.path.to_path_buf(),
        host: *request.host,
        parameters: request.parameters.clone(),
        window: request.window.clone(),
        said: Said::default(),
        connection: None,
        forks: real::forks(),
        caller: request.caller,
        undecided: false,
        is_unlocking: false,
        left: None,
        is_copy: false,
        membership,
        level: LockLevel::None,
        slots: 0,
        refused: Refused::default(),
    };
    Opened { file: Box::new(file), flags }
}

impl MainFile {
    /// The database, for whoever asks about it, in a mode that is chosen.
    pub(crate) fn look(&mut self) -> &dyn Database {
        // What fails here fails again where the database is used.
        drop(self.check_process().and_then(|()| self.decide(None)));
        &*self.database
    }

    /// SQLite gives WRITER up, at once where its snapshot is old: that it finds by itself.
    fn cease_to_write(&mut self, count: usize) -> Result<()> {
        let ceased = self.database.shm_lock(0, count, ShmLock::UnlockExclusive);
        if self.database.was_outdated() {
            self.refuse(Wanted::Newest, Code::BUSY_SNAPSHOT.into());
        }
        ceased
    }

    /// Notes what SQLite is refused, for whoever asks why. SQLite's busy handler would sleep and
    /// ask again though its connection was interrupted: that gets another error.
    fn refuse(&mut self, wanted: Wanted, error: Error) -> Error {
        if error.code.primary() == Code::BUSY && error.message.is_none() {
            let commits = self.mode.is_plain() || !self.mode.is_sqlites();
            let wanted = match error.code {
                Code::BUSY_SNAPSHOT => Wanted::Newest,
                // SQLite commits; in mode wal it leaves that mode.
                _ if wanted == Wanted::Alone && commits => Wanted::NoReader,
                _ => wanted,
            };
            let by = self.database.in_the_way(wanted);
            let (path, host) = (self.path.clone(), self.host);
            self.refused.note(Refusal { path, host, wanted, by });
            use Wanted::{Read, ReadAlone, Write, WriteAsStock};
            if matches!(wanted, Write | WriteAsStock | Read | ReadAlone) && self.is_interrupted() {
                return Code::INTERRUPT.into();
            }
        }
        error
    }

    /// Waits for the write lock of WAL mode where SQLite does not: a transaction that has read. Its
    /// busy handler says whether to try again. Not for a checkpoint, which may wait for this
    /// transaction to end.
    fn waits_to_write(&self, wanted: Wanted, error: &Error, begun: &mut Option<Instant>) -> bool {
        let asked = self.connection.as_ref();
        if (wanted, error.code) != (Wanted::Write, Code::BUSY)
            || !asked.and_then(|it| it.visit(|it| it.is_reading())).unwrap_or(false)
        {
            return false;
        }
        let waited = begun.get_or_insert_with(Instant::now).elapsed();
        let meets = waited > OF_CHECKPOINT && self.database.is_checkpoint_writing();
        !meets && self.said.busy.as_ref().is_some_and(BusyHandler::call)
    }

    /// Whether `sqlite3_interrupt` was called for what SQLite does.
    fn is_interrupted(&self) -> bool {
        let asked = self.connection.as_ref();
        asked.and_then(|it| it.visit(|it| it.is_interrupted())).unwrap_or(false)
    }

    /// The same error, with who is in the way.
    pub(crate) fn named(&self, error: Error) -> Error {
        name_holders(&self.path, error)
    }

    /// What a lock of the database's file is for.
    fn wanted(&self, level: LockLevel) -> Wanted {
        match level {
            LockLevel::Shared if self.said.is_exclusive() && !self.mode.is_sqlites() => {
                Wanted::ReadAlone
            }
            LockLevel::None | LockLevel::Shared => Wanted::Read,
            LockLevel::Reserved if self.mode.is_plain() => Wanted::WriteAsStock,
            LockLevel::Reserved => Wanted::Write,
            LockLevel::Pending | LockLevel::Exclusive => Wanted::Alone,
        }
    }

    /// What a slot of the wal-index is wanted for; `None`: SQLite goes on without it.
    fn wanted_of(&self, slot: usize, lock: ShmLock) -> Option<Wanted> {
        match (slot, lock) {
            // SQLite, which reads nothing yet, looks whether the wal-index has to be made anew,
            // and tries again (wal.c `walIndexReadHdr`).
            (0, ShmLock::LockExclusive) if self.slots & (CHECKPOINT | READERS) == 0 => None,
            (0, ShmLock::LockExclusive) if self.mode.is_plain() => Some(Wanted::WriteAsStock),
            (0, ShmLock::LockExclusive) => Some(Wanted::Write),
            (1, ShmLock::LockExclusive) => Some(Wanted::Checkpoint),
            // Only a checkpoint that is to be complete takes both.
            (3.., ShmLock::LockExclusive)
                if self.slots & (WRITER | CHECKPOINT) == WRITER | CHECKPOINT =>
            {
                Some(Wanted::NoReaderOfWal)
            }
            _ => None,
        }
    }
}

impl MainFile {
    /// The database, in the process that has it.
    fn checked(&mut self) -> Result<&mut dyn Database> {
        self.check_process()?;
        Ok(&mut *self.database)
    }
}

/// The slots of a call.
fn mask(slot: usize, count: usize) -> u16 {
    (slot..slot.saturating_add(count).min(16)).fold(0, |mask, slot| mask | 1 << slot)
}

impl File for MainFile {
    delegate!([checked()?] write truncate check_reserved_lock shm_map fetch);
    delegate!([database] sector_size device_characteristics shm_barrier unfetch);

    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.check_process()?;
        self.caller.note();
        self.database.read(buffer, offset)
    }

    fn sync(&mut self, flags: SyncFlags) -> Result<()> {
        self.check_process()?;
        self.caller.note();
        self.database.sync(flags)
    }

    fn size(&mut self) -> Result<u64> {
        self.caller.note();
        self.database.size()
    }

    fn lock(&mut self, level: LockLevel) -> Result<()> {
        self.refused.goes_on(level < LockLevel::Reserved);
        self.check_process()?;
        self.caller.note();
        self.decide_for(level).map_err(|error| self.named(error))?;
        let wanted = self.wanted(level);
        if let Err(error) = self.database.lock(level) {
            if !self.undecided || error.code != Code::READONLY_DBMOVED {
                return Err(self.refuse(wanted, error));
            }
            // Somebody's first commit has just put another file there.
            self.decide(None)?;
            self.database.lock(level)?;
        }
        self.refused.is_over(wanted);
        if level == LockLevel::Shared {
            self.keep_up()?;
        }
        self.level = self.level.max(level);
        Ok(())
    }

    fn unlock(&mut self, level: LockLevel) -> Result<()> {
        self.level = self.level.min(level);
        if self.is_inherited() {
            return Ok(()); // the locks are the parent's
        }
        self.caller.note();
        self.database.unlock(level)?;
        if level == LockLevel::None && self.database.is_left() { self.follow() } else { Ok(()) }
    }

    fn file_control(&mut self, control: FileControl<'_>) -> Result<Handled> {
        // SQLite asks before it checkpoints and closes: what the child only closes does neither.
        if matches!(control, FileControl::HasMoved(_)) && self.is_inherited() {
            // Nobody is told: the child only closes what it has not used.
            return Err(inherited(&self.path).code.into());
        }
        self.check_process()?;
        self.caller.note();
        match control {
            FileControl::Pragma(pragma) => {
                return self.pragma(pragma).map_err(|error| self.named(error));
            }
            FileControl::BusyHandler(ref handler) => self.said.busy = Some(handler.clone()),
            FileControl::ChunkSize(size) => self.said.chunk = Some(size),
            FileControl::Pdb(ref connection) => self.connection = Some(connection.keep()),
            FileControl::VfsName(_) => drop(self.decide(None)),
            FileControl::Sync { .. } if self.is_copy => self.flush_copy()?,
            _ => {}
        }
        self.database.file_control(control)
    }

    fn has_shared_memory(&self) -> bool {
        self.database.has_shared_memory()
    }

    fn shm_lock(&mut self, slot: usize, count: usize, lock: ShmLock) -> Result<()> {
        let takes = matches!(lock, ShmLock::LockShared | ShmLock::LockExclusive);
        if !takes {
            self.slots &= !mask(slot, count);
            if self.is_inherited() {
                return Ok(()); // the parent's
            }
        }
        let wanted = takes.then(|| self.wanted_of(slot, lock)).flatten();
        // A checkpoint that meets readers goes on as far as it can.
        if takes && self.slots & CHECKPOINT == 0 {
            self.refused.goes_on(wanted != Some(Wanted::Write));
        }
        self.check_process()?;
        self.caller.note();
        if (slot, lock) == (0, ShmLock::UnlockExclusive) {
            return self.cease_to_write(count);
        }
        let mut begun = None;
        loop {
            match (self.database.shm_lock(slot, count, lock), wanted) {
                (Err(error), Some(wanted)) => {
                    let error = self.refuse(wanted, error);
                    if !self.waits_to_write(wanted, &error, &mut begun) {
                        return Err(error);
                    }
                }
                (Err(error), None) => return Err(error),
                (Ok(()), None | Some(Wanted::NoReaderOfWal)) => break,
                (Ok(()), Some(wanted)) => {
                    self.refused.is_over(wanted);
                    break;
                }
            }
        }
        if takes {
            self.slots |= mask(slot, count);
        }
        Ok(())
    }

    fn shm_unmap(&mut self, delete: bool) -> Result<()> {
        // SQLite asks whether it is alone before it closes.
        self.refused.is_over(Wanted::Alone);
        self.caller.note();
        if self.is_inherited() {
            return Ok(());
        }
        self.database.shm_unmap(delete)
    }

    fn window(&self) -> Option<Arc<Window>> {
        Some(Arc::clone(&self.window))
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.refused.is_over(Wanted::Alone);
        self.refused.goes_on(true);
        let is_inherited = self.is_inherited();
        let Self { database, membership, host, .. } = *self;
        if is_inherited {
            std::mem::forget(database);
            return Ok(());
        }
        let closed = database.end(&host);
        drop(membership);
        real::close_left();
        closed
    }
}
