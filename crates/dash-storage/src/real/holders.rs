//! Which processes hold locks on a file. Open-file-description locks have no owner in
//! `/proc/locks`, but each descriptor's `fdinfo` names the locks taken through it.

use std::fs;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::FileId;

/// A process, as `/proc` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its id, as this process's pid namespace has it.
    pub id: u32,
    /// Its command. It names itself, so this may be anything.
    pub command: Vec<u8>,
    /// What has stopped it.
    pub stopped: Option<Stopped>,
}

/// What a process is stopped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// A signal: another one lets it go on.
    BySignal,
    /// A debugger, which alone lets it go on.
    ByTracer,
}

impl Stopped {
    /// By the letter of its state in `/proc`.
    fn of(state: Option<u8>) -> Option<Self> {
        match state? {
            b'T' => Some(Self::BySignal),
            b't' => Some(Self::ByTracer),
            _ => None,
        }
    }
}

/// A lock as the kernel lists it with a descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The file.
    pub file: FileId,
    /// The process.
    pub process: Process,
    /// Of an open file description, as dash takes them; else of the process, as stock SQLite does.
    pub is_of_description: bool,
    /// Exclusive or shared.
    pub exclusive: bool,
    /// First byte.
    pub first: u64,
    /// Last byte.
    pub last: u64,
}

impl Held {
    /// Whether it is on one of these bytes.
    #[must_use]
    pub fn meets(&self, range: &Range<u64>) -> bool {
        self.first < range.end && range.start <= self.last
    }
}

/// Locks on files, of every process whose descriptors this user may look at.
#[must_use]
pub fn of(files: &[FileId]) -> Vec<Held> {
    among(files, &numbered(Path::new("/proc")))
}

/// The same, of these processes: one for each descriptor that has one.
#[must_use]
pub fn among(files: &[FileId], processes: &[u32]) -> Vec<Held> {
    let mut held = Vec::new();
    for id in processes {
        let home = Path::new("/proc").join(id.to_string());
        let mut process = None;
        for descriptor in numbered(&home.join("fdinfo")) {
            let Ok(info) = fs::read_to_string(home.join("fdinfo").join(descriptor.to_string()))
            else {
                continue;
            };
            let locks: Vec<_> =
                info.lines().filter_map(parse).filter(|lock| is_one(files, lock.inode)).collect();
            // Inode numbers are unique on one device only, and a lock line's device is not stat's.
            let open = || file_of(&home.join("fd").join(descriptor.to_string()));
            let Some(file) = (!locks.is_empty()).then(open).flatten() else { continue };
            if !files.contains(&file) {
                continue;
            }
            if process.is_none() {
                process = self::process(*id);
            }
            let Some(process) = &process else { break };
            held.extend(locks.into_iter().map(|lock| Held {
                file,
                process: process.clone(),
                is_of_description: lock.is_of_description,
                exclusive: lock.exclusive,
                first: lock.first,
                last: lock.last,
            }));
        }
    }
    held.sort_by_key(|lock| (lock.process.id, lock.first));
    held
}

/// A process that is there.
#[must_use]
pub fn process(id: u32) -> Option<Process> {
    let stat = fs::read(format!("/proc/{id}/stat")).ok()?;
    let (begin, end) = (position(&stat, b'(')?, stat.iter().rposition(|byte| *byte == b')')?);
    let command = stat.get(begin + 1..end)?.to_vec();
    let stopped = Stopped::of(stat.get(end + 2).copied());
    Some(Process { id, command, stopped })
}

fn position(bytes: &[u8], wanted: u8) -> Option<usize> {
    bytes.iter().position(|byte| *byte == wanted)
}

fn is_one(files: &[FileId], inode: u64) -> bool {
    files.iter().any(|file| file.inode == inode)
}

fn file_of(descriptor: &Path) -> Option<FileId> {
    let found = fs::metadata(descriptor).ok()?;
    Some(FileId { device: found.dev(), inode: found.ino() })
}

fn numbered(folder: &Path) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// A line of `fdinfo`.
#[derive(Debug, PartialEq, Eq)]
struct Lock {
    is_of_description: bool,
    exclusive: bool,
    inode: u64,
    first: u64,
    last: u64,
}

/// Reads `lock: 1: OFDLCK  ADVISORY  READ -1 fe:00:17170 1073741825 1073741825`.
fn parse(line: &str) -> Option<Lock> {
    let fields: Vec<&str> = line.strip_prefix("lock:")?.split_whitespace().collect();
    let [_, owner, _, kind, _, place, first, last] = fields[..] else {
        return None;
    };
    Some(Lock {
        is_of_description: owner == "OFDLCK",
        exclusive: kind == "WRITE",
        inode: place.rsplit(':').next()?.parse().ok()?,
        first: first.parse().ok()?,
        last: if last == "EOF" { u64::MAX } else { last.parse().ok()? },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_line_is_read() {
        let line = "lock:\t1: OFDLCK  ADVISORY  READ -1 fe:00:17170 1073741825 1073741825";
        let shared = Lock {
            is_of_description: true,
            exclusive: false,
            inode: 17170,
            first: 1_073_741_825,
            last: 1_073_741_825,
        };
        assert_eq!(parse(line), Some(shared));
        let line = "lock:\t1: POSIX  ADVISORY  WRITE 77 fe:00:5 0 EOF";
        let all =
            Lock { is_of_description: false, exclusive: true, inode: 5, first: 0, last: u64::MAX };
        assert_eq!(parse(line), Some(all));
        assert_eq!(parse("flags:\t02"), None);
    }

    #[test]
    fn a_process_is_seen() {
        let own = process(std::process::id());
        assert!(own.is_some_and(|own| !own.command.is_empty() && own.stopped.is_none()));
        assert!(process(u32::MAX).is_none());
        let stopped = [b'R', b'T', b't'].map(|state| Stopped::of(Some(state)));
        assert_eq!(stopped, [None, Some(Stopped::BySignal), Some(Stopped::ByTracer)]);
    }
}
