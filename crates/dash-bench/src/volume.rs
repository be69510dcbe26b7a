//! Where things are measured: V, the file system of `--dir` itself; J, journaled ext4 on a loop
//! device over a file in `--dir`; L, the same over memory, for exact counts; N, as L without a
//! journal; B, as L with blocks of 4 KiB; E, as L with the journal on a device of its own.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::device::{Counts, Device};
use crate::failure::{Explain, Failure, Result};
use crate::loops::{self, Loop};
use crate::machine;

/// Size of the image on the disk.
const DISK_IMAGE: u64 = 1 << 30;
/// Size of the image in memory.
const MEMORY_IMAGE: u64 = 512 << 20;
/// Size of a journal's own image.
const JOURNAL_IMAGE: u64 = 64 << 20;
/// Bytes of a block of most of them, and of B.
const BLOCK: u32 = 512;
const LARGE_BLOCK: u32 = 4096;
/// A folder in memory.
const MEMORY: &str = "/dev/shm";

/// A volume to measure in.
pub struct Volume {
    /// `V`, `J`, `L`, `N`, `B` or `E`.
    pub label: &'static str,
    /// What it is.
    pub what: String,
    /// Whether there is no disk under it.
    pub in_memory: bool,
    /// Whether nobody else writes to its device.
    pub is_own: bool,
    /// Its device, if it counts.
    pub device: Option<Device>,
    folder: PathBuf,
    // Dropped in this order: what is in it, then the mount.
    _own: Option<TempDir>,
    _mount: Option<Loop>,
}

impl Volume {
    fn on_loop(
        label: &'static str,
        under: &Path,
        size: u64,
        (block, options): (u32, &[&str]),
        what: &str,
    ) -> Result<Self> {
        may_mount()?;
        let mount = Loop::new(under, size, block, options)?;
        Ok(Self::mounted(label, mount, under == Path::new(MEMORY), what))
    }

    fn mounted(label: &'static str, mount: Loop, in_memory: bool, what: &str) -> Self {
        let folder = mount.folder().to_owned();
        let device = Device::of(&folder);
        let device = match mount.journal() {
            Some(journal) => device.and_then(|device| device.with_journal_on(journal)),
            None => device,
        };
        let what = format!("{what}: {}", machine::file_system_on(&folder, device.as_ref()));
        Self {
            label,
            what,
            in_memory,
            is_own: true,
            device,
            folder,
            _own: None,
            _mount: Some(mount),
        }
    }

    /// A new folder in it.
    pub fn folder(&self, name: &str) -> Result<TempDir> {
        tempfile::Builder::new()
            .prefix(name)
            .tempdir_in(&self.folder)
            .explain(format!("making a folder in {}", self.folder.display()))
    }

    /// A file without a name.
    pub fn scratch_file(&self) -> Result<std::fs::File> {
        tempfile::tempfile_in(&self.folder)
            .explain(format!("making a file in {}", self.folder.display()))
    }

    /// Writes out what the file system keeps back.
    pub fn settle(&self) -> Result<()> {
        let folder = std::fs::File::open(&self.folder).explain("opening the volume")?;
        nix::unistd::syncfs(folder).explain("syncfs")
    }

    /// Whether what the file system writes to its journal is counted by itself.
    pub fn tells_journal_apart(&self) -> bool {
        self.device.as_ref().is_some_and(Device::tells_journal_apart)
    }

    /// The device's counts now.
    pub fn counts(&self) -> Result<Counts> {
        let counts = self.device.as_ref().and_then(Device::counts);
        counts.ok_or_else(|| {
            Failure::new(format!("the device of {} does not count flushes", self.label))
        })
    }
}

/// All volumes, each made when it is first asked for.
pub struct Volumes {
    home: PathBuf,
    v: OnceCell<Volume>,
    j: OnceCell<Volume>,
    l: OnceCell<Volume>,
    n: OnceCell<Volume>,
    b: OnceCell<Volume>,
    e: OnceCell<Volume>,
}

