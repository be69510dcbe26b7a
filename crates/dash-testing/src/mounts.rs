//! File systems of a test's own. Each is unmounted when its guard goes out of scope, also when the
//! test fails. Where something is missing the answer is `None`, and the test is skipped.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::sys::statfs::{TMPFS_MAGIC, statfs};

use crate::machine::is_root;
use crate::{Need, skip};

/// A mounted file system.
pub struct Mount {
    point: PathBuf,
    _folder: tempfile::TempDir,
    /// What it lies on, if that was made by itself.
    _device: Option<LoopDevice>,
}

/// A block device in a file.
struct LoopDevice {
    name: String,
    _folder: tempfile::TempDir,
}

/// A file system that `mkfs` makes in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// ext4.
    Ext4,
    /// XFS.
    Xfs,
    /// Btrfs.
    Btrfs,
}

impl Kind {
    const fn need(self) -> Need {
        match self {
            Self::Ext4 => Need::Ext4,
            Self::Xfs => Need::Xfs,
            Self::Btrfs => Need::Btrfs,
        }
    }
}

fn skipped(need: Need, why: &str) -> Option<Mount> {
    skip(need, why);
    None
}

fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|_| format!("{program} is not installed"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    Err(format!(
        "{program} {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    ))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("test paths are UTF-8")
}

impl Mount {
    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.point
    }

    /// Mounts it anew, `ro` or `rw`. The kernel refuses `ro` while a file is open for writing, as
    /// it is for a moment in each child that another test begins.
    pub fn remount(&self, how: &str) {
        let arguments = ["-o", &format!("remount,{how}"), text(&self.point)];
        let busy = |_: &String| std::thread::sleep(Duration::from_millis(20));
        let mut tries = (0..50).map(|_| run("mount", &arguments).inspect_err(busy));
        tries.find(Result::is_ok).unwrap_or_else(|| run("mount", &arguments)).expect("remounts");
    }

    fn new(
        need: Need,
        arguments: &[&str],
        prepare: impl FnOnce(&Path) -> Result<Vec<String>, String>,
    ) -> Option<Self> {
        if !is_root() {
            return skipped(need, "mounting takes root");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("exists");
        let point = root.join("mounted");
        std::fs::create_dir(&point).expect("new");
        let more = match prepare(&root) {
            Ok(more) => more,
            Err(why) => return skipped(need, &why),
        };
        let mut all: Vec<&str> = arguments.to_vec();
        all.extend(more.iter().map(String::as_str));
        all.push(text(&point));
        match run("mount", &all) {
            Ok(_) => Some(Self { point, _folder: folder, _device: None }),
            Err(why) => skipped(need, &why),
        }
    }

    /// Memory, of a size such as `4m`.
    pub fn tmpfs(size: &str) -> Option<Self> {
        Self::new(Need::Tmpfs, &["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"], |_| {
            Ok(vec![])
        })
    }

    /// A file system of `kind` in a file, made by `mkfs` with `options`.
    pub fn image(kind: Kind, megabytes: u64, options: &[&str]) -> Option<Self> {
        Self::image_for(kind.need(), kind, megabytes, options)
    }

    fn image_for(need: Need, kind: Kind, megabytes: u64, options: &[&str]) -> Option<Self> {
        Self::new(need, &["-o", "loop"], |root| {
            let image = root.join("image");
            let file = std::fs::File::create(&image).expect("new");
            file.set_len(megabytes << 20).expect("sparse");
            let mut arguments = options.to_vec();
            arguments.push(text(&image));
            run(&format!("mkfs.{}", kind.need().word()), &arguments)?;
            Ok(vec![text(&image).to_owned()])
        })
    }

    /// A file system of `kind`, made with `options` and mounted with `mount`, on a device that has
    /// sectors of so many bytes.
    pub fn device(
        kind: Kind,
        megabytes: u64,
        sector: u32,
        options: &[&str],
        mount: &str,
    ) -> Option<Self> {
        if !is_root() {
            return skipped(kind.need(), "mounting takes root");
        }
        let device = match LoopDevice::new(megabytes, sector) {
            Ok(device) => device,
            Err(why) => return skipped(kind.need(), &why),
        };
        let mut mount = Self::new(kind.need(), &["-o", mount], |_| {
            let mut arguments = options.to_vec();
            arguments.push(&device.name);
            run(&format!("mkfs.{}", kind.need().word()), &arguments)?;
            Ok(vec![device.name.clone()])
        })?;
        mount._device = Some(device);
        Some(mount)
    }

    /// An overlay: what is written lies above `lower`, which stays as it is.
    pub fn overlay(lower: &Path) -> Option<Self> {
        let lower = lower.canonicalize().expect("exists");
        // The upper layer may not itself be an overlay; memory never is.
        let upper = Self::tmpfs("64m")?;
        let (above, work) = (upper.path().join("upper"), upper.path().join("work"));
        let options =
            format!("lowerdir={},upperdir={},workdir={}", text(&lower), text(&above), text(&work));
        // The overlay keeps the upper layer alive; its name can go.
        Self::new(Need::Overlay, &["-t", "overlay", "-o", &options, "overlay"], |_| {
            std::fs::create_dir(&above)
                .and_then(|()| std::fs::create_dir(&work))
                .map_err(|error| error.to_string())?;
            Ok(vec![])
        })
    }

    /// `folder` once more, not to be written to.
    pub fn read_only(folder: &Path) -> Option<Self> {
        let folder = folder.canonicalize().expect("exists");
        let need = Need::Bind;
        let mount = Self::new(need, &["--bind", text(&folder)], |_| Ok(vec![]))?;
        match run("mount", &["-o", "remount,ro,bind", text(&mount.point)]) {
            Ok(_) => Some(mount),
            Err(why) => skipped(need, &why),
        }
    }

    /// `file` once more, over the file `point`: what `docker run -v ./app.db:/app.db` does.
    pub fn file(file: &Path, point: &Path) -> Option<Self> {
        let need = Need::Bind;
        if !is_root() {
            return skipped(need, "mounting takes root");
        }
        match run("mount", &["--bind", text(file), text(point)]) {
            Ok(_) => Some(Self {
                point: point.to_owned(),
                _folder: tempfile::tempdir().expect("a folder"),
                _device: None,
            }),
            Err(why) => skipped(need, &why),
        }
    }
}

/// Whether an image can be mounted as a loop device, as programs under test do by themselves;
/// otherwise the test is skipped.
pub fn has_loop_devices() -> bool {
    Mount::image_for(Need::Loop, Kind::Ext4, 16, &["-q"]).is_some()
}

impl LoopDevice {
    fn new(megabytes: u64, sector: u32) -> Result<Self, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let image = folder.path().join("image");
        let file = std::fs::File::create(&image).expect("new");
        file.set_len(megabytes << 20).expect("sparse");
        let sector = sector.to_string();
        let arguments = ["--find", "--show", "--sector-size", &sector, text(&image)];
        Ok(Self { name: run("losetup", &arguments)?, _folder: folder })
    }
}

/// A folder in memory, where the system has one that is everybody's. Nothing is mounted.
pub fn folder_in_memory() -> Option<tempfile::TempDir> {
    let memory = Path::new("/dev/shm");
    let is_memory = statfs(memory).is_ok_and(|found| found.filesystem_type() == TMPFS_MAGIC);
    match tempfile::tempdir_in(memory) {
        Ok(folder) if is_memory => Some(folder),
        _ => {
            skip(Need::Tmpfs, "/dev/shm is no memory to write to");
            None
        }
    }
}

impl Drop for LoopDevice {
    /// It goes when what is mounted on it does.
    fn drop(&mut self) {
        if let Err(why) = run("losetup", &["--detach", &self.name]) {
            eprintln!("{why}");
        }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Lazily: a process that is being killed may still have a file open.
        if let Err(why) = run("umount", &["-l", text(&self.point)]) {
            eprintln!("{why}");
        }
    }
}
