//! Names, through an open directory: no path is ever resolved twice.
//!
//! What lies under a name may have been put there by somebody else. Only regular files are opened:
//! a link is not followed, a pipe is not waited for, and a device is closed again unread.

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{self, AtFlags, OFlag};
use nix::sys::stat::{self, FileStat, Mode};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{self, AccessFlags, UnlinkatFlags, geteuid};
use rustix::fs::{RenameFlags, renameat_with};

use super::descriptor::Descriptor;
use super::file::File;
use super::files;
use super::metadata::{nanos, not_regular};
use super::retry::uninterrupted;
use super::{access, journal, owners};
use crate::{FileId, FileKind, Metadata, OpenMode};

/// Opening follows no link, waits for nobody at the other end of a pipe, and takes no terminal
/// over.
const HARMLESS: OFlag =
    OFlag::O_CLOEXEC.union(OFlag::O_NOFOLLOW).union(OFlag::O_NONBLOCK).union(OFlag::O_NOCTTY);
/// For how long a lease of somebody else's is waited for. Linux breaks one after 45 seconds, and
/// lets him take it again.
const LEASE_PATIENCE: Duration = Duration::from_secs(5);
/// How often it is looked at.
const LEASE_PAUSE: Duration = Duration::from_micros(500);

/// An open directory. Whoever may not list it may use the names in it: it is opened to find those
/// then (`O_PATH`).
pub struct Directory {
    descriptor: Descriptor,
}

impl Directory {
    pub(super) fn open_path(path: &Path) -> io::Result<Self> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        Self::open_by(|how| fcntl::open(path, how, Mode::empty()))
    }

    fn open_by(open: impl Fn(OFlag) -> nix::Result<OwnedFd>) -> io::Result<Self> {
        let open = |how: OFlag| {
            let flags = how | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
            Descriptor::open(|| retry(|| open(flags)))
        };
        let descriptor = match open(OFlag::O_RDONLY) {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => open(OFlag::O_PATH),
            opened => opened,
        };
        Ok(Self { descriptor: descriptor? })
    }

    pub(super) fn file(&self) -> io::Result<&std::fs::File> {
        self.descriptor.file()
    }

    /// Flushes all of the file system, by a file without a name: that asks for no right to list.
    fn flush_by_a_file(&self) -> io::Result<()> {
        let directory = self.descriptor.file()?;
        let flags = OFlag::O_TMPFILE | OFlag::O_RDWR | OFlag::O_CLOEXEC;
        let open = || retry(|| fcntl::openat(directory, ".", flags, Mode::S_IRUSR));
        let file = Descriptor::open(open)?;
        let file = file.file()?;
        retry(|| unistd::syncfs(file))
    }

    /// Lets who may use `file` read an empty folder that was made since a time of day.
    fn share(&self, name: &OsStr, since: u64, file: &File) -> io::Result<()> {
        let directory = self.descriptor.file()?;
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | HARMLESS;
        let open = || retry(|| fcntl::openat(directory, name, flags, Mode::empty()));
        let folder = Descriptor::open(open)?;
        let folder = folder.file()?;
        // Somebody may have put another one under that name, whose content is for nobody else.
        let mut names = rustix::fs::Dir::read_from(folder)?;
        let is_empty = names.all(|name| name.is_ok_and(|name| is_dots(name.file_name())));
        if !is_empty || !was_made_since(folder, since)? {
            return Err(Errno::EEXIST.into());
        }
        let file = file.descriptor.file()?;
        uninterrupted(|| access::share(folder, file))
    }

    /// The file behind `name`, from a descriptor that is parked. Whoever has no right to open the
    /// file doesn't get it so.
    fn reopen(&self, name: &OsStr, mode: OpenMode) -> io::Result<Option<File>> {
        if !files::any_parked() || matches!(mode, OpenMode::CreateNew { .. }) {
            return Ok(None);
        }
        let Some(metadata) = crate::Directory::metadata(self, name)? else {
            return Ok(None);
        };
        let writable = is_writable(mode);
        let needed =
            AccessFlags::R_OK | if writable { AccessFlags::W_OK } else { AccessFlags::empty() };
        let directory = self.descriptor.file()?;
        if unistd::faccessat(directory, name, needed, AtFlags::AT_EACCESS).is_err() {
            return Ok(None);
        }
        let descriptor = Descriptor::unpark(metadata.id, writable);
        Ok(descriptor.map(|descriptor| File::new(descriptor, metadata.id, writable)))
    }
}

impl crate::Directory for Directory {
    type File = File;

