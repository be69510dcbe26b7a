//! Transactions over several databases (ATTACH): the super-journal, as this layer sees it.
//!
//! SQLite commits such a transaction by deleting the super-journal. Two things would break that
//! (F10, T4):
//!
//! - after a failed commit SQLite looks for databases that still depend on the super-journal, by
//!   their journals, and deletes it if there are none; what is rolled back after that it takes for
//!   committed. A database of an engine's has no journal on disk, so while its journal names the
//!   super-journal, or it is prepared, [`Marker`] stands in for one;
//! - a stock database of the same transaction, recovered by stock SQLite after a crash, would
//!   delete it too early. So the mix is refused: see [`together`].

use std::ffi::{OsString, c_char};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use dash_engine::error::remedy;
use dash_ffi::{Code, Error, Result, SideFile};

use crate::together;

/// A commit that is prepared under a super-journal, or whose journal names one already.
#[derive(Default)]
pub struct Prepared {
    is_prepared: AtomicBool,
    super_journal: Mutex<Option<PathBuf>>,
}

impl Prepared {
    /// Notes the super-journal, or that it is left.
    pub fn set_super_journal(&self, path: Option<PathBuf>) {
        self.is_prepared.store(path.is_some(), Ordering::SeqCst);
        let mut place = self.super_journal.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(left) =
            std::mem::replace(&mut *place, path).filter(|left| Some(left) != place.as_ref())
        {
            together::leave(&left);
        }
    }

    /// Whether there is one.
    pub fn is_prepared(&self) -> bool {
        self.is_prepared.load(Ordering::SeqCst)
    }

    /// The super-journal that it is prepared under.
    pub fn super_journal(&self) -> Option<PathBuf> {
        self.super_journal.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Ends a journal that names a super-journal (pager.c, `aJournalMagic`).
const MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
/// A journal that begins with zeros is not hot.
const COLD: usize = 512;
/// Longer than any path.
const NAME_MAX: u32 = 1 << 16;

/// A journal that says no more than on which super-journal its database depends.
pub struct Marker(Vec<u8>);

impl Marker {
    /// The marker for a super-journal's path.
    pub fn new(super_journal: &Path) -> Self {
        let name = super_journal.as_os_str().as_bytes();
        let mut content = vec![0; COLD];
        content.extend_from_slice(name);
        content.extend_from_slice(&u32::try_from(name.len()).unwrap_or(0).to_be_bytes());
        content.extend_from_slice(&checksum(name).to_be_bytes());
        content.extend_from_slice(&MAGIC);
        Self(content)
    }
}

/// Whether these bytes, written by themselves, end the name of a super-journal in a journal.
pub fn ends_name(data: &[u8]) -> bool {
    data == MAGIC
}

/// The super-journal whose name ends with the magic bytes at `end`.
///
/// # Errors
///
/// Those of reading the journal.
pub fn named(journal: &mut dyn SideFile, end: u64) -> Result<Option<PathBuf>> {
    let mut len = [0; 4];
    let Some(at) = end.checked_sub(8) else { return Ok(None) };
    journal.read(&mut len, at)?;
    let len = u32::from_be_bytes(len);
    let Some(begin) = at.checked_sub(u64::from(len)).filter(|_| len <= NAME_MAX) else {
        return Ok(None);
    };
    let mut name = vec![0; usize::try_from(len).unwrap_or(0)];
    journal.read(&mut name, begin)?;
    Ok(Some(OsString::from_vec(name).into()))
}

/// The sum of the name's bytes, signed or not as C's `char` is here.
fn checksum(name: &[u8]) -> u32 {
    name.iter().fold(0_u32, |sum, byte| {
        let byte = c_char::from_ne_bytes([*byte]);
        sum.wrapping_add_signed(i32::from(byte))
    })
}

/// Refuses what [`together`] does, also where another VFS has made the super-journal, as the main
/// database is open through that, for the database at `own`.
///
/// # Errors
///
/// `SQLITE_ERROR`, or why the super-journal can't be read.
pub fn check_children(super_journal: &Path, own: &Path) -> Result<()> {
    let list = std::fs::read(super_journal).map_err(|error| {
        let (name, remedy) = (super_journal.display(), remedy(&error));
        Error::new(Code::IOERR_READ, format!("reading {name}: {error}{remedy}"))
    })?;
    together::check_list(&list, Some(own)).inspect_err(|_| together::keep(super_journal))
}

/// `to`, seen from the folder `from`; both are absolute and have neither `.` nor `..`.
pub fn relative(from: &Path, to: &Path) -> OsString {
    let (mut from, mut to) = (from.components().peekable(), to.components().peekable());
    while from.peek().is_some() && from.peek() == to.peek() {
        from.next();
        to.next();
    }
    let path: std::path::PathBuf = from.map(|_| Component::ParentDir).chain(to).collect();
    path.into_os_string()
}

impl SideFile for Marker {
    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        let there = self.0.get(at..).unwrap_or_default();
        let len = there.len().min(buffer.len());
        buffer[..len].copy_from_slice(&there[..len]);
        Ok(len)
    }

    fn write(&mut self, _data: &[u8], _offset: u64) -> Result<()> {
        Err(Code::READONLY.into())
    }

    fn truncate(&mut self, _size: u64) -> Result<()> {
        Err(Code::READONLY.into())
    }

    fn size(&mut self) -> Result<u64> {
        Ok(u64::try_from(self.0.len()).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_ends_as_sqlite_ends_a_journal_with_a_super_journal() {
        let mut marker = Marker::new(Path::new("/a-mj1"));
        let size = usize::try_from(marker.size().expect("in memory")).expect("small");
        let mut content = vec![0; size];
        assert_eq!(marker.read(&mut content, 0).expect("in memory"), size);
        assert_eq!(content[0], 0, "not hot");
        let tail = &content[size - 16..];
        assert_eq!(tail[..4], 6_u32.to_be_bytes());
        let sum: u32 = b"/a-mj1".iter().map(|byte| u32::from(*byte)).sum();
        assert_eq!(tail[4..8], sum.to_be_bytes());
        assert_eq!(tail[8..], MAGIC);
        assert_eq!(&content[size - 22..size - 16], b"/a-mj1");
    }

    #[test]
    fn a_super_journal_is_named_relative_to_the_database() {
        let relative = |from: &str, to: &str| relative(Path::new(from), Path::new(to));
        assert_eq!(relative("/d", "/d/a.db-mj1"), "a.db-mj1");
        assert_eq!(relative("/d/e", "/d/x/a.db-mj1"), "../x/a.db-mj1");
        assert_eq!(relative("/d/e/f", "/a.db-mj1"), "../../../a.db-mj1");
        assert_eq!(relative("/", "/d/a.db-mj1"), "d/a.db-mj1");
    }
}
