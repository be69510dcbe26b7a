//! A sign: the small file under a log's name that says where the log itself lies, and which log it
//! is. It begins as a head does, with a version of its own, so that whoever knows no signs takes it
//! for what a newer dash wrote, and for no empty log (LOG-16).
//!
//! What changes in it are two words, each of which a device and byte-addressable memory write
//! whole; so these are no part of its checksum.

use crate::format::{SECTOR, checksum, layout as common, put, seal, u16_at, u32_at, u64_at};
use crate::head::MAGIC;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::io::read_some;
use dash_engine::open::open_if_there;
use dash_storage::{File, OpenMode, Storage};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The version that no format of heads will have.
pub const VERSION: u32 = u32::MAX;

/// Bytes of the longest path: the sign is in one sector.
pub const PATH_MAX: usize = SECTOR - layout::PATH;

/// The states: no bit makes one of the other.
const MADE: [u8; 4] = *b"MADE";
const NONE: [u8; 4] = *b"NONE";

/// Offsets, behind the log's id.
pub mod layout {
    /// Inode number of the database, u64.
    pub const OWNER: usize = 24;
    /// `NONE`: the log may be missing; `MADE`: it must be there.
    pub const STATE: usize = 32;
    /// Bytes of the path, u16.
    pub const PATH_LEN: usize = 36;
    /// The log's absolute path, UTF-8.
    pub const PATH: usize = 38;
}

/// What a sign says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sign {
    /// The log's id.
    pub id: u64,
    /// Inode number of the database that it was written for: a copy of the sign is another one's.
    pub owner: u64,
    /// The log was made, so it is lost if it is missing. Before, and while it is being removed, no
    /// record of it counts.
    pub is_made: bool,
    /// Where the log is.
    pub path: PathBuf,
}

/// What lies under a log's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// A log, or what is no sign.
    Log,
    /// A sign.
    Sign(Sign),
    /// A sign that is damaged.
    Damaged,
}

impl Sign {
    /// As bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] for a path that is too long, no UTF-8, or not printable.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let path = self.path.to_str().filter(|path| path.len() <= PATH_MAX && is_printable(path));
        let unfit = || {
            let path = self.path.to_string_lossy();
            let path = path.escape_debug();
            Error::Refused(format!("{path} is too long, not UTF-8, or has a control character"))
        };
        let path = path.ok_or_else(unfit)?.as_bytes();
        let len = u16::try_from(path.len()).map_err(|_| unfit())?;
        let mut bytes = vec![0; layout::PATH];
        put(&mut bytes, 0, &MAGIC);
        put(&mut bytes, common::VERSION, &VERSION.to_le_bytes());
        put(&mut bytes, common::ID, &self.id.to_le_bytes());
        put(&mut bytes, layout::PATH_LEN, &len.to_le_bytes());
        bytes.extend_from_slice(path);
        seal(&mut bytes);
        for (at, word) in [self.owner_word(), self.state_word()] {
            let at = usize::try_from(at).unwrap_or_default();
            put(&mut bytes, at, &word);
        }
        Ok(bytes)
    }

    /// Where it says whose it is, and how.
    #[must_use]
    pub fn owner_word(&self) -> (u64, Vec<u8>) {
        (layout::OWNER as u64, self.owner.to_le_bytes().to_vec())
    }

    /// Where it says whether the log was made, and how.
    #[must_use]
    pub fn state_word(&self) -> (u64, Vec<u8>) {
        (layout::STATE as u64, if self.is_made { MADE } else { NONE }.to_vec())
    }

    /// What a file is that begins with `bytes`, and has no more, if it is a sign.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Found {
        let is_sign = bytes.len() >= common::ID
            && bytes.starts_with(&MAGIC)
            && u32_at(bytes, common::VERSION) == VERSION;
        if !is_sign {
            return Found::Log;
        }
        let len = usize::from(u16_at(bytes, layout::PATH_LEN));
        let Some(path) = bytes.get(layout::PATH..layout::PATH + len) else {
            return Found::Damaged;
        };
        let mut whole = bytes[..layout::PATH + len].to_vec();
        whole[layout::OWNER..layout::PATH_LEN].fill(0);
        let state = &bytes[layout::STATE..layout::PATH_LEN];
        let is_sound = checksum(&whole) == u32_at(bytes, common::CHECKSUM)
            && [&MADE[..], &NONE].contains(&state);
        match std::str::from_utf8(path) {
            Ok(path) if is_sound && is_path(path) => Found::Sign(Self {
                id: u64_at(bytes, common::ID),
                owner: u64_at(bytes, layout::OWNER),
                is_made: state == MADE,
                path: PathBuf::from(path),
            }),
            _ => Found::Damaged,
        }
    }
}

