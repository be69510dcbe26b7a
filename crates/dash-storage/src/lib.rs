//! What an engine needs of an operating system, and nothing else.
//!
//! Engines are generic over [`Storage`], so the same commit and recovery code runs on the real
//! system ([`real`]) and on a model of page cache, device cache and directories that can lose
//! power (the crate `dash-simulated`). Every operation at which a crash, an error or another
//! process can make a difference is a method here; what is not here an engine cannot do.
//!
//! Errors are plain [`std::io::Error`]s carrying the errno; the engine adds what it was doing.
//! A flush that failed says nothing about the pages it covered: a later success of the same call
//! proves nothing, as the pages may be clean by then and were never written.

#[cfg(not(target_os = "linux"))]
compile_error!("dash needs Linux: locks of open file descriptions, renameat2 and futexes");

mod blocks;
mod mapped;
mod metadata;
mod persistent;
#[cfg(target_os = "linux")]
pub mod real;
mod shared;

pub use blocks::Blocks;
pub use mapped::{ReadMap, SharedMemory};
pub use metadata::Metadata;
pub use persistent::{LINE, Persistence, PersistentMemory, WORD};

use std::ffi::OsStr;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

/// An operating system, or a model of one.
pub trait Storage: Clone + Send + Sync + 'static {
    /// An open directory, see [`Directory`].
    type Directory: Directory<File = Self::File>;
    /// An open file, see [`File`].
    type File: File;

    /// Opens an existing directory. The handle follows the directory when it is moved.
    fn open_directory(&self, path: &Path) -> io::Result<Self::Directory>;

    /// A number nobody else will draw: commit ids and pair ids. Never zero.
    fn random(&self) -> u64;

    /// Sleeps for about `time`; simulated homes advance their clock.
    fn sleep(&self, time: Duration);

    /// Nanoseconds since an arbitrary point; never goes back. Must not cost a system call.
    fn monotonic_nanos(&self) -> u64;

    /// A number of this process's pid namespace, to compare process ids by; 0: it isn't known.
    fn pid_namespace(&self) -> u64 {
        0
    }

    /// The user that this process acts as.
    fn user(&self) -> u32 {
        0
    }
}

/// How [`Directory::open`] opens a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// Existing file, reading only.
    Read,
    /// Existing file, reading and writing.
    ReadWrite,
    /// Existing file or a new empty one with these permission bits (before the umask), reading and
    /// writing.
    Create {
        /// Permission bits of a new file, such as `0o644`.
        permissions: u32,
    },
    /// A new file; fails with [`io::ErrorKind::AlreadyExists`] if the name is taken.
    CreateNew {
        /// Permission bits of the new file, such as `0o644`.
        permissions: u32,
    },
}

/// What a name or descriptor stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// Anything else (device, socket, symbolic link).
    Other,
}

/// A file's identity on this machine: stable as long as the file exists, reused afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    /// `st_dev`.
    pub device: u64,
    /// `st_ino`.
    pub inode: u64,
}

