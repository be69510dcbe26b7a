//! A worker's rig: a mount namespace of its own, in it a folder in memory, the device on it, a loop
//! device on that, and the file system under test. Nothing of it outlives the worker and its
//! device: the kernel takes namespace and mounts down, and with them the loop device, which is
//! marked for it as soon as it is set up.

use std::fs::{File, OpenOptions};
use std::io::{Error, Result};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};

use super::device::{CONTENT, Orders, POINT};
use super::kind::Kind;
use super::log::Log;
use super::parts::{self, Link};

/// How long the kernel may call a file system busy that nobody uses any more.
const BUSY: Duration = Duration::from_secs(10);

mod request {
    //! Requests to block devices.
    nix::ioctl_none!(
        /// `BLKFLSBUF`: writes back and forgets what the kernel has cached of a block device.
        flush_buffers,
        0x12,
        0x61
    );
}

/// What is needed and is not here, in a sentence; `None` if nothing is missing to try this file
/// system.
pub fn missing(kind: Kind) -> Option<String> {
    if !nix::unistd::geteuid().is_root() {
        return Some("mounting takes root".to_owned());
    }
    for device in ["/dev/fuse", "/dev/loop-control"] {
        if !Path::new(device).exists() {
            return Some(format!("there is no {device}"));
        }
    }
    let check = kind.is_checked().then(|| "e2fsck".to_owned());
    for program in
        ["losetup".to_owned(), format!("mkfs.{}", kind.driver())].into_iter().chain(check)
    {
        let found = std::env::var_os("PATH").is_some_and(|path| {
            std::env::split_paths(&path).any(|folder| folder.join(&program).exists())
        });
        if !found {
            return Some(format!("{program} is not installed"));
        }
    }
    None
}

/// See the module.
#[derive(Debug)]
pub struct Rig {
    folder: PathBuf,
    /// What reached the device.
    pub log: Log,
    /// When the device fails.
    pub orders: Orders,
    /// The content of the device.
    pub content: File,
    /// Keeps the device's process alive.
    _device: (Child, Link),
}

impl Rig {
    /// Sets up all but the loop device. The calling thread, and all threads and processes that it
    /// starts from now on, leave the mount namespace of the others.
    pub fn new(folder: &Path) -> Result<Self> {
        unshare(CloneFlags::CLONE_NEWNS)?;
        let none = None::<&str>;
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
        mount(Some("torture"), folder, Some("tmpfs"), MsFlags::empty(), none)?;
        for point in [POINT, "mounted"] {
            std::fs::create_dir(folder.join(point))?;
        }
        let content = OpenOptions::new()
            .create_new(true)
            .read(true)
            .write(true)
            .open(folder.join(CONTENT))?;
        let (log, orders) = (Log::open(folder)?, Orders::open(folder)?);
        orders.give(None, None)?;
        let (child, mut link) = parts::start("device", folder)?;
        if link.receive()?.is_none() {
            return Err(Error::other("the FUSE device does not start"));
        }
        Ok(Self { folder: folder.to_owned(), log, orders, content, _device: (child, link) })
    }

    /// Where the file system is mounted.
    pub fn point(&self) -> PathBuf {
        self.folder.join("mounted")
    }

