//! System calls that storage is made of: which are watched, and where each says what file it is
//! about.

use std::ffi::CStr;
use std::path::{Path, PathBuf};

/// What a call does; decides with what codes it may fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `openat` of a file or directory.
    Open,
    /// `pread64`, `read`, `preadv`.
    Read,
    /// `pwrite64`, `write`, `pwritev`.
    Write,
    /// `fsync`, `fdatasync`.
    Flush,
    /// `ftruncate`, `fallocate`.
    Resize,
    /// `rename` in all its forms.
    Rename,
    /// `unlink`, `rmdir`.
    Remove,
    /// `mkdir`.
    MakeDirectory,
    /// `stat` in all its forms, `access`.
    Stat,
    /// `fcntl` with a lock.
    Lock,
    /// `mmap` of a file.
    Map,
    /// `fchown`, and `ioctl` that shares extents.
    Other,
}

/// Where a call names its file.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// Argument with a descriptor.
    Descriptor(usize),
    /// Argument with a directory's descriptor, and the one with a path.
    At(usize, usize),
    /// Argument with a path.
    Path(usize),
}

struct Watched {
    number: libc::c_long,
    kind: Kind,
    place: Place,
}

const fn watched(number: libc::c_long, kind: Kind, place: Place) -> Watched {
    Watched { number, kind, place }
}

/// All that are watched.
#[cfg(target_arch = "x86_64")]
const OLD: &[Watched] = &[
    watched(libc::SYS_open, Kind::Open, Place::Path(0)),
    watched(libc::SYS_stat, Kind::Stat, Place::Path(0)),
    watched(libc::SYS_lstat, Kind::Stat, Place::Path(0)),
    watched(libc::SYS_access, Kind::Stat, Place::Path(0)),
    watched(libc::SYS_unlink, Kind::Remove, Place::Path(0)),
    watched(libc::SYS_rmdir, Kind::Remove, Place::Path(0)),
    watched(libc::SYS_mkdir, Kind::MakeDirectory, Place::Path(0)),
    watched(libc::SYS_rename, Kind::Rename, Place::Path(0)),
];
#[cfg(not(target_arch = "x86_64"))]
const OLD: &[Watched] = &[];

const NEW: &[Watched] = &[
    watched(libc::SYS_openat, Kind::Open, Place::At(0, 1)),
    watched(libc::SYS_read, Kind::Read, Place::Descriptor(0)),
    watched(libc::SYS_pread64, Kind::Read, Place::Descriptor(0)),
    watched(libc::SYS_write, Kind::Write, Place::Descriptor(0)),
    watched(libc::SYS_pwrite64, Kind::Write, Place::Descriptor(0)),
    watched(libc::SYS_pwritev, Kind::Write, Place::Descriptor(0)),
    watched(libc::SYS_fsync, Kind::Flush, Place::Descriptor(0)),
    watched(libc::SYS_fdatasync, Kind::Flush, Place::Descriptor(0)),
    watched(libc::SYS_ftruncate, Kind::Resize, Place::Descriptor(0)),
    watched(libc::SYS_fallocate, Kind::Resize, Place::Descriptor(0)),
    watched(libc::SYS_renameat2, Kind::Rename, Place::At(0, 1)),
    watched(libc::SYS_renameat, Kind::Rename, Place::At(0, 1)),
    watched(libc::SYS_linkat, Kind::Rename, Place::At(0, 1)),
    watched(libc::SYS_unlinkat, Kind::Remove, Place::At(0, 1)),
    watched(libc::SYS_mkdirat, Kind::MakeDirectory, Place::At(0, 1)),
    watched(libc::SYS_newfstatat, Kind::Stat, Place::At(0, 1)),
    watched(libc::SYS_statx, Kind::Stat, Place::At(0, 1)),
    watched(libc::SYS_fstat, Kind::Stat, Place::Descriptor(0)),
    watched(libc::SYS_faccessat, Kind::Stat, Place::At(0, 1)),
    watched(libc::SYS_faccessat2, Kind::Stat, Place::At(0, 1)),
    watched(libc::SYS_fcntl, Kind::Lock, Place::Descriptor(0)),
    watched(libc::SYS_mmap, Kind::Map, Place::Descriptor(4)),
    watched(libc::SYS_fchown, Kind::Other, Place::Descriptor(0)),
    watched(libc::SYS_ioctl, Kind::Other, Place::Descriptor(0)),
];