/// An open directory: every operation takes the last component of a path, never a path.
///
/// Directory operations are atomic, survive a power loss as a prefix of the order in which they
/// were made, and are durable after [`Directory::flush`].
pub trait Directory: Sized + Send + Sync + 'static {
    /// The files of this home.
    type File: File;

    /// Opens `name`, which must be a regular file. Symbolic links are not followed at the last
    /// component, and what is no file at all (a pipe, a socket, a device) is refused rather than
    /// waited for.
    fn open(&self, name: &OsStr, mode: OpenMode) -> io::Result<Self::File>;

    /// `fstatat` without following a symbolic link; `None` if there is no such name.
    fn metadata(&self, name: &OsStr) -> io::Result<Option<Metadata>>;

    /// Whether something is mounted over `name`, such as a file, which can be neither exchanged nor
    /// removed then. `false` where it can't be told, or nothing is there.
    fn is_mount_point(&self, name: &OsStr) -> io::Result<bool>;

    /// Whether what becomes of names and inodes survives in its order, and no block of a removed
    /// file holds another one's data before it is durable that it was removed. `true` where it
    /// can't be told: only ext4 says that it keeps no journal, or data in no order
    /// (`data=writeback`; ext4's `mballoc.c` `ext4_mb_clear_bb`).
    fn keeps_order(&self) -> bool;

    /// Exchanges two names atomically (`renameat2(RENAME_EXCHANGE)`). Both must exist.
    /// [`io::ErrorKind::Unsupported`] where the file system lacks it (EINVAL, ENOSYS).
    fn exchange(&self, a: &OsStr, b: &OsStr) -> io::Result<()>;

    /// Gives the file `existing` a second name (`linkat`); fails with
    /// [`io::ErrorKind::AlreadyExists`] if `new` is taken. Many file systems and some security
    /// policies allow none, each with an error of its own.
    fn link(&self, existing: &OsStr, new: &OsStr) -> io::Result<()>;

    /// Renames `from` to `to`, replacing what `to` was. Does nothing if both are names of one file.
    fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()>;

    /// Removes a file's name.
    fn unlink(&self, name: &OsStr) -> io::Result<()>;

    /// Makes an empty directory, its maker's alone.
    fn create_directory(&self, name: &OsStr) -> io::Result<()>;

    /// The same, and lets all who may use `file` read it, with its owner and group: as far as this
    /// process may, and can tell that nobody has put another one there meanwhile.
    fn create_shared_directory(&self, name: &OsStr, _file: &Self::File) -> io::Result<()> {
        self.create_directory(name)
    }

    /// Opens a directory in this one. A symbolic link is not followed.
    fn open_directory(&self, name: &OsStr) -> io::Result<Self>;

    /// Removes an empty directory.
    fn remove_directory(&self, name: &OsStr) -> io::Result<()>;

    /// `fsync` of the directory: all its operations so far are durable when this returns.
    fn flush(&self) -> io::Result<()>;
}

/// Where a [`File::shared_region`] may begin: at multiples of so many bytes. SQLite divides its
/// `-shm` into regions of that size (wal.c `WALINDEX_PGSZ`).
pub const REGION: u64 = 32 * 1024;

/// Whether a lock keeps others from reading or only from writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    /// Any number of descriptions may hold it (`F_RDLCK`).
    Shared,
    /// One description may hold it, and nobody a shared one (`F_WRLCK`); needs a writable file.
    Exclusive,
}

