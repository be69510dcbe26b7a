//! A database in mode shadow, as SQLite sees it: every file method, mapped onto the engine.
//!
//! The commit point is `SQLITE_FCNTL_COMMIT_PHASETWO` (see `control`); `xSync` and what comes
//! before only prepare, and `xUnlock` undoes what was not published.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use dash_ffi::{
    BusyHandler, Code, DeviceCharacteristics, Error, File, FileControl, Handled, HostVfs,
    LockLevel, PagePointer, Result, SyncFlags,
};
use dash_shadow::{Connection, Error as EngineError, Protocol};
use dash_storage::real::Real;

use super::without_engine::WithoutEngine;
use super::{parameters, settle, without_engine};
use crate::controls::engine_level;
use crate::errors::{errno_of, to_sqlite};
use crate::latency::{Latencies, Op};
use crate::main_file::SECTOR;
use crate::mapping::Maps;
use crate::mode::{Shared, Writing};
use crate::rollback::engine::Failed;
use crate::rollback::link::Link;
use crate::rollback::super_journal::Prepared;
use crate::rollback::{orphans, rest};
use crate::wake::{Cause, Reader};

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
    pub(crate) link: Arc<Link<Connection<Real>>>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) host: HostVfs,
    pub(crate) prepared: Arc<Prepared>,
    /// Says that stock writers are kept out.
    _writing: Writing,
    /// The database's folder.
    pub(crate) folder: PathBuf,
    pub(crate) busy: Option<BusyHandler>,
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
    pub(super) waiting_since: Option<Instant>,
    /// Why it was just refused a lock.
    pub(super) why_busy: Option<String>,
    /// When it was last looked which readers keep a commit waiting, and what is said of them.
    pub(super) looked_at: Option<(Instant, Option<String>)>,
    /// Since when it reads.
    reader: Reader,
    /// Others have put it into WAL mode while it was at rest.
    pub(super) is_in_wal_mode: bool,
    /// It reads, and there is no engine.
    pub(super) without_engine: Option<WithoutEngine>,
}

/// How far a commit has come.
#[derive(Default)]
pub struct Progress {
    /// When SQLite asked to prepare.
    pub begun: Option<Instant>,
    /// Whether it was flushed since.
    pub flushed: bool,
    /// Whether SQLite has asked to prepare what names no super-journal, after its journal named one
    /// or it was prepared under one: a rollback.
    pub leaving_super_journal: bool,
    /// Commits since the writer lock was taken: more than one only under locking_mode=EXCLUSIVE.
    pub commits_under_lock: u64,
    /// Commits without a flush (synchronous=OFF).
    pub unflushed: u64,
}

impl ShadowFile {
    /// Around an open engine.
    pub fn new(
        link: Arc<Link<Connection<Real>>>,
        host: HostVfs,
        shared: Arc<Shared>,
        powersafe_overwrite: bool,
    ) -> Self {
        if let Some(after) = link.rest {
            // It may never be used.
            rest::watch(&link.siblings, after);
        }
        Self {
            protocol: link.chosen(parameters::protocol_of),
            _writing: Writing::new(&shared),
            prepared: shared.of(),
            shared,
            host,
            folder: link.path.parent().unwrap_or(Path::new("/")).to_path_buf(),
            link,
            busy: None,
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
            why_busy: None,
            looked_at: None,
            reader: Reader::default(),
            is_in_wal_mode: false,
            without_engine: None,
        }
    }

    /// Maps an engine's error, and keeps its `errno`.
    pub(crate) fn failed(&mut self, error: EngineError) -> Error {
        self.errno = errno_of(&error);
        to_sqlite(error)
    }

    /// Calls the engine.
    pub(crate) fn call<R>(
        &mut self,
        call: impl FnOnce(&mut Connection<Real>) -> core::result::Result<R, EngineError>,
    ) -> Result<R> {
        let result = call(&mut *self.link.engine()?);
        result.map_err(|error| self.failed(error))
    }

