//! Memory-mapped reads (`PRAGMA mmap_size`): pages of the current copy, handed to SQLite without a
//! copy.
//!
//! The engine says which file a page may be mapped from, and stands for it as long as the lock is
//! held: a committed copy is not written while anybody maps it. Within a read transaction that
//! answer holds for the whole copy, so the first page opens the file's [`Window`], through which
//! SQLite gets the others. Invariant: a mapping lives until every page given out has come back, or
//! the file is closed.

#![expect(unsafe_code, reason = "promises SQLite that mapped bytes stay")]

use std::io;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use dash_ffi::{PagePointer, Window};
use dash_storage::real::{self, Map};
use dash_storage::{File, FileId, ReadMap};

/// Bytes behind a page that SQLite may read, too: it takes a number of a record from memory eight
/// bytes at once, and looks a little further in a page that is damaged. What lies behind a mapping
/// can't be read. (os_unix.c `unixFetch`, `nEofBuffer`.)
const BEHIND: u64 = 256;

/// The mappings of one connection.
pub struct Maps {
    maps: Vec<Mapped>,
    limit: u64,
    /// Counts the pages given out, of all maps.
    window: Arc<Window>,
}

struct Mapped {
    id: FileId,
    map: Map,
}

impl Maps {
    /// None yet; those to come open `window`, which belongs to the same file.
    pub fn new(window: Arc<Window>) -> Self {
        Self { maps: Vec::new(), limit: 0, window }
    }

    /// What the mappings of its file open.
    pub fn window(&self) -> &Arc<Window> {
        &self.window
    }

    /// Sets the most bytes of a file to map; answers what it was.
    pub fn set_limit(&mut self, limit: u64) -> u64 {
        let old = std::mem::replace(&mut self.limit, limit);
        if limit < old {
            self.window.close();
            if self.window.pages_out() == 0 {
                self.maps.clear();
            }
        }
        old
    }

    /// The most bytes of a file that are mapped.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// The range of a page, if it is below the limit.
    pub fn range(&self, offset: u64, amount: usize) -> Option<Range<u64>> {
        let end = offset.checked_add(u64::try_from(amount).ok()?)?;
        (end <= self.limit).then_some(offset..end)
    }

    /// The bytes of `range` of `file`, which must stay as they are as long as SQLite has the
    /// pointer. With `all`, the bytes of `1..all` must, until the lock changes: SQLite may have
    /// them all. `None` if `range` is behind the limit, or at the end of the file or behind it.
    ///
    /// # Errors
    ///
    /// `mmap`'s.
    pub fn page(
        &mut self,
        file: &real::File,
        range: &Range<u64>,
        all: Option<u64>,
    ) -> io::Result<Option<PagePointer>> {
        if range.end > self.limit {
            return Ok(None);
        }
        let id = file.id();
        let end = range.end.saturating_add(BEHIND);
        let known = self.maps.iter().rposition(|mapped| mapped.id == id && end <= mapped.map.len());
        let at = match known {
            Some(at) => at,
            None => {
                let len = file.metadata()?.len.min(self.limit);
                if end > len {
                    return Ok(None);
                }
                // A shorter map of the same file goes once the pages are back.
                if self.window.pages_out() == 0 {
                    self.window.close();
                    self.maps.retain(|mapped| mapped.id != id);
                }
                let map = file.map(len)?;
                self.maps.push(Mapped { id, map });
                self.maps.len() - 1
            }
        };
        let map = &self.maps[at].map;
        let (Some(base), Ok(offset)) =
            (NonNull::new(map.as_ptr().cast_mut()), usize::try_from(range.start))
        else {
            return Ok(None);
        };
        let Some(address) = NonNull::new(base.as_ptr().wrapping_add(offset)) else {
            return Ok(None);
        };
        self.window.give_out();
        if let Some(all) = all {
            let end = all.min(map.len().saturating_sub(BEHIND));
            // SAFETY: inside the map, which stays until no page is out; what it shows is the
            // committed copy, which nobody writes while the lock is held, and a change of the lock
            // is a call of the file.
            unsafe { self.window.open(base, 1..end) };
        }
        // SAFETY: as above, until the page is counted as given back or the file is closed.
        Ok(Some(unsafe { PagePointer::new(address) }))
    }

    /// Maps anew from now on, as soon as every page is back: the file may have been cut.
    pub fn forget(&mut self) {
        self.window.close();
        if self.window.pages_out() == 0 {
            self.maps.clear();
        }
    }

    /// Whether SQLite has a page.
    pub fn are_in_use(&self) -> bool {
        self.window.pages_out() > 0
    }

    /// Unmaps all: the file is closed.
    pub fn end(&mut self) {
        self.window.reset();
        self.maps.clear();
    }

    /// Takes a page back.
    pub fn give_back(&mut self) {
        self.window.take_back();
    }
}

impl Drop for Maps {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use dash_storage::real::Real;
    use dash_storage::{Directory, OpenMode, Storage};

    use super::*;

    #[test]
    fn there_is_memory_behind_each_page() {
        const PAGE: u64 = 4096;
        let folder = tempfile::tempdir().expect("a folder");
        let directory = Real.open_directory(folder.path()).expect("opens");
        let mode = OpenMode::CreateNew { permissions: 0o600 };
        let file = directory.open(OsStr::new("a"), mode).expect("is made");
        file.write_at(&[7; 3 * 4096], 0).expect("writes");
        let mut maps = Maps::new(Arc::default());
        maps.set_limit(1 << 20);
        let mut is_mapped = |page: u64, all| {
            let range = page * PAGE..(page + 1) * PAGE;
            maps.page(&file, &range, all).expect("maps").is_some()
        };
        assert!(is_mapped(0, None) && is_mapped(1, Some(3 * PAGE)));
        // The last one is read, whether the file was mapped before or not.
        assert!(!is_mapped(2, Some(3 * PAGE)) && !is_mapped(3, None));
        drop(maps);
        let mut maps = Maps::new(Arc::default());
        maps.set_limit(1 << 20);
        assert!(maps.page(&file, &(2 * PAGE..3 * PAGE), None).expect("maps").is_none());
    }
}
