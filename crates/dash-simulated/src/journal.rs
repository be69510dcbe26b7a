//! What the processes did, one line an operation.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::ops::Range;

use dash_storage::LockKind;

macro_rules! operations {
    ($($kind:ident = $word:literal,)*) => {
        /// The operations that storage has.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum OperationKind {
            $(#[doc = concat!("`", $word, "`")] $kind,)*
        }

        impl OperationKind {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$kind),*];
        }

        impl fmt::Display for OperationKind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$kind => $word,)* })
            }
        }
    };
}

operations! {
    OpenDirectory = "open directory",
    Open = "open",
    NameMetadata = "stat name",
    Exchange = "exchange",
    Link = "link",
    Rename = "rename",
    Unlink = "unlink",
    CreateDirectory = "make directory",
    RemoveDirectory = "remove directory",
    FlushDirectory = "flush directory",
    Metadata = "stat",
    Read = "read",
    Write = "write",
    SetLen = "set length",
    Allocate = "allocate",
    Initialize = "initialize",
    MakeDirect = "make direct",
    WriteDurable = "make written bytes durable",
    Flush = "flush",
    Lock = "lock",
    Unlock = "unlock",
    LockConflict = "ask for lock",
    OpenElsewhere = "ask who has it open",
    CloneRange = "clone",
    Map = "map",
    SharedMemory = "share memory",
    SharedRegion = "share a region",
    MapPersistent = "map persistent memory",
    Store = "store",
    Load = "load",
    WriteBack = "write lines back",
    Fence = "fence",
}

/// An operation and what it was about.
#[derive(Debug, Clone)]
pub struct Operation {
    /// Which.
    pub kind: OperationKind,
    /// Inode number of the file, or of the directory.
    pub inode: u64,
    /// The bytes or locks it was about.
    pub range: Option<Range<u64>>,
    /// The kind of lock.
    pub lock: Option<LockKind>,
    /// The names it was about.
    pub names: Vec<OsString>,
}

impl Operation {
    pub(crate) fn new(kind: OperationKind, inode: u64) -> Self {
        Self { kind, inode, range: None, lock: None, names: Vec::new() }
    }

    pub(crate) fn range(self, range: Range<u64>) -> Self {
        Self { range: Some(range), ..self }
    }

    pub(crate) fn lock(self, lock: LockKind) -> Self {
        Self { lock: Some(lock), ..self }
    }

    pub(crate) fn names(self, names: &[&OsStr]) -> Self {
        Self { names: names.iter().map(|&name| name.to_owned()).collect(), ..self }
    }
}

/// One operation of one process.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its number, as [`Machine::cut_at`](crate::Machine::cut_at) counts.
    pub step: u64,
    /// The process that did it.
    pub process: u32,
    /// What it did.
    pub operation: Operation,
    /// The errno it failed with.
    pub error: Option<i32>,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, process, operation, error } = self;
        write!(f, "{step:>6} process {process}: {} inode {}", operation.kind, operation.inode)?;
        for name in &operation.names {
            write!(f, " {}", name.display())?;
        }
        if let Some(range) = &operation.range {
            write!(f, " {}..{}", range.start, range.end)?;
        }
        match operation.lock {
            Some(LockKind::Shared) => f.write_str(" shared")?,
            Some(LockKind::Exclusive) => f.write_str(" exclusive")?,
            None => {}
        }
        match error {
            Some(error) => write!(f, " failed: {}", crate::errno(*error)),
            None => Ok(()),
        }
    }
}

/// The operations of a machine so far; displays one line each.
#[derive(Debug, Clone, Default)]
pub struct Journal {
    /// In the order in which they happened.
    pub entries: Vec<Entry>,
}

impl fmt::Display for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entries.iter().try_for_each(|entry| writeln!(f, "{entry}"))
    }
}
