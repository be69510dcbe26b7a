//! The file that a backup goes to, as SQLite sees it: a database that nobody else has open. The
//! checksum of each page is taken while it is written.
//!
//! SQLite opens it by name through the VFS `dash`; in a connection of dash's own, a name that
//! belongs to a backup under way in this process leads here ([`open`]).

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dash_ffi::{Code, Error, OpenFlags, Opened, Result, Side, SideFile, is_own};
use dash_storage::real::{self, PerProcess};
use dash_storage::{Blocks, File as _};

/// What the copies of this process are.
static RUNNING: PerProcess<Mutex<Vec<Arc<Copy>>>> = PerProcess::new();

/// Bytes that are read back at once: a multiple of every page size and every block.
const CHUNK: usize = 1 << 20;

/// Bytes after which the copy is flushed while it is made. Flushed all at once, 1 GiB keeps the
/// disk busy for so long that commits of the source wait for half a second.
const FLUSHED_AT_ONCE: u64 = 1 << 20;

/// Places in SQLite's header, and the version that says a rollback mode.
const VERSIONS: std::ops::Range<usize> = 18..20;
const ROLLBACK_MODE: u8 = 1;
const COUNTERS: [usize; 2] = [24, 92];
const SCHEMA_VERSION: usize = 40;
const HEADER: usize = 100;

/// What of the source's first page SQLite does not copy.
#[derive(Clone, Copy, Debug)]
pub struct FirstPage {
    /// `PRAGMA schema_version`.
    pub schema_version: u32,
    /// `None`: whatever SQLite makes of it.
    pub change_counter: Option<u32>,
}

/// A copy under way.
pub struct Copy {
    path: PathBuf,
    file: real::File,
    page_size: usize,
    first: FirstPage,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    len: u64,
    /// Bytes written since the last flush.
    unflushed: u64,
    /// CRC-32 of each page.
    sums: Vec<u32>,
    failure: Option<Error>,
}

/// While it lives, SQLite finds the copy under its name.
pub struct Running(Arc<Copy>);

impl Drop for Running {
    fn drop(&mut self) {
        running().retain(|copy| !Arc::ptr_eq(copy, &self.0));
    }
}

fn running() -> MutexGuard<'static, Vec<Arc<Copy>>> {
    RUNNING.get().lock().unwrap_or_else(PoisonError::into_inner)
}

/// The copy of this name, if there is one under way in this process and dash itself opens it.
pub fn open(path: &Path, flags: OpenFlags) -> Option<Opened> {
    if !is_own() {
        return None;
    }
    let copy = running().iter().find(|copy| copy.path == path).map(Arc::clone)?;
    Some(Opened { file: Box::new(Side(Page(copy))), flags })
}

impl Copy {
    /// A copy into an empty file, which may have blocks already.
    pub fn new(path: PathBuf, file: real::File, page_size: u32, first: FirstPage) -> Arc<Self> {
        let page_size = usize::try_from(page_size).unwrap_or(usize::MAX);
        Arc::new(Self { path, file, page_size, first, state: Mutex::default() })
    }

    /// Its name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lets SQLite open it by its name.
    pub fn running(self: &Arc<Self>) -> Running {
        running().push(Arc::clone(self));
        Running(Arc::clone(self))
    }

    /// Bytes.
    pub fn len(&self) -> u64 {
        self.state().len
    }

    /// What the file itself answered, which SQLite has only the code of.
    pub fn cause(&self, error: Error) -> Error {
        let own = self.state().failure.take();
        own.unwrap_or_else(|| Error::new(error.code, format!("dash_backup: {error}")))
    }

