//! The folder itself: its file system, how that is mounted, what dash does there, and its space.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use dash_storage::real::{Real, is_read_only};
use dash_storage::{Directory, File, OpenMode, Storage};
use nix::unistd::AccessFlags;
use serde_json::{Value, json};

use super::finding::{Level, Section};
use super::names::Folder;
use super::space::Space;
use crate::access;
use crate::failure::{Explain, Result};
use crate::out::Shown;
use dash_terminal::device::Device;
use dash_terminal::mount::Mount;

/// Mode wal's smallest log and its shared memory, and a small database in mode shadow.
const LEAST: u64 = 1 << 20;

/// More files than dash ever has beside one database.
const LEAST_FILES: u64 = 16;

/// File systems, each with what there is to say of it.
const KINDS: &[(&[&str], Level, &str, &str)] = &[
    (
        &["ext4", "xfs", "btrfs"],
        Level::Good,
        "dash is tested on it; mode shadow exchanges names in one step",
        "",
    ),
    (
        &["overlay", "fuse-overlayfs", "fuse.fuse-overlayfs"],
        Level::Note,
        "an overlay, as a container has: what is written here goes with it",
        "",
    ),
    (
        &["tmpfs", "ramfs"],
        Level::Warning,
        "memory: nothing here survives a power loss or a restart, whatever a commit promises",
        "keep databases on a disk, unless they may be lost",
    ),
    (
        &["ext2", "ext3"],
        Level::Note,
        "as ext4, which serves it; without a journal it is sound for small directories only",
        "",
    ),
    (
        &["nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "virtiofs", "ceph", "afs", "coda"],
        Level::Refused,
        "dash opens no database on it: locks and shared memory don't reach all machines",
        "use a disk of this machine; dash_filesystem=any in the URI takes the risk",
    ),
    (
        &[
            "lustre",
            "glusterfs",
            "gfs2",
            "ocfs2",
            "fuse.sshfs",
            "fuse.glusterfs",
            "fuse.s3fs",
            "fuse.rclone",
            "fuse.gcsfuse",
            "fuse.cephfs",
        ],
        Level::Warning,
        "a network file system, which dash does not support: locks and shared memory don't reach other machines",
        "use a disk of this machine",
    ),
    (
        &["vfat", "exfat", "msdos", "ntfs", "ntfs3", "fuseblk"],
        Level::Warning,
        "without owners or permissions of Linux, and dash was never tried on it",
        "use ext4, xfs or btrfs",
    ),
    (
        &["squashfs", "iso9660", "erofs", "cramfs"],
        Level::Note,
        "made for reading only: databases at rest can be read",
        "",
    ),
];

/// What there is to say of a type of file system.
fn judge(kind: &str) -> (Level, &'static str, &'static str) {
    let known = KINDS.iter().find(|(names, ..)| names.contains(&kind));
    match known {
        Some((_, level, says, remedy)) => (*level, says, remedy),
        None if kind.starts_with("fuse") => (
            Level::Warning,
            "a FUSE file system: dash tries whether locks and shared memory hold there; flushes are what its program makes of \
             them",
            "use ext4, xfs or btrfs",
        ),
        None => (Level::Note, "dash was not tried on it", ""),
    }
}

/// Looks at the folder.
///
/// # Errors
///
/// If it can't be opened.
pub fn examine(folder: &Folder) -> Result<Section> {
    let path = &folder.path;
    let mut section = Section::new(format!("folder {}", path.shown()));
    let directory = Real.open_directory(path).explain(format!("opening {}", path.shown()))?;
    let mount = Mount::of(path);
    match &mount {
        Some(mount) => mounted(&mut section, mount),
        None => section.say(Level::Note, "/proc does not say what it is mounted from"),
    }
    let keeps_order = directory.keeps_order();
    if !keeps_order {
        section.advise(
            Level::Warning,
            "without a journal, or with data=writeback: a power loss may lose names and blocks that were durable, for stock SQLite as well",
            "use a journal (tune2fs -O has_journal), or keep to few files in the folder and to mode wal",
        );
    }
    let direct = direct(&directory, folder);
    match direct {
        Some(Some(block)) => section.say(
            Level::Good,
            format!("logs are written past the page cache, in blocks of {block} bytes"),
        ),
        Some(None) => section.say(
            Level::Note,
            "no direct I/O: logs are written through the page cache, at the same flushes",
        ),
        None => {}
    }
    let cache = Device::of(path).map(|device| device.cache());
    if let Some(cache) = cache.as_deref().filter(|cache| *cache != "unknown") {
        section.say(
            Level::Good,
            format!("the device's cache: {cache}, as it says; a commit flushes it"),
        );
    }
    let space = space(&mut section, folder);
    rights(&mut section, folder);
    for file in &folder.unreadable {
        let name = Path::new(file.file_name().unwrap_or_default()).shown();
        section.say(
            Level::Note,
            format!("{name} can't be read by this user, so it may be a database or not"),
        );
    }
    section.facts = json!({
        "file_system": mount.as_ref().map(|mount| &mount.kind),
        "source": mount.as_ref().map(|mount| mount.source.to_string_lossy()),
        "mount_point": mount.as_ref().map(|mount| mount.point.to_string_lossy()),
        "options": mount.as_ref().map(|mount| &mount.options),
        "keeps_order": keeps_order,
        "direct_io_block": direct.flatten(),
        "device_cache": cache,
        "space": space,
    });
    Ok(section)
}

fn mounted(section: &mut Section, mount: &Mount) {
    let (level, says, remedy) = judge(&mount.kind);
    let from =
        format!("{} from {}, mounted at {}", mount.kind, mount.source.shown(), mount.point.shown());
    let says = format!("{from}: {says}");
    if remedy.is_empty() {
        section.say(level, says);
    } else {
        section.advise(level, says, remedy);
    }
    if mount.has("ro") {
        section.advise(
            Level::Warning,
            "mounted read-only: databases that were closed cleanly can be read, and nothing can be written or recovered",
            format!("mount -o remount,rw {}", mount.point.shown()),
        );
    }
    if mount.has("nobarrier") || mount.has("barrier=0") {
        section.advise(
            Level::Warning,
            "mounted with nobarrier: a flush does not reach the device, so a power loss may take commits that returned",
            format!("mount -o remount,barrier {}", mount.point.shown()),
        );
    }
    if mount.options.iter().any(|option| matches!(option.as_str(), "dax" | "dax=always")) {
        section.say(
            Level::Note,
            "persistent memory: a log here (dash_log) costs a commit no flush; untried on hardware",
        );
    }
}

/// The block of direct I/O, or that there is none; not known as long as there is no file to ask.
fn direct(directory: &<Real as Storage>::Directory, folder: &Folder) -> Option<Option<u32>> {
    let name = folder.databases.iter().find(|file| file.is_file())?.file_name()?;
    // A description of its own: nobody else's is changed.
    directory.open(name, OpenMode::Read).and_then(|file| file.make_direct()).ok()
}

fn space(section: &mut Section, folder: &Folder) -> Value {
    let Some(space) = Space::of(&folder.path) else { return Value::Null };
    let says =
        format!("{} MiB of {} MiB are free for this user", space.free >> 20, space.total >> 20);
    if space.free < LEAST || space.files.is_some_and(|files| files < LEAST_FILES) {
        let files = space.files.map_or_else(String::new, |files| format!(", and {files} inodes"));
        section.advise(
            Level::Warning,
            format!("{says}{files}"),
            "make room: opening a database takes some, also for reading",
        );
    } else {
        section.say(Level::Good, says);
    }
    json!({ "free_bytes": space.free, "total_bytes": space.total, "free_inodes": space.files })
}

fn rights(section: &mut Section, folder: &Folder) {
    let path = &folder.path;
    // A read-only mount is said above.
    if !is_read_only(path) && !access::may(path, AccessFlags::W_OK | AccessFlags::X_OK) {
        section.advise(
            Level::Warning,
            format!("{} may not write it: a database can be read if it was closed cleanly, and not be written", access::user()),
            format!("give the user the right to write {}, by owner or group", path.shown()),
        );
    }
    let Ok(found) = path.metadata() else { return };
    let is_owner =
        nix::unistd::geteuid().is_root() || found.uid() == nix::unistd::geteuid().as_raw();
    if found.mode() & 0o1000 != 0 && !is_owner {
        section.say(
            Level::Note,
            "its sticky bit is set: in mode shadow only the owner of a database's files can commit, as nobody else can exchange their names",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_system_is_judged_once() {
        let mut names: Vec<_> = KINDS.iter().flat_map(|(names, ..)| names.iter()).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        for (kind, level) in [
            ("ext4", Level::Good),
            ("nfs4", Level::Refused),
            ("fuse.sshfs", Level::Warning),
            ("fuse.anything", Level::Warning),
            ("tmpfs", Level::Warning),
            ("overlay", Level::Note),
            ("zfs", Level::Note),
        ] {
            assert_eq!(judge(kind).0, level, "{kind}");
        }
    }

    #[test]
    fn what_a_mount_forbids_is_said() {
        let mount = |options: &[&str]| Mount {
            point: "/srv".into(),
            kind: "ext4".into(),
            source: "/dev/vda1".into(),
            options: options.iter().map(|option| (*option).to_owned()).collect(),
        };
        let warnings = |options: &[&str]| {
            let mut section = Section::new("folder");
            mounted(&mut section, &mount(options));
            section.findings.iter().filter(|finding| finding.level == Level::Warning).count()
        };
        assert_eq!(warnings(&["rw", "relatime"]), 0);
        assert_eq!(warnings(&["ro"]), 1);
        assert_eq!(warnings(&["rw", "nobarrier"]), 1);
    }
}
