//! Keeping a copy of SQLite in the process, so that its routines can be called at any time.
//!
//! A host may load SQLite as a part of a library, and unload that. The copy has our VFS in its list
//! by then, so this is nothing that it may do while it goes on using SQLite; and whether it is
//! still there can't be seen when its mutex is to be taken. So the library is pinned, as
//! `SQLITE_OK_LOAD_PERMANENTLY` does with ours.

use core::ffi::{c_char, c_int, c_ulong, c_void};
use core::ptr::null;

/// What `dladdr` says of an address: the object that it lies in, and a name near it.
#[repr(C)]
struct Found {
    object: *const c_char,
    base: *const c_void,
    name: *const c_char,
    address: *const c_void,
}

const RTLD_LAZY: c_int = 1;
const RTLD_NOLOAD: c_int = 4;
const RTLD_NODELETE: c_int = 0x1000;
/// Where the program's own headers lie.
const AT_PHDR: c_ulong = 3;

unsafe extern "C" {
    /// GNU and musl.
    fn dladdr(address: *const c_void, found: *mut Found) -> c_int;
    /// POSIX; the flags are those of GNU and musl.
    fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    /// GNU and musl.
    safe fn getauxval(kind: c_ulong) -> c_ulong;
}

/// Keeps the object that has this routine in the process for good; whether it stays.
pub(crate) fn pin(routine: *const c_void) -> bool {
    let Some(found) = object_of(routine) else { return false };
    // SAFETY: the loader's own name of an object that is there; nothing is loaded.
    let pinned = unsafe { dlopen(found.object, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) };
    // The program itself has no name there, and always stays.
    !pinned.is_null() || program().is_some_and(|program| program == found.base)
}

fn program() -> Option<*const c_void> {
    let headers = usize::try_from(getauxval(AT_PHDR)).ok()?;
    object_of(core::ptr::without_provenance(headers)).map(|found| found.base)
}

fn object_of(address: *const c_void) -> Option<Found> {
    let mut found = Found { object: null(), base: null(), name: null(), address: null() };
    // SAFETY: any address may be asked about, and the answer has the shape that is documented.
    let known = unsafe { dladdr(address, &raw mut found) } != 0;
    (known && !found.object.is_null()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_and_a_library_stay_and_nothing_else_does() {
        assert!(pin(pin as *const c_void));
        assert!(pin(dladdr as *const c_void));
        let here = Box::new(0_u8);
        assert!(!pin((&raw const *here).cast()));
    }
}
