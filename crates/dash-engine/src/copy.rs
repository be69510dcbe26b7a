//! Copying ranges from one file to another.

use crate::buffer_pool::{buffer_for, part_of};
use crate::error::{Context, Operation, Result};
use crate::holes::data_in;
use crate::io::{read_padded, write_pieces};
use dash_storage::File;
use std::ops::Range;

/// Copies `range` into a file in which it reads as zeros: holes stay holes.
pub fn copy_into_new<F: File>(from: &F, to: &F, range: Range<u64>, name: &str) -> Result<()> {
    let mut buffer = buffer_for(range.end.saturating_sub(range.start))?;
    for data in data_in(from, range, name)?.iter() {
        let mut at = data.start;
        while at < data.end {
            let part = part_of(data.end - at);
            read_padded(from, &mut buffer[..part], at).during(Operation::Read, name)?;
            if buffer[..part].iter().any(|&byte| byte != 0) {
                write_pieces(to, &buffer[..part], at, name)?;
            }
            at += part as u64;
        }
    }
    Ok(())
}

/// Copies `range` from one file to another through a buffer; zeros where the source ends before.
pub fn copy<F: File>(from: &F, to: &F, range: Range<u64>, name: &str) -> Result<()> {
    let mut at = range.start;
    let mut buffer = buffer_for(range.end.saturating_sub(range.start))?;
    while at < range.end {
        let part = part_of(range.end - at);
        read_padded(from, &mut buffer[..part], at).during(Operation::Read, name)?;
        write_pieces(to, &buffer[..part], at, name)?;
        at += part as u64;
    }
    Ok(())
}