    /// Cuts off what was reserved and not needed, and flushes.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn finish(&self) -> std::io::Result<()> {
        self.file.set_len(self.len())?;
        self.file.flush()
    }

    /// Compares every page, as `file` has it now, with its checksum.
    ///
    /// # Errors
    ///
    /// `SQLITE_CORRUPT` names the first page that differs; `SQLITE_IOERR_READ`; those of `go_on`.
    pub fn compare(&self, file: &real::File, go_on: impl Fn() -> Result<()>) -> Result<()> {
        let state = self.state();
        let mut chunk = Blocks::try_new(CHUNK).map_err(|_| Code::IOERR_NOMEM)?;
        let (mut offset, mut sums) = (0, state.sums.iter().enumerate());
        while offset < state.len {
            go_on()?;
            let read = file.read_at(&mut chunk, offset).map_err(|error| {
                let message = format!("dash_backup: reading {} back: {error}", self.path.display());
                Error::new(Code::IOERR_READ, message)
            })?;
            let expected = usize::try_from(state.len - offset).unwrap_or(CHUNK).min(CHUNK);
            if read < expected {
                return Err(self.differs(offset));
            }
            for (page, (number, sum)) in chunk[..expected].chunks(self.page_size).zip(&mut sums) {
                if crc32fast::hash(page) != *sum {
                    return Err(self.differs(number as u64 * self.page_size as u64));
                }
            }
            offset += CHUNK as u64;
        }
        Ok(())
    }

    fn differs(&self, offset: u64) -> Error {
        Error::new(
            Code::CORRUPT,
            format!(
                "dash_backup: page {} of {} reads back other than it was written, and nothing was left: the disk, its cable or the \
                 memory fails, or another program wrote there; back up to another disk",
                offset / self.page_size as u64 + 1,
                self.path.display()
            ),
        )
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, data: &[u8], offset: u64) -> Result<()> {
        let page = usize::try_from(offset).map_err(|_| Code::FULL)? / self.page_size;
        if data.len() != self.page_size || !offset.is_multiple_of(self.page_size as u64) {
            return Err(Error::new(Code::INTERNAL, "dash_backup: SQLite wrote a part of a page"));
        }
        let changed = (page == 0).then(|| self.first.put_into(data));
        let data = changed.as_deref().unwrap_or(data);
        let written = self.file.write_at(data, offset);
        written.map_err(|error| self.failed("writing", Code::IOERR_WRITE, &error))?;
        let mut state = self.state();
        if state.sums.len() <= page {
            // A page that SQLite leaves out, such as that of its lock bytes, reads as zeros.
            let zeros = crc32fast::hash(&vec![0; self.page_size]);
            state.sums.resize(page + 1, zeros);
        }
        state.sums[page] = crc32fast::hash(data);
        state.len = state.len.max(offset + data.len() as u64);
        state.unflushed += data.len() as u64;
        if state.unflushed < FLUSHED_AT_ONCE {
            return Ok(());
        }
        state.unflushed = 0;
        drop(state);
        self.file.flush().map_err(|error| self.failed("flushing", Code::IOERR_FSYNC, &error))
    }

    /// Notes an error with its reason.
    fn failed(&self, what: &str, code: Code, error: &std::io::Error) -> Error {
        let code = match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Code::FULL,
            _ => code,
        };
        let message =
            format!("dash_backup: {what} {}: {error}; nothing was left", self.path.display());
        let error = Error::new(code, message);
        self.state().failure.get_or_insert_with(|| error.clone());
        error
    }
}

impl FirstPage {
    /// Page 1 with what the source has there, in a rollback mode: a plain file, to be read from
    /// any medium.
    fn put_into(self, page: &[u8]) -> Vec<u8> {
        let mut page = page.to_vec();
        if page.len() < HEADER {
            return page;
        }
        page[VERSIONS].fill(ROLLBACK_MODE);
        let mut put = |place: usize, number: u32| {
            page[place..place + 4].copy_from_slice(&number.to_be_bytes());
        };
        put(SCHEMA_VERSION, self.schema_version);
        for place in COUNTERS {
            if let Some(counter) = self.change_counter {
                put(place, counter);
            }
        }
        page
    }
}

/// The copy as SQLite has it open. Nobody else has, and the backup flushes by itself, once.
struct Page(Arc<Copy>);

impl SideFile for Page {
    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        // What was reserved beyond is not there yet.
        let there = usize::try_from(self.0.len().saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(there);
        let read = self.0.file.read_at(&mut buffer[..wanted], offset);
        read.map_err(|error| self.0.failed("reading", Code::IOERR_READ, &error))
    }

    fn write(&mut self, data: &[u8], offset: u64) -> Result<()> {
        self.0.write(data, offset)
    }

    fn truncate(&mut self, size: u64) -> Result<()> {
        let mut state = self.0.state();
        state.len = state.len.min(size);
        let pages = usize::try_from(state.len).unwrap_or(usize::MAX) / self.0.page_size;
        state.sums.truncate(pages);
        Ok(())
    }

    fn size(&mut self) -> Result<u64> {
        Ok(self.0.len())
    }
}
