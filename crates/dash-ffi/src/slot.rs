//! Slots: one for each copy of SQLite in the process that an extension is loaded into.
//!
//! Several SQLites may live in one process and load the same library, and each hands over its own
//! table of routines. So nothing of a host is global: a slot owns the copied routines, the host's
//! default VFS, our `sqlite3_vfs` and the VFS behind it.
//!
//! Invariants: a slot, once made, stays for the life of the process, for SQLite keeps pointers into
//! it; two tables, or two extensions, never share one; a callback finds its slot from what SQLite
//! passes it (the VFS's `app_data`, the file's handle, the table's `pAux`) or, for SQL functions,
//! from its own instance (`function`).

use crate::api::{Api, Unusable};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::extension::{Extension, SlotInfo};
use crate::host::HostVfs;
use crate::pin;
use crate::sys::{ApiRoutines, RawVfs};
use crate::vfs::Vfs;
use crate::vfs_calls;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::{NonNull, null};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

/// How many copies of SQLite one process may bring, times extensions.
pub(crate) const MAX_SLOTS: usize = 16;

static SLOTS: [OnceLock<Slot>; MAX_SLOTS] = [const { OnceLock::new() }; MAX_SLOTS];
/// Held while a slot is looked for, made or registered.
static MAKING: Mutex<()> = Mutex::new(());

/// What an extension is in one copy of SQLite.
pub(crate) struct Slot {
    pub(crate) index: usize,
    pub(crate) api: &'static Api,
    pub(crate) extension: &'static Extension,
    pub(crate) host: HostVfs,
    pub(crate) vfs: Box<dyn Vfs>,
    /// The name of `vfs`, asked once.
    pub(crate) name: &'static CStr,
    /// Ours, as SQLite links it into its list; never freed.
    raw: NonNull<RawVfs>,
    /// Which copy of SQLite: where its table lies and what registers a VFS there. The second tells
    /// copies apart whose table was mapped at the same place, one after the other.
    copy: (usize, usize),
    /// That copy stays in the process, whatever the host unloads.
    stays: bool,
    /// Files that are open.
    open: AtomicUsize,
}

// SAFETY: `raw` is only handed to SQLite, which guards its list of VFSes with a mutex; the rest is
// shared by nature.
unsafe impl Send for Slot {}
// SAFETY: as above.
unsafe impl Sync for Slot {}

impl Slot {
    /// The slot with a number.
    pub(crate) fn at(index: usize) -> Option<&'static Self> {
        SLOTS.get(index)?.get()
    }

    /// Those whose SQLite is there: it stays, or has files open.
    pub(crate) fn all_there() -> impl Iterator<Item = &'static Self> {
        let all = SLOTS.iter().map_while(OnceLock::get);
        all.filter(|slot| slot.stays || slot.open.load(Ordering::Relaxed) > 0)
    }

    /// A file was opened.
    pub(crate) fn opened(&self) {
        self.open.fetch_add(1, Ordering::Relaxed);
    }

    /// It is closed.
    pub(crate) fn closed(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    /// The slot of an extension in the SQLite that a table of routines comes from; made if missing.
    ///
    /// # Errors
    ///
    /// Why the table can't be used; or `SQLITE_ERROR` if there are too many SQLites, if this one
    /// has no VFS, or if the extension's VFS can't be made.
    ///
    /// # Safety
    ///
    /// `table` is null or the table that SQLite handed to an extension's entry point.
    pub(crate) unsafe fn obtain(
        table: *const ApiRoutines,
        extension: &'static Extension,
    ) -> core::result::Result<Result<&'static Self>, Unusable> {
        // SAFETY: as the caller states.
        let api = unsafe { Api::copy(table) }?;
        let copy = (table.addr(), api.vfs_register as usize);
        let _making = MAKING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        for (index, place) in SLOTS.iter().enumerate() {
            match place.get() {
                Some(slot) if slot.copy == copy && core::ptr::eq(slot.extension, extension) => {
                    return Ok(Ok(slot));
                }
                Some(_) => {}
                // Slots are made in order, so the first empty place ends the search.
                None => {
                    return Ok(Self::make(index, api, extension, copy)
                        .map(|slot| place.get_or_init(|| slot)));
                }
            }
        }
        let message = format!("more than {MAX_SLOTS} copies of SQLite in one process");
        Ok(Err(Error::new(Code::ERROR, message)))
    }

    fn make(
        index: usize,
        api: Api,
        extension: &'static Extension,
        copy: (usize, usize),
    ) -> Result<Self> {
        let api: &'static Api = Box::leak(Box::new(api));
        let host = Self::host(api, extension.stands_on)?;
        let vfs = (extension.make_vfs)(&SlotInfo::new(host, api.version()));
        let name = vfs.name();
        let raw = Box::leak(Box::new(vfs_calls::raw_vfs(index, name, &host))).into();
        let stays = pin::pin(api.vfs_register as *const c_void);
        let open = AtomicUsize::new(0);
        Ok(Self { index, api, extension, host, vfs, name, raw, copy, stays, open })
    }

    /// The VFS that is called `name`, unless the default one is of its kind, or there is none.
    fn host(api: &'static Api, name: Option<&CStr>) -> Result<HostVfs> {
        let find = |name: *const c_char| {
            // SAFETY: a C string; null asks for the default VFS.
            let found = NonNull::new(unsafe { (api.vfs_find)(name) })?;
            // SAFETY: just found in the SQLite of `api`.
            Some(unsafe { HostVfs::new(found, api) })
        };
        let default = find(null())
            .ok_or_else(|| Error::new(Code::ERROR, "this SQLite has no default VFS"))?;
        let other = name.filter(|name| !default.name().to_bytes().starts_with(name.to_bytes()));
        Ok(other.and_then(|name| find(name.as_ptr())).unwrap_or(default))
    }

    /// Registers the VFS, unless it is; as the default one, if `default` says so. A VFS that is the
    /// default stays so, until `sqlite3_shutdown`: an SQLite that starts anew makes its own the
    /// default.
    ///
    /// # Errors
    ///
    /// `SQLITE_ERROR` if the name is taken by a VFS that isn't ours; SQLite's own code otherwise.
    pub(crate) fn register(&self, default: bool) -> Result<()> {
        let _making = MAKING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        // SAFETY: the name is a C string.
        let found = unsafe { (self.api.vfs_find)(self.name.as_ptr()) };
        let is_ours = found == self.raw.as_ptr();
        if !found.is_null() && !is_ours {
            let name = self.name.to_string_lossy();
            return Err(Error::new(
                Code::ERROR,
                format!("another VFS named {name} is registered: a second copy of the library?"),
            ));
        }
        if is_ours && !default {
            return Ok(());
        }
        // SAFETY: ours, complete, and never freed; registering again only moves it in SQLite's
        // list.
        Error::check(unsafe { (self.api.vfs_register)(self.raw.as_ptr(), c_int::from(default)) })
    }
}
