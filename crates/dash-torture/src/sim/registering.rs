//! Loads a VFS of the tests into the SQLite that is linked in here.

/// Makes `register`, after which each connection has the VFS, for a type that is one.
macro_rules! registered_vfs {
    ($vfs:expr) => {
        static EXTENSION: dash_ffi::Extension = dash_ffi::Extension {
            make_vfs: |_: &dash_ffi::SlotInfo| Box::new($vfs),
            stands_on: None,
            functions: &[],
            tables: &[],
            capture: |_| None,
            without_fork: |work| work(),
            automatic,
        };

        #[expect(unsafe_code, reason = "SQLite calls it for every connection")]
        unsafe extern "C" fn automatic(
            db: *mut dash_ffi::Connection,
            error: *mut *mut std::ffi::c_char,
            api: *const dash_ffi::ApiRoutines,
        ) -> std::ffi::c_int {
            // SAFETY: the arguments are SQLite's own.
            unsafe { dash_ffi::load_automatically(db, error, api, &EXTENSION) }
        }

        #[expect(unsafe_code, reason = "a function of C is handed over")]
        fn register() {
            static ONCE: std::sync::Once = std::sync::Once::new();
            ONCE.call_once(|| {
                // SAFETY: this is the function of the SQLite that is linked in here.
                let registered = unsafe {
                    dash_ffi::register_with(rusqlite::ffi::sqlite3_auto_extension, automatic)
                };
                // The VFS appears with the next connection; one that is missing fails every open.
                drop(registered.map(|()| rusqlite::Connection::open_in_memory()));
            });
        }
    };
}
