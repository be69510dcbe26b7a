//! The extension that was built with the tests. A crate whose tests load it has `libdash` among its
//! development dependencies.

use std::path::PathBuf;

/// `libdash.so`, built as a dependency of this test and lying beside it.
pub fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own file");
    let library = test.with_file_name("libdash.so");
    assert!(library.exists(), "{} was not built", library.display());
    library
}

/// Loads the extension into the SQLite that is linked here, once a process.
#[cfg(feature = "sqlite")]
pub fn load() {
    static LOADED: std::sync::Once = std::sync::Once::new();
    LOADED.call_once(|| {
        let scratch = rusqlite::Connection::open_in_memory().expect("memory");
        #[expect(
            unsafe_code,
            reason = "loading an extension runs its code; it is the one under test"
        )]
        // SAFETY: `libdash.so` is a well-formed extension; it stays loaded for good.
        unsafe {
            scratch.load_extension_enable().expect("extensions are compiled in");
            scratch.load_extension(library(), None::<&str>).expect("libdash.so loads");
        }
    });
}
