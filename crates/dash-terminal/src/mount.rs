//! What a folder is mounted from, and how (proc_pid_mountinfo(5)).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A mount, as this process sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Where it is mounted.
    pub point: PathBuf,
    /// The type of its file system, such as `ext4` or `fuse.sshfs`.
    pub kind: String,
    /// What it is made from: a device's file, a server, or a mere word.
    pub source: PathBuf,
    /// Its options and those of the file system, such as `rw` and `data=ordered`.
    pub options: Vec<String>,
}

impl Mount {
    /// The one that `path` is in; `None` where that can't be told.
    pub fn of(path: &Path) -> Option<Self> {
        let path = path.canonicalize().ok()?;
        Self::among(&std::fs::read_to_string("/proc/self/mountinfo").ok()?, &path)
    }

    /// The same, by the text of `mountinfo`.
    fn among(mounts: &str, path: &Path) -> Option<Self> {
        let mounts = mounts.lines().filter_map(Self::parse);
        // Of two that are mounted at one place the later one is seen.
        mounts
            .filter(|mount| path.starts_with(&mount.point))
            .max_by_key(|mount| mount.point.as_os_str().len())
    }

    fn parse(line: &str) -> Option<Self> {
        let (left, right) = line.split_once(" - ")?;
        let left: Vec<_> = left.split(' ').collect();
        let mut right = right.split(' ');
        let [_, _, _, _, point, own, ..] = left[..] else { return None };
        let (kind, source, shared) = (right.next()?, right.next()?, right.next().unwrap_or(""));
        let mut options: Vec<_> = own.split(',').map(str::to_owned).collect();
        for option in shared.split(',').filter(|option| !option.is_empty()) {
            // A mount may be read-only where its file system is not.
            if !options.iter().any(|known| known == option) && !matches!(option, "rw" | "ro") {
                options.push(option.to_owned());
            }
        }
        if shared.split(',').any(|option| option == "ro") && !options.iter().any(|it| it == "ro") {
            options.retain(|option| option != "rw");
            options.insert(0, "ro".to_owned());
        }
        Some(Self {
            point: unescape(point),
            kind: kind.to_owned(),
            source: unescape(source),
            options,
        })
    }

    /// Whether it has this option.
    pub fn has(&self, option: &str) -> bool {
        self.options.iter().any(|known| known == option)
    }
}

/// The kernel writes a space, and what else would end a field, as `\040`.
fn unescape(field: &str) -> PathBuf {
    let (bytes, mut plain, mut at) = (field.as_bytes(), Vec::new(), 0);
    while at < bytes.len() {
        let octal = bytes.get(at + 1..at + 4).and_then(|three| std::str::from_utf8(three).ok());
        let escaped = octal.filter(|_| bytes[at] == b'\\');
        match escaped.and_then(|three| u8::from_str_radix(three, 8).ok()) {
            Some(byte) => {
                plain.push(byte);
                at += 4;
            }
            None => {
                plain.push(bytes[at]);
                at += 1;
            }
        }
    }
    PathBuf::from(OsString::from_vec(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
21 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw,errors=remount-ro
22 21 0:30 / /srv rw - tmpfs none rw,size=64k
23 21 0:31 /a /srv/my\\040data ro,nosuid - xfs /dev/vdb rw
24 21 0:32 / /srv rw - nfs4 server:/x ro,vers=4.2
";

    fn of(path: &str) -> Mount {
        Mount::among(MOUNTS, Path::new(path)).expect("the root at least")
    }

    #[test]
    fn the_deepest_and_latest_mount_counts() {
        assert_eq!(of("/home/app").kind, "ext4");
        assert_eq!(of("/srv/other").kind, "nfs4");
        let deep = of("/srv/my data/app.db");
        assert_eq!((deep.kind.as_str(), deep.point.as_path()), ("xfs", Path::new("/srv/my data")));
        assert_eq!(of("/srvother").kind, "ext4");
    }

    #[test]
    fn a_mount_or_its_file_system_may_be_read_only() {
        assert!(of("/").has("rw") && !of("/").has("ro") && of("/").has("errors=remount-ro"));
        assert!(of("/srv/my data").has("ro"));
        assert!(of("/srv").has("ro") && !of("/srv").has("rw") && of("/srv").has("vers=4.2"));
    }
}