    fn open(&self, name: &OsStr, mode: OpenMode) -> io::Result<File> {
        check(name)?;
        if let Some(file) = self.reopen(name, mode)? {
            return Ok(file);
        }
        let directory = self.descriptor.file()?;
        let (flags, permissions) = match mode {
            OpenMode::Read => (OFlag::O_RDONLY, 0),
            OpenMode::ReadWrite => (OFlag::O_RDWR, 0),
            OpenMode::Create { permissions } => (OFlag::O_RDWR | OFlag::O_CREAT, permissions),
            OpenMode::CreateNew { permissions } => {
                (OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL, permissions)
            }
        };
        let permissions = Mode::from_bits_truncate(permissions);
        let mut begun = None;
        loop {
            let open = || retry(|| fcntl::openat(directory, name, flags | HARMLESS, permissions));
            match Descriptor::open(open) {
                // A lease, for an instant one of our own (`lease`).
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if begun.get_or_insert_with(Instant::now).elapsed() >= LEASE_PATIENCE {
                        return Err(owners::leased(directory, name));
                    }
                    std::thread::sleep(LEASE_PAUSE);
                }
                Err(error) => return Err(no_file(error)),
                Ok(descriptor) => return File::identify(descriptor, is_writable(mode)),
            }
        }
    }

    fn metadata(&self, name: &OsStr) -> io::Result<Option<Metadata>> {
        check(name)?;
        let directory = self.descriptor.file()?;
        match retry(|| stat::fstatat(directory, name, AtFlags::AT_SYMLINK_NOFOLLOW)) {
            Ok(found) => Ok(Some(metadata(&found))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The kernel says it since 5.8. Device numbers don't: they are the folder's where a file of
    /// the same file system is mounted, and differ from it on an overlay where nothing is.
    fn is_mount_point(&self, name: &OsStr) -> io::Result<bool> {
        use rustix::fs::{AtFlags, StatxAttributes, StatxFlags, statx};
        check(name)?;
        let directory = self.descriptor.file()?;
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        let found = uninterrupted(|| Ok(statx(directory, name, flags, StatxFlags::empty())?));
        // No such name; or a kernel, or a filter of system calls, that knows no statx.
        Ok(found.is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)))
    }

    fn keeps_order(&self) -> bool {
        let found = self.descriptor.file().and_then(|file| Ok(stat::fstat(file)?));
        found.map_or(true, |found| journal::keeps_order(found.st_dev))
    }

    fn exchange(&self, a: &OsStr, b: &OsStr) -> io::Result<()> {
        check(a)?;
        check(b)?;
        let directory = self.descriptor.file()?;
        // The system call itself: glibc has a function for it from 2.28 on.
        let exchanged = renameat_with(directory, a, directory, b, RenameFlags::EXCHANGE);
        match exchanged.map_err(|error| Errno::from_raw(error.raw_os_error())) {
            Ok(()) => Ok(()),
            Err(Errno::EINVAL | Errno::ENOSYS) => Err(Errno::EOPNOTSUPP.into()),
            Err(error) => Err(error.into()),
        }
    }

    fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        check(from)?;
        check(to)?;
        let directory = self.descriptor.file()?;
        Ok(fcntl::renameat(directory, from, directory, to)?)
    }

    fn link(&self, existing: &OsStr, new: &OsStr) -> io::Result<()> {
        check(existing)?;
        check(new)?;
        let directory = self.descriptor.file()?;
        Ok(unistd::linkat(directory, existing, directory, new, AtFlags::empty())?)
    }

    fn unlink(&self, name: &OsStr) -> io::Result<()> {
        check(name)?;
        Ok(unistd::unlinkat(self.descriptor.file()?, name, UnlinkatFlags::NoRemoveDir)?)
    }

    fn create_directory(&self, name: &OsStr) -> io::Result<()> {
        check(name)?;
        Ok(stat::mkdirat(self.descriptor.file()?, name, Mode::S_IRWXU)?)
    }

    fn create_shared_directory(&self, name: &OsStr, file: &File) -> io::Result<()> {
        let before = now()?;
        self.create_directory(name)?;
        // Where that can't be, it is its maker's alone.
        drop(self.share(name, before, file));
        Ok(())
    }

    fn open_directory(&self, name: &OsStr) -> io::Result<Self> {
        check(name)?;
        let directory = self.descriptor.file()?;
        Self::open_by(|how| fcntl::openat(directory, name, how | OFlag::O_NOFOLLOW, Mode::empty()))
    }

    fn remove_directory(&self, name: &OsStr) -> io::Result<()> {
        check(name)?;
        Ok(unistd::unlinkat(self.descriptor.file()?, name, UnlinkatFlags::RemoveDir)?)
    }

    fn flush(&self) -> io::Result<()> {
        match self.descriptor.file()?.sync_all() {
            Err(error) if error.raw_os_error() == Some(Errno::EBADF as i32) => {
                self.flush_by_a_file()
            }
            flushed => flushed,
        }
    }
}

