//! Taking both commit blocks of a file away.

use crate::format::{BLOCK, BLOCK_LEN, SECTOR_BYTES, TAIL_LEN, first_page};
use dash_engine::error::{Context, Operation, Result};
use dash_engine::io::read_padded;
use dash_storage::File;

/// Takes the commit blocks of a file of `len` bytes away, in page 1 and in the tail. Writes both
/// places whatever the cache holds there: on the disk there may be another block. Not durable.
pub fn void_commit<F: File>(file: &F, len: u64, name: &str) -> Result<()> {
    if len < TAIL_LEN {
        return Ok(());
    }
    let mut sector = [0; SECTOR_BYTES];
    read_padded(file, &mut sector, 0).during(Operation::Read, name)?;
    first_page::blank(&mut sector);
    file.write_at(&sector, 0).during(Operation::Write, name)?;
    file.write_at(&[0; BLOCK], len - BLOCK_LEN).during(Operation::Write, name)
}