fn all() -> impl Iterator<Item = &'static Watched> {
    OLD.iter().chain(NEW)
}

/// Numbers of the calls that are watched.
pub fn numbers() -> impl Iterator<Item = u32> {
    all().filter_map(|watched| u32::try_from(watched.number).ok())
}

/// A call that a thread is about to make.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// The thread, by the kernel's number.
    pub thread: u32,
    /// Its number.
    pub number: i32,
    /// What it does.
    pub kind: Kind,
    /// Its arguments.
    pub arguments: [u64; 6],
    place: Place,
}

impl Call {
    /// Knows a call, if it is one of storage: of `fcntl` only locks are, of `ioctl` only clones.
    pub fn of(thread: u32, number: i32, arguments: [u64; 6]) -> Option<Self> {
        let watched = all().find(|watched| watched.number == libc::c_long::from(number))?;
        let second = i32::try_from(arguments[1]).unwrap_or(-1);
        let storage = match libc::c_long::from(number) {
            libc::SYS_fcntl => [libc::F_SETLK, libc::F_GETLK, libc::F_OFD_SETLK, libc::F_OFD_GETLK]
                .contains(&second),
            libc::SYS_ioctl => arguments[1] == libc::FICLONERANGE,
            _ => true,
        };
        let (kind, place) = (watched.kind, watched.place);
        storage.then_some(Self { thread, number, kind, arguments, place })
    }

    /// An argument that is a descriptor.
    pub fn descriptor(&self, argument: usize) -> libc::c_int {
        // The kernel takes the lower half.
        let low = self.arguments[argument].to_ne_bytes();
        libc::c_int::from_ne_bytes([low[0], low[1], low[2], low[3]])
    }

    /// Whether the call makes something new, so that it may find no room.
    pub fn needs_room(&self) -> bool {
        let creates = || {
            let flags = if libc::c_long::from(self.number) == libc::SYS_openat { 2 } else { 1 };
            self.descriptor(flags) & libc::O_CREAT != 0
        };
        match self.kind {
            Kind::Write | Kind::Flush | Kind::Resize | Kind::Rename | Kind::MakeDirectory => true,
            Kind::Open => creates(),
            _ => false,
        }
    }

    /// The file that the call is about.
    pub fn file(&self) -> Option<PathBuf> {
        let of = |descriptor: libc::c_int| {
            if descriptor == libc::AT_FDCWD {
                return std::env::current_dir().ok();
            }
            std::fs::read_link(format!("/proc/self/fd/{descriptor}")).ok()
        };
        match self.place {
            Place::Descriptor(argument) => of(self.descriptor(argument)),
            Place::Path(argument) => Some(of(libc::AT_FDCWD)?.join(self.path(argument)?)),
            Place::At(descriptor, path) => {
                Some(of(self.descriptor(descriptor))?.join(self.path(path)?))
            }
        }
    }

    #[expect(unsafe_code, reason = "reads a path where the calling thread has it")]
    fn path(&self, argument: usize) -> Option<PathBuf> {
        use std::os::unix::ffi::OsStrExt;
        let address = usize::try_from(self.arguments[argument]).ok()?;
        if address == 0 {
            return Some(PathBuf::new()); // statx of the descriptor itself
        }
        let start = std::ptr::with_exposed_provenance::<libc::c_char>(address);
        // SAFETY: it is the path argument of a call that a thread of this process is blocked in, so
        // it points to a C string, which nobody changes until the call is answered.
        let path = unsafe { CStr::from_ptr(start) };
        Some(Path::new(std::ffi::OsStr::from_bytes(path.to_bytes())).to_path_buf())
    }
}
