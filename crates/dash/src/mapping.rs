//! Memory-mapped reads (`PRAGMA mmap_size`): pages of the current copy, handed to SQLite without a copy.
//!
//! The engine says which file a page may be mapped from, and stands for it as long as the lock is held: a
//! committed copy is not written while anybody reads it. Invariant: a mapping lives until every page
//! given out from it has come back, or the file is closed.

#![expect(unsafe_code, reason = "promises SQLite that mapped bytes stay")]

use std::io;
use std::ops::Range;
use std::ptr::NonNull;

use dash_ffi::PagePointer;
use dash_storage::real::{self, Map};
use dash_storage::{File, FileId, ReadMap};

/// The mappings of one connection.
#[derive(Default)]
pub struct Maps {
    maps: Vec<Mapped>,
    limit: u64,
}

struct Mapped {
    id: FileId,
    map: Map,
    given_out: usize,
}

impl Mapped {
    fn address(&self, offset: u64) -> usize {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        self.map.as_ptr().addr().saturating_add(offset)
    }

    fn contains(&self, address: usize) -> bool {
        (self.address(0)..self.address(self.map.len())).contains(&address)
    }
}

impl Maps {
    /// Sets the most bytes of a file to map; answers what it was.
    pub fn set_limit(&mut self, limit: u64) -> u64 {
        let old = std::mem::replace(&mut self.limit, limit);
        if limit < old {
            self.maps.retain(|mapped| mapped.given_out > 0);
        }
        old
    }

    /// The most bytes of a file that are mapped.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// The bytes of `range` of `file`, which must stay as they are as long as SQLite has the pointer.
    /// `None` if they are behind the limit, or behind the end of the file.
    ///
    /// # Errors
    ///
    /// `mmap`'s.
    pub fn page(
        &mut self,
        file: &real::File,
        range: &Range<u64>,
    ) -> io::Result<Option<PagePointer>> {
        if range.end > self.limit {
            return Ok(None);
        }
        let id = file.id();
        let known =
            self.maps.iter().rposition(|mapped| mapped.id == id && range.end <= mapped.map.len());
        let at = match known {
            Some(at) => at,
            None => {
                let len = file.metadata()?.len.min(self.limit);
                if range.end > len {
                    return Ok(None);
                }
                // A shorter map of the same file goes once its pages are back.
                self.maps.retain(|mapped| mapped.id != id || mapped.given_out > 0);
                let map = file.map(len)?;
                self.maps.push(Mapped { id, map, given_out: 0 });
                self.maps.len() - 1
            }
        };
        let mapped = &mut self.maps[at];
        let Ok(offset) = usize::try_from(range.start) else {
            return Ok(None);
        };
        let address = NonNull::new(mapped.map.as_ptr().wrapping_add(offset).cast_mut());
        mapped.given_out += usize::from(address.is_some());
        // SAFETY: inside the map, which stays until `give_back` has taken every page back or the file is
        // closed; what it shows is the committed page, which nobody writes while the lock is held.
        Ok(address.map(|address| unsafe { PagePointer::new(address) }))
    }

    /// Takes a page back.
    pub fn give_back(&mut self, page: PagePointer) {
        let address = page.address().as_ptr().addr();
        if let Some(mapped) =
            self.maps.iter_mut().find(|mapped| mapped.given_out > 0 && mapped.contains(address))
        {
            mapped.given_out -= 1;
        }
    }
}