impl Volumes {
    /// Below `home`.
    pub fn new(home: &Path) -> Result<Self> {
        let home = home.canonicalize().explain(format!("--dir {}", home.display()))?;
        Ok(Self {
            home,
            v: OnceCell::new(),
            j: OnceCell::new(),
            l: OnceCell::new(),
            n: OnceCell::new(),
            b: OnceCell::new(),
            e: OnceCell::new(),
        })
    }

    /// The folder given.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The file system of `--dir`.
    pub fn v(&self) -> Result<&Volume> {
        made(&self.v, || {
            let own = tempfile::Builder::new()
                .prefix("dash-bench-")
                .tempdir_in(&self.home)
                .explain("making a folder in --dir")?;
            let folder = own.path().to_owned();
            let device = Device::of(&folder);
            let what = machine::file_system(&folder);
            Ok(Volume {
                label: "V",
                what,
                in_memory: false,
                is_own: false,
                device,
                folder,
                _own: Some(own),
                _mount: None,
            })
        })
    }

    /// Journaled ext4 over the disk.
    pub fn j(&self) -> Result<&Volume> {
        made(&self.j, || {
            Volume::on_loop(
                "J",
                &self.home,
                DISK_IMAGE,
                (BLOCK, &[]),
                "loop device over a file in --dir, direct I/O",
            )
        })
    }

    /// Journaled ext4 over memory.
    pub fn l(&self) -> Result<&Volume> {
        made(&self.l, || {
            let what = "loop device over memory";
            Volume::on_loop("L", Path::new(MEMORY), MEMORY_IMAGE, (BLOCK, &[]), what)
        })
    }

    /// ext4 without a journal over memory.
    pub fn n(&self) -> Result<&Volume> {
        let no_journal = ["-O", "^has_journal"];
        made(&self.n, || {
            Volume::on_loop(
                "N",
                Path::new(MEMORY),
                MEMORY_IMAGE,
                (BLOCK, &no_journal),
                "loop device over memory",
            )
        })
    }

    /// Journaled ext4 over memory, on a device whose blocks are of 4 KiB, as those of most disks.
    pub fn b(&self) -> Result<&Volume> {
        made(&self.b, || {
            let what = "loop device over memory, blocks of 4 KiB";
            Volume::on_loop("B", Path::new(MEMORY), MEMORY_IMAGE, (LARGE_BLOCK, &[]), what)
        })
    }

    /// As L, with the file system's journal on a device of its own, so that what goes there is told
    /// apart from what goes to files and their metadata.
    pub fn e(&self) -> Result<&Volume> {
        made(&self.e, || {
            may_mount()?;
            let what = "loop device over memory, the journal on another one";
            let under = Path::new(MEMORY);
            let mount = Loop::with_journal(under, MEMORY_IMAGE, JOURNAL_IMAGE, BLOCK)?;
            Ok(Volume::mounted("E", mount, true, what))
        })
    }

    /// J and V; only V without root, with the reason.
    pub fn timed(&self) -> Result<(Vec<&Volume>, Option<String>)> {
        let v = self.v()?;
        Ok(match self.j() {
            Ok(j) => (vec![j, v], None),
            Err(reason) => (vec![v], Some(format!("J: {reason}"))),
        })
    }

    /// What the volumes that were used are.
    pub fn described(&self) -> Vec<String> {
        let made = [&self.v, &self.j, &self.l, &self.n, &self.b, &self.e].map(OnceCell::get);
        made.into_iter()
            .flatten()
            .map(|volume| format!("{}: {}", volume.label, volume.what))
            .collect()
    }
}

fn may_mount() -> Result<()> {
    match loops::allowed() {
        true => Ok(()),
        false => Err(Failure::new("needs root: loop devices and mounts")),
    }
}

fn made(cell: &OnceCell<Volume>, make: impl FnOnce() -> Result<Volume>) -> Result<&Volume> {
    if let Some(volume) = cell.get() {
        return Ok(volume);
    }
    let volume = make()?;
    Ok(cell.get_or_init(|| volume))
}
