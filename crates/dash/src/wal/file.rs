//! A database in mode wal, as SQLite sees it: every file method, mapped onto the engine.
//!
//! SQLite commits by itself, in `-wal` and in the wal-index; the engine looks on, and makes it
//! durable in `SQLITE_FCNTL_COMMIT_PHASETWO` ([`super::control`]).

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use dash_ffi::{
    Code, DeviceCharacteristics, Error, File, FileControl, Handled, HostVfs, LockLevel,
    PagePointer, Result, ShmLock, ShmMapping, SyncFlags, Window,
};
use dash_storage::LockKind;
use dash_wal::Connection;

use super::ahead::{Ahead, let_own_thread_pass};
use super::link::{Link, State};
use super::name::MODE;
use super::region;
use crate::controls::{engine_level, in_chunks};
use crate::latency::Op;
use crate::leftovers::{HEADER, says_wal};
use crate::main_file::SECTOR;
use crate::mapping::Maps;
use crate::mode::Mode;
use crate::wake::writer;

/// What is promised of a database in mode wal: what the stock VFS promises of a file.
///
/// - `POWERSAFE_OVERWRITE`, unless the user said `psow=0`: frames are not padded to sectors;
/// - `SUBPAGE_READ`: reads of any place and length are served.
///
/// Not promised: `SAFE_APPEND` (the journal with which SQLite enters and leaves the mode is a file
/// of the host's), `SEQUENTIAL` (SQLite would not flush a new header of `-wal`, at which the engine
/// begins a generation), `ATOMIC*`, `BATCH_ATOMIC`, `UNDELETABLE_WHEN_OPEN`, `IMMUTABLE`.
const PROMISES: DeviceCharacteristics = DeviceCharacteristics::SUBPAGE_READ;

/// Slots of the wal-index (wal.c): WRITER, and the first of the readers'.
const WRITER: usize = 0;
const FIRST_READER: usize = 3;
/// So fast SQLite gives WRITER up again if its snapshot is old.
const AT_ONCE: Duration = Duration::from_millis(1);

/// Where SQLite looks whether a file has changed since it was cached, while it is not in WAL mode
/// (pager.c `sqlite3PagerSharedLock`): the file change counter, and what follows.
const CHANGED: (u64, usize) = (24, 16);

/// An open database.
///
/// SQLite keeps its cache when it leaves WAL mode, as long as the change counter is the one that it
/// knows, which does not rise with each commit in WAL mode. What others have committed since it
/// read last would be overwritten with what it has in its cache; so stock SQLite does (3.40 to
/// 3.54). Here it is told of a change that time.
pub struct WalFile {
    pub(super) link: Arc<Link>,
    pub(super) host: HostVfs,
    pub(super) maps: Maps,
    pub(super) powersafe_overwrite: bool,
    pub(super) persist_wal: bool,
    /// Bytes of which the file's length is to be a multiple; 0: any length will do.
    pub(super) chunk: u64,
    pub(super) time_reads: bool,
    /// Whether statements are recorded in every form of the mode.
    pub(super) records_anyway: bool,
    /// Mode wal, or a form of it.
    pub(super) mode: &'static dyn Mode,
    /// SQLite has taken the database out of WAL mode.
    pub(super) is_left: bool,
    /// WRITER could not be had, and SQLite has done nothing since but to stop reading.
    failed: bool,
    /// Since when it has WRITER, and has written nothing.
    idle: Option<Instant>,
    /// It was given up as soon as SQLite had it: somebody has committed since it began to read.
    pub(super) was_outdated: bool,
    pub(super) ahead: Ahead,
    /// Locks that this connection got when who was in the way woke it.
    pub(super) wakeups: u64,
    /// From so many bytes of `-wal` on it is said who keeps it from being begun anew.
    pub(super) tolerates: u64,
}

/// A `-wal` of that many bytes is no news.
const TOLERATED: u64 = 64 << 20;

impl WalFile {
    /// Around an open engine.
    pub fn new(
        link: Arc<Link>,
        host: HostVfs,
        powersafe_overwrite: bool,
        window: Arc<Window>,
    ) -> Self {
        let records_anyway = link.records();
        Self {
            link,
            host,
            maps: Maps::new(window),
            powersafe_overwrite,
            persist_wal: false,
            chunk: 0,
            time_reads: false,
            records_anyway,
            mode: MODE,
            is_left: false,
            tolerates: TOLERATED,
            failed: false,
            idle: None,
            was_outdated: false,
            ahead: Ahead::default(),
            wakeups: 0,
        }
    }

