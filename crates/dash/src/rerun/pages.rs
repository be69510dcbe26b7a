//! A database's pages as a file that SQLite has for itself, in a rollback mode. Nothing of it is on
//! any disk: what is written stays here until the transaction is committed, and goes to the engine
//! then.
//!
//! SQLite opens it by name through the VFS `dash`; in a connection of dash's own, a name that
//! belongs to one of this process leads here ([`open`]).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dash_ffi::{Code, OpenFlags, Opened, Result, Side, SideFile, is_own};
use dash_statement::Schema;
use dash_storage::real::PerProcess;
use dash_wal::{Error as EngineError, Pages};

/// Files, each with its name.
type Named = Vec<(PathBuf, Arc<File>)>;

/// Those of this process.
static RUNNING: PerProcess<Mutex<Named>> = PerProcess::new();

/// Places in SQLite's header: the versions that say in which mode the file is, what counts changes,
/// and the version that was counted by.
const VERSIONS: std::ops::Range<usize> = 18..20;
const ROLLBACK_MODE: u8 = 1;
const COUNTER: std::ops::Range<usize> = 24..28;
const COUNTED_BY: std::ops::Range<usize> = 92..100;

/// Bytes of pages that a transaction may have written at a time: those of a record's frames, 1 MiB
/// at most, and those that it cuts off again, which one statement makes few of.
const MOST: u64 = 16 << 20;

/// See the module.
pub struct File {
    pages: Arc<Mutex<dyn Pages>>,
    state: Mutex<State>,
}

struct State {
    /// Bytes of a page, and of the file.
    page: u64,
    len: u64,
    /// What the transaction in hand has written.
    written: BTreeMap<u32, Vec<u8>>,
    failure: Option<EngineError>,
}

impl State {
    /// Whether one more page may be written.
    fn has_room(&mut self) -> Result<()> {
        if self.written.len() as u64 * self.page >= MOST {
            let text = "a commit's statements write more pages than any that they carry";
            self.failure = Some(EngineError::CantOpen(text.to_owned()));
            return Err(Code::FULL.into());
        }
        // What the tree takes for it.
        let mut tried: Vec<u8> = Vec::new();
        tried.try_reserve_exact(4096).map_err(|_| Code::IOERR_NOMEM)?;
        drop(std::hint::black_box(tried));
        Ok(())
    }
}

/// While it lives, SQLite finds the file under its name.
pub struct Running(PathBuf);

impl Running {
    /// Its name.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        running().retain(|(path, _)| *path != self.0);
    }
}

fn running() -> MutexGuard<'static, Named> {
    RUNNING.get().lock().unwrap_or_else(PoisonError::into_inner)
}

/// The file of this name, if there is one in this process and dash itself opens it.
pub fn open(path: &Path, flags: OpenFlags) -> Option<Opened> {
    if !is_own() {
        return None;
    }
    let file = running().iter().find(|(name, _)| name == path).map(|(_, file)| Arc::clone(file))?;
    Some(Opened { file: Box::new(Side(Handle(file))), flags })
}

impl File {
    /// As the engine has them.
    pub fn new(pages: Arc<Mutex<dyn Pages>>) -> Arc<Self> {
        let (page, count) = {
            let pages = pages.lock().unwrap_or_else(PoisonError::into_inner);
            (u64::from(pages.page_size()), pages.count())
        };
        let len = u64::from(count) * page;
        let state = State { page, len, written: BTreeMap::new(), failure: None };
        Arc::new(Self { pages, state: Mutex::new(state) })
    }

    /// Lets SQLite open it, by a name that no file has.
    pub fn running(self: &Arc<Self>) -> Running {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = PathBuf::from(format!("/dash-statements-run-again-{number}"));
        running().push((path.clone(), Arc::clone(self)));
        Running(path)
    }

