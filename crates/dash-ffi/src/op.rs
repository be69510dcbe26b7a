//! The numbers of the file controls (`SQLITE_FCNTL_*`).

macro_rules! ops {
    ($($name:ident = $value:literal;)*) => {
        $(#[doc = concat!("`SQLITE_FCNTL_", stringify!($name), "`.")]
        pub(crate) const $name: core::ffi::c_int = $value;)*
    };
}

ops! {
    LOCKSTATE = 1;
    LAST_ERRNO = 4;
    SIZE_HINT = 5;
    CHUNK_SIZE = 6;
    FILE_POINTER = 7;
    PERSIST_WAL = 10;
    OVERWRITE = 11;
    VFSNAME = 12;
    POWERSAFE_OVERWRITE = 13;
    PRAGMA = 14;
    BUSYHANDLER = 15;
    TEMPFILENAME = 16;
    MMAP_SIZE = 18;
    TRACE = 19;
    HAS_MOVED = 20;
    SYNC = 21;
    COMMIT_PHASETWO = 22;
    PDB = 30;
    BEGIN_ATOMIC_WRITE = 31;
    COMMIT_ATOMIC_WRITE = 32;
    ROLLBACK_ATOMIC_WRITE = 33;
    LOCK_TIMEOUT = 34;
    SIZE_LIMIT = 36;
    CKPT_DONE = 37;
    CKPT_START = 39;
    EXTERNAL_READER = 40;
}

/// Not SQLite's: the argument is a `control_calls::Sought`. Numbers over 100 are for applications,
/// and a VFS that is stacked on ours hands them down.
pub(crate) const FILE_BELOW: core::ffi::c_int = 0x6461_7368;
