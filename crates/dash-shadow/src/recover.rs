//! What a recovery does to files once the table has decided.

use crate::mutation::{Mutation, broken};
use dash_storage::{Directory, File, OpenMode, Storage};

use crate::error::{Context, Error, Operation, Result};
use crate::evaluate::Found;
use crate::header::FENCE_OFFSET;
use crate::holes::Holes;
use crate::page_list::read_units;
use crate::spare::{buffer_for, part_of};
use crate::tail::{read_exact, write_pieces};

/// Writes the winner's listed units and block once more and flushes it (SHADOW-8, F2): what is
/// whole in the cache need not be on the disk, and after a failed flush never will be.
pub fn make_durable<F: File>(found: &Found<F>, name: &str) -> Result<()> {
    let file = &found.file;
    let Ok(block) = &found.tail.commit else {
        // Somebody else has written it since, also where the tail was.
        return file.flush().during(Operation::Flush, name);
    };
    let units = read_units(file, found.tail.len, block, name)?.unwrap_or_default();
    // What is a hole in the cache is none of it on the disk either.
    let holes = Holes::where_many(file, &units, name)?;
    let rest = found.tail.len - crate::format::TAIL_LEN - block.list_len()..found.tail.len;
    let written = units.iter().filter(|unit| !holes.has(unit));
    let mut ranges: Vec<_> = written.map(crate::format::Unit::range).collect();
    ranges.push(rest);
    if broken(Mutation::WinnerNotMadeDurable) {
        return Ok(());
    }
    if broken(Mutation::WinnerNotRewritten) {
        ranges.clear();
    }
    let longest = ranges.iter().map(|range| range.end - range.start).max().unwrap_or(0);
    let mut buffer = buffer_for(longest)?;
    for range in ranges {
        let mut at = range.start;
        while at < range.end {
            let bytes = &mut buffer[..part_of(range.end - at)];
            if !read_exact(file, bytes, at).during(Operation::Read, name)? {
                return Err(Error::Corrupt(format!(
                    "{name} became shorter while it was recovered"
                )));
            }
            write_pieces(file, bytes, at, name)?;
            at += bytes.len() as u64;
        }
    }
    if broken(Mutation::WinnerNotFlushed) {
        return Ok(());
    }
    file.flush().during(Operation::Flush, name)
}

/// Marks the header of a file that is the shadow from now on, in the page cache. One that is no
/// header (all zeros: the file's first commit was cut off) needs no mark, and would look like
/// damage with it, should the names be behind after a power loss.
pub fn demote<F: File>(found: &Found<F>, name: &str) -> Result<()> {
    match found.header {
        Some(header) if header.is_sqlite() && !header.is_fenced() => {
            found.file.write_at(&header.demotion(), FENCE_OFFSET).during(Operation::Write, name)
        }
        _ => Ok(()),
    }
}

/// Opens one of dash's own names for reading and writing. An empty folder there is removed: the
/// check of a file system without a journal may leave one, where a file that was lost had the inode
/// number of a former name fence.
pub fn open_own<S: Storage>(
    directory: &S::Directory,
    name: &std::ffi::OsStr,
    mode: OpenMode,
) -> std::io::Result<S::File> {
    match directory.open(name, mode) {
        Err(error) if error.kind() == std::io::ErrorKind::IsADirectory => {
            directory.remove_directory(name).map_err(|_| {
                let what = "it is a folder, not a file, and not empty; move it away";
                std::io::Error::new(error.kind(), what)
            })?;
            directory.open(name, mode)
        }
        opened => opened,
    }
}

/// Opens a name, if it is there.
pub fn open_if_there<S: Storage>(
    directory: &S::Directory,
    name: &std::ffi::OsStr,
    mode: OpenMode,
) -> Result<Option<S::File>> {
    if_there(directory.open(name, mode), name)
}

/// What was opened, or `None` if there was nothing.
pub fn if_there<F>(opened: std::io::Result<F>, name: &std::ffi::OsStr) -> Result<Option<F>> {
    match opened {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).during(Operation::Open, name.to_string_lossy()),
    }
}
