//! A database in mode shadow, as SQLite sees it: every file method, mapped onto the engine.
//!
//! The commit point is `SQLITE_FCNTL_COMMIT_PHASETWO` (see `control`); `xSync` and what comes
//! before only prepare, and `xUnlock` undoes what was not published.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dash_ffi::{
    BusyHandler, Code, DeviceCharacteristics, Error, File, FileControl, Handled, HostVfs,
    LockLevel, PagePointer, Result, SyncFlags, Window,
};
use dash_shadow::{Connection, Error as EngineError, Protocol};
use dash_storage::real::Real;

use super::shared::Prepared;
use super::{linger, settle};
use crate::controls::engine_level;
use crate::errors::{errno_of, to_sqlite};
use crate::latency::{Latencies, Op};
use crate::main_file::SECTOR;
use crate::mapping::Maps;
use crate::mode::registry::{Shared, Writing};
use crate::wake::{self, Cause, Reader};

/// What is promised of a database in mode shadow:
///
/// - `POWERSAFE_OVERWRITE`: a page is never written in place, so a torn write can't reach its
///   neighbours; unless the user said `psow=0`;
/// - `SAFE_APPEND`: the journal is in memory, its length can't outrun its content;
/// - `SUBPAGE_READ`: reads of any place and length are served.
///
/// Not promised: `ATOMIC*` and `BATCH_ATOMIC` (SQLite would skip the steps at which the engine
/// commits), `SEQUENTIAL` (it would leave out the flush of a super-journal, which must be durable
/// before a database is prepared under it), `UNDELETABLE_WHEN_OPEN` (a user can move the file away,
/// and SQLite must ask), `IMMUTABLE` (SQLite would take no locks).
const PROMISES: DeviceCharacteristics =
    DeviceCharacteristics::SAFE_APPEND.union(DeviceCharacteristics::SUBPAGE_READ);

/// An open database.
pub struct ShadowFile {
    pub(crate) engine: Connection<Real>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) host: HostVfs,
    pub(crate) prepared: Arc<Prepared>,
    /// Says that stock writers are kept out.
    _writing: Writing,
    pub(crate) path: PathBuf,
    /// The database's folder.
    pub(crate) folder: PathBuf,
    pub(crate) busy: Option<BusyHandler>,
    pub(crate) maps: Maps,
    pub(crate) latencies: Latencies,
    pub(crate) time_reads: bool,
    pub(crate) errno: i32,
    pub(crate) powersafe_overwrite: bool,
    pub(crate) persist_wal: bool,
    /// Whether `PRAGMA locking_mode=EXCLUSIVE` came by here.
    pub(crate) exclusive: bool,
    /// What PRAGMA secure_delete said here.
    pub(crate) secure_delete: Option<bool>,
    pub(crate) progress: Progress,
    /// Locks that this connection got when who was in the way woke it.
    pub(crate) wakeups: u64,
    /// What `dash_commit` was set to.
    pub(crate) protocol: Protocol,
    /// Since when a lock attempt has been failing.
    waiting_since: Option<Instant>,
    /// When it was last told that readers keep it from writing.
    held_at: Option<Instant>,
    /// Since when it reads.
    reader: Reader,
}

/// How often it is told why nobody can write.
const TOLD_AGAIN: Duration = Duration::from_secs(1);

/// How far a commit has come.
#[derive(Default)]
pub struct Progress {
    /// When SQLite asked to prepare.
    pub begun: Option<Instant>,
    /// Whether it was flushed since.
    pub flushed: bool,
    /// Whether it is, or was, prepared under a super-journal.
    pub under_super_journal: bool,
    /// Whether SQLite has asked since to prepare what doesn't name it: a rollback.
    pub leaving_super_journal: bool,
    /// Commits since the writer lock was taken: more than one only under locking_mode=EXCLUSIVE.
    pub commits_under_lock: u64,
    /// Commits without a flush (synchronous=OFF).
    pub unflushed: u64,
}

impl ShadowFile {
    /// Wraps an open engine.
    pub fn new(
        engine: Connection<Real>,
        host: HostVfs,
        path: &Path,
        shared: Arc<Shared>,
        powersafe_overwrite: bool,
        window: Arc<Window>,
    ) -> Self {
        Self {
            protocol: engine.protocol(),
            engine,
            _writing: Writing::new(&shared),
            prepared: shared.of(),
            shared,
            host,
            path: path.to_path_buf(),
            folder: path.parent().unwrap_or(Path::new("/")).to_path_buf(),
            busy: None,
            maps: Maps::new(window),
            latencies: Latencies::default(),
            time_reads: false,
            errno: 0,
            powersafe_overwrite,
            persist_wal: false,
            exclusive: false,
            secure_delete: None,
            progress: Progress::default(),
            wakeups: 0,
            waiting_since: None,
            held_at: None,
            reader: Reader::default(),
        }
    }

