//! SQLite's result codes, as a newtype over the extended code.
//!
//! Only codes that a VFS, a function or a table may answer have a name here; any other keeps its
//! number.

use core::ffi::c_int;
use core::fmt;

/// An SQLite result code, primary or extended.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(i32);

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $value:expr;)*) => {
        impl Code {
            $($(#[$doc])* #[doc = concat!("`SQLITE_", stringify!($name), "`.")]
            pub const $name: Self = Self($value);)*

            fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => Some(concat!("SQLITE_", stringify!($name))),)*
                    _ => None,
                }
            }
        }
    };
}

const fn extended(primary: i32, detail: i32) -> i32 {
    primary | detail << 8
}

codes! {
    ERROR = 1;
    INTERNAL = 2;
    PERM = 3;
    ABORT = 4;
    BUSY = 5;
    LOCKED = 6;
    NOMEM = 7;
    READONLY = 8;
    INTERRUPT = 9;
    IOERR = 10;
    CORRUPT = 11;
    NOTFOUND = 12;
    FULL = 13;
    CANTOPEN = 14;
    PROTOCOL = 15;
    SCHEMA = 17;
    TOOBIG = 18;
    CONSTRAINT = 19;
    MISMATCH = 20;
    MISUSE = 21;
    NOLFS = 22;
    AUTH = 23;
    RANGE = 25;
    NOTADB = 26;
    NOTICE = 27;
    WARNING = 28;
    BUSY_RECOVERY = extended(5, 1);
    BUSY_SNAPSHOT = extended(5, 2);
    BUSY_TIMEOUT = extended(5, 3);
    READONLY_RECOVERY = extended(8, 1);
    READONLY_CANTLOCK = extended(8, 2);
    READONLY_ROLLBACK = extended(8, 3);
    READONLY_DBMOVED = extended(8, 4);
    READONLY_CANTINIT = extended(8, 5);
    READONLY_DIRECTORY = extended(8, 6);
    IOERR_READ = extended(10, 1);
    IOERR_SHORT_READ = extended(10, 2);
    IOERR_WRITE = extended(10, 3);
    IOERR_FSYNC = extended(10, 4);
    IOERR_DIR_FSYNC = extended(10, 5);
    IOERR_TRUNCATE = extended(10, 6);
    IOERR_FSTAT = extended(10, 7);
    IOERR_UNLOCK = extended(10, 8);
    IOERR_RDLOCK = extended(10, 9);
    IOERR_DELETE = extended(10, 10);
    IOERR_BLOCKED = extended(10, 11);
    IOERR_NOMEM = extended(10, 12);
    IOERR_ACCESS = extended(10, 13);
    IOERR_CHECKRESERVEDLOCK = extended(10, 14);
    IOERR_LOCK = extended(10, 15);
    IOERR_CLOSE = extended(10, 16);
    IOERR_DIR_CLOSE = extended(10, 17);
    IOERR_SHMOPEN = extended(10, 18);
    IOERR_SHMSIZE = extended(10, 19);
    IOERR_SHMLOCK = extended(10, 20);
    IOERR_SHMMAP = extended(10, 21);
    IOERR_SEEK = extended(10, 22);
    IOERR_DELETE_NOENT = extended(10, 23);
    IOERR_MMAP = extended(10, 24);
    IOERR_GETTEMPPATH = extended(10, 25);
    IOERR_CONVPATH = extended(10, 26);
    IOERR_VNODE = extended(10, 27);
    IOERR_AUTH = extended(10, 28);
    IOERR_BEGIN_ATOMIC = extended(10, 29);
    IOERR_COMMIT_ATOMIC = extended(10, 30);
    IOERR_ROLLBACK_ATOMIC = extended(10, 31);
    IOERR_DATA = extended(10, 32);
    IOERR_CORRUPTFS = extended(10, 33);
    CORRUPT_VTAB = extended(11, 1);
    CANTOPEN_NOTEMPDIR = extended(14, 1);
    CANTOPEN_ISDIR = extended(14, 2);
    CANTOPEN_FULLPATH = extended(14, 3);
    CANTOPEN_CONVPATH = extended(14, 4);
    CANTOPEN_SYMLINK = extended(14, 6);
    NOTICE_RECOVER_WAL = extended(27, 1);
    NOTICE_RECOVER_ROLLBACK = extended(27, 2);
}

/// `SQLITE_OK`: success has no [`Code`], it is `Ok`.
pub(crate) const OK: c_int = 0;

impl Code {
    /// The code with this number, or `None` for 0, which is success.
    #[must_use]
    pub const fn from_raw(code: i32) -> Option<Self> {
        if code == OK { None } else { Some(Self(code)) }
    }

    /// The number, as C knows it.
    #[must_use]
    pub const fn raw(self) -> i32 {
        self.0
    }

    /// The primary code: the low eight bits.
    #[must_use]
    pub const fn primary(self) -> Self {
        Self(self.0 & 0xff)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({})", self.0),
            None => write!(f, "SQLite result code {}", self.0),
        }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