/// An open file description. Positioned I/O only; `&self` methods may be called by several threads.
pub trait File: Send + Sync + 'static {
    /// A shared read-only mapping, see [`File::map`].
    type Map: ReadMap;
    /// Shared memory of all processes that opened this file, see [`File::shared_memory`].
    type Memory: SharedMemory;
    /// Byte-addressable memory, see [`File::map_persistent`].
    type Persistent: PersistentMemory;

    /// Device and inode number, remembered from the opening.
    fn id(&self) -> FileId;

    /// `fstat`.
    fn metadata(&self) -> io::Result<Metadata>;

    /// A number of the cache that the file is in: as long as it stays the same, what was written
    /// and not flushed is still there. After a power loss, or when the file system was mounted
    /// anew, it is another one. `None` where the system can't tell.
    fn cache_life(&self) -> Option<u64>;

    /// Reads up to `buffer.len()` bytes at `offset`; fewer only at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all of `data` at `offset`, extending the file if need be. Page cache only.
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()>;

    /// Writes the buffers one behind the other at `offset` (`pwritev`); all or an error.
    fn write_vectored_at(&self, data: &[IoSlice<'_>], offset: u64) -> io::Result<()>;

    /// Sets the length: cuts, or extends with zeros.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// The next part of the file, at or behind `offset`, that may hold anything but zeros
    /// (`SEEK_DATA`); `None` if only a hole is left. Homes and file systems that can't tell say all
    /// of it.
    fn data_from(&self, offset: u64) -> io::Result<Option<Range<u64>>>;

    /// Gives the blocks of `range` back (`FALLOC_FL_PUNCH_HOLE`): it reads as zeros from then on,
    /// and the length stays. [`io::ErrorKind::Unsupported`] where the home or the file system
    /// can't.
    fn punch(&self, _range: Range<u64>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Bytes that this user may still write on the file system that the file is on (`fstatvfs`).
    /// [`io::ErrorKind::Unsupported`] in homes that don't count.
    fn free_space(&self) -> io::Result<u64> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The longest that this process may make it (`RLIMIT_FSIZE`): the kernel ends who writes
    /// beyond (SIGXFSZ).
    fn length_limit(&self) -> io::Result<u64> {
        Ok(u64::MAX)
    }

    /// Extends the file to `len` with blocks reserved for what it grows by, so that writing them
    /// can't run out of space (`posix_fallocate`, where the file system can). Never shrinks.
    fn allocate(&self, len: u64) -> io::Result<()>;

    /// Reserves blocks for `range`, and leaves the length as it is (`FALLOC_FL_KEEP_SIZE`): writing
    /// there can't run out of space until the file is cut, or its length set to what it is.
    /// [`io::ErrorKind::Unsupported`] where the home or the file system can't.
    fn make_room(&self, _range: Range<u64>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Has the blocks of `range` allocated *and* written, with zeros: where the file system writes
    /// in place, no later write in it changes anything but the bytes. Extends the file. What was
    /// there before is gone; nothing is durable before a flush. Through a direct description both
    /// ends must be multiples of its block. An error may leave a part of it done.
    fn initialize(&self, range: Range<u64>) -> io::Result<()>;

    /// Has this description bypass the page cache from now on (`O_DIRECT`), and answers the block
    /// in bytes, a power of two from 512 to 4096: offsets, lengths and addresses in memory
    /// ([`Blocks`]) of all that is read and written through it must be multiples of it. It is what
    /// the file system asks for, or what the device writes without reading first, if that is more.
    /// `None` where the file system can't do so with this file: the description is as it was.
    /// Whether it can may change with the file's first bytes, so it is asked after these.
    ///
    /// Others may read and write the file through the cache meanwhile. What is direct is not
    /// durable: the device has a cache, too.
    fn make_direct(&self) -> io::Result<Option<u32>>;

    /// Writes all of `data` at `offset`, durable when this returns Ok (`RWF_DSYNC`: one write that
    /// the device puts through its cache, where it can), with what is needed to read it. Other
    /// bytes of the file are as durable as before. After an error any part of it may be there.
    fn write_durable_at(&self, data: &[u8], offset: u64) -> io::Result<()>;

    /// `fdatasync`: data, and what is needed to read it (the length), are durable after an Ok.
    fn flush(&self) -> io::Result<()>;

    /// Tries to take or convert an open-file-description lock on `range`; `false` if another
    /// description, or a POSIX lock of any process including this one, conflicts. Never waits.
    fn try_lock(&self, range: Range<u64>, kind: LockKind) -> io::Result<bool>;

    /// Releases whatever this description holds in `range`.
    fn unlock(&self, range: Range<u64>) -> io::Result<()>;

    /// Whether somebody else holds a lock in `range` that conflicts with `kind`, without taking it
    /// (`F_OFD_GETLK`): `None` if nobody does, else the process id; 0 if it has none
    /// (open-file-description locks have no owner), -1 if it is of another pid namespace.
    fn lock_conflict(&self, range: Range<u64>, kind: LockKind) -> io::Result<Option<i32>>;

    /// The processes with POSIX locks in `range`, each once and in no order: `lock_conflict` names
    /// one holder only, and may name none of these where descriptions hold locks, too. It reads
    /// the locks of the whole machine (`/proc/locks`), so it is for whoever looks. Processes of
    /// another pid namespace are missing, and all where `/proc` is not mounted.
    fn lock_owners(&self, range: Range<u64>) -> io::Result<Vec<i32>>;

    /// Whether anybody else, in any process, has the file open: another open file description,
    /// other than by a mapping of this one. An answer for this instant; an error where it can't be
    /// known (some file systems, files of another user).
    fn open_elsewhere(&self) -> io::Result<bool>;

    /// Shares `range` of `source` into the same place of this file without copying
    /// (`FICLONERANGE`). [`io::ErrorKind::Unsupported`] where extents can't be shared.
    fn clone_range(&self, source: &Self, range: Range<u64>) -> io::Result<()>;

    /// Gives this file the owner, group, permission bits and access control list of `other`, as far
    /// as this process may: a database must not change hands with its names. Whether all who may
    /// use the other one may use this one now. It never gives what neither gives.
    fn copy_access(&self, other: &Self) -> io::Result<bool>;

    /// Whether both have the same owner, group, permission bits and access control list.
    fn has_access_of(&self, other: &Self) -> io::Result<bool> {
        Ok(self.metadata()?.has_access_of(&other.metadata()?) && self.has_list_of(other)?)
    }

    /// Whether it has them, but for a group that this process can't give.
    fn has_copied_access_of(&self, other: &Self) -> io::Result<bool> {
        self.has_access_of(other)
    }

    /// Whether all who may use `other` may use this file, and beside its owner nobody else.
    fn has_users_of(&self, other: &Self) -> io::Result<bool> {
        self.has_access_of(other)
    }

    /// Whether both have the same access control list.
    fn has_list_of(&self, _: &Self) -> io::Result<bool> {
        Ok(true)
    }

    /// Says that nobody takes POSIX locks of the file, as no other program knows it: no close looks
    /// for them. A file with several names stays as it is: it may be somebody's database.
    fn mark_unlocked(&self) {}

    /// Whether a user, or a group, may write the file by a right of its own: as its owner, as its
    /// group, or as one in its list, beside which the bits say what the group may at most.
    fn lets_write(&self, user: u32, group: u32) -> io::Result<bool> {
        let found = self.metadata()?;
        let group_writes = found.permissions & 0o020 != 0;
        Ok(found.owner == user || found.group == group && group_writes)
    }

    /// Whether everybody may write the file, and no group or user that is named is kept out of it.
    fn lets_all_write(&self) -> io::Result<bool> {
        Ok(self.metadata()?.permissions & 0o022 == 0o022)
    }

    /// Maps the first `len` bytes for reading. What is behind the end of the file must not be
    /// touched. [`io::ErrorKind::Unsupported`] in homes without memory mapping.
    fn map(&self, len: u64) -> io::Result<Self::Map>;

    /// Maps the first `len` bytes, which must be there, allocated and written
    /// ([`File::initialize`]), to store to them. [`io::ErrorKind::Unsupported`] where the file lies
    /// in no byte-addressable memory: on the file systems of a disk nothing is ever stored to a
    /// mapping.
    fn map_persistent(&self, len: u64) -> io::Result<Self::Persistent>;

    /// Maps the first `words * 8` bytes, extending the file with zeros if it is shorter (callers
    /// see to it that two don't do so at once), as memory shared with every process that does the
    /// same. Contents are lost with the machine, not with a process.
    fn shared_memory(&self, words: usize) -> io::Result<Self::Memory>;

    /// The same of `words * 8` bytes from `offset` on, a multiple of [`REGION`].
    fn shared_region(&self, offset: u64, words: usize) -> io::Result<Self::Memory>;

    /// The same, where `old` is in memory, which came over `fork()` and is dead: pointers into it
    /// are good again. After an error they are dead for ever. [`io::ErrorKind::Unsupported`] in
    /// homes without forks.
    fn shared_region_in_place_of(
        &self,
        _old: Self::Memory,
        _offset: u64,
        _words: usize,
    ) -> io::Result<Self::Memory> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