    /// SQLite does something else than to sleep until it may write.
    fn go_on(&mut self) {
        if std::mem::take(&mut self.failed) {
            writer::forget();
        }
    }

    /// Takes WRITER, or the next sleep of this thread does.
    fn become_writer(&mut self) -> Result<()> {
        if self.link.state().reserved.is_none() {
            writer::let_pass(&self.link.together.urgent);
        }
        let mut state = self.link.state();
        let lock =
            |engine: &mut Connection<_>| engine.index_lock(WRITER..WRITER + 1, LockKind::Exclusive);
        let mut taken = state.call(lock);
        if taken.as_ref().is_err_and(|error| error.code == Code::BUSY) {
            drop(state);
            let is_free = let_own_thread_pass(&self.link);
            state = self.link.state();
            if is_free {
                taken = state.call(lock);
            }
        }
        self.ahead.asks(state.reserved.take().is_some(), taken.is_ok());
        let taken = taken.and_then(|()| state.upgrade_if_reading());
        match taken {
            Ok(is_upgraded) => {
                self.failed = false;
                self.link.begins_to_write(&state);
                // SQLite does not find an upgraded one's snapshot old.
                self.idle = (!is_upgraded).then(Instant::now);
                if let Some(waited) = writer::succeeded() {
                    state.latencies.record(Op::LockWait, waited.since);
                    self.wakeups += u64::from(waited.woken);
                }
                Ok(())
            }
            Err(error) => {
                drop(state);
                match error.code {
                    Code::BUSY => self.wait_next(),
                    Code::BUSY_SNAPSHOT => self.ahead.refused(),
                    _ => {}
                }
                Err(error)
            }
        }
    }

    /// The next sleep of this thread takes WRITER, if it comes next.
    fn wait_next(&mut self) {
        self.failed = true;
        writer::failed(Arc::clone(&self.link) as Arc<_>);
    }

    /// Gives WRITER up. At once, if SQLite finds that somebody has committed since it began to
    /// read: with the lock in its hands when it begins it will not find that again.
    fn cease_to_write(&mut self) -> Result<()> {
        let mut state = self.link.state();
        self.link.ceases_to_write(&state);
        let unlocked = state.call(|engine| engine.index_unlock(WRITER..WRITER + 1));
        let idle = self.idle.take();
        let is_outdated = state.engine().is_ok_and(|engine| engine.is_outdated());
        self.was_outdated = idle.is_some() && is_outdated;
        drop(state);
        if idle.is_some_and(|since| since.elapsed() < AT_ONCE) {
            self.wait_next();
        }
        unlocked
    }

    /// What a change is answered, where SQLite may only read.
    pub(super) fn refusal(&self) -> Error {
        Error::new(Code::READONLY, "the database was opened for reading only")
    }

    /// `SQLITE_FCNTL_SIZE_HINT`: the file will be so long soon. Without chunks it grows as it is
    /// written.
    pub(super) fn expect_size(&mut self, size: i64) -> Result<()> {
        let size = in_chunks(u64::try_from(size).unwrap_or(0), self.chunk)?;
        if self.chunk == 0 || self.link.is_read_only {
            return Ok(());
        }
        self.link.state().call(|engine| engine.reserve(size))
    }

    /// Whether the database's header says WAL mode. An empty file says nothing.
    pub(super) fn says_wal(state: &mut State) -> Result<bool> {
        let mut header = [0; HEADER];
        let len = state.call(|engine| engine.database().read(&mut header, 0))?;
        Ok(says_wal(&header[..len]))
    }
}

