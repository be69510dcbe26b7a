//! In which file a routine lies, as the dynamic loader knows it.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::null;

/// What `dladdr` says of an address: the object that it lies in, and a name near it.
#[repr(C)]
pub(crate) struct Object {
    /// The loader's name of it, a C string.
    pub(crate) name: *const c_char,
    /// Where it begins.
    pub(crate) base: *const c_void,
    near: *const c_char,
    address: *const c_void,
}

unsafe extern "C" {
    /// GNU and musl.
    fn dladdr(address: *const c_void, found: *mut Object) -> c_int;
}

impl Object {
    /// The object that has this address; none if nothing is loaded there.
    pub(crate) fn of(address: *const c_void) -> Option<Self> {
        let mut found = Self { name: null(), base: null(), near: null(), address: null() };
        // SAFETY: any address may be asked about, and the answer has the shape that is documented.
        let known = unsafe { dladdr(address, &raw mut found) } != 0;
        (known && !found.name.is_null()).then_some(found)
    }
}

/// The name, without its folders, of the file that has this routine: the name under which it was
/// loaded first.
#[must_use]
pub fn file_name_of(routine: *const c_void) -> Option<Vec<u8>> {
    let object = Object::of(routine)?;
    // SAFETY: the loader's own name of an object that is there.
    let path = unsafe { CStr::from_ptr(object.name) }.to_bytes();
    path.rsplit(|byte| *byte == b'/').next().map(<[u8]>::to_vec)
}