    /// Nothing on disk, and no journal, names the super-journal of this writer any more.
    pub(crate) fn leave_super_journal(&mut self) {
        self.progress.leaving_super_journal = false;
        if self.prepared.is_prepared() {
            self.prepared.set_super_journal(None);
        }
    }

    /// Closes the engine; what the user should know goes to the log.
    pub(super) fn close_engine(self, host: &HostVfs) -> Result<()> {
        settle::finish(&self.shared);
        // The mappings go first, before OPEN goes with the engine: whoever closes next asks who has
        // the copies open, and a mapping of one does.
        let Some(mut engine) = self.link.take() else {
            return Ok(()); // it is at rest
        };
        let (level, sequence) = (engine.level(), engine.sequence());
        if level >= dash_shadow::LockLevel::Reserved {
            self.shared.queue.want_readers_gone(false);
        }
        let mut tell = |message: &str| host.note(Code::WARNING, message);
        let closed = match engine.unlock(dash_shadow::LockLevel::None) {
            Ok(()) => orphans::close(engine, &self.link.path, &mut tell),
            Err(error) => orphans::close(engine, &self.link.path, &mut tell).and(Err(error)),
        };
        if level > dash_shadow::LockLevel::None {
            self.shared.queue.reader_left(self.reader, || sequence);
        }
        if level >= dash_shadow::LockLevel::Reserved && closed.is_ok() {
            self.prepared.set_super_journal(None);
        }
        let siblings = Arc::clone(&self.link.siblings);
        drop(self.link);
        rest::closed(&siblings);
        closed.map_err(to_sqlite)
    }
}

