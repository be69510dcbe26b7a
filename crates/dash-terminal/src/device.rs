//! What a block device was asked to write, by its own count (Documentation/block/stat.rst).
//!
//! A flush counts as a write of no bytes too. The counts are the whole device's: only on a loop
//! device of one's own are they exact. The journal's own count says how often the file system
//! committed. A journal on a device of its own is counted with the rest, and by itself.

use std::ops::AddAssign;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::sys::stat::{major, minor};

use crate::mount::Mount;

/// Indexes in the stat file: writes completed, sectors written, flush requests completed.
const FIELDS: [usize; 3] = [4, 6, 15];
/// Bytes of a sector in these files, whatever the device's own are.
const SECTOR: u64 = 512;

/// A block device that counts.
#[derive(Debug, Clone)]
pub struct Device {
    /// Its name, such as `vda`.
    pub name: String,
    home: PathBuf,
    /// The device of the file system's journal, if that is another one.
    journal: Option<Box<Device>>,
}

/// Counts up to a moment, or between two.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Write requests; each flush is one of them.
    pub writes: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Cache flushes.
    pub flushes: u64,
    /// Commits of the file system's journal.
    pub journal_commits: u64,
    /// Bytes among them that went to the journal, if that has a device of its own; else 0.
    pub journal_bytes: u64,
}

impl Counts {
    /// What was added since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            writes: self.writes.saturating_sub(earlier.writes),
            bytes: self.bytes.saturating_sub(earlier.bytes),
            flushes: self.flushes.saturating_sub(earlier.flushes),
            journal_commits: self.journal_commits.saturating_sub(earlier.journal_commits),
            journal_bytes: self.journal_bytes.saturating_sub(earlier.journal_bytes),
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, more: Self) {
        self.writes += more.writes;
        self.bytes += more.bytes;
        self.flushes += more.flushes;
        self.journal_commits += more.journal_commits;
        self.journal_bytes += more.journal_bytes;
    }
}

impl Device {
    /// The disk under `folder`, if it is one and the kernel counts its flushes.
    pub fn of(folder: &Path) -> Option<Self> {
        let number = folder.metadata().ok()?.dev();
        // btrfs and overlays have a device number of their own: the mount names the real one.
        let home = home_of(number)
            .or_else(|| home_of(source_of_mount(folder)?.metadata().ok()?.rdev()))?;
        // A partition has no count of flushes; its disk has.
        let home = if home.join("partition").exists() { home.parent()?.to_owned() } else { home };
        Self::at(home)
    }

    fn at(home: PathBuf) -> Option<Self> {
        let name = home.file_name()?.to_string_lossy().into_owned();
        let device = Self { name, home, journal: None };
        device.counts().map(|_| device)
    }

    /// With the journal of its file system on the device `path`; none if that does not count.
    pub fn with_journal_on(self, path: &Path) -> Option<Self> {
        let journal = Self::at(home_of(path.metadata().ok()?.rdev())?)?;
        Some(Self { journal: Some(Box::new(journal)), ..self })
    }

    /// Whether the file system's journal is counted by itself.
    pub fn tells_journal_apart(&self) -> bool {
        self.journal.is_some()
    }

    /// The counts now.
    pub fn counts(&self) -> Option<Counts> {
        let [writes, sectors, flushes] =
            parse(&std::fs::read_to_string(self.home.join("stat")).ok()?)?;
        let bytes = sectors * SECTOR;
        let mut counts = Counts { writes, bytes, flushes, ..Counts::default() };
        match &self.journal {
            Some(journal) => {
                counts += journal.counts()?;
                counts.journal_bytes = counts.bytes - bytes;
            }
            None => counts.journal_commits = self.journal().unwrap_or(0),
        }
        Some(counts)
    }

    /// Commits of an ext4 journal on this device, or on the journal's own; none if there is no such
    /// journal.
    pub fn journal(&self) -> Option<u64> {
        if let Some(journal) = &self.journal {
            return journal.journal();
        }
        let folders = std::fs::read_dir("/proc/fs/jbd2").ok()?;
        let own = format!("{}-", self.name);
        let folder = folders.filter_map(|entry| Some(entry.ok()?.path())).find(|path| {
            path.file_name().is_some_and(|name| {
                let name = name.to_string_lossy();
                // A journal on a device of its own has that one's name, and no inode.
                name.starts_with(&own) || *name == *self.name
            })
        })?;
        let info = std::fs::read_to_string(folder.join("info")).ok()?;
        info.split_whitespace().next()?.parse().ok()
    }

    /// What the kernel knows of its cache, such as `write back`.
    pub fn cache(&self) -> String {
        let text = std::fs::read_to_string(self.home.join("queue/write_cache")).unwrap_or_default();
        let text = text.trim();
        if text.is_empty() { "unknown".to_owned() } else { text.to_owned() }
    }
}

fn home_of(number: u64) -> Option<PathBuf> {
    let link = format!("/sys/dev/block/{}:{}", major(number), minor(number));
    std::fs::canonicalize(link).ok()
}

/// The device file that the mount `folder` is in was made from.
fn source_of_mount(folder: &Path) -> Option<PathBuf> {
    Mount::of(folder).map(|mount| mount.source).filter(|source| source.starts_with("/dev/"))
}

fn parse(stat: &str) -> Option<[u64; 3]> {
    let fields: Vec<u64> = stat.split_whitespace().map_while(|field| field.parse().ok()).collect();
    let [writes, sectors, flushes] = FIELDS.map(|at| fields.get(at).copied());
    Some([writes?, sectors?, flushes?])
}

/// Bytes that this process has handed to write calls.
pub fn handed_over() -> u64 {
    let counts = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    counts.lines().find_map(|line| line.strip_prefix("wchar:")?.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_fields_five_seven_and_sixteen() {
        let stat = "44506 18932 5156114 19412 10443 18680 5036392 16060 0 11188 36497 7506 59 2789272 1016 331 7\n";
        assert_eq!(parse(stat), Some([10443, 5_036_392, 331]));
        assert_eq!(parse("1 2 3 4 5 6 7 8 9 10 11"), None);
    }
}
