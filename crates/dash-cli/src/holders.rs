//! Which processes hold locks on a file. Open-file-description locks have no owner in
//! `/proc/locks`, but each descriptor's `fdinfo` names the locks taken through it.

use std::fs;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use dash_storage::FileId;

/// A lock as the kernel lists it with a descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Process id.
    pub process: u32,
    /// Its command.
    pub command: String,
    /// Exclusive or shared.
    pub exclusive: bool,
    /// First byte.
    pub first: u64,
    /// Last byte.
    pub last: u64,
}

impl Held {
    /// Whether it is on one of these bytes.
    pub fn meets(&self, range: &Range<u64>) -> bool {
        self.first < range.end && range.start <= self.last
    }
}

/// `17 (python3), 18 (node)`, each process once; nothing where none is known.
pub fn shown<'a>(held: impl Iterator<Item = &'a Held>) -> Option<String> {
    let mut processes: Vec<_> =
        held.map(|held| format!("{} ({})", held.process, held.command)).collect();
    processes.dedup();
    (!processes.is_empty()).then(|| processes.join(", "))
}

/// Locks on a file, of every process whose descriptors this user may look at.
pub fn of(file: FileId) -> Vec<Held> {
    let mut held = Vec::new();
    for process in numbered(Path::new("/proc")) {
        let home = Path::new("/proc").join(process.to_string());
        for descriptor in numbered(&home.join("fdinfo")) {
            let Ok(info) = fs::read_to_string(home.join("fdinfo").join(descriptor.to_string()))
            else {
                continue;
            };
            let locks: Vec<_> = info.lines().filter_map(|line| parse(line, file.inode)).collect();
            // Inode numbers are unique on one device only, and a lock line's device is not stat's.
            if locks.is_empty() || !is_open_on(&home.join("fd").join(descriptor.to_string()), file)
            {
                continue;
            }
            // Each process names itself, so the name may be anything.
            let command = dash_statement::shown(
                fs::read(home.join("comm")).unwrap_or_default().trim_ascii_end(),
            );
            let held_by = |(exclusive, first, last)| Held {
                process,
                command: command.clone(),
                exclusive,
                first,
                last,
            };
            held.extend(locks.into_iter().map(held_by));
        }
    }
    held.sort_by_key(|lock| (lock.process, lock.first));
    held.dedup();
    held
}

fn is_open_on(descriptor: &Path, file: FileId) -> bool {
    fs::metadata(descriptor)
        .is_ok_and(|found| found.dev() == file.device && found.ino() == file.inode)
}

fn numbered(folder: &Path) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// Reads `lock: 1: OFDLCK  ADVISORY  READ -1 fe:00:17170 1073741825 1073741825`.
fn parse(line: &str, inode: u64) -> Option<(bool, u64, u64)> {
    let fields: Vec<&str> = line.strip_prefix("lock:")?.split_whitespace().collect();
    let [_, _, _, kind, _, place, first, last] = fields[..] else {
        return None;
    };
    let found: u64 = place.rsplit(':').next()?.parse().ok()?;
    let last = if last == "EOF" { u64::MAX } else { last.parse().ok()? };
    (found == inode).then_some((kind == "WRITE", first.parse().ok()?, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_line_is_read() {
        let line = "lock:\t1: OFDLCK  ADVISORY  READ -1 fe:00:17170 1073741825 1073741825";
        assert_eq!(parse(line, 17170), Some((false, 1_073_741_825, 1_073_741_825)));
        assert_eq!(parse(line, 1), None);
        assert_eq!(
            parse("lock:\t1: POSIX  ADVISORY  WRITE 77 fe:00:5 0 EOF", 5),
            Some((true, 0, u64::MAX))
        );
        assert_eq!(parse("flags:\t02", 5), None);
    }
}
