//! What a recovery does to files once the table has decided.

use crate::file::holes::Holes;
use crate::file::page_list::read_units;
use crate::format::header::{FENCE_OFFSET, Marks};
use crate::mutation::{Mutation, broken};
use crate::recovery::examine::Found;
use dash_engine::buffer_pool::{buffer_for, part_of};
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::io::{read_exact, write_pieces};
use dash_storage::File;

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