impl File for WalFile {
    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let mut state = self.link.state();
        if state.outdated && (offset, buffer.len()) == CHANGED {
            let read = state.call(|engine| engine.database().read(buffer, offset))?;
            buffer[0] ^= 0x80;
            state.outdated = false;
            return Ok(read);
        }
        if !self.time_reads {
            return state.call(|engine| engine.read(buffer, offset));
        }
        let begun = Instant::now();
        let read = state.call(|engine| engine.read(buffer, offset));
        state.latencies.record(Op::Read, begun);
        read
    }

    fn write(&mut self, data: &[u8], offset: u64) -> Result<()> {
        self.go_on();
        if self.link.is_read_only {
            return Err(self.refusal());
        }
        self.link.state().call(|engine| engine.write(data, offset))?;
        if offset == 0 && data.len() >= HEADER {
            self.is_left = !says_wal(data);
        }
        Ok(())
    }

    fn truncate(&mut self, size: u64) -> Result<()> {
        if self.link.is_read_only {
            return Err(self.refusal());
        }
        let size = in_chunks(size, self.chunk)?;
        self.link.state().call(|engine| engine.truncate(size))
    }

    fn sync(&mut self, _: SyncFlags) -> Result<()> {
        self.link.state().call(Connection::sync)
    }

    fn size(&mut self) -> Result<u64> {
        self.link.state().call(|engine| engine.database().size())
    }

    /// Whoever only reads is not to checkpoint and delete the log when it closes. That is what
    /// SQLite wants EXCLUSIVE for while it has the log open, and in stock it does not get it.
    fn lock(&mut self, level: LockLevel) -> Result<()> {
        self.go_on();
        if self.link.is_read_only && level == LockLevel::Exclusive && self.link.state().has_log {
            return Err(Code::BUSY.into());
        }
        self.link.state().call(|engine| engine.lock(engine_level(level)))
    }

    fn unlock(&mut self, level: LockLevel) -> Result<()> {
        self.go_on();
        let mut state = self.link.state();
        state.give_up();
        state.call(|engine| engine.unlock(engine_level(level)))
    }

    fn check_reserved_lock(&mut self) -> Result<bool> {
        self.link.state().call(|engine| engine.database().is_reserved())
    }

    fn file_control(&mut self, control: FileControl<'_>) -> Result<Handled> {
        self.control(control)
    }

    fn sector_size(&mut self) -> u32 {
        SECTOR
    }

    fn device_characteristics(&mut self) -> DeviceCharacteristics {
        match self.powersafe_overwrite {
            true => PROMISES | DeviceCharacteristics::POWERSAFE_OVERWRITE,
            false => PROMISES,
        }
    }

    fn has_shared_memory(&self) -> bool {
        true
    }

    fn shm_map(&mut self, region: usize, size: usize, extend: bool) -> Result<ShmMapping> {
        self.go_on();
        let mapped = self.link.state().call(|engine| engine.map_region(region, size, extend));
        mapped.map(region::mapping)
    }

    fn shm_lock(&mut self, slot: usize, count: usize, lock: ShmLock) -> Result<()> {
        let end = slot.checked_add(count).ok_or(Code::MISUSE)?;
        let is_writer = slot == WRITER && count == 1;
        let kind = match lock {
            ShmLock::UnlockExclusive if is_writer => return self.cease_to_write(),
            ShmLock::LockExclusive if is_writer => return self.become_writer(),
            ShmLock::LockExclusive => Some(LockKind::Exclusive),
            ShmLock::LockShared => Some(LockKind::Shared),
            ShmLock::UnlockShared | ShmLock::UnlockExclusive => None,
        };
        let stops_reading = lock == ShmLock::UnlockShared && slot >= FIRST_READER;
        if !stops_reading {
            self.go_on();
        }
        self.idle = None;
        if lock == ShmLock::LockShared && slot >= FIRST_READER {
            self.ahead.begins(&self.link, &self.host);
        }
        let is_done = stops_reading && self.ahead.stops_reading();
        let mut state = self.link.state();
        if is_done {
            // It was given WRITER, and did not want it.
            state.give_up();
        }
        let done = state.call(|engine| match kind {
            Some(kind) => engine.index_lock(slot..end, kind),
            None => engine.index_unlock(slot..end),
        });
        if stops_reading {
            // Whoever has committed what was read may be killed.
            let after = state.engine().ok().and_then(|engine| engine.rests_after());
            drop(state);
            self.watch_for_rest(after);
        }
        done
    }

    /// The memory is the machine's own. SQLite orders nothing between taking WRITER and finding
    /// that its snapshot is old.
    fn shm_barrier(&mut self) {
        self.idle = None;
        fence(Ordering::SeqCst);
    }

    fn shm_unmap(&mut self, delete: bool) -> Result<()> {
        self.go_on();
        let mut state = self.link.state();
        state.give_up();
        state.call(|engine| engine.unmap(delete))
    }

    /// A checkpoint writes no page that a reader may still want from here, which is SQLite's own
    /// rule for any process that maps the file.
    fn fetch(&mut self, offset: u64, amount: usize) -> Result<Option<PagePointer>> {
        let Some(range) = self.maps.range(offset, amount) else {
            return Ok(None);
        };
        let mut state = self.link.state();
        let engine = state.engine()?;
        if !engine.may_be_mapped() {
            return Ok(None);
        }
        let file = engine.database().file();
        // Where mapping fails, reading works.
        Ok(self.maps.page(file, &range, Some(u64::MAX)).unwrap_or(None))
    }

    fn unfetch(&mut self, _: u64, page: Option<PagePointer>) -> Result<()> {
        match page {
            Some(_) => self.maps.give_back(),
            // The file may be another one than when it was mapped.
            None => self.maps.forget(),
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.close_engine()
    }
}