    /// Maps an engine's error, and keeps its `errno`.
    pub(crate) fn failed(&mut self, error: EngineError) -> Error {
        self.errno = errno_of(&error);
        to_sqlite(error)
    }

    /// Calls the engine where SQLite does not expect `SQLITE_BUSY`: under locking_mode=EXCLUSIVE
    /// the next commit's copy may still be read. Asks the busy handler here, then gives up with an
    /// I/O error.
    pub(crate) fn patiently<R>(
        &mut self,
        mut call: impl FnMut(&mut Connection<Real>) -> core::result::Result<R, EngineError>,
    ) -> Result<R> {
        loop {
            let seen = self.shared.queue.releases();
            self.shared.queue.want_readers_gone(true);
            let result = call(&mut self.engine);
            match result {
                Err(EngineError::Busy | EngineError::Held(_)) => {
                    self.shared.queue.failed(seen, Cause::Readers, None);
                }
                other => {
                    self.shared.queue.want_readers_gone(false);
                    return other.map_err(|error| self.failed(error));
                }
            }
            if !self.busy.as_ref().is_some_and(BusyHandler::call) {
                self.shared.queue.want_readers_gone(false);
                return Err(Error::new(
                    Code::IOERR_LOCK,
                    "a reader keeps the copy that the next commit goes to, longer than busy_timeout: \
                     under locking_mode=EXCLUSIVE that ends the transaction",
                ));
            }
        }
    }

    /// Takes a lock; under locking_mode=EXCLUSIVE one that SQLite keeps, and trusts its pages by.
    fn raise(&mut self, level: dash_shadow::LockLevel) -> core::result::Result<(), EngineError> {
        self.engine.lock(level)?;
        if self.exclusive { self.engine.hold_off_writers() } else { Ok(()) }
    }

    fn must_wait(&mut self, seen: u64, cause: Cause, code: Code) -> Error {
        self.shared.queue.failed(seen, cause, self.engine.turn());
        self.waiting_since.get_or_insert_with(Instant::now);
        code.into()
    }

    /// Readers keep it from writing: told once a second, as the busy handler asks often.
    fn held(&mut self, seen: u64, why: String) -> Error {
        self.shared.queue.failed(seen, Cause::Writer, None);
        self.waiting_since.get_or_insert_with(Instant::now);
        if self.held_at.is_some_and(|at| at.elapsed() < TOLD_AGAIN) {
            return Code::BUSY.into();
        }
        self.held_at = Some(Instant::now());
        Error::new(Code::BUSY, why)
    }

    /// Nothing on disk names the super-journal any more.
    pub(crate) fn leave_super_journal(&mut self) {
        self.progress.leaving_super_journal = false;
        if std::mem::take(&mut self.progress.under_super_journal) {
            self.prepared.set_super_journal(None);
        }
    }

    /// Closes the engine, at once or after `linger`; what the user should know goes to the log.
    pub(super) fn close_engine(mut self, linger: Duration, host: &HostVfs) -> Result<()> {
        settle::finish(&self.shared);
        if self.engine.level() >= dash_shadow::LockLevel::Reserved {
            self.shared.queue.want_readers_gone(false);
        }
        let (level, sequence) = (self.engine.level(), self.engine.sequence());
        // Before OPEN goes with the engine: whoever closes next asks who has the copies open, and a
        // mapping of one does.
        drop(self.maps);
        let mut tell = |message: &str| host.note(Code::WARNING, message);
        let closed = match self.engine.unlock(dash_shadow::LockLevel::None) {
            Ok(()) => linger::close(self.engine, &self.path, linger, &mut tell),
            Err(error) => self.engine.close_telling(&mut tell).and(Err(error)),
        };
        if level > dash_shadow::LockLevel::None {
            self.shared.queue.reader_left(self.reader, || sequence);
        }
        if self.progress.under_super_journal && closed.is_ok() {
            self.prepared.set_super_journal(None);
        }
        closed.map_err(to_sqlite)
    }
}