fn is_path(path: &str) -> bool {
    Path::new(path).is_absolute() && is_printable(path)
}

/// A sign may be anybody's, and its path is printed: a terminal that obeyed it would show something
/// else.
fn is_printable(path: &str) -> bool {
    !path.chars().any(char::is_control)
}

/// Looks what lies under a log's name.
///
/// # Errors
///
/// Those of the file system.
pub fn look<S: Storage>(directory: &S::Directory, name: &OsStr) -> Result<Found> {
    let Some(file) = open_if_there::<S>(directory, name, OpenMode::Read)? else {
        return Ok(Found::Nothing);
    };
    examine(&file, &name.to_string_lossy())
}

/// Looks what a file under a log's name is; never [`Found::Nothing`].
///
/// # Errors
///
/// Those of the file system.
pub fn examine<F: File>(file: &F, shown: &str) -> Result<Found> {
    let mut start = [0; layout::PATH];
    let len = read_some(file, &mut start, 0).during(Operation::Read, shown)?;
    if Sign::decode(&start[..len]) == Found::Log {
        return Ok(Found::Log);
    }
    let mut bytes = vec![0; layout::PATH + PATH_MAX];
    let len = read_some(file, &mut bytes, 0).during(Operation::Read, shown)?;
    Ok(Sign::decode(&bytes[..len]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Invalid;
    use crate::heads::Heads;

    fn sign() -> Sign {
        Sign { id: 7, owner: 12, is_made: true, path: PathBuf::from("/pmem/app.db-dashlog") }
    }

    #[test]
    fn a_sign_is_read_back_and_any_damage_is_told() {
        let bytes = sign().encode().unwrap();
        assert_eq!(Sign::decode(&bytes), Found::Sign(sign()));
        for bit in common::CHECKSUM * 8..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            // Whose it is has a word of its own: another database's, and refused as such.
            let is_owner = (layout::OWNER..layout::STATE).contains(&(bit / 8));
            let owner = u64_at(&damaged, layout::OWNER);
            let other = Found::Sign(Sign { owner, ..sign() });
            let expected = if is_owner { other } else { Found::Damaged };
            assert_eq!(Sign::decode(&damaged), expected, "bit {bit}");
        }
        assert_eq!(Sign::decode(&bytes[..bytes.len() - 1]), Found::Damaged);
        let relative = Sign { path: PathBuf::from("pmem"), ..sign() };
        assert_eq!(Sign::decode(&relative.encode().unwrap()), Found::Damaged);
        let unprintable = Sign { path: PathBuf::from("/pmem/\u{1b}[2J"), ..sign() };
        assert!(unprintable.encode().is_err());
        let long = Sign { path: PathBuf::from(format!("/{}", "a".repeat(PATH_MAX))), ..sign() };
        assert!(long.encode().is_err());
    }

    /// SEC S2-10: whatever its checksum says.
    #[test]
    fn a_sign_with_a_control_character_is_none() {
        for at in 0..sign().path.as_os_str().len() {
            let mut forged = sign().encode().unwrap();
            forged[layout::PATH + at] = b'\n';
            seal_again(&mut forged);
            assert_eq!(Sign::decode(&forged), Found::Damaged, "at {at}");
        }
    }

    /// The checksum that stands for what is there now.
    fn seal_again(bytes: &mut [u8]) {
        let words = bytes[layout::OWNER..layout::PATH_LEN].to_vec();
        bytes[layout::OWNER..layout::PATH_LEN].fill(0);
        seal(bytes);
        bytes[layout::OWNER..layout::PATH_LEN].copy_from_slice(&words);
        assert_ne!(Sign::decode(bytes), Found::Log);
    }

    /// LOG-16: whoever knows no signs refuses.
    #[test]
    fn a_sign_is_no_empty_log_to_anybody() {
        let bytes = sign().encode().unwrap();
        let mut padded = bytes.clone();
        padded.resize(1024, 0);
        assert_eq!(
            Heads::decode(&padded).head.err().map(|it| matches!(it, Invalid::Newer(_))),
            Some(true)
        );
        assert_eq!(Sign::decode(&[0; 512]), Found::Log);
        assert_eq!(Sign::decode(b""), Found::Log);
    }
}