    /// A loop device over an empty device of this size.
    pub fn attach(&self, size: u64) -> Result<Loop> {
        self.content.set_len(0)?;
        self.content.set_len(size)?;
        self.log.clear()?;
        let image = self.folder.join(POINT).join("image");
        let output = Command::new("losetup")
            .args(["--find", "--show", "--direct-io=on"])
            .arg(image)
            .output()?;
        if !output.status.success() {
            return Err(Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        let file = File::open(&path)?;
        // In use as it is, it is detached when the last user is gone.
        let detached = Command::new("losetup").arg("--detach").arg(&path).status()?;
        if !detached.success() {
            return Err(Error::other("losetup does not mark the loop device"));
        }
        Ok(Loop { path, file })
    }
}

/// A loop device on the image.
#[derive(Debug)]
pub struct Loop {
    path: PathBuf,
    file: File,
}

impl Loop {
    /// Makes a file system.
    pub fn format(&self, kind: Kind) -> Result<()> {
        let output = Command::new(format!("mkfs.{}", kind.driver()))
            .args(kind.arguments())
            .arg(&self.path)
            .output()?;
        match output.status.success() {
            true => Ok(()),
            false => Err(Error::other(format!(
                "mkfs.{}: {}",
                kind.driver(),
                String::from_utf8_lossy(&output.stderr).trim()
            ))),
        }
    }

    /// Its name below `/dev`.
    pub fn name(&self) -> String {
        self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Makes the kernel read everything from the device again, which was changed behind its back.
    #[expect(unsafe_code, reason = "the kernel offers this as an ioctl only")]
    pub fn forget(&self) -> Result<()> {
        // SAFETY: the request takes no argument and the descriptor is open.
        unsafe { request::flush_buffers(self.file.as_raw_fd()) }?;
        Ok(())
    }

    /// Puts it in order before it is mounted, where it takes a program to do that. Answers the
    /// inode numbers of files that have lost blocks: without a journal the inode of one that grows
    /// may reach the disk before the block that says where its data is, whoever writes it.
    pub fn check(&self, kind: Kind) -> Result<Vec<u64>> {
        if !kind.is_checked() {
            return Ok(Vec::new());
        }
        let output = Command::new("e2fsck").arg("-fy").arg(&self.path).output()?;
        match output.status.code() {
            // Nothing was wrong, or all of it was put right.
            Some(0..4) => Ok(lost_blocks(&String::from_utf8_lossy(&output.stdout))),
            _ => Err(Error::other(format!(
                "e2fsck ({}): {}",
                output.status,
                String::from_utf8_lossy(&output.stdout).trim()
            ))),
        }
    }

    /// Mounts it; the kernel replays its journal.
    pub fn mount(&self, kind: Kind, point: &Path, more: &str) -> Result<Mounted> {
        let (flags, options) = kind.options();
        let options = match (options, more) {
            (options, "") => options.to_owned(),
            ("", more) => more.to_owned(),
            (options, more) => format!("{options},{more}"),
        };
        mount(Some(&self.path), point, Some(kind.driver()), flags, Some(options.as_str()))?;
        Ok(Mounted { point: point.to_owned(), is_mounted: true })
    }
}

/// From what `e2fsck` says: "Inode 14, i_blocks is 520, should be 216.", or of blocks that two
/// files have, as where one was removed and its inode never written: "Multiply-claimed block(s) in
/// inode 16: 41".
fn lost_blocks(told: &str) -> Vec<u64> {
    let lost = |line: &str| {
        if let Some(shared) = line.strip_prefix("Multiply-claimed block(s) in inode ") {
            return shared.split(':').next()?.parse().ok();
        }
        let (inode, blocks) = line.strip_prefix("Inode ")?.split_once(", i_blocks is ")?;
        let (had, has) = blocks.split_once(", should be ")?;
        let has = has.split(|c: char| !c.is_ascii_digit()).next()?;
        let [inode, had, has] = [inode, had, has].map(|number| number.parse::<u64>().ok());
        (had? > has?).then_some(inode?)
    };
    told.lines().filter_map(lost).collect()
}

/// A mounted file system; unmounted when it goes out of scope.
#[derive(Debug)]
pub struct Mounted {
    point: PathBuf,
    is_mounted: bool,
}

impl Mounted {
    /// Where.
    pub fn point(&self) -> &Path {
        &self.point
    }

    /// Makes it read-only, or writable again, while it is mounted.
    ///
    /// # Errors
    ///
    /// `EBUSY` while a file is open for writing.
    pub fn remount(&self, read_only: bool) -> Result<()> {
        let mut flags = MsFlags::MS_REMOUNT | MsFlags::MS_NOATIME;
        flags.set(MsFlags::MS_RDONLY, read_only);
        let none = None::<&str>;
        Ok(mount(none, &self.point, none, flags, none)?)
    }

    /// Unmounts it, waiting for processes that close files at this moment.
    pub fn unmount(mut self) -> Result<()> {
        self.is_mounted = false;
        let begun = Instant::now();
        loop {
            match umount2(&self.point, MntFlags::empty()) {
                Err(Errno::EBUSY) if begun.elapsed() < BUSY => {
                    std::thread::sleep(Duration::from_micros(200));
                }
                Err(error) => {
                    let _gone = umount2(&self.point, MntFlags::MNT_DETACH);
                    return Err(error.into());
                }
                Ok(()) => return Ok(()),
            }
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.is_mounted {
            let _gone = umount2(&self.point, MntFlags::MNT_DETACH);
        }
    }
}
