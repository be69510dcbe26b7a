//! An ext4 file system on a loop device of its own.
//!
//! It must go on every exit, kill -9 included: mounts are made in a mount namespace of this
//! process, the image has no name once it is attached, and the device is told to detach itself when
//! it is no longer mounted. So the kernel takes everything down with the process; `Drop` does it
//! earlier.

use std::path::{Path, PathBuf};
use std::process::Command;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use tempfile::TempDir;

use crate::failure::{Explain, Failure, Result};

/// Moves this process into a mount namespace of its own; call before any thread is started.
pub fn isolate() -> Result<()> {
    unshare(CloneFlags::CLONE_NEWNS).explain("making a mount namespace")?;
    let nothing: Option<&str> = None;
    mount(nothing, "/", nothing, MsFlags::MS_REC | MsFlags::MS_PRIVATE, nothing)
        .explain("keeping mounts to this process")
}

/// Whether this process may make loop devices and mounts.
pub fn allowed() -> bool {
    nix::unistd::geteuid().is_root() && may_mount()
}

/// Whether this process has `CAP_SYS_ADMIN`, which root lacks in most containers.
fn may_mount() -> bool {
    const SYS_ADMIN: u32 = 21;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let bits = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = bits.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    bits.is_some_and(|bits| bits >> SYS_ADMIN & 1 == 1)
}

/// A mounted loop device.
pub struct Loop {
    point: TempDir,
    mounted: bool,
    /// The device of its journal, if that is another one.
    journal: Option<PathBuf>,
}

struct Attached(Option<PathBuf>);

impl Loop {
    /// Makes an image of `size` bytes in `folder`, a device with blocks of `block` bytes over it,
    /// and mounts that; `options` are further ones of mkfs.ext4.
    pub fn new(folder: &Path, size: u64, block: u32, options: &[&str]) -> Result<Self> {
        let mut device = attach(folder, size, block)?;
        format(&device, options)?;
        let mut made = Self { point: point()?, mounted: false, journal: None };
        made.mount(&mut device)?;
        Ok(made)
    }

    /// The same, with a journal of `journal` bytes on a device of its own.
    pub fn with_journal(folder: &Path, size: u64, journal: u64, block: u32) -> Result<Self> {
        const BLOCKS: [&str; 2] = ["-b", "4096"];
        let mut journal = attach(folder, journal, block)?;
        run(
            "mke2fs",
            &[&["-q", "-F", "-O", "journal_dev"], &BLOCKS[..], &[journal.name()]].concat(),
        )?;
        let mut device = attach(folder, size, block)?;
        let other = format!("device={}", journal.name());
        format(&device, &[&BLOCKS[..], &["-J", &other]].concat())?;
        let path = journal.0.clone();
        let mut made = Self { point: point()?, mounted: false, journal: path };
        made.mount(&mut device)?;
        journal.leave()?;
        Ok(made)
    }

    fn mount(&mut self, device: &mut Attached) -> Result<()> {
        let nothing: Option<&str> = None;
        let name = device.name();
        mount(Some(name), self.point.path(), Some("ext4"), MsFlags::empty(), nothing)
            .explain(format!("mounting {name}"))?;
        self.mounted = true;
        device.leave()
    }

    /// Where it is mounted.
    pub fn folder(&self) -> &Path {
        self.point.path()
    }

    /// The device of its journal, if that is another one.
    pub fn journal(&self) -> Option<&Path> {
        self.journal.as_deref()
    }
}

/// A device over a new image.
fn attach(folder: &Path, size: u64, block: u32) -> Result<Attached> {
    let image = tempfile::Builder::new()
        .prefix("dash-bench-")
        .suffix(".img")
        .tempfile_in(folder)
        .explain(format!("making an image in {}", folder.display()))?;
    // What is written before mkfs is given back by it: it discards its device.
    image
        .as_file()
        .set_len(size)
        .explain(format!("making an image of {size} bytes in {}", folder.display()))?;
    let image_path = image.path().to_string_lossy().into_owned();
    let blocks = format!("--sector-size={block}");
    let shown = run("losetup", &["--find", "--show", "--direct-io=on", &blocks, &image_path])?;
    Ok(Attached(Some(PathBuf::from(shown.trim()))))
}

fn format(device: &Attached, options: &[&str]) -> Result<()> {
    let usual = ["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"];
    run("mkfs.ext4", &[&usual, options, &[device.name()]].concat()).map(drop)
}

fn point() -> Result<TempDir> {
    tempfile::Builder::new().prefix("dash-bench-").tempdir().explain("making a mount point")
}

impl Attached {
    fn name(&self) -> &str {
        self.0.as_deref().and_then(Path::to_str).unwrap_or_default()
    }

    /// While it is in use this means: detach when it no longer is.
    fn leave(&mut self) -> Result<()> {
        run("losetup", &["--detach", self.name()])?;
        self.0 = None;
        Ok(())
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        if self.mounted && umount2(self.point.path(), MntFlags::empty()).is_err() {
            // Something is open there still: it goes when that is closed.
            let _ = umount2(self.point.path(), MntFlags::MNT_DETACH);
        }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        if let Some(device) = self.0.take() {
            drop(Command::new("losetup").arg("--detach").arg(device).status());
        }
    }
}

/// Runs a program to its end; what it printed.
fn run(program: &str, arguments: &[&str]) -> Result<String> {
    let output =
        Command::new(program).args(arguments).output().explain(format!("running {program}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(Failure::new(format!(
            "{program} {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        )))
    }
}
