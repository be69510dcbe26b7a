//! The numbers that SQLite passes to a VFS, as types: open flags, sync flags, locks, device
//! promises.

use crate::code::Code;
use crate::error::{Error, Result};
use core::ffi::c_int;
use core::fmt;
use core::ops::BitOr;

macro_rules! bits {
    ($(#[$doc:meta])* $name:ident, $prefix:literal { $($flag:ident = $value:expr;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct $name(i32);

        impl $name {
            $(#[doc = concat!("`", $prefix, stringify!($flag), "`.")]
            pub const $flag: Self = Self($value);)*

            /// No flag set.
            #[must_use]
            pub const fn empty() -> Self {
                Self(0)
            }

            /// The flags of this number, those without a name included.
            #[must_use]
            pub const fn from_raw(bits: i32) -> Self {
                Self(bits)
            }

            /// The number, as C knows it.
            #[must_use]
            pub const fn raw(self) -> i32 {
                self.0
            }

            /// Whether all flags of `other` are set.
            #[must_use]
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// These flags without those of `other`.
            #[must_use]
            pub const fn without(self, other: Self) -> Self {
                Self(self.0 & !other.0)
            }

            /// These flags and those of `other`.
            #[must_use]
            pub const fn union(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }

        impl BitOr for $name {
            type Output = Self;
            fn bitor(self, other: Self) -> Self {
                self.union(other)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:#x})"), self.0)
            }
        }
    };
}

bits! {
    /// How SQLite asks for a file to be opened, and how it was opened.
    OpenFlags, "SQLITE_OPEN_" {
        READONLY = 0x1;
        READWRITE = 0x2;
        CREATE = 0x4;
        DELETEONCLOSE = 0x8;
        EXCLUSIVE = 0x10;
        AUTOPROXY = 0x20;
        URI = 0x40;
        MEMORY = 0x80;
        MAIN_DB = 0x100;
        TEMP_DB = 0x200;
        TRANSIENT_DB = 0x400;
        MAIN_JOURNAL = 0x800;
        TEMP_JOURNAL = 0x1000;
        SUBJOURNAL = 0x2000;
        SUPER_JOURNAL = 0x4000;
        NOMUTEX = 0x8000;
        FULLMUTEX = 0x1_0000;
        SHAREDCACHE = 0x2_0000;
        PRIVATECACHE = 0x4_0000;
        WAL = 0x8_0000;
        NOFOLLOW = 0x100_0000;
    }
}

/// What a file is for: the one kind that SQLite states in [`OpenFlags`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A database that the user opened or attached.
    MainDb,
    /// The temp database.
    TempDb,
    /// A database that lives for a part of one statement.
    TransientDb,
    /// The rollback journal of a main database.
    MainJournal,
    /// The rollback journal of a temp database.
    TempJournal,
    /// A statement journal.
    Subjournal,
    /// The journal that binds several databases in one transaction.
    SuperJournal,
    /// A write-ahead log.
    Wal,
}

impl OpenFlags {
    /// What the file is for; `None` if SQLite (or a shim above dash) did not say.
    #[must_use]
    pub fn kind(self) -> Option<FileKind> {
        [
            (Self::MAIN_DB, FileKind::MainDb),
            (Self::WAL, FileKind::Wal),
            (Self::MAIN_JOURNAL, FileKind::MainJournal),
            (Self::TEMP_DB, FileKind::TempDb),
            (Self::TRANSIENT_DB, FileKind::TransientDb),
            (Self::TEMP_JOURNAL, FileKind::TempJournal),
            (Self::SUBJOURNAL, FileKind::Subjournal),
            (Self::SUPER_JOURNAL, FileKind::SuperJournal),
        ]
        .into_iter()
        .find_map(|(flag, kind)| self.contains(flag).then_some(kind))
    }
}

bits! {
    /// How `xSync` is asked to flush.
    ///
    /// `NORMAL` is 2 and `FULL` is 3, so [`SyncFlags::is_full`] tells them apart, not `contains`.
    SyncFlags, "SQLITE_SYNC_" {
        NORMAL = 0x2;
        FULL = 0x3;
        DATAONLY = 0x10;
    }
}

impl SyncFlags {
    /// Whether a full barrier was asked for (`F_FULLFSYNC` where that differs from fsync).
    #[must_use]
    pub const fn is_full(self) -> bool {
        self.0 & 0x0f == Self::FULL.0
    }

    /// Whether the size of the file may stay behind (fdatasync suffices).
    #[must_use]
    pub const fn is_data_only(self) -> bool {
        self.contains(Self::DATAONLY)
    }
}

bits! {
    /// What a file promises about its device; SQLite leaves out work that a promise makes needless.
    DeviceCharacteristics, "SQLITE_IOCAP_" {
        ATOMIC = 0x1;
        ATOMIC512 = 0x2;
        ATOMIC1K = 0x4;
        ATOMIC2K = 0x8;
        ATOMIC4K = 0x10;
        ATOMIC8K = 0x20;
        ATOMIC16K = 0x40;
        ATOMIC32K = 0x80;
        ATOMIC64K = 0x100;
        SAFE_APPEND = 0x200;
        SEQUENTIAL = 0x400;
        UNDELETABLE_WHEN_OPEN = 0x800;
        POWERSAFE_OVERWRITE = 0x1000;
        IMMUTABLE = 0x2000;
        BATCH_ATOMIC = 0x4000;
        SUBPAGE_READ = 0x8000;
    }
}

/// The lock that a connection holds on a database file in rollback mode, from weak to strong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockLevel {
    /// No lock.
    None,
    /// Reading.
    Shared,
    /// Reading, and about to write; one connection at a time.
    Reserved,
    /// Waiting for readers to leave; new ones are kept out.
    Pending,
    /// Writing, alone.
    Exclusive,
}