impl File for ShadowFile {
    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        if !self.time_reads {
            return self.engine.read(buffer, offset).map_err(|error| self.failed(error));
        }
        let begun = Instant::now();
        let read = self.engine.read(buffer, offset);
        self.latencies.record(Op::Read, begun);
        read.map_err(|error| self.failed(error))
    }

    fn write(&mut self, data: &[u8], offset: u64) -> Result<()> {
        match self.engine.write(data, offset) {
            Err(EngineError::Busy | EngineError::Held(_)) => {
                self.patiently(|engine| engine.write(data, offset))
            }
            other => other.map_err(|error| self.failed(error)),
        }
    }

    fn truncate(&mut self, size: u64) -> Result<()> {
        match self.engine.truncate(size) {
            Err(EngineError::Busy | EngineError::Held(_)) => {
                self.patiently(|engine| engine.truncate(size))
            }
            other => other.map_err(|error| self.failed(error)),
        }
    }

    fn sync(&mut self, _: SyncFlags) -> Result<()> {
        self.flush()
    }

    fn size(&mut self) -> Result<u64> {
        Ok(self.engine.size())
    }

    fn lock(&mut self, level: LockLevel) -> Result<()> {
        let before = self.engine.level();
        let level = engine_level(level);
        let writer = dash_shadow::LockLevel::Reserved;
        let becomes_writer = before < writer && level >= writer;
        let seen = self.shared.queue.releases();
        if before == dash_shadow::LockLevel::None {
            self.reader = self.shared.queue.reader(Some(self.engine.sequence()));
        }
        let mut result = self.raise(level);
        if matches!(result, Err(EngineError::Busy)) && self.engine.level() >= writer {
            // Readers tell from now on when they leave; one may have left just before.
            self.shared.queue.want_readers_gone(true);
            result = self.raise(level);
        }
        match result {
            Ok(()) => {
                if becomes_writer {
                    self.progress =
                        Progress { unflushed: self.progress.unflushed, ..Progress::default() };
                }
                let since = self.waiting_since.take();
                if since.is_some() {
                    self.shared.queue.want_readers_gone(false);
                }
                if becomes_writer || since.is_some() {
                    // SQLite gives up its read lock before it asks the busy handler: then only the
                    // thread knows how long it has waited.
                    let waited = wake::succeeded();
                    self.wakeups += u64::from(waited.is_some_and(|waited| waited.woken));
                    if let Some(notice) = self.engine.kept_notice() {
                        self.host.note(Code::WARNING, &notice);
                    }
                    if let Some(since) = since.or(waited.map(|waited| waited.since)) {
                        self.latencies.record(Op::LockWait, since);
                    }
                }
                Ok(())
            }
            Err(EngineError::Held(why)) => Err(self.held(seen, why)),
            Err(EngineError::Busy) if self.engine.level() >= writer => {
                Err(self.must_wait(seen, Cause::Readers, Code::BUSY))
            }
            Err(EngineError::Busy) => Err(self.must_wait(seen, Cause::Writer, Code::BUSY)),
            Err(EngineError::BusySnapshot) => {
                Err(self.must_wait(seen, Cause::Snapshot, Code::BUSY_SNAPSHOT))
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    fn unlock(&mut self, level: LockLevel) -> Result<()> {
        let before = self.engine.level();
        let unlocked = self.engine.unlock(engine_level(level));
        if before >= dash_shadow::LockLevel::Reserved {
            self.shared.queue.want_readers_gone(false);
            if unlocked.is_ok() {
                self.leave_super_journal();
            }
            self.engine.hand_over();
            if self.engine.owes() >= settle::WORTH {
                settle::in_background(self.path.clone(), &self.shared);
            }
        }
        if level == LockLevel::None {
            if before > dash_shadow::LockLevel::None {
                let reader = std::mem::take(&mut self.reader);
                self.shared.queue.reader_left(reader, || self.engine.sequence());
            }
            self.waiting_since = None;
        }
        unlocked.map_err(|error| self.failed(error))
    }

    fn check_reserved_lock(&mut self) -> Result<bool> {
        self.engine.is_reserved().map_err(|error| self.failed(error))
    }

    fn file_control(&mut self, control: FileControl<'_>) -> Result<Handled> {
        self.control(control)
    }

    fn sector_size(&mut self) -> u32 {
        SECTOR
    }

    fn device_characteristics(&mut self) -> DeviceCharacteristics {
        if self.powersafe_overwrite {
            PROMISES | DeviceCharacteristics::POWERSAFE_OVERWRITE
        } else {
            PROMISES
        }
    }

    fn fetch(&mut self, offset: u64, amount: usize) -> Result<Option<PagePointer>> {
        let Some(range) = self.maps.range(offset, amount) else {
            return Ok(None);
        };
        // A writer that meets mapped pages waits for them.
        self.shared.queue.maps(&mut self.reader);
        let reading = self.engine.level() == dash_shadow::LockLevel::Shared;
        let all = reading.then(|| self.engine.size());
        match self.engine.mappable(range.clone()) {
            // Where mapping fails, reading works.
            Some(file) => Ok(self.maps.page(file, &range, all).unwrap_or(None)),
            None => Ok(None),
        }
    }

    fn unfetch(&mut self, _: u64, page: Option<PagePointer>) -> Result<()> {
        if page.is_some() {
            self.maps.give_back();
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        let Self { engine, maps, .. } = *self;
        // As in `close_engine`.
        drop(maps);
        engine.close().map_err(to_sqlite)
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
