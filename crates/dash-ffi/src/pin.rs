//! Keeping a copy of SQLite in the process, so that its routines can be called at any time.
//!
//! A host may load SQLite as a part of a library, and unload that. The copy has our VFS in its list
//! by then, so this is nothing that it may do while it goes on using SQLite; and whether it is
//! still there can't be seen when its mutex is to be taken. So the library is pinned, as
//! `SQLITE_OK_LOAD_PERMANENTLY` does with ours.

use core::ffi::{c_char, c_int, c_ulong, c_void};

use crate::object::Object;

const RTLD_LAZY: c_int = 1;
const RTLD_NOLOAD: c_int = 4;
const RTLD_NODELETE: c_int = 0x1000;
/// Where the program's own headers lie.
const AT_PHDR: c_ulong = 3;

unsafe extern "C" {
    /// POSIX; the flags are those of GNU and musl.
    fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    /// GNU and musl.
    safe fn getauxval(kind: c_ulong) -> c_ulong;
}

/// Keeps the object that has this routine in the process for good; whether it stays.
pub(crate) fn pin(routine: *const c_void) -> bool {
    let Some(found) = Object::of(routine) else { return false };
    // SAFETY: the loader's own name of an object that is there; nothing is loaded.
    let pinned = unsafe { dlopen(found.name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) };
    // The program itself has no name there, and always stays.
    !pinned.is_null() || program().is_some_and(|program| program == found.base)
}

fn program() -> Option<*const c_void> {
    let headers = usize::try_from(getauxval(AT_PHDR)).ok()?;
    Object::of(core::ptr::without_provenance(headers)).map(|found| found.base)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_and_a_library_stay_and_nothing_else_does() {
        assert!(pin(pin as *const c_void));
        assert!(pin(dlopen as *const c_void));
        let here = Box::new(0_u8);
        assert!(!pin((&raw const *here).cast()));
    }
}
