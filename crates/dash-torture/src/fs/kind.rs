//! The file systems that are tried: how each is made, mounted, and what it takes for granted of a
//! disk.

use nix::mount::MsFlags;

/// A file system, and how it is mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// ext4, data before the metadata that names it.
    Ext4Ordered,
    /// ext4, data in any order.
    Ext4Writeback,
    /// ext4 without a journal: names and inodes survive one by one, `e2fsck` puts them in order
    /// before it is mounted, as a machine does that starts again.
    Ext4Unjournaled,
    /// ext4 with blocks of 1 KiB: a page of the cache is written in parts.
    Ext4Small,
    /// XFS.
    Xfs,
    /// Btrfs: copy on write, a flush makes one file durable.
    Btrfs,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Ext4Ordered,
        Self::Btrfs,
        Self::Ext4Unjournaled,
        Self::Ext4Writeback,
        Self::Xfs,
        Self::Ext4Small,
    ];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ext4Ordered => "ext4",
            Self::Ext4Writeback => "ext4-writeback",
            Self::Ext4Unjournaled => "ext4-nojournal",
            Self::Ext4Small => "ext4-1k",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Its name to the kernel, and after `mkfs.`.
    pub const fn driver(self) -> &'static str {
        match self {
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
            _ => "ext4",
        }
    }

    /// Bytes of the device: about as little as mkfs accepts. The image is sparse.
    pub const fn size(self) -> u64 {
        match self {
            Self::Xfs => 300 << 20,
            Self::Btrfs => 128 << 20,
            _ => 32 << 20,
        }
    }

    /// Arguments of mkfs: quiet, over whatever is there, everything written now and nothing
    /// discarded.
    pub fn arguments(self) -> Vec<&'static str> {
        let (block, features) = match self {
            Self::Xfs | Self::Btrfs => return vec!["-q", "-f", "-K"],
            Self::Ext4Ordered | Self::Ext4Writeback => ("4096", "has_journal"),
            Self::Ext4Unjournaled => ("4096", "^has_journal"),
            Self::Ext4Small => ("1024", "has_journal"),
        };
        let extended = "lazy_itable_init=0,lazy_journal_init=0,nodiscard";
        vec!["-q", "-F", "-b", block, "-O", features, "-N", "64", "-E", extended]
    }

    /// Whether it is checked (`e2fsck -fy`) before it is mounted after a power cut.
    pub const fn is_checked(self) -> bool {
        matches!(self, Self::Ext4Unjournaled)
    }

    /// Whether a file may show, after a power cut, what another had in its blocks before.
    pub const fn shows_old_blocks(self) -> bool {
        matches!(self, Self::Ext4Unjournaled | Self::Ext4Writeback)
    }

    /// Flags and options of mount.
    pub const fn options(self) -> (MsFlags, &'static str) {
        let options = match self {
            Self::Ext4Ordered | Self::Ext4Small => "data=ordered,noinit_itable",
            Self::Ext4Writeback => "data=writeback,noinit_itable",
            Self::Ext4Unjournaled => "noinit_itable",
            Self::Xfs => "",
            Self::Btrfs => "nodiscard",
        };
        (MsFlags::MS_NOATIME, options)
    }

    /// Whether a full one ends processes that share memory through its files: a known limit, of
    /// stock SQLite's WAL mode as well. Btrfs, on Linux before 6.16.
    pub fn kills_when_full(self) -> bool {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let mut numbers = release.split(|c: char| !c.is_ascii_digit());
        let mut next = || numbers.next().and_then(|number| number.parse().ok()).unwrap_or(0);
        self == Self::Btrfs && (next(), next()) < (6, 16)
    }

    /// Whether it shuts itself down where its device fails: then a process that has a file of it in
    /// its memory is ended (SIGBUS), with stock SQLite's WAL mode as well.
    pub fn shuts_down(self) -> bool {
        matches!(self, Self::Btrfs | Self::Xfs)
    }

    /// Whether this block of 4 KiB is written as a whole or not at all: superblocks, which these
    /// file systems write in place, without a journal, and take for atomic.
    pub const fn is_atomic(self, block: u64) -> bool {
        match self {
            Self::Xfs => false,
            Self::Btrfs => block == (64 << 10) / 4096 || block == (64 << 20) / 4096,
            _ => block == 0,
        }
    }
}