/// The time of day of which a file that is made now can't be older.
fn now() -> io::Result<u64> {
    let now = clock_gettime(ClockId::CLOCK_REALTIME_COARSE)?;
    Ok(nanos(now.tv_sec(), now.tv_nsec()))
}

/// Whether a folder is as this process makes them, and not older. Nobody can set that time, and
/// not every file system tells it.
fn was_made_since(folder: &std::fs::File, since: u64) -> io::Result<bool> {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    let asked = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let found = uninterrupted(|| Ok(statx(folder, "", AtFlags::EMPTY_PATH, asked)?))?;
    let born = nanos(found.stx_btime.tv_sec, found.stx_btime.tv_nsec.into());
    let is_told = StatxFlags::from_bits_retain(found.stx_mask).contains(asked);
    let is_made_so = found.stx_mode & 0o777 == 0o700 && found.stx_uid == geteuid().as_raw();
    Ok(is_told && is_made_so && born >= since)
}

/// What was found instead of a file, where the kernel says so in its own words.
fn no_file(error: io::Error) -> io::Error {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ELOOP) => not_regular("a symbolic link, which dash does not follow"),
        Some(Errno::ENXIO) => not_regular("a socket or a device"),
        _ => error,
    }
}

/// Whether it is one of the two names that every directory has.
fn is_dots(name: &std::ffi::CStr) -> bool {
    [c".", c".."].contains(&name)
}

fn is_writable(mode: OpenMode) -> bool {
    mode != OpenMode::Read
}

/// Refuses what is not a single component of a path.
fn check(name: &OsStr) -> io::Result<()> {
    let bytes = name.as_bytes();
    if matches!(bytes, b"" | b"." | b"..") || bytes.contains(&b'/') {
        return Err(Errno::EINVAL.into());
    }
    Ok(())
}

fn retry<T>(mut call: impl FnMut() -> nix::Result<T>) -> io::Result<T> {
    uninterrupted(|| Ok(call()?))
}

fn metadata(found: &FileStat) -> Metadata {
    let kind = match found.st_mode & libc::S_IFMT {
        libc::S_IFREG => FileKind::Regular,
        libc::S_IFDIR => FileKind::Directory,
        _ => FileKind::Other,
    };
    Metadata {
        id: FileId { device: widen(found.st_dev), inode: widen(found.st_ino) },
        kind,
        len: widen(found.st_size),
        links: widen(found.st_nlink),
        permissions: found.st_mode & 0o7777,
        owner: found.st_uid,
        group: found.st_gid,
        changed: nanos(found.st_ctime, found.st_ctime_nsec),
        written: nanos(found.st_mtime, found.st_mtime_nsec),
    }
}

/// The integers of `struct stat` have other widths on other machines; none is ever negative here.
fn widen(number: impl TryInto<u64>) -> u64 {
    number.try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::Directory as _;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

    /// A folder of root's, to be filled later, was exchanged with the one that had been made.
    #[test]
    fn another_folder_is_shared_with_nobody() {
        let place = tempfile::tempdir().unwrap();
        let (db, path) = (place.path().join("app.db"), place.path().join("d"));
        std::fs::write(&db, "").unwrap();
        std::fs::set_permissions(&db, PermissionsExt::from_mode(0o640)).unwrap();
        let is_root = geteuid().is_root() && chown(&db, Some(2001), Some(5000)).is_ok();
        let folder = Directory::open_path(place.path()).unwrap();
        let file = folder.open("app.db".as_ref(), OpenMode::Read).unwrap();
        let rights = || {
            let found = std::fs::metadata(&path).unwrap();
            (found.uid(), found.gid(), found.mode() & 0o777)
        };
        let own = |bits| (geteuid().as_raw(), nix::unistd::getegid().as_raw(), bits);
        folder.create_directory("d".as_ref()).unwrap();
        assert_eq!(rights(), own(0o700));
        // Longer than the clock of a file system stands still.
        std::thread::sleep(Duration::from_millis(50));
        folder.share("d".as_ref(), now().unwrap(), &file).unwrap_err();
        assert_eq!(rights(), own(0o700));
        folder.remove_directory("d".as_ref()).unwrap();
        folder.create_shared_directory("d".as_ref(), &file).unwrap();
        assert_eq!(rights(), if is_root { (2001, 5000, 0o750) } else { own(0o750) });
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o500)).unwrap();
        folder.share("d".as_ref(), 0, &file).unwrap_err();
    }
}