impl File for ShadowFile {
    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        if let Some(without) = &mut self.without_engine {
            let read = without.file.read(buffer, offset)?;
            self.link.has_read_at_rest(&mut buffer[..read], offset);
            return Ok(read);
        }
        let begun = self.time_reads.then(Instant::now);
        let read = match self.link.engine_or_why() {
            Ok(mut engine) => engine.read(buffer, offset),
            Err(Failed::NoSpace(why) | Failed::Forbidden(why)) => {
                return without_engine::read_unlocked(&self.link, buffer, offset, why);
            }
            Err(Failed::Other(error)) => return Err(error),
        };
        if let Some(begun) = begun {
            self.latencies.record(Op::Read, begun);
        }
        read.map_err(|error| self.failed(error))
    }

    fn write(&mut self, data: &[u8], offset: u64) -> Result<()> {
        let written = self.link.engine()?.write(data, offset);
        match written {
            Err(EngineError::Busy | EngineError::Held(_)) => {
                self.patiently(|engine| engine.write(data, offset))
            }
            other => other.map_err(|error| self.failed(error)),
        }
    }

    fn truncate(&mut self, size: u64) -> Result<()> {
        let cut = self.link.engine()?.truncate(size);
        match cut {
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
        match &mut self.without_engine {
            Some(without) => without.file.size(),
            None => Ok(self.link.engine()?.size()),
        }
    }

    fn lock(&mut self, level: LockLevel) -> Result<()> {
        if let Some(without) = &self.without_engine {
            return without.raise(level);
        }
        let level = engine_level(level);
        let writer = dash_shadow::LockLevel::Reserved;
        let seen = self.shared.queue.releases();
        let opened = self.link.engine_or_why().map(|engine| (engine.level(), engine.sequence()));
        let (before, sequence) = match opened {
            Ok(found) => found,
            Err(_) if self.link.is_in_wal_mode() => {
                // Asked for that next, it goes there.
                self.is_in_wal_mode = true;
                return Ok(());
            }
            Err(Failed::NoSpace(why) | Failed::Forbidden(why)) => {
                self.without_engine = Some(WithoutEngine::begin(&self.link, why)?);
                return Ok(());
            }
            Err(Failed::Other(error)) if error.code.primary() == Code::BUSY => {
                return Err(self.must_wait(seen, Cause::Writer, Code::BUSY));
            }
            Err(Failed::Other(error)) => return Err(error),
        };
        let becomes_writer = before < writer && level >= writer;
        if before == dash_shadow::LockLevel::None {
            self.reader = self.shared.queue.reader(Some(sequence));
        }
        let mut result = self.raise(level)?;
        if matches!(result, Err(EngineError::Busy)) && self.link.level() >= writer {
            // Readers tell from now on when they leave; one may have left just before.
            self.shared.queue.want_readers_gone(true);
            result = self.raise(level)?;
        }
        match result {
            Ok(()) => {
                if becomes_writer {
                    self.progress =
                        Progress { unflushed: self.progress.unflushed, ..Progress::default() };
                }
                self.has_waited(becomes_writer);
                Ok(())
            }
            Err(EngineError::Held(why)) => Err(self.held(seen, why)),
            Err(EngineError::Busy) if self.link.level() >= writer => {
                Err(self.must_wait_for_readers(seen))
            }
            Err(EngineError::Busy) => Err(self.must_wait(seen, Cause::Writer, Code::BUSY)),
            Err(EngineError::BusySnapshot) => {
                Err(self.must_wait(seen, Cause::Snapshot, Code::BUSY_SNAPSHOT))
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    fn unlock(&mut self, level: LockLevel) -> Result<()> {
        if self.without_engine.is_some() {
            let without = self.without_engine.take_if(|_| level == LockLevel::None);
            return without.map_or(Ok(()), |without| without.file.finish());
        }
        let link = Arc::clone(&self.link);
        let Some(mut engine) = link.engine_if_open() else {
            return Ok(()); // nothing is locked at rest
        };
        let before = engine.level();
        let unlocked = engine.unlock(engine_level(level));
        if before >= dash_shadow::LockLevel::Reserved {
            self.shared.queue.want_readers_gone(false);
            if unlocked.is_ok() {
                self.leave_super_journal();
            }
            engine.hand_over();
            if engine.owes() >= settle::WORTH {
                settle::in_background(link.path.clone(), &self.shared);
            }
        }
        if level == LockLevel::None {
            if before > dash_shadow::LockLevel::None {
                let reader = std::mem::take(&mut self.reader);
                self.shared.queue.reader_left(reader, || engine.sequence());
            }
            self.waiting_since = None;
            if let Some(after) = link.rest {
                rest::watch(&link.siblings, after);
            }
        }
        unlocked.map_err(|error| self.failed(error))
    }

    fn check_reserved_lock(&mut self) -> Result<bool> {
        if let Some(without) = &mut self.without_engine {
            return without.file.check_reserved_lock();
        }
        self.call(|engine| engine.is_reserved())
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
        if let Some(without) = &mut self.without_engine {
            return without.file.fetch(offset, amount);
        }
        let mut held = self.link.engine()?;
        let (engine, maps) = held.parts();
        let Some(range) = maps.range(offset, amount) else {
            return Ok(None);
        };
        // A writer that meets mapped pages waits for them.
        self.shared.queue.maps(&mut self.reader);
        let reading = engine.level() == dash_shadow::LockLevel::Shared;
        let all = reading.then(|| engine.size());
        match engine.mappable(range.clone()) {
            // Where mapping fails, reading works.
            Some(file) => Ok(maps.page(file, &range, all).unwrap_or(None)),
            None => Ok(None),
        }
    }

    fn unfetch(&mut self, offset: u64, page: Option<PagePointer>) -> Result<()> {
        if let Some(without) = &mut self.without_engine {
            return without.file.unfetch(offset, page);
        }
        if page.is_some() {
            self.link.with_maps(Maps::give_back);
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.link.take().map_or(Ok(()), |engine| engine.close().map_err(to_sqlite))
    }
}
