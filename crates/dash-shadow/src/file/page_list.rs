//! Page lists as they are found in files: what a block says that a commit wrote counts only as far
//! as its file can hold it. A list is read in pieces, and no further than it can be right.

use crate::file::holes::Holes;
use crate::format::header::plain;
use crate::format::{BlockError, CommitBlock, Place, State, TAIL_LEN, UNIT, Unit, decode_units};
use crate::mutation::{Mutation, broken};
use dash_engine::buffer_pool::{buffer_for, part_of};
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::io::{STRIDE, read_exact};
use dash_engine::ranges::RangeSet;
use dash_storage::File;

/// A block that was read, if a file of `len` bytes can be what it says: a commit makes the file
/// long enough for its pages, its list and its tail before it writes a block. One that is damaged
/// says nothing.
pub fn within(
    block: std::result::Result<CommitBlock, BlockError>,
    len: u64,
) -> std::result::Result<CommitBlock, BlockError> {
    let block = block?;
    let room = len.checked_sub(TAIL_LEN).and_then(|rest| rest.checked_sub(block.list_len()));
    // What vouches for another copy has no size, and keeps a list that nobody reads.
    let describes = matches!(block.state, State::Whole | State::Prepared);
    let fits = room.is_some_and(|room| block.size <= room)
        && (!describes || Listed::new(block.size).all(&block.units));
    // Of a torn block this sees nearly as much as its checksum does.
    let believed = fits || broken(Mutation::BlockChecksumIgnored);
    if believed { Ok(block) } else { Err(BlockError::Damaged) }
}

/// Goes through the units of a page list: what a commit writes lies in the database, in pieces of
/// at most [`STRIDE`], none over another.
struct Listed {
    size: u64,
    bytes: u64,
}

impl Listed {
    pub(crate) fn new(size: u64) -> Self {
        Self { size, bytes: 0 }
    }

    /// Whether more of the same list can be right.
    pub(crate) fn all(&mut self, units: &[Unit]) -> bool {
        units.iter().all(|unit| {
            self.bytes += unit.len;
            (1..=STRIDE).contains(&unit.len)
                && unit.range().end <= self.size
                && self.bytes <= self.size
        })
    }
}

/// The units a block lists; `None` if its list area is not what it names, or lists what can't be.
pub fn read_units<F: File>(
    file: &F,
    len: u64,
    block: &CommitBlock,
    name: &str,
) -> Result<Option<Vec<Unit>>> {
    let area = block.list_len();
    if block.place == Place::Announced {
        return Ok(None);
    }
    if area == 0 {
        return Ok(Some(block.units.clone()));
    }
    let Some(mut at) = len.checked_sub(TAIL_LEN).and_then(|rest| rest.checked_sub(area)) else {
        return Ok(None);
    };
    // In pieces: a list that can't be right is not read to its end.
    let mut left = u64::from(block.unit_count) * UNIT as u64;
    let mut buffer = buffer_for(left)?;
    let mut hasher = crc32fast::Hasher::new();
    let (mut units, mut listed) = (Vec::new(), Listed::new(block.size));
    while left > 0 {
        let piece = &mut buffer[..part_of(left)];
        if !read_exact(file, piece, at).during(Operation::Read, name)? {
            return Ok(None);
        }
        hasher.update(piece);
        let more = decode_units(piece);
        if !listed.all(&more) && !broken(Mutation::ListChecksumIgnored) {
            return Ok(None);
        }
        units.try_reserve(more.len()).map_err(|_| Error::OutOfMemory)?;
        units.extend(more);
        (at, left) = (at + piece.len() as u64, left - piece.len() as u64);
    }
    let same = hasher.finalize() == block.list_checksum || broken(Mutation::ListChecksumIgnored);
    Ok(same.then_some(units))
}

/// Whether every listed unit is in the file as committed (marks and block in page 1 aside).
/// `start`: what has been read of its beginning.
pub fn units_match<F: File>(file: &F, units: &[Unit], start: &[u8], name: &str) -> Result<bool> {
    let mut buffer = buffer_for(units.iter().map(|unit| unit.len).max().unwrap_or(0))?;
    let mut holes = Holes::where_many(file, units, name)?;
    for unit in units {
        if let Some(zeros) = holes.checksum(unit) {
            if zeros != unit.checksum {
                return Ok(false);
            }
            continue;
        }
        let mut hasher = crc32fast::Hasher::new();
        let mut read = 0;
        while read < unit.len {
            let part = part_of(unit.len - read);
            let known = if unit.offset + read == 0 { start.get(..part) } else { None };
            let whole = match known {
                Some(bytes) => {
                    buffer[..part].copy_from_slice(bytes);
                    true
                }
                None => read_exact(file, &mut buffer[..part], unit.offset + read)
                    .during(Operation::Read, name)?,
            };
            if !whole {
                return Ok(false);
            }
            if unit.offset + read == 0 {
                plain(&mut buffer[..part]);
            }
            hasher.update(&buffer[..part]);
            read += part as u64;
        }
        if broken(Mutation::FirstUnitOnlyChecked) {
            return Ok(hasher.finalize() == unit.checksum);
        }
        if hasher.finalize() != unit.checksum && !broken(Mutation::PageChecksumsIgnored) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What a commit changed, of the units it lists.
pub(crate) fn global_page_list(units: &[Unit]) -> RangeSet {
    units.iter().filter(|unit| !unit.carried).map(Unit::range).collect()
}
