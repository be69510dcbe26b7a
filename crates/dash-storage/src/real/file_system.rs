//! Which file system a folder is on, as far as locks and shared memory are concerned: of some it is
//! known that these don't reach all who have the file.

use std::fs;
use std::io;
use std::path::Path;

use nix::sys::stat::{fstat, major, minor};
use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::{AccessFlags, eaccess};
use rustix::fs::fstatfs;

use super::directory::Directory;
use super::retry::uninterrupted;

/// By the number that `statfs(2)` answers. A lock that one machine takes is another one's only if
/// the server and both mounts see to that, and memory shared by a file never is.
const NETWORK: [(i64, &str); 9] = [
    (0x6969, "NFS"),
    (0xFF53_4D42, "SMB (CIFS)"),
    (0xFE53_4D42, "SMB (CIFS)"),
    (0x517B, "SMB"),
    (0x0102_1997, "9p"),
    (0x5346_414F, "AFS"),
    (0x6B41_4653, "AFS"),
    (0x00C3_6400, "Ceph"),
    (0x7375_7245, "Coda"),
];

/// That of FUSE, and of virtiofs, which is made of it.
const FUSE: i64 = 0x6573_5546;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileSystem {
    /// One of which nothing is known that speaks against it.
    Local,
    /// Locks and memory don't hold there.
    Network(&'static str),
    /// A program serves it: what holds there is to be tried.
    Fuse {
        /// `st_dev`.
        device: u64,
        /// Such as `fuse.sshfs`.
        name: String,
    },
}

/// Whether the file system that it lies on is mounted read-only, as far as that can be told.
#[must_use]
pub fn is_read_only(path: &Path) -> bool {
    statvfs(path).is_ok_and(|found| found.flags().contains(FsFlags::ST_RDONLY))
}

/// Whether this process may read it.
#[must_use]
pub fn may_be_read(path: &Path) -> bool {
    eaccess(path, AccessFlags::R_OK).is_ok()
}

/// By its number.
fn by_number(number: i64) -> Option<&'static str> {
    // Some systems answer it with a sign.
    let is_it = |known: i64| known == number || known == number & 0xFFFF_FFFF;
    NETWORK.iter().find(|(known, _)| is_it(*known)).map(|(_, name)| *name)
}

/// What is mounted, by the number of the device, in a text like `/proc/self/mountinfo`.
fn mounted(text: &str, device: u64) -> Option<&str> {
    let number = format!("{}:{}", major(device), minor(device));
    let line = text.lines().find(|line| line.split(' ').nth(2) == Some(&number))?;
    line.split_once(" - ")?.1.split(' ').next()
}

impl Directory {
    /// The file system that it is on.
    ///
    /// # Errors
    ///
    /// That it can't be asked.
    pub fn file_system(&self) -> io::Result<FileSystem> {
        let directory = self.file()?;
        #[expect(clippy::useless_conversion, reason = "other systems have other numbers")]
        let number = i64::from(uninterrupted(|| Ok(fstatfs(directory)?))?.f_type);
        if number & 0xFFFF_FFFF != FUSE {
            return Ok(by_number(number).map_or(FileSystem::Local, FileSystem::Network));
        }
        let device = uninterrupted(|| Ok(fstat(directory)?))?.st_dev;
        let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Ok(match mounted(&text, device) {
            Some("virtiofs") => FileSystem::Network("virtiofs"),
            name => FileSystem::Fuse { device, name: name.unwrap_or("fuse").to_owned() },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::makedev;

    #[test]
    fn network_file_systems_are_known_by_number() {
        for (number, name) in NETWORK {
            assert_eq!(by_number(number), Some(name));
        }
        // As a number of 32 bits with a sign has it.
        assert_eq!(by_number(i64::from(0xFF53_4D42_u32.cast_signed())), Some("SMB (CIFS)"));
        for local in [0xEF53, 0x5846_5342, 0x9123_683E, 0x0102_1994, 0x794C_7630] {
            assert_eq!(by_number(local), None);
        }
    }

    #[test]
    fn a_mount_is_found_by_its_device() {
        let text = "28 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
                    97 28 0:52 / /a\\040b rw shared:2 master:1 - fuse.sshfs host:/ rw\n\
                    98 28 0:53 / /shared rw - virtiofs shared rw\n";
        assert_eq!(mounted(text, makedev(0, 52)), Some("fuse.sshfs"));
        assert_eq!(mounted(text, makedev(0, 53)), Some("virtiofs"));
        assert_eq!(mounted(text, makedev(0, 5)), None);
    }
}