impl LockLevel {
    /// The number, as C knows it.
    #[must_use]
    pub const fn raw(self) -> i32 {
        match self {
            Self::None => 0,
            Self::Shared => 1,
            Self::Reserved => 2,
            Self::Pending => 3,
            Self::Exclusive => 4,
        }
    }

    /// The level with this number.
    ///
    /// # Errors
    ///
    /// `SQLITE_MISUSE` for a number that is no level.
    pub fn from_raw(level: c_int) -> Result<Self> {
        Ok(match level {
            0 => Self::None,
            1 => Self::Shared,
            2 => Self::Reserved,
            3 => Self::Pending,
            4 => Self::Exclusive,
            _ => {
                return Err(Error::new(Code::MISUSE, format!("no such lock level: {level}")));
            }
        })
    }
}

/// What `xAccess` asks about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessCheck {
    /// Whether it exists. The stock VFS answers no for an empty file, so that an empty journal is
    /// none.
    Exists,
    /// Whether it can be read and written.
    ReadWrite,
    /// Whether it can be read.
    Read,
}

impl AccessCheck {
    /// The number, as C knows it.
    #[must_use]
    pub const fn raw(self) -> i32 {
        match self {
            Self::Exists => 0,
            Self::ReadWrite => 1,
            Self::Read => 2,
        }
    }

    pub(crate) fn from_raw(flags: c_int) -> Self {
        match flags {
            1 => Self::ReadWrite,
            2 => Self::Read,
            _ => Self::Exists,
        }
    }
}

/// What `xShmLock` does to a range of the eight lock slots of the wal-index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShmLock {
    /// Take a shared lock.
    LockShared,
    /// Take an exclusive lock.
    LockExclusive,
    /// Give up a shared lock.
    UnlockShared,
    /// Give up an exclusive lock.
    UnlockExclusive,
}

impl ShmLock {
    const UNLOCK: c_int = 1;
    const LOCK: c_int = 2;
    const SHARED: c_int = 4;
    const EXCLUSIVE: c_int = 8;

    /// The flags, as C knows them.
    #[must_use]
    pub const fn raw(self) -> i32 {
        match self {
            Self::LockShared => Self::LOCK | Self::SHARED,
            Self::LockExclusive => Self::LOCK | Self::EXCLUSIVE,
            Self::UnlockShared => Self::UNLOCK | Self::SHARED,
            Self::UnlockExclusive => Self::UNLOCK | Self::EXCLUSIVE,
        }
    }

    pub(crate) fn from_raw(flags: c_int) -> Result<Self> {
        [Self::LockShared, Self::LockExclusive, Self::UnlockShared, Self::UnlockExclusive]
            .into_iter()
            .find(|lock| lock.raw() == flags)
            .ok_or_else(|| Error::new(Code::MISUSE, format!("no such xShmLock flags: {flags}")))
    }
}