    /// Its bytes and pages.
    pub fn extent(&self) -> (u64, u64) {
        let state = self.state();
        (state.len, state.len / state.page)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pages(&self) -> MutexGuard<'_, dyn Pages + 'static> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the pages say of the schema.
    ///
    /// # Errors
    ///
    /// Those of the engine, which [`Self::cause`] has.
    pub fn schema(&self) -> Result<Schema> {
        let mut pages = self.pages();
        let count = pages.count();
        let read = Schema::of_pages(|number| match number <= count {
            true => pages.read(number).map(Some),
            false => Ok(None),
        });
        read.map_err(|error| {
            self.state().failure = Some(error);
            Code::IOERR_READ.into()
        })
    }

    /// The engine's own error, which SQLite has only the code of.
    pub fn cause(&self) -> Option<EngineError> {
        self.state().failure.take()
    }

    /// The transaction is committed.
    ///
    /// # Errors
    ///
    /// Those of the engine, which [`Self::cause`] has.
    pub fn commit(&self) -> Result<()> {
        let mut state = self.state();
        let mut written = std::mem::take(&mut state.written);
        let count = u32::try_from(state.len / state.page).map_err(|_| Code::FULL)?;
        written.retain(|number, _| *number <= count);
        let mut pages = self.pages();
        let committed = (|| {
            if let Some(first) = written.get_mut(&1) {
                let before = pages.read(1)?;
                as_in_wal(first, &before);
                if is_only_counted(first, &before) {
                    written.remove(&1);
                }
            }
            // Also without any: whoever compares what was made counts commits.
            pages.commit(&written, count)
        })();
        committed.map_err(|error| {
            state.failure = Some(error);
            Code::IOERR_WRITE.into()
        })
    }
}

/// The first page says the mode that it said before.
fn as_in_wal(page: &mut [u8], before: &[u8]) {
    if let (Some(place), Some(said)) = (page.get_mut(VERSIONS), before.get(VERSIONS)) {
        place.copy_from_slice(said);
    }
}

/// Whether it differs only in what a rollback mode writes with each transaction, and WAL mode does
/// not.
fn is_only_counted(page: &[u8], before: &[u8]) -> bool {
    let rest = |page: &[u8]| {
        let mut page = page.to_vec();
        for place in [COUNTER, COUNTED_BY] {
            page.get_mut(place).unwrap_or_default().fill(0);
        }
        page
    };
    rest(page) == rest(before)
}

/// A file of SQLite's.
struct Handle(Arc<File>);

impl Handle {
    /// A page that is not written, as SQLite is to see it.
    fn page(&self, state: &mut State, number: u32) -> Result<Vec<u8>> {
        let mut page = self.0.pages().read(number).map_err(|error| {
            state.failure = Some(error);
            Code::IOERR_READ
        })?;
        if number == 1 {
            page.get_mut(VERSIONS).unwrap_or_default().fill(ROLLBACK_MODE);
        }
        Ok(page)
    }
}

/// The page that a byte is in, and where in it.
fn place(state: &State, offset: u64) -> Result<(u32, usize)> {
    let number = u32::try_from(offset / state.page + 1).map_err(|_| Code::FULL)?;
    Ok((number, usize::try_from(offset % state.page).unwrap_or_default()))
}

impl SideFile for Handle {
    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let mut state = self.0.state();
        let mut read = 0;
        while read < buffer.len() {
            let at = offset + read as u64;
            if at >= state.len {
                break;
            }
            let (number, within) = place(&state, at)?;
            let unwritten;
            let page = if let Some(page) = state.written.get(&number) {
                page
            } else {
                unwritten = self.page(&mut state, number)?;
                &unwritten
            };
            let left = page.get(within..).unwrap_or_default();
            let part = left.len().min(buffer.len() - read);
            buffer[read..read + part].copy_from_slice(&left[..part]);
            read += part;
        }
        Ok(read)
    }

    fn write(&mut self, data: &[u8], offset: u64) -> Result<()> {
        let mut state = self.0.state();
        let mut written = 0;
        while written < data.len() {
            let (number, within) = place(&state, offset + written as u64)?;
            if !state.written.contains_key(&number) {
                state.has_room()?;
                let page = self.page(&mut state, number)?;
                state.written.insert(number, page);
            }
            let page = state.written.get_mut(&number);
            let place = page.and_then(|page| page.get_mut(within..)).unwrap_or_default();
            let part = place.len().min(data.len() - written);
            place[..part].copy_from_slice(&data[written..written + part]);
            written += part;
        }
        state.len = state.len.max(offset + data.len() as u64);
        Ok(())
    }

    fn truncate(&mut self, size: u64) -> Result<()> {
        self.0.state().len = size;
        Ok(())
    }

    fn size(&mut self) -> Result<u64> {
        Ok(self.0.state().len)
    }
}
