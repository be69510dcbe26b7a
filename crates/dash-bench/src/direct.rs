//! The limit: one 4 KiB direct overwrite and a flush per commit in a file made before. Nothing that
//! makes a commit durable on this disk can take less.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use nix::fcntl::OFlag;

use crate::failure::{Explain, Result};

/// Bytes of a write.
const BLOCK: usize = 4096;
/// Writes go through the file in order, and again.
const BLOCKS: u64 = 4096;

/// Memory that direct I/O accepts.
#[repr(align(4096))]
struct Aligned([u8; BLOCK]);

/// The file.
pub struct Direct {
    file: File,
    buffer: Box<Aligned>,
    at: u64,
    /// Whether the page cache is passed by: not every file system has direct I/O.
    pub is_direct: bool,
}

impl Direct {
    /// Makes the file, every block written once.
    pub fn new(path: &Path) -> Result<Self> {
        let what = || format!("making {}", path.display());
        let mut whole = File::create(path).explain(what())?;
        let zeros = [0; BLOCK];
        (0..BLOCKS).try_for_each(|_| whole.write_all(&zeros)).explain(what())?;
        whole.sync_all().explain(what())?;
        let flags = OFlag::O_DIRECT.bits();
        let direct = OpenOptions::new().write(true).custom_flags(flags).open(path);
        let is_direct = direct.is_ok();
        let file = match direct {
            Ok(file) => file,
            Err(_) => OpenOptions::new().write(true).open(path).explain(what())?,
        };
        Ok(Self { file, buffer: Box::new(Aligned([0; BLOCK])), at: 0, is_direct })
    }

    /// One write, one flush.
    pub fn step(&mut self) -> Result<()> {
        let number = self.at.to_le_bytes();
        self.buffer.0[..number.len()].copy_from_slice(&number);
        let at = self.at % BLOCKS * (BLOCK as u64);
        self.at += 1;
        let written = self.file.write_all_at(&self.buffer.0, at);
        written.and_then(|()| self.file.sync_data()).explain("writing a block directly")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_overwritten_in_order_and_the_file_keeps_its_size() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("limit");
        let mut direct = Direct::new(&path).expect("made");
        (0..3).try_for_each(|_| direct.step()).expect("written");
        let bytes = std::fs::read(&path).expect("read");
        assert_eq!(bytes.len(), BLOCK * 4096);
        assert_eq!([bytes[0], bytes[BLOCK], bytes[2 * BLOCK], bytes[3 * BLOCK]], [0, 1, 2, 0]);
    }
}
