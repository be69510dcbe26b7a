//! What the block device under a folder was asked to write, by its own count.
//!
//! Field numbers as in the kernel's Documentation/block/stat.rst. The count is of the whole
//! device: other programs that write at the same time are in it.

use std::ops::AddAssign;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::sys::stat::{major, minor};

/// Index of "sectors written" in the stat file.
const SECTORS_WRITTEN: usize = 6;
/// Index of "flush requests completed".
const FLUSHES: usize = 15;
/// Bytes of a sector in these files, whatever the device's own are.
const SECTOR: u64 = 512;

/// A block device that counts.
pub struct Device {
    /// Its name, such as `vda`.
    pub name: String,
    stat: PathBuf,
}

/// What was written between two moments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes.
    pub bytes: u64,
    /// Cache flushes.
    pub flushes: u64,
}

impl Counts {
    /// What was added since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(earlier.bytes),
            flushes: self.flushes.saturating_sub(earlier.flushes),
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, more: Self) {
        self.bytes += more.bytes;
        self.flushes += more.flushes;
    }
}

impl Device {
    /// The device under `folder`, if the kernel says which it is and counts its flushes.
    pub fn of(folder: &Path) -> Option<Self> {
        let number = folder.metadata().ok()?.dev();
        // btrfs and overlays have a device number of their own: the mount names the real one.
        let home = home_of(number)
            .or_else(|| home_of(source_of_mount(folder)?.metadata().ok()?.rdev()))?;
        // A partition has no count of flushes; its disk has.
        let home = if home.join("partition").exists() { home.parent()?.to_owned() } else { home };
        let device = Self {
            name: home.file_name()?.to_string_lossy().into_owned(),
            stat: home.join("stat"),
        };
        device.counts().map(|_| device)
    }

    /// The counts now.
    pub fn counts(&self) -> Option<Counts> {
        parse(&std::fs::read_to_string(&self.stat).ok()?)
    }
}

fn parse(stat: &str) -> Option<Counts> {
    let fields: Vec<u64> = stat.split_whitespace().map_while(|field| field.parse().ok()).collect();
    Some(Counts { bytes: fields.get(SECTORS_WRITTEN)? * SECTOR, flushes: *fields.get(FLUSHES)? })
}

fn home_of(number: u64) -> Option<PathBuf> {
    let link = format!("/sys/dev/block/{}:{}", major(number), minor(number));
    std::fs::canonicalize(link).ok()
}

/// The device file that the mount `folder` is in was made from.
fn source_of_mount(folder: &Path) -> Option<PathBuf> {
    let folder = folder.canonicalize().ok()?;
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let (_, source) = mounts
        .lines()
        .filter_map(|line| {
            let (left, right) = line.split_once(" - ")?;
            let point = Path::new(left.split(' ').nth(4)?);
            let source = right.split(' ').nth(1)?;
            folder.starts_with(point).then_some((point.as_os_str().len(), source))
        })
        .max_by_key(|(depth, _)| *depth)?;
    source.starts_with("/dev/").then(|| PathBuf::from(source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_fields_seven_and_sixteen() {
        let stat = "44506 18932 5156114 19412 10443 18680 5036392 16060 0 11188 36497 7506 59 2789272 1016 331 7\n";
        assert_eq!(parse(stat), Some(Counts { bytes: 5_036_392 * 512, flushes: 331 }));
    }

    #[test]
    fn a_kernel_that_does_not_count_flushes_gives_nothing() {
        assert_eq!(parse("1 2 3 4 5 6 7 8 9 10 11"), None);
    }
}
